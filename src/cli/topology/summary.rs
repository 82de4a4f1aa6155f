//! A machine in numbers.

use crate::cli::out::table;
use crate::cli::text::{bytes, time};
use kernbench_core::topology::{IssueMode, NodeId, NodeKind, SipTopology, Topology};
use kernbench_core::units::Rate;
use serde_json::json;
use std::collections::BTreeMap;

const fn sip_topology(t: SipTopology) -> &'static str {
    match t {
        SipTopology::Ring1d => "ring_1d",
        SipTopology::Torus2d => "torus_2d",
        SipTopology::Mesh2dNoWrap => "mesh_2d_no_wrap",
    }
}

const fn issue(mode: IssueMode) -> &'static str {
    match mode {
        IssueMode::Dataflow => "dataflow",
        IssueMode::Blocking => "blocking",
    }
}

/// The name of a kind of node and, where it differs, what it is; in the order of the machine.
const KINDS: [(NodeKind, &str); 20] = [
    (NodeKind::Switch, "switch"),
    (NodeKind::PcieEp, "pcie_ep"),
    (NodeKind::IoCpu, "io_cpu"),
    (NodeKind::IoNoc, "io_noc"),
    (NodeKind::IoUcie, "io_ucie"),
    (NodeKind::UciePort, "ucie port"),
    (NodeKind::UcieConn, "ucie connection"),
    (NodeKind::Router, "router"),
    (NodeKind::HbmCtrl, "hbm_ctrl"),
    (NodeKind::MCpu, "m_cpu"),
    (NodeKind::Sram, "sram"),
    (NodeKind::PeCpu, "pe_cpu"),
    (NodeKind::PeScheduler, "pe_scheduler"),
    (NodeKind::PeDma, "pe_dma"),
    (NodeKind::PeFetchStore, "pe_fetch_store"),
    (NodeKind::PeGemm, "pe_gemm"),
    (NodeKind::PeMath, "pe_math"),
    (NodeKind::PeMmu, "pe_mmu"),
    (NodeKind::PeTcm, "pe_tcm"),
    (NodeKind::PeIpcq, "pe_ipcq"),
];

/// How many nodes of a kind there are, and what the first one costs.
fn nodes(topology: &Topology, kind: NodeKind) -> (u64, u64) {
    let all = (0..topology.node_count() as u32).map(NodeId).filter(|n| topology.node_kind(*n) == kind);
    let first = all.clone().next().map_or(0, |n| topology.overhead_ps(n));
    (all.count() as u64, first)
}

