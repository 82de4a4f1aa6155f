//! A run as one JSON object.

use super::Run;
use crate::cli::inputs::{Odd, index};
use kernbench_core::report::{Bytes, EngineUse, LaunchTime, Row};
use serde::Serialize;
use std::collections::BTreeMap;

/// A number, or `NaN`, `inf` or `-inf` as a text: JSON has no such numbers.
fn number(x: f64) -> serde_json::Value {
    serde_json::Number::from_f64(x).map_or_else(|| x.to_string().into(), Into::into)
}

/// A parameter as the number or truth value it is.
fn param(text: &str) -> serde_json::Value {
    let plain = text.replace('_', "");
    match (plain.parse::<u64>(), text.parse::<f64>(), text.parse::<bool>()) {
        (Ok(n), _, _) => n.into(),
        (_, Ok(x), _) => number(x),
        (_, _, Ok(b)) => b.into(),
        _ => text.into(),
    }
}

#[derive(Serialize)]
struct Machine {
    sips: u32,
    cube_mesh: [u32; 2],
    pe_grid: [u32; 2],
    pes: u32,
    pes_used: u64,
}

#[derive(Serialize)]
struct Rate {
    per_us: u64,
    peak_per_us: u64,
    share_ppm: u64,
}

impl From<kernbench_core::report::Achieved> for Rate {
    fn from(a: kernbench_core::report::Achieved) -> Self {
        Rate { per_us: a.per_us, peak_per_us: a.peak_per_us, share_ppm: a.share_ppm() }
    }
}

#[derive(Serialize)]
struct Object<'a> {
    bench: &'a str,
    params: BTreeMap<&'a str, serde_json::Value>,
    correct: Option<bool>,
    max_error: Option<serde_json::Value>,
    error_bound: Option<serde_json::Value>,
    error_at: Option<Vec<usize>>,
    got: Option<serde_json::Value>,
    want: Option<serde_json::Value>,
    nan_inputs: &'a Option<Vec<Odd>>,
    simulated_ps: u64,
    launch_overhead_ps: u64,
    deploy_ps: u64,
    op_counts: &'a BTreeMap<&'static str, u64>,
    ipcq_by_direction: &'a BTreeMap<&'static str, u64>,
    bytes_moved: Bytes,
    hbm_bytes: Rate,
    flop: u64,
    gemm_flop: Rate,
    engines: BTreeMap<&'static str, &'a EngineUse>,
    machine: Machine,
    fidelity: &'static str,
    issue: &'static str,
    time: &'a [Row],
    launches: &'a [LaunchTime],
    wall_s: f64,
}

/// One line: an object of integers, texts, lists and finite numbers.
pub(in crate::cli) fn json(run: &Run<'_>) -> String {
    let (report, check, machine) = (&run.report, run.outcome.check, run.machine);
    let at = |at| run.outcome.outputs.first().map(|array| index(at, &array.shape));
    let object = Object {
        bench: run.bench.name,
        params: run.params.iter().map(|(key, value)| (key, param(value))).collect(),
        correct: check.map(|c| c.correct),
        max_error: check.map(|c| number(c.max_error)),
        error_bound: check.map(|c| number(c.error_bound)),
        error_at: check.and_then(|c| at(c.at)),
        got: check.map(|c| number(c.got)),
        want: check.map(|c| number(c.want)),
        nan_inputs: &run.odd,
        simulated_ps: report.makespan_ps,
        launch_overhead_ps: run.outcome.launches.first().map_or(0, |l| l.overhead_ps),
        deploy_ps: run.deploy_ps,
        op_counts: &report.ops,
        ipcq_by_direction: &report.messages,
        bytes_moved: report.bytes,
        hbm_bytes: report.hbm.into(),
        flop: report.flop,
        gemm_flop: report.gemm.into(),
        engines: report.engines.iter().map(|e| (e.engine, e)).collect(),
        machine: Machine {
            sips: machine.sips,
            cube_mesh: machine.cube_mesh,
            pe_grid: machine.pe_grid,
            pes: machine.pe_count(),
            pes_used: report.pes.len() as u64,
        },
        fidelity: report.fidelity.name(),
        issue: report.issue,
        time: &report.time,
        launches: &report.launches,
        wall_s: run.wall.as_secs_f64(),
    };
    // Maps have text keys and every number is finite, so this cannot fail.
    serde_json::to_string(&object).unwrap_or_default() + "\n"
}
