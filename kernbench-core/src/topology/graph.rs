//! Builds the graph of a machine: named, typed nodes and directed edges, and checks it.

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, NodeFiltered, VisitMap};

use super::NodeId;
use super::config::{Class, Config, Override};
use super::layout::{Layout, Part, Side, Spot};
use super::tables::NodeKind;
use crate::diag::{Diagnostic, Failure, nearest};
use crate::units::{Ps, Rate};

/// A node of the graph; its index is its [`NodeId`].
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub name: String,
    pub kind: NodeKind,
    pub overhead_ps: Ps,
}

pub(super) type Graph = DiGraph<Node, Class>;

struct Builder<'c> {
    config: &'c Config,
    graph: Graph,
}

/// The whole graph, with single edges overridden and the routers checked to be connected.
pub(super) fn build(config: &Config) -> Result<Graph, Failure> {
    let layout = &config.layout;
    let mut builder = Builder { config, graph: Graph::new() };
    for node in 0..layout.nodes() {
        let spot = layout.spot(NodeId(node));
        let (kind, overhead_ps) = builder.kind(spot);
        builder.graph.add_node(Node { name: layout.name(spot), kind, overhead_ps });
    }
    for sip in 0..layout.sips {
        builder.sip(sip);
    }
    let mut graph = builder.graph;
    override_edges(&mut graph, &config.overrides)?;
    check_reachable(&graph, config)?;
    Ok(graph)
}

