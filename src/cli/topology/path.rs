//! The way between two nodes, edge by edge, and what a transfer on it costs.

use crate::cli::out::table;
use crate::cli::text::{bytes, plural, time};
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::topology::{NodeId, NodeKind, NodeRole, Route, Topology};
use kernbench_core::units::Ps;
use serde_json::json;
use std::fmt::Write;

/// A way and a transfer on it.
pub(super) struct Way {
    from: NodeId,
    to: NodeId,
    route: Route,
    bytes: u64,
    /// From the first byte's start to the last byte's arrival; `None` if no byte can take the way.
    arrival_ps: Option<Ps>,
}

/// # Errors
/// There is no such node, or no way.
pub(super) fn find(topology: &Topology, from: &str, to: &str, bytes: u64) -> Result<Way, Failure> {
    let (from, to) = match (node(topology, from), node(topology, to)) {
        (Ok(from), Ok(to)) => (from, to),
        (Err(a), Err(b)) => return Err(Failure(vec![a, b])),
        (Err(d), _) | (_, Err(d)) => return Err(d.into()),
    };
    let Some(route) = topology.path(from, to) else {
        let name = |node| topology.node_name(node);
        let text = format!("no edges lead from `{}` to `{}`", name(from), name(to));
        let help = "try the other direction, or a node that data passes, such as a `pe_dma`";
        return Err(Diagnostic::error("KB0643", text).help(help).into());
    };
    let arrival_ps = arrival(topology, &route, bytes);
    Ok(Way { from, to, route, bytes, arrival_ps })
}

fn node(topology: &Topology, name: &str) -> Result<NodeId, Diagnostic> {
    topology.node(name).or_else(|| topology.node(&format!("{name}.pe_dma"))).ok_or_else(|| {
        let help = match topology.nearest_node(name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "write a name such as `sip0.cube2.pe5` or `sip0.io0.pcie_ep`; `--dot` shows all".to_owned()
            }
        };
        Diagnostic::error("KB0643", format!("the machine has no node `{name}`")).help(help)
    })
}

/// When the last flit is there: flits follow each other, the first pays every overhead, and a node
/// that gathers goes on when it has all.
fn arrival(topology: &Topology, route: &Route, bytes: u64) -> Option<Ps> {
    let flit = topology.machine().flit_bytes;
    let (full, rest) = (bytes / flit, bytes % flit);
    let (mut first, mut last) = (0, 0);
    for (i, edge) in route.edges.iter().enumerate() {
        let wire = topology.wire(*edge);
        let rate = wire.rate?;
        if i > 0 {
            if topology.node_kind(wire.from).role() == NodeRole::Gather {
                first = last;
            }
            first += topology.overhead_ps(wire.from);
        }
        let tail = if rest == 0 { wire.flit_ps } else { rate.time(rest) };
        let before = if rest == 0 { full - 1 } else { full };
        last = last.max(first + before * wire.flit_ps) + tail + wire.propagation_ps;
        first += rate.time(bytes.min(flit)) + wire.propagation_ps;
    }
    Some(last)
}

/// Latencies by name: a message or a write ends where it arrives, a read when its response is back.
fn latencies(topology: &Topology, way: &Way) -> Vec<(&'static str, Ps)> {
    let Some(arrival) = way.arrival_ps.filter(|_| !way.route.edges.is_empty()) else { return vec![] };
    match topology.node_kind(way.to) {
        NodeKind::HbmCtrl => {
            let commit = arrival + topology.machine().hbm.burst_ps;
            let done = commit + way.route.response_ps();
            vec![("last byte committed", commit), ("response back", done)]
        }
        _ => vec![("last byte there", arrival)],
    }
}

pub(super) fn text(topology: &Topology, way: &Way) -> String {
    let route = &way.route;
    let name = |node| topology.node_name(node);
    let n = route.edges.len() as u64;
    let mut out = format!("{} to {}, {}\n\n", name(way.from), name(way.to), plural(n, "edge"));
    let overhead = |node| match topology.overhead_ps(node) {
        0 => String::new(),
        ps => time(ps),
    };
    let mut rows = vec![vec![name(way.from).to_owned(), String::new(), String::new(), String::new()]];
    for edge in &route.edges {
        let wire = topology.wire(*edge);
        let rate = wire.rate.map_or_else(|| "command".to_owned(), |r| format!("{} GB/s", r.as_gbs()));
        let wait = if wire.propagation_ps == 0 { String::new() } else { time(wire.propagation_ps) };
        let at = if wire.to == way.to { String::new() } else { overhead(wire.to) };
        rows.push(vec![name(wire.to).to_owned(), rate, wait, at]);
    }
    out += &table(&["node", "edge to it", "propagation", "overhead"], &rows, &[1, 2, 3]);
    let _ = writeln!(out, "\noverhead     {}", time(route.overhead_ps));
    let _ = writeln!(out, "propagation  {}", time(route.propagation_ps));
    let bottleneck = match (way.arrival_ps, route.bottleneck) {
        (Some(_), Some(rate)) => format!("{} GB/s", rate.as_gbs()),
        _ => "none: commands only, no bytes".to_owned(),
    };
    let _ = writeln!(out, "bottleneck   {bottleneck}");
    for (i, (what, ps)) in latencies(topology, way).into_iter().enumerate() {
        let title = if i == 0 { bytes(way.bytes) } else { String::new() };
        let _ = writeln!(out, "{title:<13}{what} after {}", time(ps));
    }
    if way.arrival_ps.is_some() && !route.edges.is_empty() {
        out += "             on an idle machine\n";
    }
    out
}

pub(super) fn json(topology: &Topology, way: &Way) -> String {
    let name = |node| topology.node_name(node);
    let edges: Vec<_> = way
        .route
        .edges
        .iter()
        .map(|edge| {
            let wire = topology.wire(*edge);
            json!({
                "from": name(wire.from), "to": name(wire.to),
                "bytes_per_us": wire.rate.map(|r| r.per_us), "propagation_ps": wire.propagation_ps,
                "overhead_ps": if wire.to == way.to { 0 } else { topology.overhead_ps(wire.to) },
            })
        })
        .collect();
    let latencies: serde_json::Map<_, _> = latencies(topology, way)
        .into_iter()
        .map(|(what, ps)| (what.replace(' ', "_") + "_ps", ps.into()))
        .collect();
    let value = json!({
        "from": name(way.from), "to": name(way.to), "edges": edges,
        "overhead_ps": way.route.overhead_ps, "propagation_ps": way.route.propagation_ps,
        "bottleneck_bytes_per_us": way.arrival_ps.and(way.route.bottleneck).map(|r| r.per_us),
        "bytes": way.bytes, "latency": latencies,
    });
    value.to_string() + "\n"
}
