//! Flows simulated together, and the parts of their latencies.

use super::fair_share;
use crate::engine::{Fidelity, Flow, Issuer, traffic};
use crate::topology::{Route, Topology};
use crate::units::Ps;

/// The parts of a latency; they sum to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The rest of the time alone on the machine: the flits' way through the pipeline of edges, and
    /// gathering. Less than 0 where the drain hides an overhead: behind the last bottleneck the
    /// flits catch up with a first one that pays.
    pub wire_ps: i64,
    /// The overheads of the nodes on the way, and of those on the way back if there is a response.
    pub overhead_ps: Ps,
    /// All bytes at the bottleneck of the way.
    pub drain_ps: Ps,
    /// The burst that commits last; for a message through a queue its two slot accesses.
    pub commit_ps: Ps,
    /// How much longer than alone on the machine.
    pub contention_ps: Ps,
}

impl Parts {
    /// The latency.
    #[must_use]
    pub const fn total_ps(&self) -> Ps {
        let rest = self.overhead_ps + self.drain_ps + self.commit_ps + self.contention_ps;
        rest.saturating_add_signed(self.wire_ps)
    }

    /// Parts of a latency of which all but the wire are known.
    pub(super) const fn of(latency_ps: Ps, known: Parts) -> Parts {
        let Parts { overhead_ps, drain_ps, commit_ps, contention_ps, .. } = known;
        let others = overhead_ps + drain_ps + commit_ps + contention_ps;
        Parts { wire_ps: latency_ps.wrapping_sub(others).cast_signed(), ..known }
    }
}

/// What became of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// When it was done.
    pub end_ps: Ps,
    /// Where the time from its start to its end went.
    pub parts: Parts,
    /// Its way.
    pub route: Route,
}

/// Moves all flows at once over an idle machine.
#[must_use]
pub fn passed(topology: &Topology, flows: &[Flow], fidelity: Fidelity) -> Vec<Passed> {
    let passages = traffic(topology, flows, fidelity);
    let passed = flows.iter().zip(passages).map(|(flow, passage)| {
        let route = route(topology, flow);
        let (ways, commit_ps) = match flow.issuer {
            Issuer::Dma(_) | Issuer::HostRead => (2, topology.machine().hbm.burst_ps),
            Issuer::HostWrite => (1, topology.machine().hbm.burst_ps),
            Issuer::Message(_) => (1, 0),
        };
        let known = Parts {
            wire_ps: 0,
            overhead_ps: ways * route.overhead_ps,
            drain_ps: route.bottleneck.map_or(0, |rate| rate.time(flow.transfer.bytes())),
            commit_ps,
            contention_ps: passage.contention_ps,
        };
        Passed { end_ps: passage.end_ps, parts: Parts::of(passage.end_ps - flow.start_ps, known), route }
    });
    passed.collect()
}

/// The way of a flow.
pub(super) fn route(topology: &Topology, flow: &Flow) -> Route {
    let home = flow.transfer.home;
    match flow.issuer {
        Issuer::Dma(pe) => topology.dma_route(pe, home),
        Issuer::Message(pe) => topology.message_route(pe, home),
        Issuer::HostWrite | Issuer::HostRead => topology.host_route(home),
    }
}

/// What a set of flows that start together takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Flows of the set.
    pub issuers: u32,
    /// Bytes of all flows.
    pub bytes: u64,
    /// The end of the last flow.
    pub latency_ps: Ps,
    /// Where its time went; of several that end last, that of the first.
    pub parts: Parts,
    /// What the max-min fair shares of all flows sum to, in bytes per microsecond.
    pub fair_per_us: u64,
}

impl Measure {
    /// All bytes over the latency, in bytes per microsecond.
    #[must_use]
    pub const fn per_us(&self) -> u64 {
        ratio(self.bytes, 1_000_000, self.latency_ps)
    }

    /// The bandwidth over the fair share, in millionths. At most 1000000 for flows of equal size:
    /// the least share is that of a full resource, which all of its flows have to pass.
    #[must_use]
    pub const fn share_ppm(&self) -> u64 {
        let ideal_ps = ratio(self.bytes, 1_000_000, self.fair_per_us);
        ratio(ideal_ps, 1_000_000, self.latency_ps)
    }
}

/// `a * b / c`, rounded; 0 if `c` is.
const fn ratio(a: u64, b: u64, c: u64) -> u64 {
    if c == 0 { 0 } else { ((a as u128 * b as u128 + c as u128 / 2) / c as u128) as u64 }
}

/// Simulates flows, at least one, that all start at 0.
#[must_use]
pub fn measure(topology: &Topology, flows: &[Flow], fidelity: Fidelity) -> Measure {
    let mut last = Passed {
        end_ps: 0,
        parts: Parts::default(),
        route: Route { edges: vec![], overhead_ps: 0, propagation_ps: 0, bottleneck: None },
    };
    for flow in passed(topology, flows, fidelity) {
        if flow.end_ps > last.end_ps {
            last = flow;
        }
    }
    Measure {
        issuers: flows.len() as u32,
        bytes: flows.iter().map(|flow| flow.transfer.bytes()).sum(),
        latency_ps: last.end_ps,
        parts: last.parts,
        fair_per_us: fair_share(topology, flows).iter().sum::<f64>().round() as u64,
    }
}
