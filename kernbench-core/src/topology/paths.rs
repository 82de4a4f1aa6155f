//! The routes and delays of a machine, as its users ask for them.

use std::collections::VecDeque;

use super::layout::{Part, Spot};
use super::{NodeId, PeAt, Route, Topology, UciePolicy, routes};
use crate::ir::PeId;
use crate::units::Ps;

impl Topology {
    /// The `pe_dma` of a PE: where its transfers start and its messages arrive.
    #[must_use]
    pub fn pe_dma(&self, pe: PeId) -> NodeId {
        self.layout.id(self.part(pe, Part::Dma))
    }

    /// The `hbm_ctrl` of a PE's slice.
    #[must_use]
    pub fn hbm_ctrl(&self, pe: PeId) -> NodeId {
        self.layout.id(self.slice(pe))
    }

    /// The route of a PE's read or write to a slice: `pe_dma` to the `hbm_ctrl` of `home`.
    #[must_use]
    pub fn dma_route(&self, issuer: PeId, home: PeId) -> Route {
        self.route(self.part(issuer, Part::Dma), self.slice(home), self.connection(issuer))
    }

    /// The route of a message: `pe_dma` to `pe_dma`. Empty if both are the same PE.
    #[must_use]
    pub fn message_route(&self, from: PeId, to: PeId) -> Route {
        self.route(self.part(from, Part::Dma), self.part(to, Part::Dma), self.connection(from))
    }

    /// The route a credit takes back from the receiver `from` to the sender `to`.
    #[must_use]
    pub fn credit_route(&self, from: PeId, to: PeId) -> Route {
        self.message_route(from, to)
    }

    /// The route of host traffic: `pcie_ep` of the SIP of `home` to its `hbm_ctrl`.
    #[must_use]
    pub fn host_route(&self, home: PeId) -> Route {
        let sip = self.machine.at(home).sip;
        self.route(Spot::PcieEp(sip), self.slice(home), self.connection(home))
    }

    /// How many edges the DMA route of a PE to a slice has; takes no memory.
    #[must_use]
    pub fn hops(&self, issuer: PeId, home: PeId) -> u32 {
        let mut hops = 0;
        let (from, to) = (self.part(issuer, Part::Dma), self.slice(home));
        routes::walk(&self.layout, from, to, self.connection(issuer), &mut |_| hops += 1);
        hops
    }

    /// From the stamp of a launch to the start of its kernels: the longest zero-byte path from a
    /// `pcie_ep` by `io_cpu` and `m_cpu` to a `pe_cpu`, over all PEs.
    #[must_use]
    pub const fn launch_ps(&self) -> Ps {
        self.launch_ps
    }

    /// The delay of a PE's arrival at a cube barrier: `pe_cpu` to `m_cpu`.
    #[must_use]
    pub fn barrier_cube_ps(&self, pe: PeId) -> Ps {
        self.delay(pe, &[self.part(pe, Part::Cpu), self.m_cpu(pe)])
    }

    /// The delay of a PE's release from a cube barrier: `m_cpu` to `pe_cpu`.
    #[must_use]
    pub fn release_cube_ps(&self, pe: PeId) -> Ps {
        self.delay(pe, &[self.m_cpu(pe), self.part(pe, Part::Cpu)])
    }

    /// The delay of a PE's arrival at a SIP barrier: `pe_cpu` by `m_cpu` to `io_cpu`.
    #[must_use]
    pub fn barrier_sip_ps(&self, pe: PeId) -> Ps {
        self.delay(pe, &[self.part(pe, Part::Cpu), self.m_cpu(pe), self.io_cpu(pe)])
    }

    /// The delay of a PE's release from a SIP barrier: `io_cpu` by `m_cpu` to `pe_cpu`.
    #[must_use]
    pub fn release_sip_ps(&self, pe: PeId) -> Ps {
        self.delay(pe, &[self.io_cpu(pe), self.m_cpu(pe), self.part(pe, Part::Cpu)])
    }

    /// The way between any two nodes: the route of data or commands where there is one, else the
    /// first shortest path in the order of the edges. `None` if there is no way.
    #[must_use]
    pub fn path(&self, from: NodeId, to: NodeId) -> Option<Route> {
        let (start, end) = (self.layout.spot(from), self.layout.spot(to));
        let pe_of = |spot| match spot {
            Spot::Pe(_, pe, _) | Spot::Hbm(_, pe) => Some(pe),
            _ => None,
        };
        let conn = pe_of(start).or(pe_of(end)).map_or(0, |pe| self.connection_of(pe));
        let mut nodes = vec![from];
        if routes::walk(&self.layout, start, end, conn, &mut |spot| nodes.push(self.layout.id(spot))) {
            return self.along(&nodes);
        }
        self.along(&self.shortest(from, to)?)
    }

