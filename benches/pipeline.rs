//! How fast kernels are recorded, simulated and executed, on one core. `numbers.rs` has the parts of the
//! last.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kernbench::engine;
use kernbench::exec;
use kernbench::host::{Context, LaunchOptions};
use kernbench::kernels::attention::{Gqa, gqa_decode_short};
use kernbench::kernels::random;
use kernbench::ndarray::Array2;
use kernbench::placement::Placement;
use kernbench::prelude::*;
use kernbench::store::Store;
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
        b.iter(|| ctx.record("decode", black_box(&kernel), &options).unwrap());
    });
    group.finish();
}

/// The decode layer at 8192 keys: its program, and a context that holds its tensors.
fn decode_layer(c: &mut Criterion) {
    let a = llama(8192);
    let (cubes, pes) = (a.h_kv / a.kv_per_cube, 8);
    let array = |name: &str, m: usize| {
        let values = random::normal::<f16>(0, name, m * a.d);
        Array2::from_shape_fn((m, a.d), |(i, j)| f16::from_f32(values[i * a.d + j]))
    };
    let ctx = Context::new(Topology::default_machine()).threads(1);
    let full = Placement::replicated().on(cubes, pes);
    let split = Placement::row_wise().on(cubes, pes);
    let q = ctx.from_array(&array("q", a.h_q), full, "q").unwrap();
    let k = ctx.from_array(&array("k", a.h_kv * a.s_kv), split, "k").unwrap();
    let v = ctx.from_array(&array("v", a.h_kv * a.s_kv), split, "v").unwrap();
    let mut o = ctx.empty::<f16>([a.h_q, a.d], full, "o").unwrap();
    let kernel = gqa_decode_short { q: q.input(), k: k.input(), v: v.input(), o: o.output(), a };
    let options = LaunchOptions::default();
    let draft = ctx.record("decode", &kernel, &options).unwrap();
    let (program, _) = ctx.verify(draft, &options).unwrap();

    let topology = ctx.topology();
    let simulation = engine::Options::new(topology.machine());
    let events = engine::simulate(&topology, &program, &simulation).unwrap().events;
    let mut group = c.benchmark_group("simulation");
    group.throughput(Throughput::Elements(events)).sample_size(20);
    group.bench_function("Llama-3-8B decode layer, S 8192: events", |b| {
        b.iter(|| engine::simulate(&topology, black_box(&program), &simulation).unwrap());
    });
    group.finish();

    // Values are written once by the host; each execution reads them and stores the result again.
    let mut store = Store::new(true);
    for (id, t) in [(q.id(), ctx.read(&q)), (k.id(), ctx.read(&k)), (v.id(), ctx.read(&v))] {
        let t = t.unwrap();
        store.create(id, ElementType::F16, [t.nrows(), t.ncols()]);
        let mut bytes = vec![];
        t.iter().for_each(|x| x.write(&mut bytes));
        store.write_host(id, bytes);
    }
    store.create(o.id(), ElementType::F16, [a.h_q, a.d]);
    let machine = topology.machine();
    let execution =
        exec::Options { threads: Some(1), cubes: machine.cubes(), pes: machine.pes(), replicated: &|_| true };
    let flop = 4 * a.h_q * a.s_kv * a.d;
    let mut group = c.benchmark_group("execution");
    group.throughput(Throughput::Elements(flop as u64)).sample_size(20);
    let mut launch = 0;
    group.bench_function("Llama-3-8B decode layer, S 8192: flop", |b| {
        b.iter(|| {
            launch += 1;
            exec::execute(black_box(&program), &mut store, launch, &execution).unwrap()
        });
    });
    group.finish();
}

criterion_group!(benches, recording, decode_layer);
criterion_main!(benches);
