//! `kernbench collectives`: sweeps sizes, operations, algorithms and topologies, checks and times them.

mod plan;
mod tables;

use super::machine::{FidelityArg, MachineArgs};
use super::progress::Bar;
use super::{Session, out};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::engine::Fidelity;
use kernbench_core::host::{Operation, ReduceOp};
use kernbench_core::topology::{BufferKind, RankTopology};
use kernbench_core::ty::ElementType;
use kernbench_core::units;
use kernbench_kernels::collectives::ALGORITHMS;
use plan::{Plan, Row};
use rayon::prelude::*;
use std::process::ExitCode;

/// Measure collectives between SIPs: sizes, operations, algorithms and topologies; checks their results
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// Operations [default: all]
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',', value_parser = named(Operation::ALL.map(|op| (op.name(), op))))]
    op: Vec<Operation>,
    /// Algorithms [default: all]
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',', value_parser = named(ALGORITHMS.iter().map(|a| (a.name, a.name))))]
    algorithm: Vec<&'static str>,
    /// SIPs, one rank each, as a number or as columns x rows: 6, 2x3 [default: the machine's]
    #[arg(long, value_name = "N|WxH", value_parser = sips)]
    sips: Option<Sips>,
    /// Whom ranks have as neighbours [default: all on which an algorithm runs]
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',', value_parser = named(RankTopology::ALL.map(|t| (t.name(), t))))]
    sip_topology: Vec<RankTopology>,
    /// Sizes, such as 256,2KiB [default: 8 B to 128 MiB by a factor of 4]
    #[arg(long, value_name = "BYTES", num_args = 1.., value_delimiter = ',', value_parser = size)]
    bytes: Vec<u64>,
    /// Element type
    #[arg(long, value_name = "TYPE", value_parser = named(DTYPES), default_value = "f32")]
    dtype: ElementType,
    /// How elements are reduced
    #[arg(long, value_name = "OP", value_parser = named(ReduceOp::ALL.map(|op| (op.name(), op))), default_value = "sum")]
    reduce: ReduceOp,
    /// Where the slots of a link are; may be several [default: that of the collectives configuration]
    #[arg(long, value_name = "KIND", num_args = 1.., value_delimiter = ',', value_parser = named(KINDS))]
    buffer_kind: Vec<BufferKind>,
    /// Bytes of a slot [default: as many as the row's, from 256 B to what the memory has room for]
    #[arg(long, value_name = "BYTES", value_parser = slot)]
    slot_size: Option<u32>,
    /// Slots of a link [default: those of the collectives configuration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    n_slots: Option<u32>,
    /// Computes and checks values up to this size; larger rows are only timed
    #[arg(long, value_name = "BYTES", value_parser = size, default_value = "1MiB")]
    check_up_to: u64,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    fidelity: FidelityArg,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
    /// Rows measured at a time; results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

const AFTER: &str = "\
algbw is bytes over time; busbw is what crosses the links of a rank if they are used as well as can be: algbw times
2(p-1)/p for all_reduce, (p-1)/p for all_gather, reduce_scatter and all_to_all, 1 for broadcast. Bytes are those of
the larger of a rank's tensors; of each cube where an algorithm runs on every cube. docs/collectives.md has more.

Exit code: 0 if all results are right, 1 if one is wrong, 2 if something could not be done, 130 after Ctrl-C.

Examples:
  kernbench collectives --op all_reduce --sips 4 --bytes 4KiB,1MiB
  kernbench collectives --algorithm lrab_hierarchical_allreduce --sips 2x3 --buffer-kind tcm,sram,hbm
  kernbench collectives --json | jq '.rows[] | select(.correct == false)'";

const DTYPES: [(&str, ElementType); 4] = [
    ("f16", ElementType::F16),
    ("bf16", ElementType::Bf16),
    ("f32", ElementType::F32),
    ("i32", ElementType::I32),
];
const KINDS: [(&str, BufferKind); 3] =
    [("tcm", BufferKind::Tcm), ("sram", BufferKind::Sram), ("hbm", BufferKind::Hbm)];