impl Builder<'_> {
    fn kind(&self, spot: Spot) -> (NodeKind, Ps) {
        let o = &self.config.overheads;
        match spot {
            Spot::Switch => (NodeKind::Switch, o.switch),
            Spot::PcieEp(_) => (NodeKind::PcieEp, o.pcie_ep),
            Spot::IoCpu(_) => (NodeKind::IoCpu, o.io_cpu),
            Spot::IoNoc(_) => (NodeKind::IoNoc, o.io_noc),
            Spot::Phy(..) => (NodeKind::IoUcie, o.phy),
            // The reference's connection nodes cost nothing, on either end of a crossing.
            Spot::PhyConn(..) | Spot::Conn(..) => (NodeKind::UcieConn, o.conn),
            Spot::Router(..) => (NodeKind::Router, o.router),
            Spot::Port(..) => (NodeKind::UciePort, o.port),
            Spot::Hbm(..) => (NodeKind::HbmCtrl, 0),
            Spot::MCpu(_) => (NodeKind::MCpu, o.m_cpu),
            Spot::Sram(_) => (NodeKind::Sram, o.sram),
            Spot::Pe(_, _, part) => match part {
                Part::Cpu => (NodeKind::PeCpu, 0),
                Part::Scheduler => (NodeKind::PeScheduler, 0),
                Part::Dma => (NodeKind::PeDma, 0),
                Part::FetchStore => (NodeKind::PeFetchStore, 0),
                Part::Gemm => (NodeKind::PeGemm, 0),
                Part::Math => (NodeKind::PeMath, 0),
                Part::Mmu => (NodeKind::PeMmu, o.mmu),
                Part::Tcm => (NodeKind::PeTcm, 0),
                Part::Ipcq => (NodeKind::PeIpcq, 0),
            },
        }
    }

    fn index(&self, spot: Spot) -> NodeIndex {
        NodeIndex::new(self.config.layout.id(spot).0 as usize)
    }

    fn one_way(&mut self, from: Spot, to: Spot, class: Class) {
        self.graph.add_edge(self.index(from), self.index(to), class);
    }

    fn both_ways(&mut self, a: Spot, b: Spot, class: Class) {
        self.one_way(a, b, class);
        self.one_way(b, a, class);
    }

    /// The IO chiplet, its way to the switch and to the cubes, and the cubes among each other.
    fn sip(&mut self, sip: u32) {
        let config = self.config;
        let (layout, wires): (&Layout, _) = (&config.layout, &config.wires);
        let [w, h] = layout.mesh;
        let first = sip * layout.cubes();
        self.both_ways(Spot::Switch, Spot::PcieEp(sip), wires.switch_pcie);
        self.both_ways(Spot::PcieEp(sip), Spot::IoNoc(sip), wires.pcie_noc);
        self.both_ways(Spot::IoCpu(sip), Spot::IoNoc(sip), wires.io_cpu_noc);
        for k in 0..layout.phys {
            for j in 0..layout.noc.connections {
                self.both_ways(Spot::IoNoc(sip), Spot::PhyConn(sip, k, j), wires.conn_router);
                self.both_ways(Spot::PhyConn(sip, k, j), Spot::Phy(sip, k), wires.conn_port);
            }
            self.both_ways(Spot::Phy(sip, k), Spot::Port(first + k, Side::N), wires.crossing);
        }
        for y in 0..h {
            for x in 0..w {
                let cube = first + y * w + x;
                self.cube(cube);
                if x + 1 < w {
                    let (here, there) = (Spot::Port(cube, Side::E), Spot::Port(cube + 1, Side::W));
                    self.both_ways(here, there, wires.crossing);
                }
                if y + 1 < h {
                    let (here, there) = (Spot::Port(cube, Side::S), Spot::Port(cube + w, Side::N));
                    self.both_ways(here, there, wires.crossing);
                }
            }
        }
    }

    fn cube(&mut self, cube: u32) {
        let config = self.config;
        let (noc, wires) = (&config.layout.noc, &config.wires);
        let [w, h] = noc.grid;
        let exists = |r: u32| noc.present[r as usize];
        for r in (0..w * h).filter(|r| exists(*r)) {
            if (r + 1) % w != 0 && exists(r + 1) {
                self.both_ways(Spot::Router(cube, r), Spot::Router(cube, r + 1), wires.router);
            }
            if r / w + 1 < h && exists(r + w) {
                self.both_ways(Spot::Router(cube, r), Spot::Router(cube, r + w), wires.router);
            }
        }
        self.both_ways(Spot::MCpu(cube), Spot::Router(cube, noc.m_cpu_router), wires.m_cpu);
        self.both_ways(Spot::Sram(cube), Spot::Router(cube, noc.sram_router), wires.sram);
        for side in Side::ALL {
            for k in 0..noc.connections {
                let router = Spot::Router(cube, noc.attachment(side, k));
                self.both_ways(Spot::Conn(cube, side, k), router, wires.conn_router);
                self.both_ways(Spot::Conn(cube, side, k), Spot::Port(cube, side), wires.conn_port);
            }
        }
        for (pe, router) in (0..).zip(&noc.pe_router) {
            self.both_ways(Spot::Hbm(cube, pe), Spot::Router(cube, *router), wires.hbm);
            self.pe(cube, pe, Spot::Router(cube, *router));
        }
    }

    fn pe(&mut self, cube: u32, pe: u32, router: Spot) {
        use Part::*;
        let wires = &self.config.wires;
        let at = |part| Spot::Pe(cube, pe, part);
        self.both_ways(router, at(Dma), wires.dma);
        self.both_ways(router, at(Cpu), wires.cpu);
        for (from, to) in [(Cpu, Scheduler), (Cpu, Ipcq), (Gemm, Math)] {
            self.one_way(at(from), at(to), wires.inside);
        }
        for to in [Dma, FetchStore, Gemm, Math] {
            self.one_way(at(Scheduler), at(to), wires.inside);
        }
        for (a, b) in [(Ipcq, Dma), (Dma, Mmu), (Dma, FetchStore), (FetchStore, Gemm), (FetchStore, Math)] {
            self.both_ways(at(a), at(b), wires.inside);
        }
        for user in [Dma, FetchStore] {
            self.one_way(at(user), at(Tcm), wires.tcm_write);
            self.one_way(at(Tcm), at(user), wires.tcm_read);
        }
    }
}

