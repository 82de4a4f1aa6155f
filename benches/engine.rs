//! How fast the simulator of time is: traffic, decode of long contexts, an all-reduce; on one core.
//!
//! Names say the unit of the throughput. Traffic is by fidelity `flit` on the default machine.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kernbench::ccl::Ccl;
use kernbench::engine::{Fidelity, Flow, Issuer, traffic};
use kernbench::ir::{PeId, Transfer};
use kernbench::kernels::attention::{Gqa, gqa_decode_short};
use kernbench::kernels::collectives::{ALGORITHMS, Case, LRAB_HIERARCHICAL_ALLREDUCE};
use kernbench::prelude::*;
use kernbench::topology::{RankTopology, SipTopology};
use std::hint::black_box;
use std::time::Duration;

/// The same numbers for the same seed, everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(n)) as u32
    }
}

/// Reads of `bytes` by `of`: issuer, home and start of transfer `i`.
fn reads(count: u32, bytes: u32, mut of: impl FnMut(u32) -> (u32, u32, u64)) -> Vec<Flow> {
    let read = |i| {
        let (issuer, home, start_ps) = of(i);
        let addr = u64::from(i % 8) * 256;
        let transfer = Transfer { addr, home: PeId(home), run_bytes: bytes, runs: 1, ..Transfer::default() };
        Flow { issuer: Issuer::Dma(PeId(issuer)), transfer, start_ps }
    };
    (0..count).map(read).collect()
}

fn transfers(c: &mut Criterion) {
    let topology = Topology::default_machine();
    let mut r = Random(1);
    let workloads = [
        // One after another, so that few meet.
        (
            "light: 256 of 16 KiB in a SIP",
            reads(256, 16 << 10, |i| (r.below(128), r.below(128), 100_000 * u64::from(i))),
        ),
        (
            "own slices: 4096 of 16 KiB",
            reads(4096, 16 << 10, |i| (i % 256, i % 256, 80_000 * u64::from(i / 256))),
        ),
        ("random: 64 of 4 KiB in a cube", reads(64, 4 << 10, |_| (r.below(8), r.below(8), 0))),
        ("random: 1024 of 4 KiB in a cube", reads(1024, 4 << 10, |_| (r.below(8), r.below(8), 0))),
        ("hot spot: 128 of 4 KiB to a slice", reads(128, 4 << 10, |i| (i, 0, 0))),
        ("hot spot: 128 of 64 KiB to a slice", reads(128, 64 << 10, |i| (i, 0, 0))),
    ];
    let flit_hops = |flows: &[Flow]| -> u64 {
        let hops = |f: &Flow| match f.issuer {
            Issuer::Dma(issuer) => u64::from(topology.hops(issuer, f.transfer.home)),
            _ => 0,
        };
        flows.iter().map(|f| hops(f) * f.transfer.bytes().div_ceil(256)).sum()
    };
    for (unit, count) in [("flit-hops", true), ("transfers", false)] {
        let mut group = c.benchmark_group(unit);
        group.sample_size(20).measurement_time(Duration::from_secs(2));
        for (name, flows) in &workloads {
            let elements = if count { flit_hops(flows) } else { flows.len() as u64 };
            group.throughput(Throughput::Elements(elements));
            group.bench_function(*name, |b| b.iter(|| traffic(&topology, black_box(flows), Fidelity::Flit)));
        }
        group.finish();
    }
}

/// Decode of 64 heads over 8, timing only: recorded, checked and simulated.
fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode, tokens");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    for s_kv in [8 << 10, 128 << 10, 1 << 20] {
        let a = Gqa {
            h_q: 64,
            h_kv: 8,
            d: 128,
            t_q: 1,
            s_kv,
            valid: s_kv,
            causal: false,
            scale: 0.088_388_35,
            kv_per_cube: 1,
            pe_grid: [4, 2],
        };
        group.throughput(Throughput::Elements(s_kv as u64));
        group.bench_with_input(BenchmarkId::from_parameter(s_kv), &a, |b, &a| {
            b.iter(|| {
                let ctx = Context::new(Topology::default_machine()).data(false);
                let (full, split) = (Placement::replicated().on(8, 8), Placement::row_wise().on(8, 8));
                let q = ctx.zeros::<f16>([a.h_q, a.d], full, "q").unwrap();
                let k = ctx.zeros::<f16>([a.h_kv * a.s_kv, a.d], split, "k").unwrap();
                let v = ctx.zeros::<f16>([a.h_kv * a.s_kv, a.d], split, "v").unwrap();
                let mut o = ctx.empty::<f16>([a.h_q, a.d], full, "o").unwrap();
                let kernel = gqa_decode_short { q: q.input(), k: k.input(), v: v.input(), o: o.output(), a };
                ctx.launch_with("decode", kernel, &LaunchOptions::default()).unwrap().simulated_ps
            });
        });
    }
    group.finish();
}

/// The hierarchical all-reduce of 4 KiB a cube on 96 cubes: a torus of 2 x 3 SIPs.
fn collective(c: &mut Criterion) {
    let topology =
        Topology::from_yaml_with_sips("six.yaml", Topology::DEFAULT_YAML, [2, 3], SipTopology::Torus2d)
            .unwrap();
    assert_eq!(topology.machine().sips * topology.machine().cubes(), 96);
    let mut ccl = Ccl::default_config();
    ccl.defaults.algorithm = "lrab_hierarchical_allreduce".to_owned();
    let entry = ccl.algorithms.iter_mut().find(|a| a.name == ccl.defaults.algorithm).unwrap();
    entry.topology = RankTopology::Torus2d;
    let ctx = Context::with_ccl(topology, ccl).data(false);
    ctx.init_process_group(Backend::Ahbm(&[ALGORITHMS])).unwrap();
    let (ty, reduce) = (ElementType::F32, ReduceOp::Sum);
    let case = Case { algorithm: LRAB_HIERARCHICAL_ALLREDUCE, ty, bytes: 4096, reduce };
    let launch = || case.measure(&ctx, false, 0).unwrap().launched.simulated_ps;
    println!("an all-reduce of 4 KiB on 96 cubes takes {} ps", launch());
    let mut group = c.benchmark_group("all-reduce, cubes");
    group.throughput(Throughput::Elements(96)).sample_size(20);
    group.bench_function("4 KiB on 96 cubes", |b| b.iter(launch));
    group.finish();
}

criterion_group!(benches, transfers, decode, collective);
criterion_main!(benches);
