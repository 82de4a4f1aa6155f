//! A machine for tests in which many PEs share one edge: each has its own edge to a hub, from which one
//! edge leads to the slice, or the DMA, of PE 0.

use super::fake;
use crate::engine::Fabric;
use crate::ir::PeId;
use crate::topology::*;
use crate::ty::Group;
use crate::units::{Ps, Rate};

pub(crate) struct Star {
    machine: Machine,
    wires: Vec<Wire>,
    overhead_ps: Ps,
}

impl Star {
    /// `pes` PEs with edges of 256 GB/s, one shared edge, and what the hub takes to decode.
    pub fn new(pes: u32, shared_gbs: f64, overhead_ps: Ps) -> Self {
        let wire = |from, to, gbs| Wire {
            from: NodeId(from),
            to: NodeId(to),
            rate: Some(Rate::gbs(gbs)),
            flit_ps: Rate::gbs(gbs).time(256),
            propagation_ps: 0,
        };
        let (hub, sink) = (pes, pes + 1);
        let mut wires: Vec<Wire> = (0..pes).map(|pe| wire(pe, hub, 256.0)).collect();
        wires.push(wire(hub, sink, shared_gbs));
        Star { machine: fake::machine(1, pes), wires, overhead_ps }
    }

    fn route(&self, from: PeId) -> Route {
        let shared = self.wires.len() as u32 - 1;
        Route {
            edges: vec![EdgeId(from.0), EdgeId(shared)],
            overhead_ps: self.overhead_ps,
            propagation_ps: 0,
            bottleneck: self.wires.iter().filter_map(|w| w.rate).min(),
        }
    }
}

impl Fabric for Star {
    fn machine(&self) -> &Machine {
        &self.machine
    }
    fn wire(&self, edge: EdgeId) -> &Wire {
        &self.wires[edge.0 as usize]
    }
    fn overhead_ps(&self, _: NodeId) -> Ps {
        self.overhead_ps
    }
    fn gathers(&self, _: NodeId) -> bool {
        false
    }
    fn dma_route(&self, issuer: PeId, _: PeId) -> Route {
        self.route(issuer)
    }
    fn message_route(&self, from: PeId, _: PeId) -> Route {
        self.route(from)
    }
    fn host_route(&self, _: PeId) -> Route {
        self.route(PeId(0))
    }
    fn credit_ps(&self, from: PeId, _: PeId, bytes: u64) -> Ps {
        self.route(from).credit_ps(bytes)
    }
    fn barrier_ps(&self, _: Group, _: PeId) -> Ps {
        0
    }
    fn release_ps(&self, _: Group, _: PeId) -> Ps {
        0
    }
}
