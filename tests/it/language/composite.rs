//! Composite GEMMs give the bits of a `dot` and MATH ops, wherever operands are and whatever the epilogue is.

use super::{ONE, context, on};
use kernbench::host::Context;
use kernbench::ndarray::Array2;
use kernbench::placement::Placement;
use kernbench::prelude::*;

/// Which epilogue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Steps {
    None,
    BiasRelu(Level),
    ScaleRow(Level),
    PerKTile,
}
const STEPS: [Steps; 8] = [
    Steps::None,
    Steps::BiasRelu(Level::OutputTile),
    Steps::BiasRelu(Level::Kernel),
    Steps::BiasRelu(Level::KTile),
    Steps::ScaleRow(Level::OutputTile),
    Steps::ScaleRow(Level::Kernel),
    Steps::ScaleRow(Level::KTile),
    Steps::PerKTile,
];

/// Which operands are loaded first, the right one transposed if both are; and where the output goes first.
#[derive(Clone, Copy, Debug)]
struct Pinned {
    a: bool,
    b: bool,
    out: bool,
}

#[kernel]
fn composite<T: Float>(a: In<T>, b: In<T>, bt: In<T>, x: In<T>, o: Out<T>, steps: Steps, pinned: Pinned) {
    let x = tl::load(x);
    let with = |g| add_steps(g, x, steps);
    let Pinned { a: pin_a, b: pin_b, out } = pinned;
    let (m, n) = (a.nrows(), b.ncols());
    if out {
        let tile = tl::zeros::<T>([m, n]);
        let ta = tl::load(a);
        let p = match pin_b {
            true => tl::composite(with(Gemm::new(ta, tl::load(bt).t(), tile))),
            false => tl::composite(with(Gemm::new(ta, b, tile))),
        };
        tl::wait(p);
        tl::store(o, tile);
        return;
    }
    let p = match (pin_a, pin_b) {
        (false, false) => tl::composite(with(Gemm::new(a, b, o))),
        (true, false) => tl::composite(with(Gemm::new(tl::load(a), b, o))),
        (false, true) => tl::composite(with(Gemm::new(a, tl::load(b), o))),
        (true, true) => tl::composite(with(Gemm::new(tl::load(a), tl::load(bt).t(), o))),
    };
    tl::wait(p);
}

fn add_steps<'g, T: Float>(g: Gemm<'g, f32, T>, x: Tile<'g, T>, steps: Steps) -> Gemm<'g, f32, T> {
    match steps {
        Steps::None => g,
        Steps::BiasRelu(level) => g.bias(x.rows(0..1), level).relu(level),
        Steps::ScaleRow(level) => g.scale(x.rows(0..1), level).bias(0.25, level),
        Steps::PerKTile => g.scale(x, Level::KTile).bias(x.rows(0..1), Level::OutputTile).relu(Level::Kernel),
    }
}

/// The same with a `dot` for each tile that steps work on.
#[kernel]
fn simple<T: Float>(a: In<T>, b: In<T>, x: In<T>, o: Out<T>, steps: Steps) {
    let (a, b, x) = (tl::load(a), tl::load(b), tl::load(x));
    let x0 = x.rows(0..1);
    let by_k =
        matches!(steps, Steps::BiasRelu(Level::KTile) | Steps::ScaleRow(Level::KTile) | Steps::PerKTile);
    if !by_k {
        let p = tl::dot(a, b);
        // In f32: `x` has another type.
        let x = tl::eval(x0.cast::<f32>());
        let y = match steps {
            Steps::BiasRelu(_) => tl::eval(tl::maximum(p + x, 0.0)),
            Steps::ScaleRow(_) => tl::eval(p * x + 0.25),
            _ => p,
        };
        return tl::store(o, y.cast::<T>());
    }
    let sum = tl::zeros::<f32>([a.nrows(), b.ncols()]);
    for (tile, k) in Block::new(0, a.ncols()).blocks(tl::gemm_tile()[1]).enumerate() {
        let p = tl::dot(a.cols(k), b.rows(k));
        let row = if steps == Steps::PerKTile { x.rows(tile..tile + 1) } else { x0 };
        let x = tl::eval(row.cast::<f32>());
        let y = match steps {
            Steps::BiasRelu(_) => tl::eval(tl::maximum(p + x, 0.0)),
            Steps::ScaleRow(_) => tl::eval(p * x + 0.25),
            _ => tl::eval(p * x),
        };
        tl::copy_to(sum, sum + y);
    }
    if steps == Steps::PerKTile {
        let x = tl::eval(x0.cast::<f32>());
        tl::copy_to(sum, tl::maximum(sum + x, 0.0));
    }
    tl::store(o, sum.cast::<T>());
}

