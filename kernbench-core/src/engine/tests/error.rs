//! How far fidelity `message` is from moving every flit, on the default machine.

use super::laws::Random;
use super::model::Model;
use super::*;
use crate::ir::{PeId, Transfer};
use crate::topology::Topology;

fn pe(r: &mut Random, pes: u32) -> PeId {
    PeId(r.below(pes.into()) as u32)
}

#[test]
fn a_contiguous_transfer_alone_is_exact() {
    let t = Topology::default_machine();
    let mut r = Random(7);
    for i in 0..400 {
        let (from, home) = (pe(&mut r, 256), pe(&mut r, 256));
        let bytes = if i % 2 == 0 { 256 * (1 + r.below(200)) } else { 1 + r.below(40_000) };
        let addr = 256 * r.below(64);
        let transfer = Transfer { addr, home, run_bytes: bytes as u32, runs: 1, ..Transfer::default() };
        for issuer in [Issuer::Dma(from), Issuer::HostWrite, Issuer::HostRead, Issuer::Message(from)] {
            let flow = [Flow { issuer, transfer, start_ps: 0 }];
            let expected = Model::Plain.traffic(&t, &flow)[0];
            let got = Model::MESSAGE.traffic(&t, &flow)[0];
            // Bursts come evenly here, which may make a short last one wait for its channel.
            let even = bytes.is_multiple_of(256) || matches!(issuer, Issuer::Message(_));
            let near = got.end_ps.abs_diff(expected.end_ps) < t.machine().hbm.burst_ps && !even;
            assert!(got.contention_ps == 0 && (near || got == expected), "{flow:?} {got:?} {expected:?}");
        }
    }
}

#[test]
fn runs_alone_are_within_a_few_bursts() {
    let t = Topology::default_machine();
    let mut r = Random(11);
    let mut worst = (0, 0);
    for _ in 0..400 {
        let (from, home) = (pe(&mut r, 256), pe(&mut r, 256));
        let (run_bytes, runs) = (2 * (1 + r.below(400)) as u32, 1 + r.below(64) as u32);
        let stride_bytes = run_bytes + 2 * r.below(2000) as u32;
        let transfer = Transfer { addr: 0, home, run_bytes, runs, stride_bytes, ..Transfer::default() };
        let flow = [Flow { issuer: Issuer::Dma(from), transfer, start_ps: 0 }];
        let expected = Model::Plain.traffic(&t, &flow)[0].end_ps;
        let error = Model::MESSAGE.traffic(&t, &flow)[0].end_ps.abs_diff(expected);
        worst = worst.max((error * 1000 / expected, error));
    }
    // The worst error, in per mille and in ps.
    insta::assert_snapshot!(format!("{worst:?}"), @"(39, 6000)");
}

/// Twenty sets of `count` transfers by `make`; the error of their ends and of the makespans as a line.
fn errors(name: &str, count: u32, make: impl Fn(&mut Random, u32) -> (PeId, PeId, u32, Ps)) -> String {
    let t = Topology::default_machine();
    let (mut r, mut ends, mut spans) = (Random(13), vec![], vec![]);
    for _ in 0..20 {
        let flows: Vec<Flow> = (0..count)
            .map(|i| {
                let (from, home, run_bytes, start_ps) = make(&mut r, i);
                let addr = 256 * u64::from(i % 8);
                let transfer = Transfer { addr, home, run_bytes, runs: 1, ..Transfer::default() };
                Flow { issuer: Issuer::Dma(from), transfer, start_ps }
            })
            .collect();
        let (exact, near) = (Model::Plain.traffic(&t, &flows), Model::MESSAGE.traffic(&t, &flows));
        let per_mille = |near: Ps, exact: Ps| (near as i64 - exact as i64) * 1000 / exact as i64;
        let all = exact.iter().zip(&near).zip(&flows);
        ends.extend(all.map(|((e, n), f)| per_mille(n.end_ps - f.start_ps, e.end_ps - f.start_ps)));
        let last = |passages: &[Passage]| passages.iter().map(|p| p.end_ps).max().unwrap_or(0);
        spans.push(per_mille(last(&near), last(&exact)));
    }
    ends.sort_unstable();
    spans.sort_unstable();
    let at = |list: &[i64], percent: usize| list[(list.len() - 1) * percent / 100];
    let end = [0, 10, 50, 90, 100].map(|percent| format!("{:5}", at(&ends, percent))).join(" ");
    let span = [0, 50, 100].map(|percent| format!("{:5}", at(&spans, percent))).join(" ");
    format!("{name:28} | {end} | {span}\n")
}

/// In per mille of what is exact: percentiles 0, 10, 50, 90, 100 of the latency of a transfer, and
/// 0, 50, 100 of the makespan of a set.
#[test]
fn errors_under_contention() {
    let any = |r: &mut Random, n| pe(r, n);
    let table = [
        errors("8 own slices, 16 KiB", 8, |_, i| (PeId(i), PeId(i), 16 << 10, 0)),
        errors("64 in a cube, 4 KiB", 64, |r, _| (any(r, 8), any(r, 8), 4096, 0)),
        errors("64 in a cube over 2 us", 64, |r, _| (any(r, 8), any(r, 8), 4096, r.below(2_000_000))),
        errors("64 in a SIP, 4 KiB", 64, |r, _| (any(r, 128), any(r, 128), 4096, 0)),
        errors("64 in a SIP over 2 us", 64, |r, _| (any(r, 128), any(r, 128), 4096, r.below(2_000_000))),
        errors("32 hot spot, 4 KiB", 32, |r, _| (any(r, 128), PeId(0), 4096, 0)),
        errors("32 in two SIPs, to 32 KiB", 32, |r, _| {
            (any(r, 256), any(r, 256), 1 + r.below(32 << 10) as u32, r.below(1_000_000))
        }),
    ];
    insta::assert_snapshot!(table.concat(), @"
    8 own slices, 16 KiB         |     0     0     0     0     0 |     0     0     0
    64 in a cube, 4 KiB          |  -614  -192   -52     0    77 |   -56   -22     4
    64 in a cube over 2 us       |  -340   -32     0     0   139 |     0     0     0
    64 in a SIP, 4 KiB           |  -423  -139   -23    24   141 |   -61   -16    47
    64 in a SIP over 2 us        |  -188    -9     0     0   112 |     0     0     6
    32 hot spot, 4 KiB           |  -467  -214   -69    -7    42 |   -23    -6     0
    32 in two SIPs, to 32 KiB    |  -515   -89     0    71   976 |   -92   -14    35
    ");
}
