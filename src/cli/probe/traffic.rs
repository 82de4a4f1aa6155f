//! The transfers of a traffic file: when each was done, where its time went, which way it took.

use super::json::{PartsObject, ns as ns_number};
use crate::cli::out::table;
use crate::cli::text::{bandwidth, bytes, ns, plural, signed_ns};
use kernbench_core::engine::Fidelity;
use kernbench_core::probe::{Op, Passed, Request};
use kernbench_core::topology::{Machine, Topology};
use serde::Serialize;
use std::fmt::Write;

/// Ways are printed for files of up to this many transfers; JSON has them always.
const FEW: usize = 16;

pub(super) fn text(
    topology: &Topology,
    fidelity: Fidelity,
    requests: &[Request],
    passed: &[Passed],
) -> String {
    let machine = topology.machine();
    let makespan = makespan(passed);
    let moved: u64 = requests.iter().map(|r| r.flow.transfer.bytes()).sum();
    let rate = (u128::from(moved) * 1_000_000 / u128::from(makespan.max(1))) as u64;
    let count = plural(requests.len() as u64, "transfer");
    let mut out = format!(
        "{count}, {}, {} fidelity\nmakespan {} ns, {}\n\ntimes and the parts of latencies, in ns\n",
        bytes(moved),
        fidelity.name(),
        ns(makespan),
        bandwidth(rate)
    );
    let rows: Vec<Vec<String>> = (requests.iter().zip(passed).enumerate())
        .map(|(i, (request, passed))| {
            let (t, p) = (&request.flow.transfer, &passed.parts);
            let wire = if p.wire_ps < 0 { signed_ns(p.wire_ps) } else { ns(p.wire_ps.unsigned_abs()) };
            vec![
                i.to_string(),
                format!("{} {} {}", issuer(machine, request), verb(request.op), machine.pe_name(t.home)),
                bytes(t.bytes()),
                ns(request.flow.start_ps),
                ns(passed.end_ps),
                ns(p.total_ps()),
                wire,
                ns(p.overhead_ps),
                ns(p.drain_ps),
                ns(p.commit_ps),
                ns(p.contention_ps),
            ]
        })
        .collect();
    let header = [
        "#",
        "transfer",
        "bytes",
        "start",
        "end",
        "latency",
        "wire",
        "overhead",
        "drain",
        "commit",
        "contention",
    ];
    out += &table(&header, &rows, &[0, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    if passed.len() > FEW {
        out += "\nthe ways are in the output of --json\n";
        return out;
    }
    for (i, passed) in passed.iter().enumerate() {
        let _ = writeln!(out, "\nway of {i}, {}", plural(passed.route.edges.len() as u64, "edge"));
        out += &way(&names(topology, passed));
    }
    out
}

fn issuer(machine: &Machine, request: &Request) -> String {
    request.from().map_or_else(|| "host".to_owned(), |pe| machine.pe_name(pe))
}

const fn verb(op: Op) -> &'static str {
    match op {
        Op::Read => "reads",
        Op::Write => "writes",
        Op::Message => "sends to",
    }
}

/// Nodes in lines of what they are in: `sip0.cube0   pe1.pe_dma r0c1 r0c0 hbm_ctrl.pe0`.
fn way(names: &[&str]) -> String {
    let mut lines: Vec<(&str, String)> = vec![];
    for name in names {
        // A cube or an IO chiplet is two levels deep; the switch is alone.
        let cut = name.match_indices('.').nth(1).or_else(|| name.match_indices('.').next());
        let (place, node) = cut.map_or(("", *name), |(at, _)| (&name[..at], &name[at + 1..]));
        match lines.last_mut() {
            Some((last, nodes)) if *last == place => {
                nodes.push(' ');
                nodes.push_str(node);
            }
            _ => lines.push((place, node.to_owned())),
        }
    }
    lines.iter().map(|(place, nodes)| format!("  {place:13}{nodes}\n")).collect()
}

fn names<'a>(topology: &'a Topology, passed: &Passed) -> Vec<&'a str> {
    topology.nodes_of(&passed.route).into_iter().map(|node| topology.node_name(node)).collect()
}

fn makespan(passed: &[Passed]) -> u64 {
    passed.iter().map(|p| p.end_ps).max().unwrap_or(0)
}

#[derive(Serialize)]
struct Object<'a> {
    fidelity: &'static str,
    makespan_ns: f64,
    transfers: Vec<Transfer<'a>>,
}

#[derive(Serialize)]
struct Transfer<'a> {
    from: String,
    to: String,
    op: &'static str,
    bytes: u64,
    /// `None` for a message.
    channel: Option<u32>,
    start_ns: f64,
    end_ns: f64,
    latency_ns: f64,
    #[serde(flatten)]
    parts: PartsObject,
    path: Vec<&'a str>,
}

/// One line; the transfers are in the order of the file.
pub(super) fn json(
    topology: &Topology,
    fidelity: Fidelity,
    requests: &[Request],
    passed: &[Passed],
) -> String {
    let machine = topology.machine();
    let transfer = |(request, passed): (&Request, &Passed)| {
        let t = &request.flow.transfer;
        let in_hbm = request.op != Op::Message;
        Transfer {
            from: issuer(machine, request),
            to: machine.pe_name(t.home),
            op: request.op.name(),
            bytes: t.bytes(),
            channel: in_hbm.then(|| machine.hbm.channel(t.addr, machine.flit_bytes)),
            start_ns: ns_number(request.flow.start_ps),
            end_ns: ns_number(passed.end_ps),
            latency_ns: ns_number(passed.parts.total_ps()),
            parts: (&passed.parts).into(),
            path: names(topology, passed),
        }
    };
    let object = Object {
        fidelity: fidelity.name(),
        makespan_ns: ns_number(makespan(passed)),
        transfers: requests.iter().zip(passed).map(transfer).collect(),
    };
    // Every number is finite, so this cannot fail.
    serde_json::to_string(&object).unwrap_or_default() + "\n"
}
