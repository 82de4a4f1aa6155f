//! What a simulation asks of a machine, and the paths it has asked for, compiled to flat tables.

use crate::ir::PeId;
use crate::topology::{EdgeId, Machine, NodeId, NodeKind, NodeRole, Route, Topology, Wire};
use crate::ty::Group;
use crate::units::Ps;
use rustc_hash::FxHashMap;

/// The part of a topology that time depends on.
pub(crate) trait Fabric {
    fn machine(&self) -> &Machine;
    fn wire(&self, edge: EdgeId) -> &Wire;
    fn overhead_ps(&self, node: NodeId) -> Ps;
    /// Whether a node gathers all flits of a transfer before it releases the first.
    fn gathers(&self, node: NodeId) -> bool;
    /// Whether all that goes over an edge comes over one other edge, through a node that takes no time.
    fn follows(&self, _: EdgeId) -> bool {
        false
    }
    fn dma_route(&self, issuer: PeId, home: PeId) -> Route;
    fn message_route(&self, from: PeId, to: PeId) -> Route;
    fn host_route(&self, home: PeId) -> Route;
    /// A credit on its way from a receiver to a sender.
    fn credit_ps(&self, from: PeId, to: PeId, bytes: u64) -> Ps;
    /// From a PE to where its group meets, and back.
    fn barrier_ps(&self, group: Group, pe: PeId) -> Ps;
    fn release_ps(&self, group: Group, pe: PeId) -> Ps;
}

impl Fabric for Topology {
    fn machine(&self) -> &Machine {
        self.machine()
    }
    fn wire(&self, edge: EdgeId) -> &Wire {
        self.wire(edge)
    }
    fn overhead_ps(&self, node: NodeId) -> Ps {
        self.overhead_ps(node)
    }
    fn gathers(&self, node: NodeId) -> bool {
        self.node_kind(node) == NodeKind::PcieEp
    }
    fn follows(&self, edge: EdgeId) -> bool {
        let Wire { from, to, .. } = *self.wire(edge);
        let passes = self.node_kind(from).role() == NodeRole::Worker && self.overhead_ps(from) == 0;
        // Links go both ways, and no route turns back.
        let link = |edge: &EdgeId| self.wire(*edge).rate.is_some() && self.wire(*edge).to != to;
        passes && self.edges_from(from).filter(link).count() == 1
    }
    fn dma_route(&self, issuer: PeId, home: PeId) -> Route {
        self.dma_route(issuer, home)
    }
    fn message_route(&self, from: PeId, to: PeId) -> Route {
        self.message_route(from, to)
    }
    fn host_route(&self, home: PeId) -> Route {
        self.host_route(home)
    }
    fn credit_ps(&self, from: PeId, to: PeId, bytes: u64) -> Ps {
        self.credit_route(from, to).credit_ps(bytes)
    }
    fn barrier_ps(&self, group: Group, pe: PeId) -> Ps {
        match group {
            Group::Cube => self.barrier_cube_ps(pe),
            Group::Sip => self.barrier_sip_ps(pe),
        }
    }
    fn release_ps(&self, group: Group, pe: PeId) -> Ps {
        match group {
            Group::Cube => self.release_cube_ps(pe),
            Group::Sip => self.release_sip_ps(pe),
        }
    }
}

/// One edge of a path, the node it leaves and the node it leads to. Edges and nodes are numbered in
/// the order in which paths came to use them, so that the state of those in use lies together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    pub edge: u32,
    /// The node it leaves.
    pub node: u32,
    /// What that node's worker takes for the first flit of a transfer; 0 where there is no worker.
    pub decode_ps: Ps,
    /// Bytes per microsecond; 0 on a command edge.
    pub per_us: u64,
    pub flit_ps: Ps,
    pub propagation_ps: Ps,
    /// Overhead of the node arrived at; 0 for the sink.
    pub overhead_ps: Ps,
    pub end: End,
    /// All that goes over the edge comes over the hop before, and waits for nothing at the node.
    pub follows: bool,
}

/// What the node is that a hop leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// One that passes flits on.
    Node,
    /// One that gathers all flits of a transfer before it passes the first one on.
    Gather,
    /// The end of the path.
    Sink,
}

impl Hop {
    /// What a flit of `bytes`, at most `flit_bytes`, holds the edge.
    pub fn flit_time(&self, bytes: u64, flit_bytes: u64) -> Ps {
        match self.per_us {
            0 => 0,
            _ if bytes == flit_bytes => self.flit_ps,
            per_us => (bytes * 1_000_000).div_ceil(per_us),
        }
    }
}

/// A path, as a run of hops.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub first: u32,
    pub len: u32,
    /// A command or response along it: overheads and propagation.
    pub empty_ps: Ps,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathId(pub u32);

/// What a path is for; routes of one kind depend on their ends alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    Dma,
    Message,
    Host,
}

/// Paths by their ends. The maps are only ever looked up.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub hops: Vec<Hop>,
    pub paths: Vec<Path>,
    index: FxHashMap<(Purpose, PeId, PeId), PathId>,
    /// The edges in use, by number.
    pub edges: Vec<EdgeId>,
    edge_numbers: FxHashMap<EdgeId, u32>,
    nodes: FxHashMap<NodeId, u32>,
}

impl Paths {
    pub fn get(&mut self, fabric: &dyn Fabric, purpose: Purpose, from: PeId, to: PeId) -> PathId {
        if let Some(&id) = self.index.get(&(purpose, from, to)) {
            return id;
        }
        let route = match purpose {
            Purpose::Dma => fabric.dma_route(from, to),
            Purpose::Message => fabric.message_route(from, to),
            Purpose::Host => fabric.host_route(to),
        };
        let id = self.compile(fabric, &route);
        self.index.insert((purpose, from, to), id);
        id
    }

    pub fn path(&self, id: PathId) -> Path {
        self.paths[id.0 as usize]
    }

    fn compile(&mut self, fabric: &dyn Fabric, route: &Route) -> PathId {
        let first = self.hops.len() as u32;
        let mut decode_ps = 0;
        for (i, &edge) in route.edges.iter().enumerate() {
            let wire = fabric.wire(edge);
            let end = match i + 1 == route.edges.len() {
                true => End::Sink,
                false if fabric.gathers(wire.to) => End::Gather,
                false => End::Node,
            };
            let overhead_ps = if end == End::Sink { 0 } else { fabric.overhead_ps(wire.to) };
            let nodes = self.nodes.len() as u32;
            let number = *self.edge_numbers.entry(edge).or_insert(self.edges.len() as u32);
            if number as usize == self.edges.len() {
                self.edges.push(edge);
            }
            self.hops.push(Hop {
                edge: number,
                node: *self.nodes.entry(wire.from).or_insert(nodes),
                decode_ps,
                per_us: wire.rate.map_or(0, |r| r.per_us),
                flit_ps: wire.flit_ps,
                propagation_ps: wire.propagation_ps,
                overhead_ps,
                end,
                follows: i > 0 && fabric.follows(edge),
            });
            decode_ps = if end == End::Node { overhead_ps } else { 0 };
        }
        self.paths.push(Path { first, len: route.edges.len() as u32, empty_ps: route.response_ps() });
        PathId(self.paths.len() as u32 - 1)
    }
}