/// Numbers whose products and sums round.
fn numbers<T: Float>([m, n]: [usize; 2], seed: usize) -> Array2<T> {
    Array2::from_shape_fn((m, n), |(i, j)| {
        let x = (i * 7919 + j * 104_729 + seed * 31) % 2003;
        T::from_f32((x as f32 - 1001.0) / 317.0)
    })
}

fn equal_bits<T: Float>([m, k, n]: [usize; 3]) {
    let ctx = context();
    let (a, b) = (numbers::<T>([m, k], 1), numbers::<T>([k, n], 2));
    let bt = Array2::from_shape_fn((n, k), |(i, j)| b[(j, i)]);
    let put = |x: &Array2<T>, name| ctx.from_array(x, ONE, name).unwrap();
    let (ta, tb, tbt) = (put(&a, "a"), put(&b, "b"), put(&bt, "bt"));
    let tx = put(&numbers([k.div_ceil(64), n], 3), "x");
    let mut o = ctx.empty::<T>([m, n], ONE, "o").unwrap();
    let (a, b, bt, x) = (ta.input(), tb.input(), tbt.input(), tx.input());
    for steps in STEPS {
        ctx.launch("simple", simple { a, b, x, o: o.output(), steps }).unwrap();
        let want = ctx.read(&o).unwrap();
        for bits in 0..8 {
            let pinned = Pinned { a: bits & 1 > 0, b: bits & 2 > 0, out: bits & 4 > 0 };
            ctx.launch("composite", composite { a, b, bt, x, o: o.output(), steps, pinned }).unwrap();
            let got = ctx.read(&o).unwrap();
            let same = got.iter().zip(&want).all(|(g, w)| g.to_f32().to_bits() == w.to_f32().to_bits());
            assert!(same, "{m}x{k}x{n} {} {steps:?} {pinned:?}", T::TYPE);
        }
    }
}

#[test]
fn a_composite_equals_dot_and_math_bit_for_bit() {
    for shape in [[5, 200, 70], [33, 64, 32], [64, 65, 33], [1, 1, 1], [32, 130, 600]] {
        equal_bits::<f16>(shape);
        equal_bits::<bf16>(shape);
        equal_bits::<f32>(shape);
    }
}

#[kernel]
fn quantised(a: In<i8>, b: In<i8>, s: In<f32>, o: Out<f16>, raw: Out<i32>, level: Level) {
    let s = tl::load(s);
    let s = if level == Level::KTile { s } else { s.rows(0..1) };
    let p = tl::composite(Gemm::new(a, b, o).dequant(s, level).relu(Level::OutputTile.max(level)));
    let q = tl::composite(Gemm::new(a, b, raw).bias(7, Level::OutputTile).scale(-1, Level::OutputTile));
    tl::wait(p);
    tl::wait(q);
}

