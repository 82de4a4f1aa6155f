//! Laws of the graph and its routes, and the published results that need no contention.

mod links;
mod mistakes;
mod published;

use super::*;
use crate::ir::PeId;

/// The default text with some places changed; each must occur.
fn changed(changes: &[(&str, &str)]) -> String {
    let mut text = Topology::DEFAULT_YAML.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text
}

fn machine(changes: &[(&str, &str)]) -> Topology {
    Topology::from_yaml("topology.yaml", &changed(changes)).unwrap_or_else(|f| panic!("{f}"))
}

const ROUTERS: &str = "[r0c0, r0c1, r1c4, r1c5, r4c0, r4c1, r5c4, r5c5]";

/// One SIP of a row of three cubes with one PHY and four PEs.
pub(crate) fn odd() -> Topology {
    machine(&[
        ("count: 2 ", "count: 1 "),
        ("cube_mesh: {w: 4, h: 4}", "cube_mesh: {w: 3, h: 1}"),
        ("count: 4 ", "count: 1 "),
        ("grid: {w: 4, h: 2}", "grid: {w: 2, h: 2}"),
        (ROUTERS, "[r0c0, r0c5, r5c0, r3c1]"),
        ("policy: first", "policy: striped"),
    ])
}

/// Three SIPs of 2 x 3 cubes whose grid of 4 x 5 routers has holes in its first row and column.
pub(crate) fn holed() -> Topology {
    machine(&[
        ("count: 2 ", "count: 3 "),
        ("cube_mesh: {w: 4, h: 4}", "cube_mesh: {w: 2, h: 3}"),
        ("count: 4 ", "count: 2 "),
        ("grid: {w: 6, h: 6}", "grid: {w: 4, h: 5}"),
        ("missing: [r2c2, r2c3, r3c2, r3c3]", "missing: [r0c2, r2c0]"),
        ("connections: 4", "connections: 2"),
        ("rows: [0, 1, 4, 5]", "rows: [1, 4]"),
        ("columns: [0, 1, 4, 5]", "columns: [0, 3]"),
        ("grid: {w: 4, h: 2}", "grid: {w: 3, h: 1}"),
        (ROUTERS, "[r0c0, r4c3, r0c3]"),
        ("router: r0c2", "router: r0c1"),
        ("size_gb: 48", "size_gb: 24"),
    ])
}

fn pes(t: &Topology) -> impl Iterator<Item = PeId> + use<> {
    (0..t.machine().pe_count()).map(PeId)
}

fn pe(t: &Topology, sip: u32, cube: u32, pe: u32) -> PeId {
    t.machine().pe(PeAt { sip, cube, pe })
}

/// The names along a route.
fn names<'t>(t: &'t Topology, route: &Route) -> Vec<&'t str> {
    let first = route.edges.first().map(|e| t.wire(*e).from);
    let rest = route.edges.iter().map(|e| t.wire(*e).to);
    first.into_iter().chain(rest).map(|n| t.node_name(n)).collect()
}

fn check_route(t: &Topology, route: &Route, from: NodeId, to: NodeId) {
    assert_eq!(t.wire(route.edges[0]).from, from);
    assert_eq!(t.wire(*route.edges.last().unwrap()).to, to);
    let wires: Vec<&Wire> = route.edges.iter().map(|e| t.wire(*e)).collect();
    assert!(wires.windows(2).all(|w| w[0].to == w[1].from));
    let overhead: u64 = wires[1..].iter().map(|w| t.overhead_ps(w.from)).sum();
    assert_eq!(route.overhead_ps, overhead);
    assert_eq!(route.bottleneck, wires.iter().filter_map(|w| w.rate).min());
    let mut seen: Vec<NodeId> = wires.iter().map(|w| w.from).collect();
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() == wires.len(), "{:?}", names(t, route));
}

#[test]
fn counts_of_the_default_machine() {
    let t = Topology::default_machine();
    assert_eq!((t.node_count(), t.edge_count()), (4335, 12412));
    let under = |prefix: &str| (0..4335).filter(|n| t.node_name(NodeId(*n)).starts_with(prefix)).count();
    assert_eq!((under("sip1.cube15."), under("sip0.io0.")), (134, 23));
    let cube = |n: NodeId| t.node_name(n).starts_with("sip0.cube5.");
    assert_eq!(t.wires().iter().filter(|w| cube(w.from) && cube(w.to)).count(), 380);
    let within_pe = t
        .wires()
        .iter()
        .filter(|w| [w.from, w.to].iter().any(|n| t.node_name(*n).starts_with("sip0.cube5.pe3.")));
    assert_eq!(within_pe.count(), 25);
}