/// Takes one of some names, and gives what it means.
fn named<T>(table: impl IntoIterator<Item = (&'static str, T)>) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let table: Vec<(&str, T)> = table.into_iter().collect();
    let names = PossibleValuesParser::new(table.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    // The parser lets known names through only.
    let meaning =
        move |name: String| table.iter().find(|(known, _)| *known == name).map_or(table[0].1, |(_, t)| *t);
    names.map(meaning)
}

/// Columns and rows of SIPs; rows are 0 where only their number is given.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sips([u32; 2]);

fn sips(text: &str) -> Result<Sips, String> {
    let (w, h) = text.split_once('x').map_or((text, None), |(w, h)| (w, Some(h)));
    let number = |text: &str| text.parse::<u32>().ok().filter(|n| (1..=16).contains(n));
    let sips = match (number(w), h.map(number)) {
        (Some(w), None) => Some(Sips([w, 0])),
        (Some(w), Some(Some(h))) if w * h <= 16 => Some(Sips([w, h])),
        _ => None,
    };
    sips.ok_or_else(|| "write 1 to 16 SIPs, or columns x rows of at most 16, such as 2x3".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = units::bytes(text).filter(|n| (1..=1 << 30).contains(n));
    bytes.ok_or_else(|| "write bytes from 1 to 1 GiB, or a whole number with KiB or MiB".to_owned())
}

fn slot(text: &str) -> Result<u32, String> {
    let bytes = units::bytes(text).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    bytes.ok_or_else(|| "write bytes, or a whole number with KiB or MiB".to_owned())
}

/// 8 B to 128 MiB.
fn default_sizes() -> impl Iterator<Item = u64> {
    (0..13).map(|i| 8 << (2 * i))
}

/// What was measured, and what could not be.
struct Swept {
    fidelity: Fidelity,
    rows: Vec<Row>,
    /// The first row of its kind, and why none of the kind ran.
    not_run: Vec<(plan::Kind, Diagnostic)>,
}

pub(super) fn run(args: &Args, session: &mut Session<'_>) -> Result<ExitCode, Failure> {
    let plan = Plan::new(args, session)?;
    let bar = Bar::start("collectives", plan.rows.len());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.map_or(0, usize::from)).build();
    let measure = || -> Vec<Result<Row, Failure>> {
        let one = |case| {
            let row = plan.measure(case);
            bar.advance();
            row
        };
        plan.rows.par_iter().map(one).collect()
    };
    let measured = match &pool {
        Ok(pool) => pool.install(measure),
        // The host gives no threads: the shared ones do.
        Err(_) => measure(),
    };
    drop(bar);
    let mut swept = Swept { fidelity: args.fidelity.fidelity, rows: vec![], not_run: vec![] };
    for (case, result) in plan.rows.iter().zip(measured) {
        match result {
            Ok(row) => swept.rows.push(row),
            Err(Failure(mut mistakes)) if mistakes.len() == 1 && does_not_fit(&mistakes[0]) => {
                if swept.not_run.iter().all(|(kind, _)| *kind != case.kind) {
                    swept.not_run.push((case.kind, mistakes.remove(0)));
                }
            }
            Err(failure) => return Err(failure),
        }
    }
    if swept.rows.is_empty() {
        // One message for all that fail alike.
        let mut why: Vec<Diagnostic> = vec![];
        for (_, d) in swept.not_run {
            if !why.contains(&d) {
                why.push(d);
            }
        }
        return Err(Failure(why));
    }
    out::print(&if args.json { tables::json(&swept) } else { tables::text(&swept) })?;
    let wrong = swept.rows.iter().any(|row| row.correct == Some(false));
    Ok(if wrong { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Whether an algorithm cannot run on so many ranks, or with so large slots: others can.
fn does_not_fit(d: &Diagnostic) -> bool {
    ["KB0309", "KB0316", "KB0607", "KB0658"].contains(&d.code)
}
