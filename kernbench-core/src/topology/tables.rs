//! A machine compiled into dense tables: nodes, wires, adjacency; built once, read by the engine.

use std::fmt;

use petgraph::dot::Dot;
use petgraph::visit::EdgeRef;

use super::config::{self, Extras};
use super::graph::{self, Graph};
use super::layout::Layout;
use super::{EdgeId, Machine, NodeId, Route, SipTopology, UciePolicy, Wire};
use crate::diag::{Failure, nearest};
use crate::units::Ps;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum NodeKind {
    Switch,
    PcieEp,
    IoCpu,
    IoNoc,
    /// A PHY of the IO chiplet.
    IoUcie,
    /// A connection of a PHY or of a cube's UCIe port.
    UcieConn,
    /// A UCIe port of a cube.
    UciePort,
    Router,
    HbmCtrl,
    MCpu,
    Sram,
    PeCpu,
    PeScheduler,
    PeDma,
    PeFetchStore,
    PeGemm,
    PeMath,
    PeMmu,
    PeTcm,
    PeIpcq,
}

/// How a node treats the flits that reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeRole {
    /// One serial worker over all inputs and outputs.
    Worker,
    /// Gathers all flits of a transaction and releases them in order.
    Gather,
    /// A source or sink; flits never pass through.
    End,
}

impl NodeKind {
    /// What the node does with flits: routers, UCIe nodes, switch and io_noc forward, `pcie_ep` gathers.
    #[must_use]
    pub const fn role(self) -> NodeRole {
        use NodeKind::*;
        match self {
            Router | UciePort | UcieConn | IoUcie | Switch | IoNoc => NodeRole::Worker,
            PcieEp => NodeRole::Gather,
            _ => NodeRole::End,
        }
    }
}

/// A machine: its numbers, its nodes and wires, and its routes.
///
/// Nodes and edges are numbered densely. Edges are in the order of their source, then of their
/// target, so those leaving one node are contiguous.
#[derive(Clone)]
pub struct Topology {
    pub(super) machine: Machine,
    pub(super) layout: Layout,
    extras: Extras,
    names: Vec<String>,
    /// Nodes in the order of their names.
    by_name: Vec<NodeId>,
    kinds: Vec<NodeKind>,
    overheads: Vec<Ps>,
    wires: Vec<Wire>,
    /// The first edge of each node, and one past the last.
    first_edge: Vec<u32>,
    pub(super) launch_ps: Ps,
}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topology({} nodes, {} edges)", self.node_count(), self.edge_count())
    }
}

impl Topology {
    /// Reads a `topology.yaml`. `file_name` is how messages name it.
    ///
    /// # Errors
    /// Every mistake found, with the bytes of the text it is at; codes `KB0301` to `KB0315`.
    pub fn from_yaml(file_name: &str, text: &str) -> Result<Topology, Failure> {
        Self::compiled(config::read(file_name, text)?)
    }

    /// Reads a `topology.yaml`, but with a grid of `w` columns and `h` rows of SIPs in place of those of the text.
    ///
    /// ```
    /// use kernbench_core::topology::{SipTopology, Topology};
    /// let t = Topology::from_yaml_with_sips("topology.yaml", Topology::DEFAULT_YAML, [2, 3], SipTopology::Torus2d)?;
    /// assert_eq!(t.machine().sips, 6);
    /// # Ok::<(), kernbench_core::diag::Failure>(())
    /// ```
    ///
    /// # Errors
    /// As [`Topology::from_yaml`].
    pub fn from_yaml_with_sips(
        file_name: &str,
        text: &str,
        [w, h]: [u32; 2],
        topology: SipTopology,
    ) -> Result<Topology, Failure> {
        let mut config = config::read(file_name, text)?;
        (config.machine.sips, config.layout.sips) = (w * h, w * h);
        (config.machine.sip_grid, config.machine.sip_topology) = ([w, h], topology);
        Self::compiled(config)
    }

    fn compiled(config: config::Config) -> Result<Topology, Failure> {
        let graph = graph::build(&config)?;
        Ok(compile(config.machine, config.layout, config.extras, graph))
    }

    /// The text of the default machine, as shipped in `topology.yaml`.
    pub const DEFAULT_YAML: &str = include_str!("../../../topology.yaml");

    /// The default machine: 2 SIPs of 4 x 4 cubes of 8 PEs.
    ///
    /// ```
    /// let t = kernbench_core::topology::Topology::default_machine();
    /// assert_eq!((t.node_count(), t.edge_count()), (4335, 12412));
    /// ```
    #[must_use]
    pub fn default_machine() -> Topology {
        match Self::from_yaml("topology.yaml", Self::DEFAULT_YAML) {
            Ok(topology) => topology,
            // The text is part of the binary and parsed by every test.
            Err(failure) => unreachable!("the built-in topology.yaml is wrong: {failure}"),
        }
    }

    /// The same machine with another policy of UCIe connections.
    #[must_use]
    pub fn with_ucie_policy(&self, policy: UciePolicy) -> Topology {
        let mut topology = self.clone();
        topology.machine.ucie_policy = policy;
        topology.launch_ps = topology.longest_launch();
        topology
    }