/// Applies the list `edges`; every entry needs its opposite with the same numbers.
fn override_edges(graph: &mut Graph, overrides: &[Override]) -> Result<(), Failure> {
    let mut mistakes = vec![];
    for (i, o) in overrides.iter().enumerate() {
        let found = [&o.from, &o.to].map(|(name, place)| {
            let found = graph.node_indices().find(|i| graph[*i].name == *name);
            if found.is_none() {
                let near = nearest(name, graph.node_weights().map(|n| n.name.as_str()));
                mistakes.push(
                    Diagnostic::error("KB0313", format!("there is no node `{name}`"))
                        .at(place.clone(), "")
                        .help(match near {
                            Some(near) => format!("did you mean `{near}`?"),
                            None => "write a dotted path such as `sip0.cube2.r0c1`".into(),
                        }),
                );
            }
            found
        });
        let [Some(from), Some(to)] = found else { continue };
        let Some(edge) = graph.find_edge(from, to) else {
            let text = format!("there is no edge from `{}` to `{}`", o.from.0, o.to.0);
            let help = "name two neighbouring nodes; `edges` adds no edges";
            mistakes.push(Diagnostic::error("KB0313", text).at(o.to.1.clone(), "").help(help));
            continue;
        };
        if graph[edge].rate.is_none() {
            let text = format!("the edge from `{}` to `{}` carries no bytes", o.from.0, o.to.0);
            let help = "choose an edge that carries data, or remove this entry";
            mistakes.push(Diagnostic::error("KB0313", text).at(o.gbs_place.clone(), "").help(help));
            continue;
        }
        let same = |p: &&Override| p.from.0 == o.from.0 && p.to.0 == o.to.0;
        if let Some(first) = overrides[..i].iter().find(same) {
            let text = format!("the edge from `{}` to `{}` is listed twice", o.from.0, o.to.0);
            let d = Diagnostic::error("KB0302", text).at(o.from.1.clone(), "listed again");
            mistakes.push(d.at(first.from.1.clone(), "first listed here").help("remove one of the two"));
            continue;
        }
        let mut opposites = overrides.iter().filter(|p| p.from.0 == o.to.0 && p.to.0 == o.from.0);
        let opposite = opposites.next();
        if opposite.is_none_or(|p| p.gbs != o.gbs || p.mm != o.mm) {
            let text = format!("the link between `{}` and `{}` is asymmetric", o.from.0, o.to.0);
            let mut d = Diagnostic::error("KB0312", text);
            d = d.at(o.gbs_place.clone(), format!("{} GB/s, {} mm this way", o.gbs, o.mm));
            if let Some(p) = opposite {
                // Both entries find it; one message is enough.
                if mistakes.iter().any(|m: &Diagnostic| m.labels.iter().any(|l| l.place == o.gbs_place)) {
                    continue;
                }
                d = d.at(p.gbs_place.clone(), format!("{} GB/s, {} mm the other way", p.gbs, p.mm));
            }
            mistakes.push(d.help("list both directions with the same `gbs` and `mm`"));
            continue;
        }
        graph[edge] = Class { rate: Some(Rate::gbs(o.gbs)), propagation_ps: o.propagation_ps };
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Failure(mistakes)) }
}

/// The routers of a cube must be connected without leaving it: same-cube traffic never does. All
/// cubes are alike, and everything else hangs on a router.
fn check_reachable(graph: &Graph, config: &Config) -> Result<(), Failure> {
    let layout = &config.layout;
    let in_cube = |node: NodeIndex| matches!(layout.spot(NodeId(node.index() as u32)), Spot::Router(0, _));
    let routers = NodeFiltered::from_fn(graph, in_cube);
    let start = NodeIndex::new(layout.id(Spot::Router(0, layout.noc.m_cpu_router)).0 as usize);
    let mut search = Dfs::new(&routers, start);
    while search.next(&routers).is_some() {}
    let reached = |node: &NodeIndex| search.discovered.is_visited(node);
    let Some(lost) = graph.node_indices().find(|n| in_cube(*n) && !reached(n)) else { return Ok(()) };
    let name = graph[lost].name.rsplit('.').next().unwrap_or_default();
    let text = format!("router `{name}` cannot be reached from `m_cpu` inside its cube");
    let help = "take a router between them from this list";
    Err(Diagnostic::error("KB0311", text).at(config.missing.clone(), "").help(help).into())
}