#[test]
fn every_node_is_found_by_its_name() {
    for t in [Topology::default_machine(), odd(), holed()] {
        for n in (0..t.node_count() as u32).map(NodeId) {
            assert_eq!(t.node(t.node_name(n)), Some(n));
        }
        assert_eq!(t.layout_round_trips(), t.node_count());
    }
    let t = Topology::default_machine();
    assert_eq!(t.node("sip0.cube2.r2c2"), None);
    assert_eq!(t.nearest_node("sip0.cube2.pe_5.pe_dma"), Some("sip0.cube2.pe5.pe_dma"));
}

#[test]
fn names_and_kinds_agree() {
    let t = Topology::default_machine();
    let kind = |name| t.node_kind(t.node(name).unwrap());
    assert_eq!(kind("fabric.switch0"), NodeKind::Switch);
    assert_eq!(kind("sip1.io0.io_ucie-P3"), NodeKind::IoUcie);
    assert_eq!(kind("sip0.cube2.ucie-E.conn1"), NodeKind::UcieConn);
    assert_eq!(kind("sip0.cube2.hbm_ctrl.pe5"), NodeKind::HbmCtrl);
    assert_eq!(kind("sip0.cube2.pe5.pe_ipcq"), NodeKind::PeIpcq);
}

#[test]
fn edges_are_symmetric_where_they_carry_bytes_between_parts() {
    let t = Topology::default_machine();
    for w in t.wires().iter().filter(|w| w.rate.is_some()) {
        let back = t.edge(w.to, w.from).unwrap();
        assert_eq!((t.wire(back).rate, t.wire(back).flit_ps), (w.rate, w.flit_ps));
    }
}

#[test]
fn everything_is_reachable() {
    for t in [odd(), holed()] {
        let host = t.node("sip0.io0.pcie_ep").unwrap();
        for n in (0..t.node_count() as u32).map(NodeId) {
            assert!(t.path(host, n).is_some() && t.path(n, host).is_some(), "{}", t.node_name(n));
        }
    }
}

#[test]
fn routes_are_connected_and_end_where_asked() {
    for t in [odd(), holed()] {
        for a in pes(&t) {
            for b in pes(&t) {
                let dma = t.dma_route(a, b);
                check_route(&t, &dma, t.pe_dma(a), t.hbm_ctrl(b));
                assert_eq!(t.hops(a, b), dma.edges.len() as u32);
                assert_eq!(t.path(t.pe_dma(a), t.hbm_ctrl(b)), Some(dma));
                if a != b {
                    check_route(&t, &t.message_route(a, b), t.pe_dma(a), t.pe_dma(b));
                    check_route(&t, &t.credit_route(b, a), t.pe_dma(b), t.pe_dma(a));
                }
            }
            let pcie = t.node(&format!("sip{}.io0.pcie_ep", t.machine().at(a).sip)).unwrap();
            check_route(&t, &t.host_route(a), pcie, t.hbm_ctrl(a));
        }
    }
    let t = Topology::default_machine();
    for b in pes(&t) {
        let a = PeId(b.0 * 37 % 256);
        check_route(&t, &t.dma_route(a, b), t.pe_dma(a), t.hbm_ctrl(b));
        assert_eq!(t.hops(a, b), t.dma_route(a, b).edges.len() as u32);
    }
}

#[test]
fn same_cube_paths_touch_no_ucie() {
    for t in [Topology::default_machine(), odd(), holed()] {
        for a in pes(&t) {
            for b in pes(&t).filter(|b| b.0 / t.machine().pes() == a.0 / t.machine().pes()) {
                assert!(names(&t, &t.dma_route(a, b)).iter().all(|n| !n.contains("ucie")));
            }
        }
    }
}

#[test]
fn farther_is_slower() {
    let t = Topology::default_machine();
    let own = pe(&t, 0, 0, 0);
    let near = [own, pe(&t, 0, 0, 1), pe(&t, 0, 0, 7), pe(&t, 0, 1, 0), pe(&t, 0, 15, 7)];
    let latency = near.map(|home| published::latency_ps(&t, &t.dma_route(own, home), 16 << 10, true));
    assert!(latency.is_sorted_by(|a, b| a < b), "{latency:?}");
}

