//! The published results of the default machine to give exactly.

use super::*;
use crate::ir::{PeId, Transfer};
use crate::topology::{PeAt, Topology};
use crate::units::ns;

fn pe(topology: &Topology, sip: u32, cube: u32, pe: u32) -> PeId {
    topology.machine().pe(PeAt { sip, cube, pe })
}

fn flow(issuer: Issuer, home: PeId, kib: u32) -> Flow {
    let transfer =
        Transfer { addr: 0, home, run_bytes: kib << 10, runs: 1, stride_bytes: 0, ..Transfer::default() };
    Flow { issuer, transfer, start_ps: 0 }
}

#[test]
fn uncontended_rows() {
    let t = Topology::default_machine();
    let me = pe(&t, 0, 0, 0);
    let dma = Issuer::Dma(me);
    let rows = [
        (flow(dma, me, 16), 77.0),
        (flow(dma, me, 32), 141.0),
        (flow(Issuer::Dma(pe(&t, 0, 0, 1)), me, 16), 82.0),
        (flow(dma, pe(&t, 0, 15, 7), 16), 573.0),
        (flow(dma, pe(&t, 1, 0, 0), 16), 412.0),
        (flow(Issuer::HostWrite, me, 64), 542.5),
    ];
    for (flow, expected) in rows {
        let passage = traffic(&t, &[flow], Fidelity::Flit)[0];
        assert_eq!(passage, Passage { end_ps: ns(expected), contention_ps: 0 }, "{flow:?}");
    }
}

#[test]
fn latency_grows_with_distance_and_host_reads_take_longer_than_writes() {
    let t = Topology::default_machine();
    let me = pe(&t, 0, 0, 0);
    let homes = [me, pe(&t, 0, 0, 1), pe(&t, 0, 0, 7), pe(&t, 0, 1, 0), pe(&t, 0, 15, 7)];
    let end = |flow| traffic(&t, &[flow], Fidelity::Flit)[0].end_ps;
    let ends = homes.map(|home| end(flow(Issuer::Dma(me), home, 16)));
    assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
    assert!(end(flow(Issuer::HostRead, me, 64)) >= end(flow(Issuer::HostWrite, me, 64)));
}

#[test]
fn ipcq_law_on_real_paths() {
    let t = Topology::default_machine();
    let slots = Options::new(t.machine()).slots;
    for (to, mb) in [(pe(&t, 0, 1, 0), 128.0), (pe(&t, 0, 0, 1), 256.0), (pe(&t, 1, 0, 0), 128.0)] {
        let me = pe(&t, 0, 0, 0);
        let mut b = Build::new(2);
        let x = b.pe(0).fill("x", [16, 512]);
        let send = b.pe(0).send(crate::ty::Dir::E, x);
        b.pe(1).recv("y", crate::ty::Dir::W, [16, 512]);
        let mut program = b.finish();
        program.pes[1].pe = to;
        for link in &mut program.links {
            (link.from, link.to) = if link.from == me { (me, to) } else { (to, me) };
        }
        let timing = match simulate(&t, &program, &Options::new(t.machine())) {
            Ok(timing) => timing,
            Err(stall) => panic!("{stall}"),
        };
        let took = timing.pes[1].ops[0].end_ps - timing.pes[0].ops[send.at()].start_ps;
        let raw = traffic(&t, &[flow(Issuer::Dma(me), to, 16)], Fidelity::Message)[0].end_ps;
        let slot = t.machine().slot_cost(slots.kind).time(16 << 10);
        let credit = crate::units::Rate::gbs(mb).time(16);
        assert_eq!(took, raw + 2 * slot + credit - ns(8.0));
    }
}

#[test]
fn contended_rows() {
    let striped = include_str!("../../../../topology.yaml").replace("policy: first", "policy: striped");
    let (first, striped) = (Topology::default_machine(), Topology::from_yaml("striped.yaml", &striped));
    let striped = striped.unwrap_or_else(|f| panic!("{f:?}"));
    let last = |t: &Topology, flows: &[Flow], fidelity| {
        traffic(t, flows, fidelity).iter().map(|p| p.end_ps).max().unwrap_or(0)
    };
    let mut flows: Vec<Flow> =
        (0..8).map(|i| flow(Issuer::Dma(pe(&first, 0, 0, i)), pe(&first, 0, 0, 0), 16)).collect();
    for (i, f) in flows.iter_mut().enumerate() {
        f.transfer.addr = 256 * i as u64;
    }
    assert_eq!(last(&first, &flows, Fidelity::Flit), ns(556.0));
    insta::assert_snapshot!(last(&first, &flows, Fidelity::Message), @"545000");
    for (i, f) in flows.iter_mut().enumerate() {
        f.transfer.home = pe(&first, 0, 1, i as u32);
    }
    assert_eq!(last(&first, &flows, Fidelity::Flit), ns(1111.5));
    assert_eq!(last(&striped, &flows, Fidelity::Flit), ns(368.5));
    insta::assert_snapshot!(last(&first, &flows, Fidelity::Message), @"1109500");
}
