//! The order of the nodes: positions to dense indices and back, without tables.

use std::fmt;

use super::NodeId;

/// Routers of a cube and what hangs on them. Routers are indexed by `row * w + column`.
#[derive(Clone, Debug)]
pub(super) struct Noc {
    pub grid: [u32; 2],
    pub present: Vec<bool>,
    pub pe_router: Vec<u32>,
    pub m_cpu_router: u32,
    pub sram_router: u32,
    pub connections: u32,
    /// Where connection k of E and W sits.
    pub rows: Vec<u32>,
    /// Where connection k of N and S sits.
    pub columns: Vec<u32>,
}

impl Default for Noc {
    fn default() -> Self {
        Noc {
            grid: [1, 1],
            present: vec![true],
            pe_router: vec![0],
            m_cpu_router: 0,
            sram_router: 0,
            connections: 1,
            rows: vec![0],
            columns: vec![0],
        }
    }
}

impl Noc {
    /// `r{row}c{column}`.
    pub fn router_name(&self, router: u32) -> String {
        format!("r{}c{}", router / self.grid[0], router % self.grid[0])
    }

    /// The router that connection `k` of a side sits on.
    pub fn attachment(&self, side: Side, k: u32) -> u32 {
        let [w, h] = self.grid;
        let k = k as usize;
        match side {
            Side::N => self.columns[k],
            Side::S => (h - 1) * w + self.columns[k],
            Side::E => self.rows[k] * w + w - 1,
            Side::W => self.rows[k] * w,
        }
    }
}

/// A side of a cube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    N,
    S,
    E,
    W,
}

impl Side {
    pub const ALL: [Side; 4] = [Side::N, Side::S, Side::E, Side::W];

    pub fn opposite(self) -> Side {
        match self {
            Side::N => Side::S,
            Side::S => Side::N,
            Side::E => Side::W,
            Side::W => Side::E,
        }
    }
}

/// The parts of a PE, in the order of their nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Cpu,
    Scheduler,
    Dma,
    FetchStore,
    Gemm,
    Math,
    Mmu,
    Tcm,
    Ipcq,
}

impl Part {
    pub const ALL: [Part; 9] = [
        Part::Cpu,
        Part::Scheduler,
        Part::Dma,
        Part::FetchStore,
        Part::Gemm,
        Part::Math,
        Part::Mmu,
        Part::Tcm,
        Part::Ipcq,
    ];
}

/// A node by its position. `cube` counts over all SIPs: `sip * cubes + cube`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    Switch,
    PcieEp(u32),
    IoCpu(u32),
    IoNoc(u32),
    Phy(u32, u32),
    PhyConn(u32, u32, u32),
    Router(u32, u32),
    Port(u32, Side),
    Conn(u32, Side, u32),
    Hbm(u32, u32),
    MCpu(u32),
    Sram(u32),
    Pe(u32, u32, Part),
}

/// What a machine's nodes are and in which order: the switch, then for each SIP the IO chiplet and
/// its cubes; in a cube routers, ports with their connections, HBM controllers, M_CPU, SRAM, PEs.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub sips: u32,
    pub mesh: [u32; 2],
    pub phys: u32,
    pub noc: Noc,
    /// Index of a router among those present.
    rank: Vec<u32>,
    /// The router of such an index.
    routers: Vec<u32>,
}

impl Layout {
    pub fn new(sips: u32, mesh: [u32; 2], phys: u32, noc: Noc) -> Self {
        let mut routers = vec![];
        let mut rank = vec![0; noc.present.len()];
        for (i, present) in noc.present.iter().enumerate() {
            rank[i] = routers.len() as u32;
            if *present {
                routers.push(i as u32);
            }
        }
        Layout { sips, mesh, phys, noc, rank, routers }
    }

    pub fn cubes(&self) -> u32 {
        self.mesh[0] * self.mesh[1]
    }
    pub fn pes(&self) -> u32 {
        self.noc.pe_router.len() as u32
    }
    /// A port and its connections.
    fn bundle(&self) -> u32 {
        1 + self.noc.connections
    }
    fn io_nodes(&self) -> u32 {
        3 + self.phys * self.bundle()
    }
    fn cube_nodes(&self) -> u32 {
        self.routers.len() as u32 + 4 * self.bundle() + self.pes() * (1 + Part::ALL.len() as u32) + 2
    }
    fn sip_nodes(&self) -> u32 {
        self.io_nodes() + self.cubes() * self.cube_nodes()
    }
    pub fn nodes(&self) -> u32 {
        1 + self.sips * self.sip_nodes()
    }

    fn sip_start(&self, sip: u32) -> u32 {
        1 + sip * self.sip_nodes()
    }
    fn cube_start(&self, cube: u32) -> u32 {
        let (sip, local) = (cube / self.cubes(), cube % self.cubes());
        self.sip_start(sip) + self.io_nodes() + local * self.cube_nodes()
    }

