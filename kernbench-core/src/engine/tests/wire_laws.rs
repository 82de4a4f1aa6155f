//! Laws of edges and nodes, on the log of the plain engine: each flit on each edge.

use super::flits::{Crossing, FlitWires};
use super::random::{Case, cases, check, ensure, words};
use crate::engine::traffic;
use crate::engine::{Fabric, Flow};
use crate::topology::{EdgeId, NodeId};
use crate::units::Ps;
use std::collections::BTreeMap;

const CASES: u32 = 100;

fn with_log(count: u32, law: impl Fn(&dyn Fabric, &[Flow], &[Crossing]) -> Result<(), String>) {
    check(count, cases(10, 8 << 10), |case: Case| {
        let fabric = case.machine.build();
        let flows = case.flows(&*fabric);
        let mut wires = FlitWires::new(&*fabric);
        wires.log = Some(vec![]);
        traffic::run(&*fabric, &flows, &mut wires);
        law(&*fabric, &flows, &wires.log.unwrap_or_default())
    });
}

fn by_edge(log: &[Crossing]) -> BTreeMap<EdgeId, Vec<Crossing>> {
    let mut edges = BTreeMap::<EdgeId, Vec<Crossing>>::new();
    for crossing in log {
        edges.entry(crossing.edge).or_default().push(*crossing);
    }
    edges
}

#[test]
fn an_edge_carries_one_flit_at_a_time_in_order_and_is_never_idle_while_one_waits() {
    with_log(CASES, |_, _, log| {
        for (edge, crossings) in by_edge(log) {
            let mut free = 0;
            for c in crossings {
                ensure(c.start == c.queued.max(free) && c.end > c.start, || format!("{edge:?} {c:?}"))?;
                free = c.end;
            }
        }
        Ok(())
    });
}

#[test]
fn an_edge_carries_no_more_than_its_bandwidth_allows() {
    with_log(CASES, |fabric, _, log| {
        for (edge, crossings) in by_edge(log) {
            let bytes: u64 = crossings.iter().map(|c| c.bytes).sum();
            let busy: Ps = crossings.iter().map(|c| c.end - c.start).sum();
            let rate = fabric.wire(edge).rate.ok_or("a command edge carries bytes")?;
            let span = crossings.last().map_or(0, |c| c.end) - crossings[0].start;
            ensure(busy >= rate.time(bytes) && busy <= span, || format!("{edge:?} {bytes} B in {busy} ps"))?;
            // Each crossing is rounded up by less than 1 ps.
            ensure(busy <= rate.time(bytes) + crossings.len() as Ps, || format!("{edge:?} is slow"))?;
        }
        Ok(())
    });
}

#[test]
fn all_bytes_cross_every_edge_of_their_route_and_no_other() {
    with_log(CASES, |fabric, flows, log| {
        let mut crossed = BTreeMap::<(u32, EdgeId), u64>::new();
        for c in log {
            *crossed.entry((c.id, c.edge)).or_default() += c.bytes;
        }
        for (id, flow) in flows.iter().enumerate() {
            let home = flow.transfer.home;
            let route = match flow.issuer {
                crate::engine::Issuer::Dma(pe) => fabric.dma_route(pe, home),
                crate::engine::Issuer::Message(pe) => fabric.message_route(pe, home),
                _ => fabric.host_route(home),
            };
            for edge in route.edges {
                let bytes = crossed.remove(&(id as u32, edge));
                ensure(bytes == Some(flow.transfer.bytes()), || format!("{}: {bytes:?}", words(flow)))?;
            }
        }
        ensure(crossed.is_empty(), || format!("{crossed:?}"))
    });
}

/// A flit that went through a worker: when it arrived, which it is, when it was served.
type Service = (Ps, u32, usize, Ps);

/// The flits each worker served. The k-th crossing of a transfer on an edge is its flit k.
fn services(fabric: &dyn Fabric, log: &[Crossing]) -> BTreeMap<NodeId, Vec<Service>> {
    let mut arrived = BTreeMap::<(NodeId, u32), Vec<Ps>>::new();
    let mut left = BTreeMap::<(NodeId, u32), Vec<Ps>>::new();
    let mut sources = BTreeMap::new();
    for c in log {
        let wire = fabric.wire(c.edge);
        arrived.entry((wire.to, c.id)).or_default().push(c.end + wire.propagation_ps);
        // A source is no worker, and may be where its message ends.
        if *sources.entry(c.id).or_insert(wire.from) != wire.from {
            left.entry((wire.from, c.id)).or_default().push(c.queued);
        }
    }
    let mut nodes = BTreeMap::<NodeId, Vec<Service>>::new();
    for ((node, id), arrivals) in arrived {
        let Some(served) = left.get(&(node, id)) else { continue };
        let flits = arrivals.into_iter().zip(served).enumerate();
        let flits = flits.map(|(index, (arrival, served))| (arrival, id, index, *served));
        nodes.entry(node).or_default().extend(flits);
    }
    nodes
}

#[test]
fn a_worker_serves_one_flit_after_another_by_arrival_and_id_and_decodes_first_ones() {
    with_log(CASES, |fabric, _, log| {
        for (node, mut flits) in services(fabric, log) {
            if fabric.gathers(node) {
                continue;
            }
            flits.sort_unstable();
            let mut free = 0;
            for (arrival, id, index, served) in flits {
                let overhead = if index == 0 { fabric.overhead_ps(node) } else { 0 };
                let expected = arrival.max(free) + overhead;
                let wrong = || format!("{node:?} transfer {id} flit {index}: {served}, not {expected}");
                ensure(served == expected, wrong)?;
                free = served;
            }
        }
        Ok(())
    });
}

#[test]
fn a_gathering_node_releases_a_transfer_when_all_of_it_is_there() {
    with_log(CASES, |fabric, _, log| {
        for (node, flits) in services(fabric, log).into_iter().filter(|(node, _)| fabric.gathers(*node)) {
            let mut last = BTreeMap::<u32, Ps>::new();
            for (arrival, id, ..) in &flits {
                let last = last.entry(*id).or_default();
                *last = (*last).max(*arrival);
            }
            for (_, id, _, released) in flits {
                let expected = last[&id] + fabric.overhead_ps(node);
                ensure(released == expected, || format!("{node:?} transfer {id} at {released}"))?;
            }
        }
        Ok(())
    });
}