#[test]
fn routes_of_rule_four() {
    let t = Topology::default_machine();
    let show = |route: Route| names(&t, &route).join(" ").replace("sip0.", "").replace("cube0.", "");
    // Along the row, then the column.
    insta::assert_snapshot!(show(t.dma_route(pe(&t, 0, 0, 1), pe(&t, 0, 0, 3))), @"pe1.pe_dma r0c1 r0c2 r0c3 r0c4 r0c5 r1c5 hbm_ctrl.pe3");
    // The row of r3c0 has a hole, so the column comes first.
    let sram = t.path(t.node("sip0.cube0.sram").unwrap(), t.hbm_ctrl(pe(&t, 0, 0, 6))).unwrap();
    insta::assert_snapshot!(show(sram), @"sram r3c0 r4c0 r5c0 r5c1 r5c2 r5c3 r5c4 hbm_ctrl.pe6");
    insta::assert_snapshot!(show(t.message_route(pe(&t, 0, 5, 0), pe(&t, 0, 0, 0))), @"cube5.pe0.pe_dma cube5.r0c0 cube5.ucie-W.conn0 cube5.ucie-W cube4.ucie-E cube4.ucie-E.conn0 cube4.r0c5 cube4.r0c4 cube4.r0c3 cube4.r0c2 cube4.r0c1 cube4.r0c0 cube4.ucie-N.conn0 cube4.ucie-N ucie-S ucie-S.conn0 r5c0 r4c0 r3c0 r2c0 r1c0 r0c0 pe0.pe_dma");
    insta::assert_snapshot!(show(t.dma_route(pe(&t, 0, 6, 0), pe(&t, 1, 3, 0))), @"cube6.pe0.pe_dma cube6.r0c0 cube6.ucie-N.conn0 cube6.ucie-N cube2.ucie-S cube2.ucie-S.conn0 cube2.r5c0 cube2.r4c0 cube2.r3c0 cube2.r2c0 cube2.r1c0 cube2.r0c0 cube2.ucie-N.conn0 cube2.ucie-N io0.io_ucie-P2 io0.io_ucie-P2.conn0 io0.io_noc io0.pcie_ep fabric.switch0 sip1.io0.pcie_ep sip1.io0.io_noc sip1.io0.io_ucie-P3.conn0 sip1.io0.io_ucie-P3 sip1.cube3.ucie-N sip1.cube3.ucie-N.conn0 sip1.cube3.r0c0 sip1.cube3.hbm_ctrl.pe0");
    let t = holed();
    // Row and column first are the same straight way here, and it has a hole.
    let a = t.node("sip0.cube0.r0c1").unwrap();
    let b = t.node("sip0.cube0.r0c3").unwrap();
    insta::assert_snapshot!(names(&t, &t.path(a, b).unwrap()).join(" "), @"sip0.cube0.r0c1 sip0.cube0.r1c1 sip0.cube0.r1c2 sip0.cube0.r1c3 sip0.cube0.r0c3");
}

#[test]
fn the_connection_is_the_same_at_every_crossing() {
    let t = odd();
    let route = t.dma_route(pe(&t, 0, 0, 2), pe(&t, 0, 2, 1));
    let conns: Vec<_> = names(&t, &route).into_iter().filter(|n| n.contains("conn")).collect();
    assert_eq!(conns.len(), 4);
    assert!(conns.iter().all(|n| n.ends_with("conn1")));
}

#[test]
fn paths_between_any_nodes() {
    let t = Topology::default_machine();
    let path = |a: &str, b: &str| t.path(t.node(a).unwrap(), t.node(b).unwrap());
    let inside = path("sip0.cube0.pe0.pe_scheduler", "sip0.cube0.pe0.pe_tcm").unwrap();
    insta::assert_snapshot!(names(&t, &inside).join(" "), @"sip0.cube0.pe0.pe_scheduler sip0.cube0.pe0.pe_dma sip0.cube0.pe0.pe_tcm");
    assert_eq!(inside.bottleneck.map(|r| r.as_gbs()), Some(512.0));
    assert_eq!(path("sip0.io0.pcie_ep", "sip0.io0.pcie_ep").unwrap().edges, []);
    assert_eq!(names(&t, &path("sip0.io0.io_cpu", "sip1.io0.io_cpu").unwrap()).len(), 7);
    assert_eq!(names(&t, &path("sip0.io0.pcie_ep", "sip1.io0.pcie_ep").unwrap()).len(), 3);
    // Nothing leads back to a scheduler but by its pe_cpu, and to that but by its router.
    let back = path("sip0.cube0.pe0.pe_tcm", "sip0.cube0.pe0.pe_scheduler").unwrap();
    insta::assert_snapshot!(names(&t, &back).join(" "), @"sip0.cube0.pe0.pe_tcm sip0.cube0.pe0.pe_dma sip0.cube0.r0c0 sip0.cube0.pe0.pe_cpu sip0.cube0.pe0.pe_scheduler");
}

