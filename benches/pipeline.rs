//! How fast kernels are recorded, simulated and executed, on one core.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use kernbench::core::host::{Context, LaunchOptions};
use kernbench::kernels::attention::{Gqa, gqa_decode_short};
use kernbench::placement::Placement;
use kernbench::prelude::*;
use kernbench::topology::Topology;
use std::hint::black_box;
use std::time::Duration;

/// A Llama-3-8B decode layer: 32 query heads, 8 key/value heads, head size 128.
fn llama(s_kv: usize) -> Gqa {
    Gqa {
        h_q: 32,
        h_kv: 8,
        d: 128,
        t_q: 1,
        s_kv,
        valid: s_kv,
        causal: false,
        scale: 0.088_388_35,
        kv_per_cube: 1,
        pe_grid: [4, 2],
    }
}

/// 256 PEs, 4096 ops each, of the decode loop: two SIPs, 16 cubes each.
fn recording(c: &mut Criterion) {
    let mut a = Gqa { h_q: 64, h_kv: 16, ..llama(0) };
    // 14 ops a block of 64 keys, 29 and more around the loop.
    a.s_kv = 8 * 64 * 293;
    a.valid = a.s_kv;
    let ctx = Context::new(Topology::default_machine()).data(false);
    let full = Placement::replicated();
    let q = ctx.zeros::<f16>([a.h_q, a.d], full, "q").unwrap();
    let k = ctx.zeros::<f16>([a.h_kv * a.s_kv, a.d], Placement::row_wise(), "k").unwrap();
    let v = ctx.zeros::<f16>([a.h_kv * a.s_kv, a.d], Placement::row_wise(), "v").unwrap();
    ctx.set_device(1).unwrap();
    let mut o = ctx.empty::<f16>([a.h_q, a.d], full, "o").unwrap();
    let kernel = gqa_decode_short { q: q.input(), k: k.input(), v: v.input(), o: o.output(), a };
    let options = LaunchOptions::default();
    let draft = ctx.record("decode", &kernel, &options).unwrap();
    let ops = draft.0.op_count();
    assert_eq!(draft.0.pes.len(), 256);
    assert!(draft.0.pes.iter().all(|pe| pe.ops.len() >= 4096), "{}", draft.0.pes[1].ops.len());
    let mut group = c.benchmark_group("recording");
    group
        .throughput(Throughput::Elements(ops as u64))
        .sample_size(10)
        .measurement_time(Duration::from_secs(6));
    group.bench_function("decode loop, 256 PEs x 4096 ops", |b| {
        b.iter_batched(
            || (),
            |()| ctx.record("decode", black_box(&kernel), &options).unwrap(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, recording);
criterion_main!(benches);
