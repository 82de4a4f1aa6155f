//! Host programs: workers, barriers, launches that overlap, process groups.

mod group;
mod launches;
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

/// What is told of workers that failed.
fn told<R: std::fmt::Debug>(result: Result<R, SpawnError>) -> String {
    places(&result.expect_err("a failure").to_string())
}

/// A text in which places in these files are shown as the source there, from their column on: lines move.
fn places(text: &str) -> String {
    let mut parts = text.split("tests/it/host/");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (file, rest) = part.split_once(".rs:").unwrap();
        let numbers = rest.split([':', ' ', ',', '\n']).map_while(|n| n.parse::<usize>().ok());
        let numbers: Vec<usize> = numbers.take(2).collect();
        let digits: usize = numbers.iter().map(|n| n.to_string().len() + 1).sum();
        let path = format!("{}/tests/it/host/{file}.rs", env!("CARGO_MANIFEST_DIR"));
        let source = std::fs::read_to_string(path).unwrap();
        let line = source.lines().nth(numbers[0] - 1).unwrap();
        let column = numbers.get(1).map_or(0, |column| column - 1);
        shown += &format!("{file}.rs `{}`{}", line[column..].trim(), &rest[digits - 1..]);
    }
    shown
}
