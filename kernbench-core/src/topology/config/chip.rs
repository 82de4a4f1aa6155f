//! The sections `cube` and `pe`: routers, UCIe, memories, engines.

use super::{Class, Extras, WireMaker};
use crate::diag::{Diagnostic, Place, nearest};
use crate::topology::layout::Noc;
use crate::topology::{Gemm, Hbm, IssueMode, Math, Mmu, PeCpu, SlotCost, Tcm, UciePolicy};
use crate::units::{Ps, Rate, ns};
use crate::yaml::Section;

const MIB: f64 = (1 << 20) as f64;
const GIB: f64 = (1 << 30) as f64;

pub(super) struct Cube {
    pub noc: Noc,
    pub missing: Place,
    /// Whether the grid of routers can be trusted.
    grid_sound: bool,
    pub pe_grid: [u32; 2],
    pub policy: UciePolicy,
    pub hbm: Hbm,
    pub sram_bytes: u64,
    pub router: Class,
    pub conn_router: Class,
    pub conn_port: Class,
    pub crossing: Class,
    pub dma: Class,
    pub cpu: Class,
    pub m_cpu: Class,
    pub sram: Class,
    pub hbm_router: Class,
    pub router_ps: Ps,
    pub port_ps: Ps,
    pub conn_ps: Ps,
    pub m_cpu_ps: Ps,
    pub sram_ps: Ps,
}

/// Missing sections leave defaults behind; they never count, since the mistake is recorded.
pub(super) fn cube(s: &mut Section<'_, '_>, wire: WireMaker, flit_bytes: u64) -> Cube {
    let none = wire.command(0.0);
    let mut c = Cube {
        noc: Noc::default(),
        missing: s.place("noc"),
        grid_sound: false,
        pe_grid: [1, 1],
        policy: UciePolicy::First,
        hbm: Hbm { slice_bytes: 0, channels: 1, burst_ps: 0 },
        sram_bytes: 0,
        router: none,
        conn_router: none,
        conn_port: none,
        crossing: none,
        dma: none,
        cpu: none,
        m_cpu: none,
        sram: none,
        hbm_router: none,
        router_ps: 0,
        port_ps: 0,
        conn_ps: 0,
        m_cpu_ps: 0,
        sram_ps: 0,
    };
    s.section("noc", |s| {
        let (grid, sound) = s.sound(|s| s.section("grid", |s| [s.count("w"), s.count("h")]));
        c.noc.grid = grid.unwrap_or([1, 1]);
        c.grid_sound = sound;
        if u64::from(c.noc.grid[0]) * u64::from(c.noc.grid[1]) > 1 << 16 {
            s.error(
                "grid",
                "KB0314",
                "`cube.noc.grid` has more than 65536 routers".into(),
                "choose a smaller grid",
            );
            c.noc.grid = [1, 1];
            c.grid_sound = false;
        }
        c.noc.present = vec![true; (c.noc.grid[0] * c.noc.grid[1]) as usize];
        c.missing = s.place("missing");
        for (name, place) in s.texts("missing") {
            if let Some(router) = router(s, &c, &name, place, true) {
                c.noc.present[router as usize] = false;
            }
        }
        c.router_ps = ns(s.non_negative("overhead_ns"));
        c.router = wire.data(s.positive("router_gbs"), s.non_negative("router_mm"));
    });
    s.section("ucie", |s| ucie(s, wire, &mut c));
    s.section("pes", |s| {
        let (grid, sound) = s.sound(|s| s.section("grid", |s| [s.count("w"), s.count("h")]));
        c.pe_grid = grid.unwrap_or([1, 1]);
        let pes = u64::from(c.pe_grid[0]) * u64::from(c.pe_grid[1]);
        let (names, readable) = s.sound(|s| s.texts("routers"));
        if sound && readable && names.len() as u64 != pes {
            s.error(
                "routers",
                "KB0310",
                format!("`cube.pes.routers` names {} routers for {pes} PEs", names.len()),
                "name one router for each PE, in order",
            );
        }
        let routers = names.into_iter().map(|(name, place)| router(s, &c, &name, place, false));
        c.noc.pe_router = routers.map(Option::unwrap_or_default).collect();
        c.dma = wire.data(s.positive("dma_gbs"), s.non_negative("dma_mm"));
        c.cpu = wire.command(s.non_negative("cpu_mm"));
    });
    s.section("m_cpu", |s| {
        c.noc.m_cpu_router = router_at(s, &c);
        c.m_cpu_ps = ns(s.non_negative("overhead_ns"));
        c.m_cpu = wire.command(s.non_negative("router_mm"));
    });
    s.section("sram", |s| {
        c.noc.sram_router = router_at(s, &c);
        c.sram_bytes = (s.positive("size_mb") * MIB) as u64;
        c.sram_ps = ns(s.non_negative("overhead_ns"));
        c.sram = wire.data(s.positive("router_gbs"), s.non_negative("router_mm"));
    });
    s.section("hbm", |s| {
        let pes = c.pe_grid[0] as f64 * c.pe_grid[1] as f64;
        let ((slice, channels), sound) =
            s.sound(|s| (s.positive("size_gb") * GIB / pes, s.power_of_two("channels")));
        let row = (flit_bytes * u64::from(channels)) as f64;
        if sound && slice % row != 0.0 {
            s.error(
                "size_gb",
                "KB0315",
                format!(
                    "`cube.hbm.size_gb` shared out among {pes} PEs is not a whole number of {row} B rows"
                ),
                format!("choose a size that is a multiple of {pes} * {row} B"),
            );
        }
        let channel = Rate::gbs(s.positive("channel_gbs"));
        c.hbm = Hbm { slice_bytes: slice as u64, channels, burst_ps: channel.time(flit_bytes) };
        c.hbm_router = wire.data(s.positive("router_gbs"), s.non_negative("router_mm"));
    });
    c
}

