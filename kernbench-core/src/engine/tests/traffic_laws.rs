//! Laws of latencies and of flows that share edges, on random machines and traffic.

use super::machines::{Spec, specs};
use super::model::Model;
use super::random::{cases, check, ensure, words};
use super::star::Star;
use crate::engine::{Fabric, Flow, Issuer};
use crate::ir::{PeId, Transfer};
use crate::topology::{NodeKind, PeAt, Topology};
use crate::units::Ps;
use proptest::prelude::*;

const CASES: u32 = 60;

fn flow(issuer: Issuer, home: PeId, bytes: u32) -> Flow {
    let transfer = Transfer { addr: 0, home, run_bytes: bytes, runs: 1, ..Transfer::default() };
    Flow { issuer, transfer, start_ps: 0 }
}

fn alone(model: Model, fabric: &dyn Fabric, flow: Flow) -> Ps {
    model.traffic(fabric, &[flow])[0].end_ps - flow.start_ps
}

/// A random mesh of cubes, a size, and a start.
fn meshes() -> impl Strategy<Value = (Topology, u32, Ps)> {
    let mesh = specs().prop_filter_map("a line", |spec| match spec {
        Spec::Mesh(mesh) => Some(mesh),
        _ => None,
    });
    (mesh, 1..10_000_u32, 0..100_000_u64).prop_map(|(mesh, bytes, start)| (mesh.build(), bytes, start))
}

/// Pairs of PEs, not too many.
fn pairs(t: &Topology) -> impl Iterator<Item = (PeId, PeId)> + use<> {
    let pes = t.machine().pe_count();
    let stride = (pes * pes / 100).max(1) as usize;
    (0..pes * pes).step_by(stride).map(move |i| (PeId(i / pes), PeId(i % pes)))
}

#[test]
fn latency_alone_depends_on_the_path_only() {
    check(CASES, meshes(), |(t, bytes, start_ps)| {
        for model in Model::EXACT {
            let mut seen = vec![];
            for (from, home) in pairs(&t) {
                let route = t.dma_route(from, home);
                let edges = route.edges.iter().map(|e| t.wire(*e));
                let path: Vec<_> = edges
                    .map(|w| (w.rate, w.propagation_ps, t.overhead_ps(w.to), t.node_kind(w.to)))
                    .collect();
                let took = alone(model, &t, flow(Issuer::Dma(from), home, bytes));
                let later = alone(model, &t, Flow { start_ps, ..flow(Issuer::Dma(from), home, bytes) });
                ensure(took == later, || format!("{from:?} to {home:?}: {took}, later {later}"))?;
                match seen.iter().find(|(p, _)| *p == path) {
                    Some((_, same)) => {
                        ensure(took == *same, || format!("{from:?} to {home:?}: {took}, {same}"))?
                    }
                    None => seen.push((path, took)),
                }
            }
        }
        Ok(())
    });
}