#[test]
fn launch_and_barriers() {
    let t = Topology::default_machine();
    // m_cpu is on r0c2, PE 0 on r0c0: two routers between and the ends' own.
    assert_eq!(t.barrier_cube_ps(pe(&t, 0, 3, 0)), 3 * 2000);
    // Then up in column 3: 3 routers to the port, 8 ns at the port and 8 ns at the PHY.
    assert_eq!(t.barrier_sip_ps(pe(&t, 0, 3, 0)), 3 * 2000 + 3 * 2000 + 16_000);
    for p in pes(&t) {
        assert_eq!(t.barrier_cube_ps(p), t.release_cube_ps(p));
        assert_eq!(t.barrier_sip_ps(p), t.release_sip_ps(p));
        // A launch passes io_cpu once more than a barrier's release does.
        assert!(t.launch_ps() >= t.release_sip_ps(p) + 10_000);
    }
    assert!(pes(&t).any(|p| t.launch_ps() == t.release_sip_ps(p) + 10_000));
}

#[test]
fn lengths_delay() {
    let t = machine(&[("router_mm: 0", "router_mm: 5"), ("crossing_mm: 0", "crossing_mm: 0.1")]);
    assert_eq!(t.dma_route(PeId(0), PeId(1)).propagation_ps, 50);
    let route = t.dma_route(PeId(0), pe(&t, 0, 1, 0));
    // Five router edges of 50 ps and one crossing of 1 ps.
    assert_eq!(route.propagation_ps, 5 * 50 + 1);
}

#[test]
fn single_edges_may_differ() {
    let pair = "\nedges:\n  - {from: sip0.cube0.r0c0, to: sip0.cube0.r0c1, gbs: 128, mm: 10}\n  - {from: sip0.cube0.r0c1, to: sip0.cube0.r0c0, gbs: 128, mm: 10}\n";
    let t = machine(&[("\n# edges:", &format!("{pair}\n# edges:"))]);
    let route = t.dma_route(PeId(0), PeId(1));
    assert_eq!((route.bottleneck.map(|r| r.as_gbs()), route.propagation_ps), (Some(128.0), 100));
    assert_eq!(t.dma_route(PeId(8), PeId(9)).bottleneck.map(|r| r.as_gbs()), Some(256.0));
}

#[test]
fn numbers_of_the_default_machine() {
    let t = Topology::default_machine();
    let m = t.machine();
    assert_eq!((m.sips, m.cubes(), m.pes(), m.sip_grid), (2, 16, 8, [2, 1]));
    assert_eq!((m.hbm.slice_bytes, m.hbm.burst_ps, m.hbm.channels), (6 << 30, 8000, 8));
    assert_eq!((m.tcm.bytes, m.sram_bytes, m.scratch_bytes), (16 << 20, 32 << 20, 1 << 20));
    assert_eq!(m.gemm.time(crate::ty::ElementType::F16, [32, 64, 32]), 16_384);
    assert_eq!((m.math.step_ps, m.math.lanes, m.math.slow_steps), (1000, 128, 4));
    assert_eq!((m.pe_cpu.start_ps, m.pe_cpu.issue_ps, m.pe_cpu.dispatch_ps), (2000, 1000, 1000));
    let slots = [BufferKind::Tcm, BufferKind::Sram, BufferKind::Hbm].map(|k| m.slot_cost(k).time(512));
    assert_eq!(slots, [1000, 2000 + 1000 + 4000, 6000 + 2000 + 2000]);
    assert_eq!((t.poll_ps(), t.page_bytes()), (4000, 2 << 20));
    let slow = machine(&[("  mmu:\n    overhead_ns: 0", "  mmu:\n    overhead_ns: 1.5")]);
    assert_eq!((m.mmu.overhead_ps, slow.machine().mmu.overhead_ps), (0, 1500));
    assert!(m.accel_slot);
    assert!(!machine(&[("  shared_resource: accel_slot", "")]).machine().accel_slot);
}

#[test]
fn drawing_names_nodes_and_bandwidths() {
    let dot = odd().dot();
    assert!(dot.starts_with("digraph {\n"));
    assert_eq!(dot.matches("label = \"512 GB/s\"").count(), 4 + 2 + 12 * 4);
    assert!(dot.contains("label = \"sip0.cube2.pe3.pe_dma\""));
}
