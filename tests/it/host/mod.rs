//! Host programs: workers, barriers, launches that overlap, process groups.

mod group;
mod launches;
#[cfg(any())]
mod read_barrier;
mod workers;

use kernbench::ccl::Ccl;
use kernbench::host::{Context, SpawnError};
use kernbench::placement::Placement;
use kernbench::prelude::*;
use kernbench::topology::Topology;

/// One PE of one cube of the SIP a worker has set.
const ONE: Placement = Placement::replicated().on(1, 1);

/// `y = x + by`, element by element.
#[kernel]
fn add(x: In<f32>, y: Out<f32>, by: f32) {
    let x = tl::load(x);
    tl::store(y, x + by);
}

/// A context on `sips` SIPs of the default machine.
fn machine(sips: usize) -> Context {
    machine_with(sips, Ccl::default_config())
}

fn machine_with(sips: usize, ccl: Ccl) -> Context {
    let yaml = Topology::DEFAULT_YAML.replace("count: 2   ", &format!("count: {sips}   "));
    let topology = Topology::from_yaml("topology.yaml", &yaml).unwrap();
    assert_eq!(topology.machine().sips as usize, sips);
    Context::with_ccl(topology, ccl)
}

/// What is told of workers that failed, without the paths to this file's directory.
fn told<R: std::fmt::Debug>(result: Result<R, SpawnError>) -> String {
    result.expect_err("a failure").to_string().replace("tests/it/host/", "")
}
