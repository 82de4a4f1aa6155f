//! The side of kernbench in `benches/peers`: `export FILE` writes what other simulators need to know of
//! a traffic file, `run FILE` simulates it for a second and says how long one simulation takes.

use kernbench::engine::{Fidelity, Flow, Issuer, traffic};
use kernbench::ir::{PeId, Transfer};
use kernbench::topology::{EdgeId, NodeRole, PeAt, Route, Topology};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match answer(&args.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn answer(args: &[&str]) -> Result<String, String> {
    let topology = Topology::default_machine();
    let read = |path: &str| -> Result<Vec<Flow>, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("`{path}`: {e}"))?;
        let lines: Vec<Line> = serde_json::from_str(&text).map_err(|e| format!("`{path}`: {e}"))?;
        lines.iter().enumerate().map(|(i, line)| line.flow(&topology, i)).collect()
    };
    let json = match args {
        ["export", path] => serde_json::to_string(&export(&topology, &read(path)?)),
        ["run", path] => serde_json::to_string(&run(&topology, &read(path)?)),
        _ => return Err("expected `export FILE` or `run FILE`".into()),
    };
    json.map_err(|e| e.to_string())
}

/// One transfer of a traffic file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    from: String,
    to: String,
    bytes: u32,
    start_ns: u64,
    op: String,
}

impl Line {
    fn flow(&self, topology: &Topology, index: usize) -> Result<Flow, String> {
        let machine = topology.machine();
        let channel = index as u64 % u64::from(machine.hbm.channels);
        let transfer = Transfer {
            addr: channel * machine.flit_bytes,
            home: pe(topology, &self.to)?,
            run_bytes: self.bytes,
            runs: 1,
            ..Transfer::default()
        };
        let issuer = match (self.from.as_str(), self.op.as_str()) {
            ("host", "read") => Issuer::HostRead,
            ("host", "write") => Issuer::HostWrite,
            (name, "read" | "write") => Issuer::Dma(pe(topology, name)?),
            (_, op) => return Err(format!("`{op}` is neither `read` nor `write`")),
        };
        Ok(Flow { issuer, transfer, start_ps: self.start_ns * 1000 })
    }
}

fn pe(topology: &Topology, name: &str) -> Result<PeId, String> {
    let unknown = || format!("`{name}` is no PE of the machine");
    topology.node(&format!("{name}.pe_dma")).ok_or_else(unknown)?;
    let mut numbers =
        name.split('.').filter_map(|part| part.trim_start_matches(char::is_alphabetic).parse::<u32>().ok());
    let mut next = || numbers.next().ok_or_else(unknown);
    Ok(topology.machine().pe(PeAt { sip: next()?, cube: next()?, pe: next()? }))
}

fn route(topology: &Topology, flow: &Flow) -> Route {
    match flow.issuer {
        Issuer::Dma(pe) | Issuer::Message(pe) => topology.dma_route(pe, flow.transfer.home),
        Issuer::HostRead | Issuer::HostWrite => topology.host_route(flow.transfer.home),
    }
}

/// What other simulators read: the used part of the machine, and what is to be moved over it.
#[derive(Serialize)]
struct Export {
    flit_bytes: u64,
    channels: u32,
    burst_ps: u64,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    moves: Vec<Move>,
}

#[derive(Serialize)]
struct Node {
    name: String,
    /// `worker`, `gather` or `end`.
    service: &'static str,
    overhead_ps: u64,
}

#[derive(Serialize)]
struct Edge {
    from: usize,
    to: usize,
    /// A flit of n bytes holds the edge for n / `bytes_per_us`, rounded up to a picosecond.
    bytes_per_us: u64,
    propagation_ps: u64,
}

#[derive(Serialize)]
struct Move {
    start_ps: u64,
    bytes: u32,
    /// The HBM channel of the first flit; the next has the next.
    channel: u32,
    /// Positions in `edges`.
    route: Vec<usize>,
    response_ps: u64,
}

fn export(topology: &Topology, flows: &[Flow]) -> Export {
    let machine = topology.machine();
    let (mut nodes, mut edges) = (vec![], vec![]);
    let (mut node_at, mut edge_at) = (BTreeMap::new(), BTreeMap::new());
    let mut node = |id| {
        *node_at.entry(id).or_insert_with(|| {
            let service = match topology.node_kind(id).role() {
                NodeRole::Worker => "worker",
                NodeRole::Gather => "gather",
                NodeRole::End => "end",
            };
            let name = topology.node_name(id).to_owned();
            nodes.push(Node { name, service, overhead_ps: topology.overhead_ps(id) });
            nodes.len() - 1
        })
    };
    let mut edge = |id: EdgeId| {
        *edge_at.entry(id).or_insert_with(|| {
            let wire = topology.wire(id);
            edges.push(Edge {
                from: node(wire.from),
                to: node(wire.to),
                bytes_per_us: wire.rate.map_or(0, |rate| rate.per_us),
                propagation_ps: wire.propagation_ps,
            });
            edges.len() - 1
        })
    };
    let moves = flows
        .iter()
        .map(|flow| {
            let route = route(topology, flow);
            let waits = !matches!(flow.issuer, Issuer::HostWrite);
            Move {
                start_ps: flow.start_ps,
                bytes: flow.transfer.run_bytes,
                channel: machine.hbm.channel(flow.transfer.addr, machine.flit_bytes),
                response_ps: if waits { route.response_ps() } else { 0 },
                route: route.edges.iter().map(|&id| edge(id)).collect(),
            }
        })
        .collect();
    let (flit_bytes, channels, burst_ps) = (machine.flit_bytes, machine.hbm.channels, machine.hbm.burst_ps);
    Export { flit_bytes, channels, burst_ps, nodes, edges, moves }
}

/// What every simulator answers.
#[derive(Serialize)]
struct Answer {
    /// When each transfer is done.
    end_ps: Vec<u64>,
    /// One simulation, the machine being built already: the best and the median of all.
    best_s: f64,
    median_s: f64,
    /// Flits times edges of their route, summed over all transfers.
    flit_hops: u64,
}

fn run(topology: &Topology, flows: &[Flow]) -> Answer {
    let (mut times, begin) = (vec![], Instant::now());
    let mut passages = vec![];
    while times.len() < 3 || begin.elapsed() < Duration::from_secs(1) {
        let start = Instant::now();
        passages = black_box(traffic(topology, black_box(flows), Fidelity::Flit));
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let flits = |flow: &Flow| flow.transfer.bytes().div_ceil(topology.machine().flit_bytes);
    Answer {
        end_ps: passages.iter().map(|passage| passage.end_ps).collect(),
        best_s: times[0].as_secs_f64(),
        median_s: times[times.len() / 2].as_secs_f64(),
        flit_hops: flows.iter().map(|flow| flits(flow) * route(topology, flow).edges.len() as u64).sum(),
    }
}
