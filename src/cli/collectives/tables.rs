//! A sweep as text and as JSON.

use super::super::{out, text};
use super::plan::{Kind, Row};
use super::{KINDS, Swept};
use kernbench_core::diag::Diagnostic;
use serde::Serialize;
use std::fmt::Write;

pub(super) fn text(swept: &Swept) -> String {
    let mut text = String::new();
    for rows in swept.rows.chunk_by(|a, b| a.kind == b.kind) {
        let Row { kind, world, ty, reduce, .. } = &rows[0];
        let operation = kind.operation.name();
        let reduces = ["all_reduce", "reduce_scatter"].contains(&operation);
        let _ = writeln!(
            text,
            "{operation}: {} over {}, {}, {ty}{}, slots in {}",
            kind.algorithm().name,
            kind.topology,
            text::plural(*world as u64, "rank"),
            if reduces { format!(" {}", reduce.name()) } else { String::new() },
            buffer_kind(kind),
        );
        let line = |row: &Row| {
            let correct = match row.correct {
                Some(true) => "yes",
                Some(false) => "NO",
                None => "-",
            };
            let rate = |x: f64| if row.bytes == 0 { "-".to_owned() } else { format!("{x:.3}") };
            let bytes = if row.bytes == 0 { "-".to_owned() } else { text::bytes(row.bytes) };
            vec![
                bytes,
                text::time(row.simulated_ps),
                rate(row.algbw()),
                rate(row.busbw()),
                correct.to_owned(),
            ]
        };
        let header = ["bytes", "time", "algbw GB/s", "busbw GB/s", "correct"];
        text += &out::table(&header, &rows.iter().map(line).collect::<Vec<_>>(), &[0, 1, 2, 3]);
        text.push('\n');
    }
    if !swept.not_run.is_empty() {
        text += "not run\n";
        for (kind, why) in &swept.not_run {
            let _ = writeln!(text, "  {} over {}: {}", kind.algorithm().name, kind.topology, why.message);
        }
        text.push('\n');
    }
    let checked = swept.rows.iter().filter(|row| row.correct.is_some()).count();
    let wrong = swept.rows.iter().filter(|row| row.correct == Some(false)).count();
    let _ = writeln!(
        text,
        "{}, {checked} with data, {}; fidelity {}",
        text::plural(swept.rows.len() as u64, "row"),
        if wrong == 0 { "all correct".to_owned() } else { format!("{wrong} WRONG") },
        swept.fidelity.name()
    );
    text
}

#[derive(Serialize)]
struct JsonRow {
    op: &'static str,
    algorithm: &'static str,
    sip_topology: &'static str,
    world: usize,
    bytes: u64,
    dtype: String,
    buffer_kind: &'static str,
    simulated_ps: u64,
    algbw_gbs: f64,
    busbw_gbs: f64,
    correct: Option<bool>,
}

#[derive(Serialize)]
struct NotRun<'a> {
    op: &'static str,
    algorithm: &'static str,
    sip_topology: &'static str,
    reason: &'a str,
}

#[derive(Serialize)]
struct Json<'a> {
    fidelity: &'static str,
    rows: Vec<JsonRow>,
    not_run: Vec<NotRun<'a>>,
}

pub(super) fn json(swept: &Swept) -> String {
    let row = |row: &Row| JsonRow {
        op: row.kind.operation.name(),
        algorithm: row.kind.algorithm().name,
        sip_topology: row.kind.topology.name(),
        world: row.world,
        bytes: row.bytes,
        dtype: row.ty.to_string(),
        buffer_kind: buffer_kind(&row.kind),
        simulated_ps: row.simulated_ps,
        algbw_gbs: thousandths(row.algbw()),
        busbw_gbs: thousandths(row.busbw()),
        correct: row.correct,
    };
    fn not_run<'a>((kind, why): &'a (Kind, Diagnostic)) -> NotRun<'a> {
        NotRun {
            op: kind.operation.name(),
            algorithm: kind.algorithm().name,
            sip_topology: kind.topology.name(),
            reason: &why.message,
        }
    }
    let json = Json {
        fidelity: swept.fidelity.name(),
        rows: swept.rows.iter().map(row).collect(),
        not_run: swept.not_run.iter().map(not_run).collect(),
    };
    // Numbers and strings only: there is nothing that JSON cannot hold.
    serde_json::to_string(&json).unwrap_or_default() + "\n"
}

fn buffer_kind(kind: &Kind) -> &'static str {
    KINDS.iter().find(|(_, known)| *known == kind.buffer_kind).map_or("tcm", |(name, _)| name)
}

/// Without digits that only a division makes.
fn thousandths(x: f64) -> f64 {
    (x * 1000.0).round() / 1000.0
}