pub(super) fn text(topology: &Topology) -> String {
    let m = topology.machine();
    let (cubes, pes) = (m.cubes(), m.pes());
    let tflops = |r: Rate| format!("{}", r.per_us as f64 / 1e6);
    let gbs = |r: Rate| format!("{} GB/s", r.as_gbs());
    let channel = m.flit_bytes as f64 * 1000.0 / m.hbm.burst_ps.max(1) as f64;
    let [tm, tk, tn] = m.gemm.tile;
    let shape = format!(
        "{} SIPs ({}) x {cubes} cubes ({} x {}) x {pes} PEs ({} x {})",
        m.sips,
        sip_topology(m.sip_topology),
        m.cube_mesh[0],
        m.cube_mesh[1],
        m.pe_grid[0],
        m.pe_grid[1]
    );
    let hbm = format!(
        "{} a slice and PE, {} channels of {channel} GB/s; {} in all",
        bytes(m.hbm.slice_bytes),
        m.hbm.channels,
        bytes(m.hbm.slice_bytes * u64::from(m.pe_count()))
    );
    let tcm = format!(
        "{} a PE, {} read, {} write; {} of scratch",
        bytes(m.tcm.bytes),
        gbs(m.tcm.read),
        gbs(m.tcm.write),
        bytes(u64::from(m.scratch_bytes))
    );
    let gemm = format!(
        "a PE does {} TFLOPS f16 and bf16, {} f32 and i32, {} i8 and u8; tile {tm} x {tk} x {tn}",
        tflops(m.gemm.half),
        tflops(m.gemm.word),
        tflops(m.gemm.byte)
    );
    let math = format!(
        "{} lanes, {} a step, {} steps for a slow function{}",
        m.math.lanes,
        time(m.math.step_ps),
        m.math.slow_steps,
        if m.accel_slot { "; never while GEMM works" } else { "" }
    );
    let launch = format!("{} from the host to a PE, {} issue", time(topology.launch_ps()), issue(m.issue));
    let rows = [
        ("machine", shape),
        ("PEs", m.pe_count().to_string()),
        ("HBM", hbm),
        ("TCM", tcm),
        ("SRAM", format!("{} a cube", bytes(m.sram_bytes))),
        ("GEMM", gemm),
        ("MATH", math),
        ("launch", launch),
        ("flit", format!("{} B", m.flit_bytes)),
    ];
    let mut out: String = rows.iter().map(|(name, what)| format!("{name:<9}{what}\n")).collect();
    out += &format!("\n{} nodes\n", topology.node_count());
    let node_rows: Vec<_> = KINDS
        .iter()
        .map(|(kind, name)| (name, nodes(topology, *kind)))
        .filter(|(_, (count, _))| *count > 0)
        .map(|(name, (count, overhead))| {
            let overhead = if overhead == 0 { String::new() } else { format!("{} overhead", time(overhead)) };
            vec![count.to_string(), (*name).to_owned(), overhead]
        })
        .collect();
    out += &table(&[], &node_rows, &[0]);
    let mut edges: BTreeMap<Option<Rate>, u64> = BTreeMap::new();
    topology.wires().iter().for_each(|w| *edges.entry(w.rate).or_default() += 1);
    out += &format!("\n{} directed edges\n", topology.edge_count());
    let edge_rows: Vec<_> = edges
        .iter()
        .rev()
        .map(|(rate, count)| vec![count.to_string(), rate.map_or_else(|| "commands".to_owned(), gbs)])
        .collect();
    out += &table(&[], &edge_rows, &[0]);
    out
}

pub(super) fn json(topology: &Topology) -> String {
    let m = topology.machine();
    let kinds: serde_json::Map<_, _> =
        KINDS.iter().map(|(kind, name)| (name.replace(' ', "_"), nodes(topology, *kind).0.into())).collect();
    let value = json!({
        "nodes": topology.node_count(), "edges": topology.edge_count(), "nodes_by_kind": kinds,
        "sips": m.sips, "sip_topology": sip_topology(m.sip_topology), "sip_grid": m.sip_grid,
        "cube_mesh": m.cube_mesh, "pe_grid": m.pe_grid, "pes": m.pe_count(), "flit_bytes": m.flit_bytes,
        "hbm": {
            "slice_bytes": m.hbm.slice_bytes, "channels": m.hbm.channels, "burst_ps": m.hbm.burst_ps,
        },
        "tcm": {
            "bytes": m.tcm.bytes, "scratch_bytes": m.scratch_bytes,
            "read_bytes_per_us": m.tcm.read.per_us, "write_bytes_per_us": m.tcm.write.per_us,
        },
        "sram_bytes": m.sram_bytes,
        "gemm": {
            "tile": m.gemm.tile, "f16_flop_per_us": m.gemm.half.per_us,
            "f32_flop_per_us": m.gemm.word.per_us, "i8_flop_per_us": m.gemm.byte.per_us,
        },
        "math": {
            "lanes": m.math.lanes, "step_ps": m.math.step_ps, "slow_steps": m.math.slow_steps,
        },
        "shared_accelerator": m.accel_slot, "issue": issue(m.issue), "launch_ps": topology.launch_ps(),
    });
    value.to_string() + "\n"
}
