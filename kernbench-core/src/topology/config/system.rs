//! The sections `system`, `sip` and `edges`: SIPs, their neighbours, the IO chiplet, single edges.

use super::chip::Cube;
use super::{Class, Override, WireMaker};
use crate::diag::Diagnostic;
use crate::topology::SipTopology;
use crate::units::{Ps, ns};
use crate::yaml::Section;

/// The most nodes a machine may have.
const MOST_NODES: u64 = 1 << 22;

pub(super) struct System {
    pub flit_bytes: u64,
    pub ns_per_mm: f64,
    pub sips: u32,
    pub topology: SipTopology,
    pub grid: [u32; 2],
    pub switch_ps: Ps,
    pub switch_pcie: Class,
}

pub(super) fn system(s: &mut Section<'_, '_>) -> System {
    let flit_bytes = u64::from(s.power_of_two("flit_bytes"));
    let ns_per_mm = s.non_negative("wire_ns_per_mm");
    let wire = WireMaker { ns_per_mm };
    let (sips, topology, grid) = s.section("sips", sips).unwrap_or((1, SipTopology::Ring1d, [1, 1]));
    let (switch_ps, switch_pcie) = s
        .section("switch", |s| {
            (ns(s.non_negative("overhead_ns")), wire.data(s.positive("pcie_gbs"), s.non_negative("pcie_mm")))
        })
        .unwrap_or((0, wire.command(0.0)));
    System { flit_bytes, ns_per_mm, sips, topology, grid, switch_ps, switch_pcie }
}

/// Logical neighbours: explicit `w` and `h`, else a row for a ring, else an exact square.
fn sips(s: &mut Section<'_, '_>) -> (u32, SipTopology, [u32; 2]) {
    let (count, sound) = s.sound(|s| s.count("count"));
    let topology = s.choice(
        "topology",
        &[
            ("ring_1d", SipTopology::Ring1d),
            ("torus_2d", SipTopology::Torus2d),
            ("mesh_2d_no_wrap", SipTopology::Mesh2dNoWrap),
        ],
    );
    let (has_w, has_h) = (s.has("w"), s.has("h"));
    if has_w || has_h {
        let (w, h) = (s.count("w"), s.count("h"));
        if sound && has_w && has_h && u64::from(w) * u64::from(h) != u64::from(count) {
            s.error(
                "w",
                "KB0309",
                format!(
                    "`system.sips` has {count} SIPs, but w * h = {w} * {h} = {}",
                    u64::from(w) * u64::from(h)
                ),
                format!("choose `w` and `h` so that their product is {count}"),
            );
        }
        return (count, topology, [w, h]);
    }
    let root = count.isqrt();
    match topology {
        SipTopology::Ring1d => (count, topology, [count, 1]),
        _ if root * root == count => (count, topology, [root, root]),
        _ => {
            s.error(
                "count",
                "KB0309",
                format!("{count} SIPs are no square grid, and `w` and `h` are not given"),
                format!("add `w` and `h`, or take {} or {} SIPs", root * root, (root + 1) * (root + 1)),
            );
            (count, topology, [count, 1])
        }
    }
}

pub(super) struct Sip {
    pub mesh: [u32; 2],
    pub phys: u32,
    pub pcie_ep_ps: Ps,
    pub io_cpu_ps: Ps,
    pub io_noc_ps: Ps,
    pub phy_ps: Ps,
    pub pcie_noc: Class,
    pub io_cpu_noc: Class,
}

pub(super) fn sip(s: &mut Section<'_, '_>, wire: WireMaker) -> Sip {
    let (mesh, sound) = s.sound(|s| s.section("cube_mesh", |s| [s.count("w"), s.count("h")]));
    let mesh = mesh.unwrap_or([1, 1]);
    let nothing = (0, wire.command(0.0));
    let io = s.section("io", |s| {
        let pcie = s.section("pcie_ep", |s| {
            (ns(s.non_negative("overhead_ns")), wire.data(s.positive("noc_gbs"), s.non_negative("noc_mm")))
        });
        let cpu = s.section("io_cpu", |s| {
            (ns(s.non_negative("overhead_ns")), wire.command(s.non_negative("noc_mm")))
        });
        let noc = s.section("io_noc", |s| ns(s.non_negative("overhead_ns")));
        let phys = s.section("phys", |s| {
            let count = s.count("count");
            if sound && count > mesh[0] {
                s.error(
                    "count",
                    "KB0310",
                    format!(
                        "{count} PHYs for {} columns of cubes: PHY k joins cube k of the first row",
                        mesh[0]
                    ),
                    format!("write at most {}", mesh[0]),
                );
            }
            (count, ns(s.non_negative("overhead_ns")))
        });
        (pcie.unwrap_or(nothing), cpu.unwrap_or(nothing), noc.unwrap_or(0), phys.unwrap_or((1, 0)))
    });
    let (pcie, cpu, io_noc_ps, (phys, phy_ps)) = io.unwrap_or((nothing, nothing, 0, (1, 0)));
    Sip {
        mesh,
        phys,
        pcie_ep_ps: pcie.0,
        io_cpu_ps: cpu.0,
        io_noc_ps,
        phy_ps,
        pcie_noc: pcie.1,
        io_cpu_noc: cpu.1,
    }
}

/// The optional list `edges`; names are looked up when the graph stands.
pub(super) fn overrides(root: &mut Section<'_, '_>, wire: WireMaker) -> Vec<Override> {
    if !root.has("edges") {
        return vec![];
    }
    let mut overrides = vec![];
    root.maps("edges", |s| {
        let (from, to) = (s.text("from"), s.text("to"));
        let (gbs, mm) = (s.positive("gbs"), s.non_negative("mm"));
        if let (Some(from), Some(to)) = (from, to) {
            overrides.push(Override {
                from: (from, s.place("from")),
                to: (to, s.place("to")),
                gbs,
                mm,
                propagation_ps: wire.propagation(mm),
                gbs_place: s.place("gbs"),
            });
        }
    });
    overrides
}

/// Refuses a machine of more nodes than fit in memory comfortably.
pub(super) fn check_size(root: &Section<'_, '_>, system: &System, sip: &Sip, cube: &Cube) {
    let n = |x: u32| u128::from(x);
    let ports = 4 * (1 + n(cube.noc.connections));
    let per_cube =
        n(cube.noc.grid[0]) * n(cube.noc.grid[1]) + 10 * cube.noc.pe_router.len() as u128 + ports + 2;
    let io = 3 + n(sip.phys) * (1 + n(cube.noc.connections));
    let nodes = n(system.sips).saturating_mul(io + n(sip.mesh[0]) * n(sip.mesh[1]) * per_cube);
    if nodes > u128::from(MOST_NODES) {
        root.log.push(
            Diagnostic::error("KB0314", format!("the machine has {nodes} nodes, more than {MOST_NODES}"))
                .at(root.place("system"), "")
                .help("lower `system.sips.count`, `sip.cube_mesh` or `cube.noc.grid`"),
        );
    }
}
