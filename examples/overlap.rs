//! How much of the travel of keys and values in a long prefill happens while the PEs that send them compute:
//! `cargo run --release --example overlap`.

use kernbench::diag::Failure;
use kernbench::kernels::attention::PREFILL_LONG;
use kernbench::kernels::bench::{Fill, Params};
use kernbench::prelude::*;
use kernbench::report::Report;
use kernbench::topology::IssueMode;
use std::collections::BTreeMap;

fn main() -> Result<(), Failure> {
    print!("{}", text()?);
    Ok(())
}

/// The table: one row for each number of cubes.
pub fn text() -> Result<String, Failure> {
    let mut text = format!(
        "gqa_prefill_long, h_q=4 h_kv=1 d=128, 64 queries and 512 keys a cube, not causal, f16, times in us\n\n\
         {:<8}{:>10}{:>10}{:>9}{:>14}{:>16}\n",
        "cubes", "makespan", "blocking", "ratio", "sending", "while computing"
    );
    for cubes in [2, 3, 4, 7, 8, 16] {
        let [free, blocking] = [measure(cubes, IssueMode::Dataflow)?, measure(cubes, IssueMode::Blocking)?];
        let us = |ps: u64| format!("{}.{:02}", ps / 1_000_000, ps / 10_000 % 100);
        let ratio = blocking.makespan_ps * 100 / free.makespan_ps;
        text += &format!(
            "{cubes:<8}{:>10}{:>10}{:>9}{:>14}{:>15}%\n",
            us(free.makespan_ps),
            us(blocking.makespan_ps),
            format!("{}.{:02}", ratio / 100, ratio % 100),
            us(free.sending_ps),
            free.hidden_percent(),
        );
    }
    Ok(text)
}

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// From the first op to the end of the last.
    pub makespan_ps: u64,
    /// For how long a PE had keys or values on their way to another cube, summed over all PEs.
    pub sending_ps: u64,
    /// For how much of that its accelerator slot was at work.
    pub hidden_ps: u64,
}

impl Measured {
    /// How much of the sending happened while computing, rounded down.
    pub fn hidden_percent(&self) -> u64 {
        self.hidden_ps * 100 / self.sending_ps
    }
}

/// Runs a prefill and reads its log.
///
/// # Errors
/// Those of a launch.
pub fn measure(cubes: usize, issue: IssueMode) -> Result<Measured, Failure> {
    let ctx = Context::new(Topology::default_machine());
    let set = ["h_q=4", "h_kv=1", "causal=false"].map(str::to_owned).into_iter();
    let set: Vec<String> = set
        .chain([format!("cubes={cubes}"), format!("t_q={}", 64 * cubes), format!("s_kv={}", 512 * cubes)])
        .collect();
    let params = Params::parse(PREFILL_LONG.name, PREFILL_LONG.params, set.iter().map(String::as_str))?;
    let inputs = (PREFILL_LONG.inputs)(&ctx, &params, Fill::Nothing)?;
    let options = LaunchOptions { issue: Some(issue), data: Some(false), ..LaunchOptions::default() };
    (PREFILL_LONG.run)(&ctx, &params, &inputs, &options)?;

    let log = ctx.op_log();
    // Of each PE: when it sends to another cube, and when its slot works.
    let mut pes: BTreeMap<String, [Vec<[u64; 2]>; 2]> = BTreeMap::new();
    for record in log.records() {
        let between_cubes = record.direction().is_some_and(|d| [Dir::E, Dir::W, Dir::N, Dir::S].contains(&d));
        let node = record.component();
        let (pe, which) = match node.rsplit_once('.') {
            Some((pe, "pe_gemm" | "pe_math")) => (pe, 1),
            Some((pe, _)) if record.name() == "ipcq_copy" && between_cubes => (pe, 0),
            _ => continue,
        };
        pes.entry(pe.to_owned()).or_default()[which].push([record.start_ps(), record.end_ps()]);
    }
    let (mut sending_ps, mut hidden_ps) = (0, 0);
    for [sends, slot] in pes.into_values() {
        let [sends, slot] = [union(sends), union(slot)];
        sending_ps += length(&sends);
        hidden_ps += sends
            .iter()
            .flat_map(|s| slot.iter().map(move |c| c[1].min(s[1]).saturating_sub(c[0].max(s[0]))))
            .sum::<u64>();
    }
    Ok(Measured { makespan_ps: Report::of(&log, 0).makespan_ps, sending_ps, hidden_ps })
}

/// The same times without overlaps.
fn union(mut times: Vec<[u64; 2]>) -> Vec<[u64; 2]> {
    times.sort_unstable();
    let mut out: Vec<[u64; 2]> = vec![];
    for [start, end] in times {
        match out.last_mut() {
            Some(last) if start <= last[1] => last[1] = last[1].max(end),
            _ => out.push([start, end]),
        }
    }
    out
}

fn length(times: &[[u64; 2]]) -> u64 {
    times.iter().map(|[start, end]| end - start).sum()
}