    fn cube(&self, at: PeAt) -> u32 {
        at.sip * self.machine.cubes() + at.cube
    }
    fn part(&self, pe: PeId, part: Part) -> Spot {
        let at = self.machine.at(pe);
        Spot::Pe(self.cube(at), at.pe, part)
    }
    fn slice(&self, pe: PeId) -> Spot {
        let at = self.machine.at(pe);
        Spot::Hbm(self.cube(at), at.pe)
    }
    fn m_cpu(&self, pe: PeId) -> Spot {
        Spot::MCpu(self.cube(self.machine.at(pe)))
    }
    fn io_cpu(&self, pe: PeId) -> Spot {
        Spot::IoCpu(self.machine.at(pe).sip)
    }

    /// The UCIe connection of a PE's traffic.
    fn connection(&self, pe: PeId) -> u32 {
        self.connection_of(self.machine.at(pe).pe)
    }
    fn connection_of(&self, pe_of_cube: u32) -> u32 {
        match self.machine.ucie_policy {
            UciePolicy::First => 0,
            UciePolicy::Striped => pe_of_cube / 2 % self.layout.noc.connections,
        }
    }

    fn route(&self, from: Spot, to: Spot, conn: u32) -> Route {
        let mut route = Route { edges: vec![], overhead_ps: 0, propagation_ps: 0, bottleneck: None };
        let mut at = self.layout.id(from);
        routes::walk(&self.layout, from, to, conn, &mut |spot| {
            let next = self.layout.id(spot);
            self.extend(&mut route, at, next);
            at = next;
        });
        route
    }

    fn along(&self, nodes: &[NodeId]) -> Option<Route> {
        let mut route = Route { edges: vec![], overhead_ps: 0, propagation_ps: 0, bottleneck: None };
        let whole = nodes.windows(2).all(|pair| self.extend(&mut route, pair[0], pair[1]));
        whole.then_some(route)
    }

    /// Adds the edge between two nodes; the first of them was passed if the route has begun.
    fn extend(&self, route: &mut Route, from: NodeId, to: NodeId) -> bool {
        let Some(edge) = self.edge(from, to) else {
            debug_assert!(false, "no edge from {} to {}", self.node_name(from), self.node_name(to));
            return false;
        };
        if !route.edges.is_empty() {
            route.overhead_ps += self.overhead_ps(from);
        }
        let wire = self.wire(edge);
        route.edges.push(edge);
        route.propagation_ps += wire.propagation_ps;
        route.bottleneck = match (route.bottleneck, wire.rate) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        true
    }

    /// The zero-byte delay along several stops: propagation, and the overheads of all but the ends.
    fn delay(&self, pe: PeId, stops: &[Spot]) -> Ps {
        let legs = stops.windows(2).map(|leg| {
            let route = self.route(leg[0], leg[1], self.connection(pe));
            route.response_ps()
        });
        let passed = stops[1..stops.len() - 1].iter().map(|stop| self.overhead_ps(self.layout.id(*stop)));
        legs.sum::<Ps>() + passed.sum::<Ps>()
    }

    pub(super) fn longest_launch(&self) -> Ps {
        let launch = |pe| {
            let host = Spot::PcieEp(self.machine.at(pe).sip);
            self.delay(pe, &[host, self.io_cpu(pe), self.m_cpu(pe), self.part(pe, Part::Cpu)])
        };
        (0..self.machine.pe_count()).map(PeId).map(launch).max().unwrap_or(0)
    }

    fn shortest(&self, from: NodeId, to: NodeId) -> Option<Vec<NodeId>> {
        let mut before: Vec<Option<NodeId>> = vec![None; self.node_count()];
        let mut queue = VecDeque::from([from]);
        before[from.0 as usize] = Some(from);
        while let Some(at) = queue.pop_front() {
            for next in self.edges_from(at).map(|e| self.wire(e).to) {
                if before[next.0 as usize].is_none() {
                    before[next.0 as usize] = Some(at);
                    queue.push_back(next);
                }
            }
        }
        let mut path = vec![to];
        while path.last() != Some(&from) {
            path.push(before[path.last()?.0 as usize]?);
        }
        path.reverse();
        Some(path)
    }
}
