//! A run as text for people.

use super::Run;
use crate::cli::inputs::{Odd, index};
use crate::cli::out::table;
use crate::cli::text::{bandwidth, bytes, error, flops, plural, share, time, value};
use kernbench_core::ir::pe_names;
use kernbench_core::report::{LaunchTime, Row, What};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Rows of the table of where the time went.
const ROWS: usize = 10;

/// Everything a run says, the answer first.
pub(in crate::cli) fn human(run: &Run<'_>, colour: bool) -> String {
    let report = &run.report;
    let overhead_ps = run.outcome.launches.first().map_or(0, |l| l.overhead_ps);
    let mut text = String::new();
    let params = run.bench.params.iter().map(|p| format!("{}={}", p.key, run.params.text(p.key)));
    let params: Vec<String> = params.collect();
    let bold = |t: &str| if colour { format!("\x1b[1m{t}\x1b[0m") } else { t.to_owned() };
    let _ = writeln!(text, "{}  {}; {}\n", bold(run.bench.name), params.join(" "), run.inputs);
    let mut line = |name: &str, what: String| {
        let _ = writeln!(text, "{name:<11}{what}");
    };
    for (i, part) in result(run, colour).into_iter().enumerate() {
        line(if i == 0 { "result" } else { "" }, part);
    }
    for (i, odd) in run.odd.iter().flatten().enumerate() {
        line(if i == 0 { "inputs" } else { "" }, odd_text(odd));
    }
    let (launch, deploy) = (time(overhead_ps), time(run.deploy_ps));
    let of = if report.launches.len() > 1 { ", from the first launch to the end of the last" } else { "" };
    line("latency", format!("{} simulated{of}", time(report.makespan_ps)));
    line("", format!("before it: {deploy} to deploy the tensors, {launch} to launch"));
    let machine = run.machine;
    let position = |pe| {
        let at = machine.at(pe);
        [at.sip, at.cube, at.pe]
    };
    let used = pe_names(report.pes.iter().map(|pe| position(*pe)));
    line("machine", format!("{} of {} PEs: {used}", report.pes.len(), machine.pe_count()));
    line("", format!("{} issue, {} fidelity", report.issue, report.fidelity.name()));
    line("ops", counts(&report.ops));
    if !report.messages.is_empty() {
        line("messages", counts(&report.messages));
    }
    let busy = report.engines.iter().filter(|e| e.busy_ps > 0);
    line(
        "busy share",
        busy.map(|e| format!("{} {}", e.engine, share(e.share_ppm))).collect::<Vec<_>>().join(", "),
    );
    let b = report.bytes;
    let remote = if b.remote > 0 {
        format!(", {} of it from or to other PEs", bytes(b.remote))
    } else {
        String::new()
    };
    line("HBM", format!("{} read, {} written{remote}", bytes(b.hbm_read), bytes(b.hbm_write)));
    let of = |rate: String, peak: String, ppm| format!("{rate} of {peak} ({})", share(ppm));
    let hbm = report.hbm;
    line("", of(bandwidth(hbm.per_us), bandwidth(hbm.peak_per_us), hbm.share_ppm()));
    let gemm = report.gemm;
    if report.flop > 0 {
        line("GEMM", of(flops(gemm.per_us), flops(gemm.peak_per_us), gemm.share_ppm()));
    }
    if b.ipcq > 0 {
        line("IPCQ", format!("{} sent from PE to PE", bytes(b.ipcq)));
    }
    text.push('\n');
    if report.launches.len() > 1 {
        text += &launches(&report.launches);
        text.push('\n');
    }
    text += &where_it_went(&report.time);
    let _ = writeln!(text, "\nwall time  {:.2} s", run.wall.as_secs_f64());
    text
}

fn launches(launches: &[LaunchTime]) -> String {
    let row = |l: &LaunchTime| {
        vec![time(l.start_ps), time(l.makespan_ps), plural(l.pes, "PE"), l.name.clone(), l.kernel.to_owned()]
    };
    let rows: Vec<_> = launches.iter().map(row).collect();
    table(&["starts at", "takes", "on", "launch", "kernel"], &rows, &[0, 1, 2])
}

fn result(run: &Run<'_>, colour: bool) -> Vec<String> {
    let Some(c) = run.outcome.check else { return vec!["not computed (--no-data)".to_owned()] };
    let paint = |text: &str, code: u8| match colour {
        true => format!("\x1b[1;{code}m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    let verdict = if c.correct { paint("right", 32) } else { paint("WRONG", 31) };
    let mut lines =
        vec![format!("{verdict}: worst error {}, bound {}", error(c.max_error), error(c.error_bound))];
    if let Some(output) = run.outcome.outputs.first() {
        let at = index(c.at, &output.shape);
        lines.push(format!("at {}{at:?}: got {}, want {}", output.name, value(c.got), value(c.want)));
    }
    if c.nan > 0 {
        let (n, verb) = (plural(c.nan as u64, "element"), if c.nan == 1 { "is" } else { "are" });
        lines.push(format!("{n} {verb} NaN, as in the reference"));
    }
    lines
}

/// `k holds 3 NaN, first at k[5, 7]`.
fn odd_text(odd: &Odd) -> String {
    let counts = [(odd.nan, "NaN"), (odd.infinite, "infinite")];
    let counts: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    format!("{0} holds {1}, first at {0}{2:?}", odd.tensor, counts.join(" and "), odd.first)
}

fn counts(by_name: &BTreeMap<&'static str, u64>) -> String {
    by_name.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
}

/// The largest parts of the critical path; all parts sum to the latency.
fn where_it_went(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let row = |r: &Row| {
        let place = if r.file.is_empty() { String::new() } else { format!("{}:{}", r.file, r.line) };
        vec![time(r.ps), share(r.share_ppm), format!("{}x", r.count), what(r), place]
    };
    let shown: Vec<_> = rows.iter().take(ROWS).map(row).collect();
    let mut text = "where the time went: the critical path (its parts sum to the latency)\n".to_owned();
    text += &table(&[], &shown, &[0, 1, 2]);
    let rest = rows.iter().skip(ROWS);
    let (n, ps, ppm) = rest.fold((0, 0, 0), |(n, ps, ppm), r| (n + 1, ps + r.ps, ppm + r.share_ppm));
    if n > 0 {
        let _ = writeln!(text, "  and {n} more: {}, {}", time(ps), share(ppm));
    }
    text
}

/// `kt = load`, or what was waited for.
fn what(r: &Row) -> String {
    let op = match (r.binding, r.intrinsic) {
        ("" | "_", op) => op.to_owned(),
        (binding, op) => format!("{binding} = {op}"),
    };
    match r.what {
        What::Host => "between launches: back to the host and out again".to_owned(),
        What::Launch => "start of the kernel".to_owned(),
        What::Issue => "issue by pe_cpu".to_owned(),
        What::Work => op,
        What::Message => format!("{op}: message under way"),
        What::Contention => format!("{op}: behind other transfers"),
        What::Credit => format!("{op}: no free slot"),
        What::Channel => format!("{op}: behind the send before"),
    }
}