#[test]
fn i8_products_accumulate_in_i32_and_dequantise_per_output_or_per_group_of_k() {
    let ctx = context();
    let (m, k, n) = (3, 150, 40);
    let bytes = |rows, cols, seed: usize| {
        Array2::from_shape_fn((rows, cols), |(i, j)| ((i * 37 + j * 101 + seed) % 256) as u8 as i8)
    };
    let (a, b) = (bytes(m, k, 1), bytes(k, n, 2));
    let s = Array2::from_shape_fn((3, n), |(i, j)| ((i + 1) * (j % 5 + 1)) as f32 / 4096.0);
    let (ta, tb) = (ctx.from_array(&a, ONE, "a").unwrap(), ctx.from_array(&b, ONE, "b").unwrap());
    let ts = ctx.from_array(&s, ONE, "s").unwrap();
    let mut o = ctx.empty::<f16>([m, n], ONE, "o").unwrap();
    let mut raw = ctx.empty::<i32>([m, n], ONE, "raw").unwrap();
    let dot = |i: usize, j: usize, ks: std::ops::Range<usize>| -> i32 {
        ks.map(|l| i32::from(a[(i, l)]) * i32::from(b[(l, j)])).sum()
    };
    for level in [Level::KTile, Level::OutputTile, Level::Kernel] {
        let (o, raw) = (&mut o, &mut raw);
        let kernel = quantised {
            a: ta.input(),
            b: tb.input(),
            s: ts.input(),
            o: o.output(),
            raw: raw.output(),
            level,
        };
        ctx.launch("quantised", kernel).unwrap();
        let want = Array2::from_shape_fn((m, n), |(i, j)| {
            let groups = Block::new(0, k).blocks(if level == Level::KTile { 64 } else { k });
            let sum: f32 =
                groups.enumerate().map(|(g, ks)| dot(i, j, ks.start..ks.end()) as f32 * s[(g, j)]).sum();
            f16::from_f32(sum.max(0.0))
        });
        assert_eq!(ctx.read(o).unwrap(), want, "{level:?}");
        let want = Array2::from_shape_fn((m, n), |(i, j)| -(dot(i, j, 0..k) + 7));
        assert_eq!(ctx.read(raw).unwrap(), want);
    }
}

#[kernel]
fn split(a: In<f32>, b: In<f32>, o: Out<f32>) {
    let o = o.local();
    let rows = Block::new((tl::cube() * tl::num_programs(0) + tl::pe()) * o.nrows(), o.nrows());
    let p = tl::composite(Gemm::new(a.rows(rows), b, o).relu(Level::OutputTile));
    tl::wait(p);
}

fn split_run(ctx: &Context, m: usize) -> (Array2<f32>, Array2<f32>) {
    let (k, n) = (96, 40);
    let (a, b) = (numbers::<f32>([m, k], 1), numbers::<f32>([k, n], 2));
    let rows = Placement::row_wise().on(2, 4);
    // Each PE reads rows of `b` in the slices of all others.
    let (ta, tb) = (ctx.from_array(&a, rows, "a").unwrap(), ctx.from_array(&b, rows, "b").unwrap());
    let mut o = ctx.empty::<f32>([m, n], rows, "o").unwrap();
    ctx.launch("split", split { a: ta.input(), b: tb.input(), o: o.output() }).unwrap();
    let want = Array2::from_shape_fn((m, n), |(i, j)| {
        (0..k).fold(0.0, |acc: f32, l| a[(i, l)].mul_add(b[(l, j)], acc)).max(0.0)
    });
    (ctx.read(&o).unwrap(), want)
}

#[test]
fn operands_may_be_spread_over_slices() {
    let ctx = context();
    let (got, want) = split_run(&ctx, 80);
    assert_eq!(got, want);
    let log = ctx.op_log();
    assert_eq!((log.count("composite_gemm"), log.count("wait")), (8, 8));
    assert_eq!((log.count("dma_read"), log.count("dma_write")), (0, 0));
    let record = log.filter(|r| r.name() == "composite_gemm").next().unwrap();
    // All of `a`'s tiles twice, for two output tiles side by side; all of `b`.
    let reads = (2 * 10 * 96 + 96 * 40) * 4;
    assert_eq!(record.hbm_bytes(), [reads, 10 * 40 * 4]);
    // PE 0 holds 12 of the 96 rows of `b` itself.
    assert_eq!(record.remote_bytes(), 84 * 40 * 4);
    assert_eq!(record.component(), "sip0.cube0.pe0.pe_gemm");
    assert_eq!(record.flop(), 2 * 10 * 96 * 40);
    let listing = log.logical();
    let line = listing.lines().nth(2).unwrap().trim();
    insta::assert_snapshot!(line.split("  ").next().unwrap(), @"%0 composite_gemm p = composite a[0:10, 0:96], b[0:96, 0:40] @ sip0.cube0.pe1 and 6 more -> o[0:10, 0:40], relu of each output tile : f32[10, 40]");
}

