use kernbench::engine::{Fidelity, Flow, Issuer, traffic};
use kernbench::ir::{PeId, Transfer};
use kernbench::topology::{Topology, PeAt};
use std::time::Instant;
fn rnd(s: &mut u64, n: u64) -> u64 { *s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); (*s >> 33) % n }
fn main() {
    let t = Topology::default_machine();
    let flow = |i: usize, from: u32, to: u32, bytes: u32, start: u64| Flow { issuer: Issuer::Dma(PeId(from)), start_ps: start, transfer: Transfer { addr: 256 * (i as u64 % 8), home: PeId(to), run_bytes: bytes, runs: 1, stride_bytes: 0, ..Transfer::default() } };
    let mut s = 1;
    let mut r = |n| rnd(&mut s, n) as u32;
    let w64: Vec<Flow> = (0..64).map(|i| flow(i, r(8), r(8), 4096, 0)).collect();
    let w1024: Vec<Flow> = (0..1024).map(|i| flow(i, r(8), r(8), 4096, 0)).collect();
    let hot: Vec<Flow> = (0..128).map(|i| flow(i, i as u32, 0, 4096, 0)).collect();
    let hot64: Vec<Flow> = (0..128).map(|i| flow(i, i as u32, 0, 65536, 0)).collect();
    let light: Vec<Flow> = (0..256).map(|i| flow(i, r(128), r(128), 16384, 100_000 * i as u64)).collect();
    let own: Vec<Flow> = (0..4096).map(|i| flow(i, (i % 256) as u32, (i % 256) as u32, 16384, 80_000 * (i as u64 / 256))).collect();
    let _ = PeAt { sip: 0, cube: 0, pe: 0 };
    let only = std::env::args().nth(1);
    for (name, flows) in [("64", &w64), ("1024", &w1024), ("hot128", &hot), ("hot128x64K", &hot64), ("light256x16K", &light), ("own4096x16K", &own)] {
        if only.as_deref().is_some_and(|o| o != name) { continue; }
        let hops: u64 = flows.iter().map(|f| { let Issuer::Dma(pe) = f.issuer else { panic!() }; u64::from(t.hops(pe, f.transfer.home)) * f.transfer.bytes().div_ceil(256) }).sum();
        for fid in Fidelity::ALL { if only.is_some() && fid == Fidelity::Message { continue; }
            let mut best = f64::MAX; let mut mk = 0;
            let begin = Instant::now();
            while begin.elapsed().as_secs_f64() < std::env::args().nth(2).map_or(0.5, |x| x.parse().unwrap()) {
                let a = Instant::now();
                let p = traffic(&t, flows, fid);
                best = best.min(a.elapsed().as_secs_f64());
                mk = p.iter().map(|p| p.end_ps).max().unwrap();
            }
            println!("{name:14} {:8} hops {hops:8} makespan {mk:9} best {:9.1} us  {:7.1} M flit-hops/s", fid.name(), best * 1e6, hops as f64 / best / 1e6);
        }
    }
}
