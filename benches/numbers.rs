//! How fast values are computed, on one thread: products as a share of what the host's registers reach
//! without memory, exponentials, a block of softmax. Costs are those of an op in a real execution.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kernbench::exec;
use kernbench::host::{Context, LaunchOptions};
use kernbench::ir::Program;
use kernbench::kernels::random;
use kernbench::placement::Placement;
use kernbench::prelude::*;
use kernbench::store::Store;
use kernbench::topology::Topology;
use pulp::{Arch, Simd, WithSimd};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `count` products of the same tiles.
#[kernel]
fn products<T: Float>(a: In<T>, b: In<T>, count: usize) {
    let (a, b) = (tl::load(a), tl::load(b));
    for _ in 0..count {
        scratch_scope!({
            tl::dot(a, b);
        });
    }
}

/// `count` products of a tile with three others in turn: none is kept packed until it is used again.
#[kernel]
fn products_anew<T: Float>(a: In<T>, b: In<T>, count: usize) {
    let (a, b) = (tl::load(a), tl::load(b));
    let k = a.ncols();
    for i in 0..count {
        scratch_scope!({
            tl::dot(a, b.rows(Block::new(i % 3 * k, k)));
        });
    }
}

/// `count` products of a tile with the transpose of another.
#[kernel]
fn products_t<T: Float>(a: In<T>, b: In<T>, count: usize) {
    let (a, b) = (tl::load(a), tl::load(b));
    for _ in 0..count {
        scratch_scope!({
            tl::dot(a, b.t());
        });
    }
}

/// `count` exponentials of a tile.
#[kernel]
fn exponentials(x: In<f32>, count: usize) {
    let x = tl::load(x);
    for _ in 0..count {
        scratch_scope!({
            tl::eval(tl::exp(x));
        });
    }
}

/// `count` softmaxes of the rows of a tile.
#[kernel]
fn softmaxes(x: In<f32>, count: usize) {
    let x = tl::load(x);
    for _ in 0..count {
        scratch_scope!({
            let p = tl::eval(tl::exp(x - tl::max(x, Axis::Cols)));
            tl::eval(p / tl::sum(p, Axis::Cols));
        });
    }
}

/// A program ready to run on its inputs.
struct Ready {
    program: Program,
    store: Store,
    launch: u32,
}

impl Ready {
    /// On one PE; the kernel gets tensors of `shapes`.
    fn new<T: Float, K: Kernel>(
        shapes: &[[usize; 2]],
        kernel: impl Fn(&[kernbench::host::Tensor<T>]) -> K,
    ) -> Ready {
        let ctx = Context::new(Topology::default_machine());
        let (place, mut store) = (Placement::replicated().on(1, 1), Store::new(true));
        let tensors: Vec<_> = ["a", "b"]
            .into_iter()
            .zip(shapes)
            .map(|(name, &shape)| {
                let bytes = Arc::new(random::normal_bytes(T::TYPE, 0, name, shape[0] * shape[1]));
                let tensor = ctx.from_bytes::<T>(&bytes, shape, place, name).unwrap();
                store.create(tensor.id(), T::TYPE, shape);
                store.write_host(tensor.id(), bytes);
                tensor
            })
            .collect();
        let options = LaunchOptions::default();
        let draft = ctx.record("numbers", &kernel(&tensors), &options).unwrap();
        let (program, _) = ctx.verify(draft, &options).unwrap();
        Ready { program, store, launch: 0 }
    }

    fn run(&mut self) {
        self.launch += 1;
        let options = exec::Options { threads: Some(1), cubes: 16, pes: 8, replicated: &|_| false };
        exec::execute(black_box(&self.program), &mut self.store, self.launch, &options).unwrap();
    }

    /// Seconds of the quickest of some runs.
    fn seconds(&mut self) -> f64 {
        quickest(|| self.run())
    }
}

fn quickest(mut f: impl FnMut()) -> f64 {
    let run = |_| {
        let start = Instant::now();
        f();
        start.elapsed().as_secs_f64()
    };
    (0..60).map(run).fold(f64::INFINITY, f64::min)
}

/// A shape `m x k x n` of the table, with how many products make a run.
const SHAPES: [([usize; 3], usize); 3] =
    [([128, 128, 128], 200), ([8, 128, 1024], 400), ([1, 64, 8], 20_000)];

fn dots<T: Float>([m, k, n]: [usize; 3], count: usize) -> Ready {
    Ready::new::<T, _>(&[[m, k], [k, n]], |t| products { a: t[0].input(), b: t[1].input(), count })
}

