//! `topology.yaml`: its sections, read and checked, as the numbers and places the graph is built from.

mod chip;
mod system;

use crate::diag::{Failure, Place};
use crate::topology::Machine;
use crate::topology::layout::Layout;
use crate::units::{Ps, Rate, ns};
use crate::yaml;

/// A checked description: the machine's numbers, the layout of its graph, and what its edges cost.
pub(super) struct Config {
    pub machine: Machine,
    pub layout: Layout,
    pub wires: Wires,
    pub overheads: Overheads,
    pub extras: Extras,
    pub overrides: Vec<Override>,
    /// Where the missing routers are listed.
    pub missing: Place,
}

/// What an edge of a class is made of.
#[derive(Clone, Copy)]
pub(super) struct Class {
    pub rate: Option<Rate>,
    pub propagation_ps: Ps,
}

/// The classes of edges.
pub(super) struct Wires {
    pub switch_pcie: Class,
    pub pcie_noc: Class,
    pub io_cpu_noc: Class,
    pub router: Class,
    pub conn_router: Class,
    pub conn_port: Class,
    pub crossing: Class,
    pub dma: Class,
    pub cpu: Class,
    pub m_cpu: Class,
    pub sram: Class,
    pub hbm: Class,
    /// Commands and data inside a PE whose time is in the formulas of its engines.
    pub inside: Class,
    pub tcm_read: Class,
    pub tcm_write: Class,
}

/// The overheads of the kinds of nodes that have one.
pub(super) struct Overheads {
    pub switch: Ps,
    pub pcie_ep: Ps,
    pub io_cpu: Ps,
    pub io_noc: Ps,
    pub phy: Ps,
    pub router: Ps,
    pub port: Ps,
    pub conn: Ps,
    pub m_cpu: Ps,
    pub sram: Ps,
    pub mmu: Ps,
}

/// Numbers that neither the graph nor [`Machine`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extras {
    pub poll_ps: Ps,
}

/// One directed edge that differs from its class.
pub(super) struct Override {
    pub from: (String, Place),
    pub to: (String, Place),
    pub gbs: f64,
    pub mm: f64,
    pub propagation_ps: Ps,
    pub gbs_place: Place,
}

/// Makes classes of bandwidths and lengths.
#[derive(Clone, Copy)]
pub(super) struct WireMaker {
    pub ns_per_mm: f64,
}

impl WireMaker {
    fn propagation(self, mm: f64) -> Ps {
        ns(mm * self.ns_per_mm)
    }
    fn data(self, gbs: f64, mm: f64) -> Class {
        Class { rate: Some(Rate::gbs(gbs)), propagation_ps: self.propagation(mm) }
    }
    fn command(self, mm: f64) -> Class {
        Class { rate: None, propagation_ps: self.propagation(mm) }
    }
}

/// Reads a description. Every mistake found comes back, in the order of the text.
pub(super) fn read(file: &str, text: &str) -> Result<Config, Failure> {
    let config = yaml::read(file, text, |root| {
        let system = root.section("system", system::system);
        let maker = WireMaker { ns_per_mm: system.as_ref().map_or(0.0, |s| s.ns_per_mm) };
        let sip = root.section("sip", |s| system::sip(s, maker));
        let flit = system.as_ref().map_or(256, |s| s.flit_bytes);
        let cube = root.section("cube", |s| chip::cube(s, maker, flit));
        let pe = root.section("pe", |s| chip::pe(s, maker));
        let overrides = system::overrides(root, maker);
        let (system, sip, cube, pe) = (system?, sip?, cube?, pe?);
        system::check_size(root, &system, &sip, &cube);
        Some(assemble(system, sip, cube, pe, overrides))
    })?;
    config.ok_or_else(|| Failure(vec![]))
}

fn assemble(
    system: system::System,
    sip: system::Sip,
    cube: chip::Cube,
    pe: chip::Pe,
    overrides: Vec<Override>,
) -> Config {
    let machine = Machine {
        sips: system.sips,
        sip_topology: system.topology,
        sip_grid: system.grid,
        cube_mesh: sip.mesh,
        pe_grid: cube.pe_grid,
        flit_bytes: system.flit_bytes,
        ucie_policy: cube.policy,
        hbm: cube.hbm,
        tcm: pe.tcm,
        mmu: pe.mmu,
        sram_bytes: cube.sram_bytes,
        gemm: pe.gemm,
        math: pe.math,
        accel_slot: pe.accel_slot,
        pe_cpu: pe.cpu,
        slots: pe.slots,
        issue: pe.issue,
        scratch_bytes: pe.scratch_bytes,
    };
    let layout = Layout::new(system.sips, sip.mesh, sip.phys, cube.noc);
    let wires = Wires {
        switch_pcie: system.switch_pcie,
        pcie_noc: sip.pcie_noc,
        io_cpu_noc: sip.io_cpu_noc,
        router: cube.router,
        conn_router: cube.conn_router,
        conn_port: cube.conn_port,
        crossing: cube.crossing,
        dma: cube.dma,
        cpu: cube.cpu,
        m_cpu: cube.m_cpu,
        sram: cube.sram,
        hbm: cube.hbm_router,
        inside: pe.inside,
        tcm_read: Class { rate: Some(pe.tcm.read), ..pe.inside },
        tcm_write: Class { rate: Some(pe.tcm.write), ..pe.inside },
    };
    let overheads = Overheads {
        switch: system.switch_ps,
        pcie_ep: sip.pcie_ep_ps,
        io_cpu: sip.io_cpu_ps,
        io_noc: sip.io_noc_ps,
        phy: sip.phy_ps,
        router: cube.router_ps,
        port: cube.port_ps,
        conn: cube.conn_ps,
        m_cpu: cube.m_cpu_ps,
        sram: cube.sram_ps,
        mmu: pe.mmu.overhead_ps,
    };
    Config { machine, layout, wires, overheads, extras: pe.extras, overrides, missing: cube.missing }
}
