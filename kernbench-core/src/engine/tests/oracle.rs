//! The message engine against moving every flit by hand, one transfer alone on the default machine.

use super::laws::Random;
use super::*;
use crate::ir::{PeId, Transfer};
use crate::topology::{NodeKind, Route, Topology};

/// Rules 1 to 3 of the machine for one transfer: when its last flit has arrived or committed.
fn by_hand(t: &Topology, route: &Route, transfer: &Transfer, memory: bool) -> Ps {
    let (flit, hbm) = (t.machine().flit_bytes, &t.machine().hbm);
    let mut flits = vec![];
    for run in 0..u64::from(transfer.runs) {
        let addr = transfer.addr + run * u64::from(transfer.stride_bytes);
        let mut offset = 0;
        while offset < u64::from(transfer.run_bytes) {
            let bytes = flit.min(u64::from(transfer.run_bytes) - offset);
            flits.push((addr + offset, bytes, 0));
            offset += bytes;
        }
    }
    for (i, &edge) in route.edges.iter().enumerate() {
        let wire = t.wire(edge);
        let mut free = 0;
        for (_, bytes, at) in &mut flits {
            let takes = if *bytes == flit { wire.flit_ps } else { wire.rate.map_or(0, |r| r.time(*bytes)) };
            free = free.max(*at) + takes;
            *at = free + wire.propagation_ps;
        }
        if i + 1 == route.edges.len() {
            break;
        }
        let overhead = t.overhead_ps(wire.to);
        let gathered = flits.last().map_or(0, |f| f.2) + overhead;
        let decoded = flits[0].2 + overhead;
        for (_, _, at) in &mut flits {
            *at = if t.node_kind(wire.to) == NodeKind::PcieEp { gathered } else { (*at).max(decoded) };
        }
    }
    if !memory {
        return flits.last().map_or(0, |f| f.2);
    }
    let mut channels = vec![0; hbm.channels as usize];
    let commit = |(addr, _, at): &(u64, u64, Ps)| {
        let channel = &mut channels[hbm.channel(*addr, flit) as usize];
        *channel = (*channel).max(*at) + hbm.burst_ps;
        *channel
    };
    flits.iter().map(commit).max().unwrap_or(0)
}

#[test]
fn a_contiguous_transfer_alone_is_exact() {
    let t = Topology::default_machine();
    let mut r = Random(7);
    let pe = |r: &mut Random| PeId(r.below(u64::from(t.machine().pe_count())) as u32);
    for i in 0..400 {
        let (from, home) = (pe(&mut r), pe(&mut r));
        let bytes = if i % 2 == 0 { 256 * (1 + r.below(200)) } else { 1 + r.below(40_000) };
        let addr = 256 * r.below(64);
        let transfer =
            Transfer { addr, home, run_bytes: bytes as u32, runs: 1, stride_bytes: 0, ..Transfer::default() };
        let dma = t.dma_route(from, home);
        let cases = [
            (Issuer::Dma(from), by_hand(&t, &dma, &transfer, true) + dma.response_ps()),
            (Issuer::HostWrite, by_hand(&t, &t.host_route(home), &transfer, true)),
            (Issuer::Message(from), by_hand(&t, &t.message_route(from, home), &transfer, false)),
        ];
        for (issuer, expected) in cases {
            if from == home && matches!(issuer, Issuer::Message(_)) {
                continue;
            }
            let flow = Flow { issuer, transfer, start_ps: 0 };
            let got = traffic(&t, &[flow], Fidelity::Message)[0];
            // Bursts come evenly here, which may make a short last one wait for its channel.
            let even = bytes.is_multiple_of(256) || matches!(issuer, Issuer::Message(_));
            let near = got.end_ps.abs_diff(expected) < t.machine().hbm.burst_ps && !even;
            assert!(
                got.contention_ps == 0 && (near || got.end_ps == expected),
                "{flow:?} {got:?} {expected}"
            );
        }
    }
}

#[test]
fn runs_alone_are_within_a_few_bursts() {
    let t = Topology::default_machine();
    let mut r = Random(11);
    let mut worst = (0, 0);
    for _ in 0..400 {
        let from = PeId(r.below(256) as u32);
        let home = PeId(r.below(256) as u32);
        let (run_bytes, runs) = (2 * (1 + r.below(400)) as u32, 1 + r.below(64) as u32);
        let transfer = Transfer {
            addr: 0,
            home,
            run_bytes,
            runs,
            stride_bytes: run_bytes + 2 * r.below(2000) as u32,
            ..Transfer::default()
        };
        let dma = t.dma_route(from, home);
        let expected = by_hand(&t, &dma, &transfer, true) + dma.response_ps();
        let flow = Flow { issuer: Issuer::Dma(from), transfer, start_ps: 0 };
        let got = traffic(&t, &[flow], Fidelity::Message)[0].end_ps;
        let error = got.abs_diff(expected);
        worst = worst.max((error * 1000 / expected, error));
    }
    // The worst error, in per mille and in ps.
    insta::assert_snapshot!(format!("{worst:?}"), @"(39, 6000)");
}
