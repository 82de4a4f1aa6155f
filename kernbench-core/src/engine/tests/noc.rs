//! What is known of meshes in general, on one of 8 x 8 routers under uniform random traffic.
//!
//! A cycle is what an edge takes for a flit, 1 ns. Half of all packets cross the middle of the mesh,
//! where 8 edges lead each way, so that 64 nodes cannot have more than 0.5 flits a node and cycle
//! accepted in the long run.

use super::laws::Random;
use super::machines::changed;
use super::model::Model;
use crate::engine::{Flow, Issuer};
use crate::ir::{PeId, Transfer};
use crate::topology::Topology;
use crate::units::Ps;

const CYCLE: Ps = 1000;
const NODES: u32 = 64;

fn mesh(overhead_ns: &str) -> Topology {
    let routers: Vec<String> = (0..NODES).map(|i| format!("r{}c{}", i / 8, i % 8)).collect();
    changed(&[
        ("system.sips.count", "1".into()),
        ("sip.cube_mesh", "{w: 1, h: 1}".into()),
        ("sip.io.phys.count", "1".into()),
        ("cube.noc.grid", "{w: 8, h: 8}".into()),
        ("cube.noc.missing", "[]".into()),
        ("cube.noc.overhead_ns", overhead_ns.into()),
        ("cube.pes.grid", "{w: 8, h: 8}".into()),
        ("cube.pes.routers", format!("[{}]", routers.join(", "))),
    ])
}

fn packet(from: u32, to: u32, flits: u32, start_ps: Ps) -> Flow {
    let transfer =
        Transfer { addr: 0, home: PeId(to), run_bytes: 256 * flits, runs: 1, ..Transfer::default() };
    Flow { issuer: Issuer::Message(PeId(from)), transfer, start_ps }
}

/// Packets to other nodes: in each cycle each node sends one with the probability that makes it
/// `load` thousandths of a flit. A higher load has the packets of a lower one, and more.
fn packets(load: u64, flits: u32, cycles: u64) -> Vec<Flow> {
    let mut r = Random(2024);
    let mut packets = vec![];
    for cycle in 0..cycles {
        for from in 0..NODES {
            let (draw, step) = (r.below(100_000), 1 + r.below(u64::from(NODES) - 1) as u32);
            if draw * u64::from(flits) < load * 100 {
                packets.push(packet(from, (from + step) % NODES, flits, cycle * CYCLE));
            }
        }
    }
    packets
}

/// Flits accepted in a thousand nodes and cycles until all have arrived, and the mean latency.
fn measure(model: Model, t: &Topology, packets: &[Flow]) -> (u64, Ps) {
    let passages = model.traffic(t, packets);
    let flits: u64 = packets.iter().map(|p| p.transfer.bytes() / 256).sum();
    let end = passages.iter().map(|p| p.end_ps).max().unwrap_or(0);
    let waits = passages.iter().zip(packets).map(|(p, flow)| p.end_ps - flow.start_ps);
    let accepted = flits * 1000 / (u64::from(NODES) * end.div_ceil(CYCLE));
    (accepted, waits.sum::<Ps>() / packets.len() as Ps)
}

#[test]
fn throughput_is_below_the_bisection_and_latency_grows_with_load() {
    // With decoding routers much less gets through: each is one worker for all its ports.
    let loads = [
        ("0", 1, [50, 150, 250, 350, 450, 600, 800]),
        ("0", 4, [50, 150, 250, 350, 450, 600, 800]),
        ("2", 1, [10, 20, 40, 60, 80, 120, 200]),
        ("2", 4, [20, 50, 100, 150, 200, 300, 500]),
    ];
    for (overhead_ns, flits, loads) in loads {
        let t = mesh(overhead_ns);
        for model in Model::EXACT {
            let points = loads.map(|load| measure(model, &t, &packets(load, flits, 200)));
            assert!(points.iter().all(|(accepted, _)| *accepted <= 500), "{points:?}");
            assert!(points.is_sorted_by_key(|(_, latency)| latency), "{points:?}");
        }
    }
}

/// A hop adds what its router takes to decode and its edge to carry a flit; the other flits of a
/// packet follow it closely.
#[test]
fn latency_without_load_is_linear_in_hops() {
    for overhead in [0, 2] {
        let t = mesh(&overhead.to_string());
        for model in Model::EXACT {
            for (from, to) in (0..NODES * NODES).map(|i| (i / NODES, i % NODES)).filter(|(a, b)| a != b) {
                let hops = Ps::from((from / 8).abs_diff(to / 8) + (from % 8).abs_diff(to % 8));
                for flits in [1, 4] {
                    let took = model.traffic(&t, &[packet(from, to, flits, 0)])[0].end_ps;
                    // One router and one edge more than hops, and the edge out of the mesh.
                    let expected = (hops + 1) * (1000 * overhead + CYCLE) + Ps::from(flits) * CYCLE;
                    assert_eq!(took, expected, "{from} to {to}");
                }
            }
        }
    }
}
