//! Simulates one synthetic traffic once, flit-exactly: `cargo run --release --example traffic_once -- light`.
//!
//! `benches/instructions` counts what it executes.

use kernbench::engine::{Fidelity, Flow, Issuer, traffic};
use kernbench::ir::{PeId, Transfer};
use kernbench::topology::Topology;
use std::process::ExitCode;

/// PEs of a cube and of a SIP of the default machine.
const CUBE: u32 = 8;
const SIP: u32 = 128;
const KIB: u32 = 1 << 10;
const NS: u64 = 1000;

/// A synthetic traffic: its name and the flows it is made of.
type Traffic = (&'static str, fn() -> Vec<Flow>);

const TRAFFICS: [Traffic; 5] = [
    ("none", Vec::new), // what the machine itself costs
    ("light", light),
    ("random-1024", random_1024),
    ("hot-128", hot_128),
    ("all-local", all_local),
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some((_, flows)) = TRAFFICS.iter().find(|t| t.0 == name) else {
        eprintln!("error: no traffic `{name}`\nhelp: name one of {}", TRAFFICS.map(|t| t.0).join(", "));
        return ExitCode::from(2);
    };
    let flows = flows();
    let passages = traffic(&Topology::default_machine(), &flows, Fidelity::Flit);
    let end_ps = passages.iter().map(|p| p.end_ps).max().unwrap_or(0);
    let contention_ps: u64 = passages.iter().map(|p| p.contention_ps).sum();
    println!("{} flows end at {end_ps} ps, after {contention_ps} ps of contention in all", flows.len());
    ExitCode::SUCCESS
}

/// 256 random reads of 16 KiB over one SIP, 100 ns apart: they seldom meet.
fn light() -> Vec<Flow> {
    let mut random = Random(1);
    (0..256).map(|i| read(random.below(SIP), random.below(SIP), 16 * KIB, 0, i * 100 * NS)).collect()
}

/// 1024 random reads of 4 KiB on one cube, all at once.
fn random_1024() -> Vec<Flow> {
    let mut random = Random(2);
    (0..1024).map(|_| read(random.below(CUBE), random.below(CUBE), 4 * KIB, 0, 0)).collect()
}

/// Every PE of a SIP reads 4 KiB of one slice.
fn hot_128() -> Vec<Flow> {
    (0..SIP).map(|pe| read(pe, 0, 4 * KIB, 0, 0)).collect()
}

/// Every PE of two SIPs reads its own slice, 16 times 16 KiB.
fn all_local() -> Vec<Flow> {
    let reads = |pe| (0..16).map(move |i| read(pe, pe, 16 * KIB, i * 16 * KIB, 0));
    (0..2 * SIP).flat_map(reads).collect()
}

/// A read of some bytes of `home`'s slice, from `addr` on, by the DMA of `pe`.
fn read(pe: u32, home: u32, bytes: u32, addr: u32, start_ps: u64) -> Flow {
    let transfer = Transfer {
        addr: u64::from(addr),
        home: PeId(home),
        run_bytes: bytes,
        runs: 1,
        ..Transfer::default()
    };
    Flow { issuer: Issuer::Dma(PeId(pe)), transfer, start_ps }
}

/// The generator SplitMix64 (Steele, Lea and Flood, 2014): the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % u64::from(n)) as u32
    }
}