    /// The index of a node.
    pub fn id(&self, spot: Spot) -> NodeId {
        let routers = self.routers.len() as u32;
        let (ports, pes) = (routers + 4 * self.bundle(), self.pes());
        NodeId(match spot {
            Spot::Switch => 0,
            Spot::PcieEp(sip) => self.sip_start(sip),
            Spot::IoCpu(sip) => self.sip_start(sip) + 1,
            Spot::IoNoc(sip) => self.sip_start(sip) + 2,
            Spot::Phy(sip, k) => self.sip_start(sip) + 3 + k * self.bundle(),
            Spot::PhyConn(sip, k, j) => self.sip_start(sip) + 4 + k * self.bundle() + j,
            Spot::Router(cube, r) => self.cube_start(cube) + self.rank[r as usize],
            Spot::Port(cube, side) => self.cube_start(cube) + routers + side as u32 * self.bundle(),
            Spot::Conn(cube, side, k) => {
                self.cube_start(cube) + routers + side as u32 * self.bundle() + 1 + k
            }
            Spot::Hbm(cube, pe) => self.cube_start(cube) + ports + pe,
            Spot::MCpu(cube) => self.cube_start(cube) + ports + pes,
            Spot::Sram(cube) => self.cube_start(cube) + ports + pes + 1,
            Spot::Pe(cube, pe, part) => {
                self.cube_start(cube) + ports + pes + 2 + pe * Part::ALL.len() as u32 + part as u32
            }
        })
    }

    /// The position of a node; the inverse of [`Layout::id`].
    pub fn spot(&self, node: NodeId) -> Spot {
        let Some(n) = node.0.checked_sub(1) else { return Spot::Switch };
        let (sip, n) = (n / self.sip_nodes(), n % self.sip_nodes());
        let Some(n) = n.checked_sub(self.io_nodes()) else {
            return match n {
                0 => Spot::PcieEp(sip),
                1 => Spot::IoCpu(sip),
                2 => Spot::IoNoc(sip),
                _ => match ((n - 3) / self.bundle(), (n - 3) % self.bundle()) {
                    (k, 0) => Spot::Phy(sip, k),
                    (k, j) => Spot::PhyConn(sip, k, j - 1),
                },
            };
        };
        let cube = sip * self.cubes() + n / self.cube_nodes();
        let n = n % self.cube_nodes();
        if let Some(router) = self.routers.get(n as usize) {
            return Spot::Router(cube, *router);
        }
        let n = n - self.routers.len() as u32;
        if n < 4 * self.bundle() {
            let side = Side::ALL[(n / self.bundle()) as usize];
            return match n % self.bundle() {
                0 => Spot::Port(cube, side),
                k => Spot::Conn(cube, side, k - 1),
            };
        }
        let (n, pes) = (n - 4 * self.bundle(), self.pes());
        match n.checked_sub(pes) {
            None => Spot::Hbm(cube, n),
            Some(0) => Spot::MCpu(cube),
            Some(1) => Spot::Sram(cube),
            Some(n) => {
                let (pe, part) = ((n - 2) / Part::ALL.len() as u32, (n - 2) as usize % Part::ALL.len());
                Spot::Pe(cube, pe, Part::ALL[part])
            }
        }
    }

    /// The dotted path of a node, such as `sip0.cube2.ucie-E.conn1`.
    pub fn name(&self, spot: Spot) -> String {
        let in_cube = |cube: u32, rest: fmt::Arguments<'_>| {
            format!("sip{}.cube{}.{rest}", cube / self.cubes(), cube % self.cubes())
        };
        match spot {
            Spot::Switch => "fabric.switch0".into(),
            Spot::PcieEp(sip) => format!("sip{sip}.io0.pcie_ep"),
            Spot::IoCpu(sip) => format!("sip{sip}.io0.io_cpu"),
            Spot::IoNoc(sip) => format!("sip{sip}.io0.io_noc"),
            Spot::Phy(sip, k) => format!("sip{sip}.io0.io_ucie-P{k}"),
            Spot::PhyConn(sip, k, j) => format!("sip{sip}.io0.io_ucie-P{k}.conn{j}"),
            Spot::Router(cube, r) => in_cube(cube, format_args!("{}", self.noc.router_name(r))),
            Spot::Port(cube, side) => in_cube(cube, format_args!("ucie-{side:?}")),
            Spot::Conn(cube, side, k) => in_cube(cube, format_args!("ucie-{side:?}.conn{k}")),
            Spot::Hbm(cube, pe) => in_cube(cube, format_args!("hbm_ctrl.pe{pe}")),
            Spot::MCpu(cube) => in_cube(cube, format_args!("m_cpu")),
            Spot::Sram(cube) => in_cube(cube, format_args!("sram")),
            Spot::Pe(cube, pe, part) => {
                let part = match part {
                    Part::Cpu => "pe_cpu",
                    Part::Scheduler => "pe_scheduler",
                    Part::Dma => "pe_dma",
                    Part::FetchStore => "pe_fetch_store",
                    Part::Gemm => "pe_gemm",
                    Part::Math => "pe_math",
                    Part::Mmu => "pe_mmu",
                    Part::Tcm => "pe_tcm",
                    Part::Ipcq => "pe_ipcq",
                };
                in_cube(cube, format_args!("pe{pe}.{part}"))
            }
        }
    }
}