    /// The machine's numbers.
    #[must_use]
    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// A polling receiver sees a credit at the next multiple of this after it began to wait.
    #[must_use]
    pub const fn poll_ps(&self) -> Ps {
        self.extras.poll_ps
    }

    /// Bytes of a page of a PE's MMU.
    #[must_use]
    pub const fn page_bytes(&self) -> u64 {
        self.machine.mmu.page_bytes
    }

    /// How many nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.kinds.len()
    }

    /// How many directed edges.
    #[must_use]
    pub fn edge_count(&self) -> usize {
        self.wires.len()
    }

    /// All directed edges, by [`EdgeId`].
    #[must_use]
    pub fn wires(&self) -> &[Wire] {
        &self.wires
    }

    /// A directed edge.
    #[must_use]
    pub fn wire(&self, edge: EdgeId) -> &Wire {
        &self.wires[edge.0 as usize]
    }

    /// The edges that leave a node.
    pub fn edges_from(&self, node: NodeId) -> impl Iterator<Item = EdgeId> + use<> {
        (self.first_edge[node.0 as usize]..self.first_edge[node.0 as usize + 1]).map(EdgeId)
    }

    /// The nodes of a route from its first to its last; none if it has no edges.
    #[must_use]
    pub fn nodes_of(&self, route: &Route) -> Vec<NodeId> {
        let first = route.edges.first().map(|edge| self.wire(*edge).from);
        first.into_iter().chain(route.edges.iter().map(|edge| self.wire(*edge).to)).collect()
    }

    /// The edge from one node to another, if there is one.
    #[must_use]
    pub fn edge(&self, from: NodeId, to: NodeId) -> Option<EdgeId> {
        self.edges_from(from).find(|e| self.wire(*e).to == to)
    }

    /// A node by its dotted path, such as `sip0.cube2.pe5.pe_dma`.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<NodeId> {
        let at = self.by_name.binary_search_by_key(&name, |n| self.node_name(*n));
        at.ok().map(|i| self.by_name[i])
    }

    /// The existing name nearest to a wrong one, if one is near.
    #[must_use]
    pub fn nearest_node(&self, name: &str) -> Option<&str> {
        nearest(name, self.names.iter().map(String::as_str))
    }

    /// The dotted path of a node.
    #[must_use]
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.names[node.0 as usize]
    }

    /// What a node is.
    #[must_use]
    pub fn node_kind(&self, node: NodeId) -> NodeKind {
        self.kinds[node.0 as usize]
    }

    /// What a node costs the first flit of a transaction.
    #[must_use]
    pub fn overhead_ps(&self, node: NodeId) -> Ps {
        self.overheads[node.0 as usize]
    }

    /// The graph in DOT, for drawing.
    #[must_use]
    pub fn dot(&self) -> String {
        let mut graph = petgraph::graph::DiGraph::<&str, String>::new();
        for name in &self.names {
            graph.add_node(name);
        }
        for wire in &self.wires {
            let label = wire.rate.map_or_else(String::new, |r| format!("{} GB/s", r.as_gbs()));
            graph.add_edge(wire.from.0.into(), wire.to.0.into(), label);
        }
        Dot::new(&graph).to_string()
    }

    /// How many nodes have a position that leads back to them.
    #[cfg(test)]
    pub(super) fn layout_round_trips(&self) -> usize {
        let back = |n: &u32| self.layout.id(self.layout.spot(NodeId(*n))) == NodeId(*n);
        (0..self.node_count() as u32).filter(back).count()
    }
}

fn compile(machine: Machine, layout: Layout, extras: Extras, graph: Graph) -> Topology {
    let mut wires: Vec<Wire> = graph
        .edge_references()
        .map(|edge| {
            let link = edge.weight();
            Wire {
                from: NodeId(edge.source().index() as u32),
                to: NodeId(edge.target().index() as u32),
                rate: link.rate,
                flit_ps: link.rate.map_or(0, |r| r.time(machine.flit_bytes)),
                propagation_ps: link.propagation_ps,
            }
        })
        .collect();
    wires.sort_by_key(|w| (w.from, w.to));
    let nodes = graph.node_count();
    let first_edge = (0..=nodes).map(|n| wires.partition_point(|w| (w.from.0 as usize) < n) as u32).collect();
    let (mut names, mut kinds, mut overheads) = (vec![], vec![], vec![]);
    for node in graph.into_nodes_edges().0 {
        names.push(node.weight.name);
        kinds.push(node.weight.kind);
        overheads.push(node.weight.overhead_ps);
    }
    let mut by_name: Vec<NodeId> = (0..nodes as u32).map(NodeId).collect();
    by_name.sort_by_key(|n| &names[n.0 as usize]);
    let mut topology = Topology {
        machine,
        layout,
        extras,
        names,
        by_name,
        kinds,
        overheads,
        wires,
        first_edge,
        launch_ps: 0,
    };
    topology.launch_ps = topology.longest_launch();
    topology
}