/// Two routes of one issuer of which one goes on where the other turns to its slice.
#[test]
fn latency_alone_never_falls_with_more_routers_on_the_way() {
    check(CASES, meshes(), |(t, bytes, _)| {
        for model in Model::EXACT {
            let mut routes = vec![];
            for (from, home) in pairs(&t) {
                let took = alone(model, &t, flow(Issuer::Dma(from), home, bytes));
                let mut way = t.dma_route(from, home).edges;
                way.pop();
                routes.push((way, took, from, home));
            }
            for (long, took, from, home) in &routes {
                for (short, less, ..) in routes.iter().filter(|(short, ..)| long.starts_with(short)) {
                    let wrong =
                        || format!("{from:?} to {home:?}: {took}, {less} after {} edges", short.len());
                    ensure(took >= less, wrong)?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn within_a_cube_latency_alone_grows_with_the_routers_and_nothing_else() {
    check(CASES, meshes(), |(t, bytes, _)| {
        for model in Model::EXACT {
            let pes = t.machine().pes();
            let mut of_length = vec![];
            for (from, home) in (0..pes * pes).map(|i| (PeId(i / pes), PeId(i % pes))) {
                let edges = t.dma_route(from, home).edges;
                let kinds = edges.iter().map(|e| t.node_kind(t.wire(*e).to));
                let inside = kinds.clone().all(|k| matches!(k, NodeKind::Router | NodeKind::HbmCtrl));
                ensure(inside, || format!("{from:?} to {home:?} leaves the cube"))?;
                of_length.push((edges.len(), alone(model, &t, flow(Issuer::Dma(from), home, bytes))));
            }
            of_length.sort_unstable();
            for two in of_length.windows(2) {
                let holds = if two[0].0 == two[1].0 { two[0].1 == two[1].1 } else { two[0].1 <= two[1].1 };
                ensure(holds, || format!("{two:?}"))?;
            }
        }
        Ok(())
    });
}

#[test]
fn near_is_faster_than_far_on_the_default_machine() {
    let t = Topology::default_machine();
    let pe = |cube, pe| t.machine().pe(PeAt { sip: 0, cube, pe });
    let homes = [pe(0, 0), pe(0, 1), pe(0, 7), pe(1, 0), pe(15, 7)];
    for model in Model::ALL {
        for bytes in [1, 256, 1000, 16 << 10] {
            let took = homes.map(|home| alone(model, &t, flow(Issuer::Dma(pe(0, 0)), home, bytes)));
            assert!(took.is_sorted_by(|a, b| a < b), "{took:?}");
        }
    }
}

#[test]
fn reading_takes_the_host_at_least_as_long_as_writing() {
    check(CASES, meshes(), |(t, bytes, _)| {
        for model in Model::EXACT {
            for home in (0..t.machine().pe_count()).step_by(3).map(PeId) {
                let write = alone(model, &t, flow(Issuer::HostWrite, home, bytes));
                let read = alone(model, &t, flow(Issuer::HostRead, home, bytes));
                ensure(read >= write, || format!("{home:?}: {read} < {write}"))?;
            }
        }
        Ok(())
    });
}

#[test]
fn a_set_takes_at_least_as_long_as_each_of_its_members() {
    check(CASES, cases(10, 8 << 10), |case| {
        let fabric = case.machine.build();
        let flows = case.flows(&*fabric);
        for model in Model::ALL {
            let all = model.traffic(&*fabric, &flows);
            for (flow, passage) in flows.iter().zip(&all) {
                let one = flow.start_ps + alone(model, &*fabric, *flow);
                ensure(one <= passage.end_ps, || format!("{model:?} {}: {one}, {passage:?}", words(flow)))?;
            }
        }
        Ok(())
    });
}

/// Sizes in flits of flows that share an edge, and another order for them.
fn orders() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, u64)> {
    let sizes = prop::collection::vec(1..40_u32, 1..8);
    (sizes, 0..5_u64)
        .prop_flat_map(|(sizes, gap)| (Just(sizes.clone()), Just(sizes).prop_shuffle(), Just(gap)))
}

#[test]
fn the_order_of_starts_does_not_change_when_a_shared_edge_has_drained() {
    check(CASES, orders(), |(sizes, other, gap)| {
        let star = Star::new(8, 128.0, 0);
        // One flow starts each `gap` flits; the edge has work from the first on.
        let gap = gap.min(u64::from(*sizes.iter().min().unwrap_or(&1)));
        let flits: u32 = sizes.iter().sum();
        for model in Model::EXACT {
            for sizes in [&sizes, &other] {
                let flows: Vec<Flow> = sizes
                    .iter()
                    .enumerate()
                    .map(|(i, n)| {
                        let issuer = Issuer::Message(PeId(i as u32));
                        Flow { start_ps: 1000 * gap * i as Ps, ..flow(issuer, PeId(0), 256 * n) }
                    })
                    .collect();
                let end = model.traffic(&star, &flows).iter().map(|p| p.end_ps).max();
                let expected = 1000 + 2000 * Ps::from(flits);
                ensure(end == Some(expected), || format!("{sizes:?}: {end:?}, not {expected}"))?;
            }
        }
        Ok(())
    });
}

/// In memory they end together, too, if as many flows as there are channels begin at one each: fewer
/// leave channels idle and may meet at the others.
#[test]
fn equal_flows_that_enter_together_end_together() {
    let numbers = (1..9_u32, 1..5000_u32, prop::sample::select(vec![0, 2000, 700]), any::<bool>());
    check(2 * CASES, numbers, |(n, bytes, overhead_ps, memory)| {
        let n = if memory { 8 } else { n };
        let star = Star::new(n, 256.0, overhead_ps);
        let flows = (0..n).map(|i| {
            let issuer = if memory { Issuer::Dma(PeId(i)) } else { Issuer::Message(PeId(i)) };
            let mut flow = flow(issuer, PeId(0), bytes);
            flow.transfer.addr = 256 * u64::from(i);
            flow
        });
        let flows: Vec<Flow> = flows.collect();
        for model in Model::EXACT {
            let passages = model.traffic(&star, &flows);
            let ends = || passages.iter().map(|p| p.end_ps);
            let apart = ends().max().unwrap_or(0) - ends().min().unwrap_or(0);
            // Flows of one flit are as far apart as the hub takes to decode them.
            let most = Ps::from(n) * overhead_ps.max(1000) + 8000 * Ps::from(memory);
            ensure(apart <= most, || format!("{apart} ps apart, at most {most}"))?;
        }
        Ok(())
    });
}