fn dots_anew([m, k, n]: [usize; 3], count: usize) -> Ready {
    Ready::new::<f16, _>(&[[m, k], [3 * k, n]], |t| products_anew { a: t[0].input(), b: t[1].input(), count })
}

fn dots_t<T: Float>([m, k, n]: [usize; 3], count: usize) -> Ready {
    Ready::new::<T, _>(&[[m, k], [n, k]], |t| products_t { a: t[0].input(), b: t[1].input(), count })
}

fn exps(count: usize) -> Ready {
    Ready::new::<f32, _>(&[[32, 64]], |t| exponentials { x: t[0].input(), count })
}

fn softmax_blocks(count: usize) -> Ready {
    Ready::new::<f32, _>(&[[32, 64]], |t| softmaxes { x: t[0].input(), count })
}

/// Fused multiply-adds in registers: twelve chains of two vectors hide the latency on any host.
struct Chains(u32);

impl WithSimd for Chains {
    /// How many floating-point operations, and a value that depends on all of them.
    type Output = (f64, f32);

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> (f64, f32) {
        const CHAINS: usize = 12;
        let (a, b) = (simd.splat_f32s(black_box(0.999)), simd.splat_f32s(black_box(0.001)));
        let mut acc = [simd.splat_f32s(1.0); CHAINS];
        for (i, x) in acc.iter_mut().enumerate() {
            *x = simd.splat_f32s(i as f32);
        }
        for _ in 0..self.0 {
            for x in &mut acc {
                *x = simd.mul_add_f32s(*x, a, b);
            }
        }
        let sum = acc.into_iter().fold(simd.splat_f32s(0.0), |sum, x| simd.add_f32s(sum, x));
        (2.0 * f64::from(self.0) * (CHAINS * S::F32_LANES) as f64, simd.reduce_sum_f32s(sum))
    }
}

/// Floating-point operations a second of one thread.
fn peak() -> f64 {
    let (arch, mut flop) = (Arch::new(), 0.0);
    let seconds = quickest(|| {
        let (n, sum) = black_box(arch.dispatch(Chains(black_box(200_000))));
        flop = n + 0.0 * f64::from(sum);
    });
    flop / seconds
}

fn numbers(c: &mut Criterion) {
    let mut group = c.benchmark_group("numbers");
    group.sample_size(20).measurement_time(Duration::from_secs(2));
    for (shape, count) in SHAPES {
        let [m, k, n] = shape;
        group.throughput(Throughput::Elements((2 * m * k * n * count) as u64));
        for (ty, mut ready) in [("f32", dots::<f32>(shape, count)), ("f16", dots::<f16>(shape, count))] {
            group.bench_function(format!("dot {m} x {k} x {n}, {ty}: flop"), |b| b.iter(|| ready.run()));
        }
    }
    let mut ready = exps(200);
    group.throughput(Throughput::Elements(200 * 32 * 64));
    group.bench_function("exp of 32 x 64: elements", |b| b.iter(|| ready.run()));
    let mut ready = softmax_blocks(200);
    group.bench_function("softmax of 32 x 64: elements", |b| b.iter(|| ready.run()));
    group.finish();
}

/// The quickest runs, with the peak measured among them.
fn table(_: &mut Criterion) {
    let peak = peak();
    println!("\npeak of one thread: {:.1} GFLOP/s of f32", peak / 1e9);
    println!("{:32} {:>12} {:>8} {:>12}", "product", "GFLOP/s", "share", "ns an op");
    for (shape, count) in SHAPES {
        let [m, k, n] = shape;
        let kinds = [
            ("f32", dots::<f32>(shape, count)),
            ("f16", dots::<f16>(shape, count)),
            ("f16, b anew", dots_anew(shape, count)),
            ("f16, b transposed", dots_t::<f16>(shape, count)),
        ];
        for (ty, mut ready) in kinds {
            let op = ready.seconds() / count as f64;
            let rate = (2 * m * k * n) as f64 / op;
            let name = format!("{m} x {k} x {n}, {ty}");
            println!("{name:32} {:>12.1} {:>7.1}% {:>12.1}", rate / 1e9, 100.0 * rate / peak, op * 1e9);
        }
    }
    for (name, mut ready) in [("exp of 32 x 64", exps(200)), ("softmax of 32 x 64", softmax_blocks(200))] {
        println!("{name:32} {:>12.2} ns an element", ready.seconds() / (200.0 * 32.0 * 64.0) * 1e9);
    }
}

criterion_group!(benches, numbers, table);
criterion_main!(benches);
