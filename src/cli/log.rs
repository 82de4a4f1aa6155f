//! `kernbench log`: the op log of a bench.

use super::bench::BenchArgs;
use super::machine::FidelityArg;
use super::progress::Progress;
use super::{Session, out};
use clap::builder::PossibleValuesParser;
use kernbench_core::diag::{Diagnostic, Failure, nearest};
use kernbench_core::host::LaunchOptions;
use kernbench_core::log::{OpLog, Record};
use kernbench_core::topology::Machine;
use kernbench_core::ty::Dir;
use kernbench_kernels::bench::Fill;
use std::io::{self, Write};

/// Print the op log of a bench: every op of every PE, and when it ran
#[derive(clap::Args)]
#[command(override_usage = "kernbench log BENCH [OPTIONS]", after_help = AFTER)]
pub(super) struct Args {
    #[command(flatten)]
    bench: BenchArgs,
    #[command(flatten)]
    fidelity: FidelityArg,
    /// Ends with an error when this much simulated time has passed
    #[arg(long, value_name = "N")]
    max_ns: Option<u64>,
    /// In order of start, with start and end in ns; else by PE, without times
    #[arg(long)]
    timed: bool,
    /// One JSON object a line, with times in ps
    #[arg(long)]
    json: bool,
    /// Only ops of these names, such as dma_read or gemm_f16
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    op: Vec<String>,
    /// Only ops of these kinds
    #[arg(long, value_delimiter = ',', value_parser = ["memory", "gemm", "math", "ipcq", "sync"])]
    kind: Vec<String>,
    /// Only these PEs, such as sip0.cube1.pe2, or all of sip0.cube1
    #[arg(long, value_name = "PE", value_delimiter = ',')]
    pe: Vec<String>,
    /// Only messages their senders sent in these directions
    #[arg(long, value_name = "DIR", value_delimiter = ',', value_parser = directions())]
    direction: Vec<String>,
    /// Only the first N of them
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

const AFTER: &str = "\
Nothing is computed for a log: times do not depend on data.

Examples:
  kernbench log gqa-decode-short --pe sip0.cube0.pe3
  kernbench log gqa-decode-short --timed --op ipcq_copy --direction intra_N
  kernbench log gqa-decode-short --json > log.jsonl";

fn directions() -> PossibleValuesParser {
    PossibleValuesParser::new(Dir::ALL.map(Dir::name))
}

/// The names an op can have in a log.
const NAMES: [&str; 15] = [
    "dma_read",
    "dma_write",
    "gemm_f16",
    "gemm_bf16",
    "gemm_f32",
    "gemm_i32",
    "gemm_i8",
    "gemm_u8",
    "math",
    "ipcq_copy",
    "ipcq_recv",
    "ipcq_post",
    "ipcq_wait",
    "fence",
    "barrier",
];

pub(super) fn run(args: &Args, session: &mut Session<'_>) -> Result<(), Failure> {
    let (bench, params) = args.bench.pick(session)?;
    let ctx = args.bench.context(session)?.data(false);
    let filter = Filter::new(args, ctx.topology().machine())?;
    let inputs = (bench.inputs)(&ctx, &params, Fill::Nothing)?;
    let max_ps = args.max_ns.map(|ns| ns.saturating_mul(1000));
    let options = LaunchOptions { max_ps, fidelity: Some(args.fidelity.fidelity), ..args.bench.options() };
    let progress = Progress::start(format!("running {}", bench.name));
    let outcome = BenchArgs::run(&bench, &ctx, &params, &inputs, &options)?;
    drop(progress);
    session.warnings.extend(outcome.launches.into_iter().flat_map(|l| l.warnings));
    let log = ctx.op_log();
    let records: Vec<Record<'_>> = if args.timed { log.timed() } else { log.records().collect() };
    let mut records: Vec<&Record<'_>> = records.iter().filter(|r| filter.takes(r)).collect();
    let all = records.len();
    records.truncate(args.limit.unwrap_or(all));
    out::results(|w| {
        match (args.json, args.timed) {
            (true, _) => return json(w, &records),
            (_, true) => timed(w, &records)?,
            _ => logical(w, &log, &records)?,
        }
        match all - records.len() {
            0 if all == 0 => writeln!(w, "no op matches"),
            0 => Ok(()),
            more => writeln!(w, "and {more} more"),
        }
    })
}

fn json(w: &mut dyn Write, records: &[&Record<'_>]) -> io::Result<()> {
    for record in records {
        serde_json::to_writer(&mut *w, record)?;
        writeln!(w)?;
    }
    Ok(())
}

fn timed(w: &mut dyn Write, records: &[&Record<'_>]) -> io::Result<()> {
    let ns = |ps: u64| format!("{}.{:03}", ps / 1000, ps % 1000);
    writeln!(w, "{:>12} {:>12}", "start ns", "end ns")?;
    for r in records {
        writeln!(w, "{:>12} {:>12}  {} {}", ns(r.start_ps()), ns(r.end_ps()), pe_name(r), r.line())?;
    }
    Ok(())
}

fn logical(w: &mut dyn Write, log: &OpLog, records: &[&Record<'_>]) -> io::Result<()> {
    let mut at = None;
    for r in records {
        if at.is_none_or(|(launch, _)| launch != r.launch()) {
            let program = &log.launches[r.launch()].program;
            let (pes, ops) = (program.pes.len(), program.op_count());
            let (i, name, kernel) = (r.launch(), &program.name, program.kernel);
            writeln!(w, "launch {i} {name:?} {kernel} on {pes} PEs, {ops} ops")?;
        }
        if at != Some((r.launch(), r.pe())) {
            at = Some((r.launch(), r.pe()));
            writeln!(w, "{}", pe_name(r))?;
        }
        writeln!(w, "  {}", r.line())?;
    }
    Ok(())
}

/// `sip0.cube1.pe2`.
fn pe_name(record: &Record<'_>) -> String {
    let component = record.component();
    component.rsplit_once('.').map_or(component.clone(), |(pe, _)| pe.to_owned())
}

/// Which records are shown.
struct Filter<'a> {
    args: &'a Args,
    /// SIP, cube and PE of each `--pe`, as far as given.
    pes: Vec<Vec<u32>>,
    machine: Machine,
}

impl<'a> Filter<'a> {
    fn new(args: &'a Args, machine: &Machine) -> Result<Self, Failure> {
        if let Some(op) = args.op.iter().find(|op| !NAMES.contains(&op.as_str())) {
            let help = match nearest(op, NAMES) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("names are {}", NAMES.join(", ")),
            };
            return Err(Diagnostic::error("KB0641", format!("no op is named `{op}`")).help(help).into());
        }
        let pes = args.pe.iter().map(|pe| parts(pe, machine)).collect::<Result<_, _>>()?;
        Ok(Filter { args, pes, machine: machine.clone() })
    }

    fn takes(&self, r: &Record<'_>) -> bool {
        let named = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
        let at = self.machine.at(r.pe());
        let at = [at.sip, at.cube, at.pe];
        named(&self.args.op, r.name())
            && named(&self.args.kind, r.kind().name())
            && named(&self.args.direction, r.direction().map_or("", Dir::name))
            && (self.pes.is_empty() || self.pes.iter().any(|p| at.starts_with(p)))
    }
}

/// `sip0.cube1` as `[0, 1]`.
fn parts(text: &str, machine: &Machine) -> Result<Vec<u32>, Failure> {
    let levels = [("sip", machine.sips), ("cube", machine.cubes()), ("pe", machine.pes())];
    let parts: Vec<&str> = text.split('.').collect();
    let number = |(part, (level, count)): (&&str, (&str, u32))| {
        part.strip_prefix(level)?.parse::<u32>().ok().filter(|n| *n < count)
    };
    let numbers: Option<Vec<u32>> = parts.iter().zip(levels).map(number).collect();
    numbers.filter(|n| n.len() == parts.len()).ok_or_else(|| {
        let last = |i: usize| levels[i].1 - 1;
        Diagnostic::error("KB0642", format!("the machine has no PEs `{text}`"))
            .help(format!(
                "write `sip0`, `sip0.cube0` or `sip0.cube0.pe0`, up to `sip{}.cube{}.pe{}`",
                last(0),
                last(1),
                last(2)
            ))
            .into()
    })
}
