//! A small machine for tests: a line of PEs, each with a router and a slice; cubes joined by slow wires.

use crate::engine::Fabric;
use crate::ir::PeId;
use crate::topology::*;
use crate::ty::Group;
use crate::units::{Ps, Rate, ns};
use std::collections::BTreeMap;

/// PE `i` has nodes `3i` (its DMA), `3i + 1` (router) and `3i + 2` (slice); the node after those of all
/// PEs joins the cubes.
pub(crate) struct Line {
    pub machine: Machine,
    wires: Vec<Wire>,
    edges: BTreeMap<(u32, u32), EdgeId>,
    bridge: u32,
    /// Of a router and of a bridge.
    pub overheads_ps: [Ps; 2],
}

/// The numbers of the default machine for `cubes` cubes of `pes` PEs in one SIP.
pub(crate) fn machine(cubes: u32, pes: u32) -> Machine {
    let slot = |setup: f64, intrinsic: f64, bank: Option<f64>| SlotCost {
        setup_ps: ns(setup),
        intrinsic: Rate::gbs(intrinsic),
        bank: bank.map(Rate::gbs),
    };
    Machine {
        sips: 1,
        sip_topology: SipTopology::Ring1d,
        sip_grid: [1, 1],
        cube_mesh: [cubes, 1],
        pe_grid: [pes, 1],
        flit_bytes: 256,
        ucie_policy: UciePolicy::First,
        hbm: Hbm { slice_bytes: 6 << 30, channels: 8, burst_ps: ns(8.0) },
        tcm: Tcm { bytes: 16 << 20, read: Rate::gbs(512.0), write: Rate::gbs(512.0) },
        mmu: Mmu { overhead_ps: 0, page_bytes: 2 << 20 },
        sram_bytes: 32 << 20,
        gemm: Gemm {
            tile: [32, 64, 32],
            half: Rate::tflops(8.0),
            byte: Rate::tflops(16.0),
            word: Rate::tflops(2.0),
        },
        math: Math { lanes: 128, step_ps: ns(1.0), slow_steps: 4, overhead_ps: 0 },
        accel_slot: true,
        pe_cpu: PeCpu { start_ps: ns(2.0), issue_ps: ns(1.0), dispatch_ps: ns(1.0) },
        slots: [slot(0.0, 512.0, None), slot(2.0, 512.0, Some(128.0)), slot(6.0, 256.0, Some(256.0))],
        issue: IssueMode::Dataflow,
        scratch_bytes: 1 << 20,
    }
}

impl Line {
    pub fn new(cubes: u32, pes: u32) -> Self {
        let (count, bridge) = (cubes * pes, 3 * cubes * pes);
        let (machine, overheads_ps) = (machine(cubes, pes), [ns(2.0), ns(16.0)]);
        let mut line = Line { machine, wires: vec![], edges: BTreeMap::new(), bridge, overheads_ps };
        for i in 0..count {
            line.pair(3 * i, 3 * i + 1, 256.0);
            line.pair(3 * i + 1, 3 * i + 2, 256.0);
            if i + 1 == count {
                break;
            }
            if (i + 1) % pes == 0 {
                line.pair(3 * i + 1, bridge + i, 128.0);
                line.pair(bridge + i, 3 * i + 4, 512.0);
            } else {
                line.pair(3 * i + 1, 3 * i + 4, 256.0);
            }
        }
        line
    }

    pub fn edge_count(&self) -> usize {
        self.wires.len()
    }

    fn pair(&mut self, a: u32, b: u32, gbs: f64) {
        for (from, to) in [(a, b), (b, a)] {
            self.edges.insert((from, to), EdgeId(self.wires.len() as u32));
            self.wires.push(Wire {
                from: NodeId(from),
                to: NodeId(to),
                rate: Some(Rate::gbs(gbs)),
                flit_ps: Rate::gbs(gbs).time(256),
                propagation_ps: 10,
            });
        }
    }

    /// Gives a wire another bandwidth.
    pub fn reshape(&mut self, wire: usize, gbs: f64) {
        let rate = Rate::gbs(gbs);
        (self.wires[wire].rate, self.wires[wire].flit_ps) = (Some(rate), rate.time(256));
    }

    fn route(&self, issuer: u32, home: u32, sink: u32) -> Route {
        let mut nodes = vec![3 * issuer, 3 * issuer + 1];
        let mut i = issuer;
        while i != home {
            let next = if home > i { i + 1 } else { i - 1 };
            let bridge = self.bridge + i.min(next);
            if self.edges.contains_key(&(3 * i + 1, bridge)) {
                nodes.push(bridge);
            }
            nodes.push(3 * next + 1);
            i = next;
        }
        nodes.push(3 * home + sink);
        let edges: Vec<EdgeId> = nodes.windows(2).map(|w| self.edges[&(w[0], w[1])]).collect();
        Route {
            overhead_ps: nodes[1..nodes.len() - 1].iter().map(|&n| self.overhead_ps(NodeId(n))).sum(),
            propagation_ps: 10 * edges.len() as Ps,
            bottleneck: edges.iter().filter_map(|e| self.wire(*e).rate).min(),
            edges,
        }
    }
}

impl Fabric for Line {
    fn machine(&self) -> &Machine {
        &self.machine
    }
    fn wire(&self, edge: EdgeId) -> &Wire {
        &self.wires[edge.0 as usize]
    }
    fn overhead_ps(&self, node: NodeId) -> Ps {
        match node.0 {
            n if n >= self.bridge => self.overheads_ps[1],
            n if n % 3 == 1 => self.overheads_ps[0],
            _ => 0,
        }
    }
    fn gathers(&self, _: NodeId) -> bool {
        false
    }
    fn dma_route(&self, issuer: PeId, home: PeId) -> Route {
        self.route(issuer.0, home.0, 2)
    }
    fn message_route(&self, from: PeId, to: PeId) -> Route {
        self.route(from.0, to.0, 0)
    }
    fn host_route(&self, home: PeId) -> Route {
        self.route(0, home.0, 2)
    }
    fn credit_ps(&self, from: PeId, to: PeId, bytes: u64) -> Ps {
        self.message_route(from, to).credit_ps(bytes)
    }
    fn barrier_ps(&self, group: Group, pe: PeId) -> Ps {
        let cube = ns(2.0) * u64::from(1 + pe.0 % self.machine.pes());
        cube + if group == Group::Sip { ns(30.0) } else { 0 }
    }
    fn release_ps(&self, group: Group, pe: PeId) -> Ps {
        self.barrier_ps(group, pe)
    }
}