fn ucie(s: &mut Section<'_, '_>, wire: WireMaker, c: &mut Cube) {
    let (connections, sound) = s.sound(|s| s.count("connections"));
    c.noc.connections = connections;
    c.policy = s.choice("policy", &[("first", UciePolicy::First), ("striped", UciePolicy::Striped)]);
    let [w, h] = c.noc.grid;
    for key in ["rows", "columns"] {
        let limit = if key == "rows" { h } else { w };
        let (list, readable) = s.sound(|s| s.wholes(key));
        if sound && readable && list.len() != connections as usize {
            s.error(
                key,
                "KB0310",
                format!("`cube.ucie.{key}` has {} entries for {connections} connections", list.len()),
                "name one for each connection",
            );
        }
        for (i, place) in list.iter().filter(|_| c.grid_sound) {
            let ends = if key == "rows" { [(*i, 0), (*i, w - 1)] } else { [(0, *i), (h - 1, *i)] };
            let absent = |&(row, col): &(u32, u32)| *i >= limit || !c.noc.present[(row * w + col) as usize];
            if let Some((row, col)) = ends.into_iter().find(absent) {
                s.log.push(
                    Diagnostic::error(
                        "KB0310",
                        format!(
                            "a connection of `cube.ucie.{key}` meets `r{row}c{col}`, which does not exist"
                        ),
                    )
                    .at(place.clone(), "")
                    .help("choose a place where the outer routers exist"),
                );
            }
        }
        let list: Vec<u32> = list.into_iter().map(|(i, _)| i.min(limit - 1)).collect();
        if key == "rows" {
            c.noc.rows = list;
        } else {
            c.noc.columns = list;
        }
    }
    c.port_ps = ns(s.non_negative("overhead_ns"));
    c.conn_ps = ns(s.non_negative("connection_overhead_ns"));
    c.conn_router = wire.data(s.positive("router_gbs"), s.non_negative("router_mm"));
    c.conn_port = wire.data(s.positive("port_gbs"), s.non_negative("port_mm"));
    c.crossing = wire.data(s.positive("crossing_gbs"), s.non_negative("crossing_mm"));
}

/// The router the key `router` names.
fn router_at(s: &mut Section<'_, '_>, cube: &Cube) -> u32 {
    let place = s.place("router");
    s.text("router").and_then(|name| router(s, cube, &name, place, false)).unwrap_or(0)
}

/// The index of `r{row}c{column}` in the grid; `absent` also takes routers listed as missing.
fn router(s: &Section<'_, '_>, cube: &Cube, name: &str, place: Place, absent: bool) -> Option<u32> {
    let noc = &cube.noc;
    if !cube.grid_sound {
        return None;
    }
    let found = (0..noc.present.len() as u32).find(|i| noc.router_name(*i) == name);
    if let Some(i) = found.filter(|i| absent || noc.present[*i as usize]) {
        return Some(i);
    }
    let [w, h] = noc.grid;
    let d = if found.is_some() {
        Diagnostic::error("KB0310", format!("router `{name}` is listed in `cube.noc.missing`"))
            .help("choose a router that exists, or take it from the list")
    } else {
        let names: Vec<String> = (0..noc.present.len() as u32).map(|i| noc.router_name(i)).collect();
        let near = nearest(name, names.iter().map(String::as_str));
        Diagnostic::error("KB0310", format!("there is no router `{name}` in a grid of {w} x {h} routers"))
            .help(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write `r{row}c{column}`, both from 0".into(),
            })
    };
    s.log.push(d.at(place, ""));
    None
}