#[kernel]
fn empty(a: In<f32>, b: In<f32>, o: Out<f32>) {
    let (a, b) = (tl::load(a), tl::load(b));
    let none = a.cols(0..0);
    let p = tl::composite(Gemm::new(none, b.rows(0..0), o).bias(3.0, Level::OutputTile));
    let q = tl::composite(Gemm::new(a.rows(0..0), b, o.rows(0..0)).relu(Level::Kernel));
    tl::wait(q);
    tl::wait(p);
}

#[test]
fn a_product_over_nothing_is_the_epilogue_of_zero_and_nothing_takes_nothing() {
    let ctx = context();
    let a = ctx.from_array(&numbers::<f32>([4, 8], 1), ONE, "a").unwrap();
    let b = ctx.from_array(&numbers::<f32>([8, 5], 1), ONE, "b").unwrap();
    let mut o = ctx.empty::<f32>([4, 5], ONE, "o").unwrap();
    ctx.launch_with("empty", empty { a: a.input(), b: b.input(), o: o.output() }, &on(1, 1)).unwrap();
    assert!(ctx.read(&o).unwrap().iter().all(|&x| x == 3.0));
}

#[kernel]
fn in_turn(x: In<f16>, w: In<f16>, y: Out<f16>, buffers: usize) {
    let x = tl::load(x);
    for rows in Block::new(0, 96).blocks(32) {
        scratch_scope!(buffers = buffers, {
            let last = tl::zeros::<f16>([32, 32]);
            let kept = tl::composite(Gemm::new(x.rows(rows), w, last));
            let sent = tl::composite(Gemm::new(x.rows(rows), w, y.rows(rows)).relu(Level::Kernel));
            if rows.start == 0 {
                tl::wait(kept);
            }
            let _ = sent;
            let z = tl::eval(last * 2.0);
            let _ = z;
        });
    }
    tl::fence();
}

#[test]
fn composites_wait_for_those_whose_bytes_they_take_and_a_fence_waits_for_all() {
    let ctx = context();
    let x = ctx.zeros::<f16>([96, 128], ONE, "x").unwrap();
    let w = ctx.zeros::<f16>([128, 32], ONE, "w").unwrap();
    let mut y = ctx.empty::<f16>([96, 32], ONE, "y").unwrap();
    let run = ctx.launch("turns", in_turn { x: x.input(), w: w.input(), y: y.output(), buffers: 2 }).unwrap();
    insta::assert_snapshot!(ctx.listing(&run.program), @"
    program `turns` of `in_turn`: 1 PE, 15 ops
      x f16[96, 128]
      w f16[128, 32]
      y f16[96, 32]

    sip0.cube0.pe0 (1 PE), 15 ops, peak 73728 B
       0 x     load x[0:96, 0:128] : f16[96, 128]
       1 last  fill 0.0 : f16[32, 32]
       2 kept  composite %0[0:32, 0:128], w[0:128, 0:32] -> %1 : f16[32, 32]  <- 0 ~1
       3 sent  composite %0[0:32, 0:128], w[0:128, 0:32] -> y[0:32, 0:32], relu of the whole output : f16[32, 32]  <- 0
       4 _     wait 2  <- |2
       5 z     mul(%1, 2.0) : f16[32, 32]  <- 2 |4
       6 last  fill 0.0 : f16[32, 32]
       7 kept  composite %0[32:64, 0:128], w[0:128, 0:32] -> %6 : f16[32, 32]  <- 0 ~6 |4
       8 sent  composite %0[32:64, 0:128], w[0:128, 0:32] -> y[32:64, 0:32], relu of the whole output : f16[32, 32]  <- 0 |4
       9 z     mul(%6, 2.0) : f16[32, 32]  <- 7
      10 last  fill 0.0 : f16[32, 32]  <- ~2
      11 kept  composite %0[64:96, 0:128], w[0:128, 0:32] -> %10 : f16[32, 32]  <- 0 ~2 ~10
      12 sent  composite %0[64:96, 0:128], w[0:128, 0:32] -> y[64:96, 0:32], relu of the whole output : f16[32, 32]  <- 0 ~3
      13 z     mul(%10, 2.0) : f16[32, 32]  <- 11
      14 _     fence  <- |4 |12 |13
    ");
}