pub(super) struct Pe {
    pub issue: IssueMode,
    pub accel_slot: bool,
    pub cpu: PeCpu,
    pub tcm: Tcm,
    pub scratch_bytes: u32,
    pub gemm: Gemm,
    pub math: Math,
    pub mmu: Mmu,
    pub slots: [SlotCost; 3],
    pub extras: Extras,
    pub inside: Class,
}

pub(super) fn pe(s: &mut Section<'_, '_>, wire: WireMaker) -> Pe {
    let one = Rate::gbs(1.0);
    let no_slot = SlotCost { setup_ps: 0, intrinsic: one, bank: None };
    let issue = s.choice("issue", &[("dataflow", IssueMode::Dataflow), ("blocking", IssueMode::Blocking)]);
    let accel_slot = s.choice_or("shared_resource", &[("accel_slot", true)], false);
    let cpu = s.section("cpu", |s| PeCpu {
        start_ps: ns(s.non_negative("start_ns")),
        issue_ps: ns(s.non_negative("issue_ns")),
        dispatch_ps: ns(s.non_negative("dispatch_ns")),
    });
    let tcm = s.section("tcm", |s| {
        let (size, scratch) = (s.positive("size_mb"), s.positive("scratch_mb"));
        if scratch > size || scratch >= 4096.0 {
            s.error(
                "scratch_mb",
                "KB0315",
                format!("`pe.tcm.scratch_mb` is {scratch} MiB, but the TCM has {size} MiB"),
                "choose a smaller scratch (and less than 4096 MiB)",
            );
        }
        let (read, write) = (Rate::gbs(s.positive("read_gbs")), Rate::gbs(s.positive("write_gbs")));
        (Tcm { bytes: (size * MIB) as u64, read, write }, (scratch * MIB) as u32)
    });
    let gemm = s.section("gemm", |s| Gemm {
        tile: s.section("tile", |s| [s.count("m"), s.count("k"), s.count("n")]).unwrap_or([1; 3]),
        half: Rate::tflops(s.positive("f16_tflops")),
        byte: Rate::tflops(s.positive("i8_tflops")),
        word: Rate::tflops(s.positive("f32_tflops")),
    });
    let math = s.section("math", |s| Math {
        lanes: s.count("lanes"),
        step_ps: ns(1.0 / s.positive("clock_ghz")),
        slow_steps: s.count("slow_steps"),
        overhead_ps: ns(s.non_negative("overhead_ns")),
    });
    let mmu = s.section("mmu", |s| Mmu {
        overhead_ps: ns(s.non_negative("overhead_ns")),
        page_bytes: (s.positive("page_mb") * MIB) as u64,
    });
    let ipcq = s.section("ipcq", |s| {
        let poll_ns = s.positive("poll_ns");
        let slots = ["tcm", "sram", "hbm"].map(|kind| {
            s.section(kind, |s| SlotCost {
                setup_ps: ns(s.non_negative("setup_ns")),
                intrinsic: Rate::gbs(s.positive("intrinsic_gbs")),
                bank: s.has("bank_gbs").then(|| Rate::gbs(s.positive("bank_gbs"))),
            })
            .unwrap_or(no_slot)
        });
        (ns(poll_ns), slots)
    });
    let inside = wire.command(s.non_negative("wire_mm"));
    let (tcm, scratch_bytes) = tcm.unwrap_or((Tcm { bytes: 0, read: one, write: one }, 0));
    let (poll_ps, slots) = ipcq.unwrap_or((1, [no_slot; 3]));
    Pe {
        issue,
        accel_slot,
        cpu: cpu.unwrap_or(PeCpu { start_ps: 0, issue_ps: 0, dispatch_ps: 0 }),
        tcm,
        scratch_bytes,
        gemm: gemm.unwrap_or(Gemm { tile: [1; 3], half: one, byte: one, word: one }),
        math: math.unwrap_or(Math { lanes: 1, step_ps: 0, slow_steps: 1, overhead_ps: 0 }),
        mmu: mmu.unwrap_or(Mmu { overhead_ps: 0, page_bytes: 1 }),
        slots,
        extras: Extras { poll_ps },
        inside,
    }
}
