//! General attention against its definition in f64: a seeded sample of a grid of shapes and variants. All of it:
//! `cargo test --release --test it attention -- --ignored --nocapture`.

use kernbench::diag::Failure;
use kernbench::host::{Context, LaunchOptions};
use kernbench::kernels::attention::{ATTENTION, Align, Arrays, Layout, Spec, attention_of};
use kernbench::kernels::bench::{Fill, HostArray, Outcome, Params};
use kernbench::kernels::oracle::{Inputs, general, plain_general, with_outliers};
use kernbench::kernels::{random, tolerance};
use kernbench::prelude::*;

const LENGTHS: [usize; 13] = [1, 17, 31, 33, 61, 113, 127, 129, 255, 257, 512, 1023, 1024];
/// Head sizes of queries and keys, and of values.
const HEADS: [[usize; 2]; 9] =
    [[16, 16], [40, 40], [64, 64], [80, 80], [96, 96], [128, 128], [192, 128], [256, 256], [576, 512]];
const GROUPS: [usize; 5] = [1, 4, 5, 7, 8];
const SOFTCAPS: [f32; 3] = [0.0, 15.0, 50.0];

/// Choices of a case, all from its number.
struct Choices {
    seed: u64,
    drawn: u64,
}

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        self.drawn += 1;
        let z = (self.seed << 8 | self.drawn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((z ^ z >> 32) % n as u64) as usize
    }

    fn of<X: Copy>(&mut self, all: &[X]) -> X {
        all[self.below(all.len())]
    }
}

/// A problem of the grid, of at most `work` multiplications.
fn problem(number: u64, work: usize) -> (Spec, Choices) {
    let mut c = Choices { seed: number, drawn: 0 };
    loop {
        let (batch, kv, group) = (c.of(&[1, 1, 2, 3]), c.of(&[1, 1, 2]), c.of(&GROUPS));
        let (queries, keys) = (c.of(&LENGTHS), c.of(&LENGTHS));
        let d = c.of(&HEADS);
        let mut a = Spec::new(batch, [kv * group, kv], [queries, keys], d);
        a.causal = c.below(2) == 0;
        a.softcap = c.of(&SOFTCAPS);
        a.window = [c.of(&[None, None, Some(0), Some(30)]), c.of(&[None, None, Some(5)])];
        a.sink_keys = c.of(&[0, 0, 4]);
        a.align = c.of(&[Align::TopLeft, Align::BottomRight, Align::Offset(3), Align::Offset(-7)]);
        a.q_layout = c.of(&[Layout::HeadsFirst, Layout::TokensFirst]);
        a.kv_layout = c.of(&[Layout::HeadsFirst, Layout::TokensFirst]);
        if batch * kv * group * queries * keys * (d[0] + d[1]) <= work {
            return (a, c);
        }
    }
}

/// From heads first to a layout.
fn laid_out(x: &[f32], layout: Layout, [batch, heads, length, d]: [usize; 4]) -> Vec<f32> {
    if layout == Layout::HeadsFirst {
        return x.to_vec();
    }
    let mut out = vec![0.0; x.len()];
    for (i, row) in x.chunks_exact(d).enumerate() {
        let (b, h, t) = (i / length / heads, i / length % heads, i % length);
        assert!(b < batch);
        out[((b * length + t) * heads + h) * d..][..d].copy_from_slice(row);
    }
    out
}

fn array<T: Float>(name: &str, x: &[f32]) -> HostArray {
    HostArray::new(name, &[x.len()], &x.iter().map(|x| T::from_f32(*x)).collect::<Vec<T>>())
}

/// The largest error over its bound of one case.
fn ratio<T: Float>(number: u64, work: usize) -> f64 {
    let (mut a, mut c) = problem(number, work);
    let outliers = c.below(2) == 0;
    let values = |name: &str, n: usize| match outliers {
        true => with_outliers(T::TYPE, number, name, n),
        false => random::normal::<T>(number, name, n),
    };
    let [q_shape, k_shape] = [[a.batch, a.q_heads, a.queries], [a.batch, a.kv_heads, a.keys]];
    let count = |s: [usize; 3], d: usize| s.iter().product::<usize>() * d;
    let q = values("q", count(q_shape, a.d));
    let (k, v) = (values("k", count(k_shape, a.d)), values("v", count(k_shape, a.d_v)));
    let kind = c.of(&["none", "none", "add", "allow"]);
    if kind != "none" {
        a.mask = [
            c.of(&[1, a.batch]),
            c.of(&[1, a.q_heads]),
            c.of(&[1, a.queries]),
            a.keys - c.below(a.keys.min(3)),
        ];
    }
    let noise = random::normal::<T>(number, "mask", a.mask.iter().product());
    let mask: Vec<f32> = match kind {
        "none" => vec![],
        "add" => noise.iter().map(|x| if *x > 1.5 { f32::NEG_INFINITY } else { *x }).collect(),
        _ => noise.iter().map(|x| if *x > 0.5 { f32::NEG_INFINITY } else { 0.0 }).collect(),
    };
    let bytes: Vec<u8> = mask.iter().map(|x| u8::from(*x == 0.0)).collect();
    let allow = HostArray::new("allow", &[bytes.len()], &bytes);
    let lengths: Vec<i32> = (0..a.batch).map(|_| c.below(a.keys + 1) as i32).collect();
    let lengths = (c.below(3) == 0).then_some(&lengths[..]);
    let sinks = (c.below(3) == 0).then(|| values("sinks", a.q_heads));
    let inputs = Inputs {
        q: &q,
        k: &k,
        v: &v,
        mask: (kind != "none").then_some(&mask[..]),
        lengths,
        sinks: sinks.as_deref(),
    };
    let with = |[b, h, n]: [usize; 3], d| [b, h, n, d];
    let qa = array::<T>("q", &laid_out(&q, a.q_layout, with(q_shape, a.d)));
    let ka = array::<T>("k", &laid_out(&k, a.kv_layout, with(k_shape, a.d)));
    let va = array::<T>("v", &laid_out(&v, a.kv_layout, with(k_shape, a.d_v)));
    let (added, sunk) = (array::<T>("mask", &mask), sinks.as_ref().map(|s| array::<T>("sinks", s)));
    let arrays = Arrays {
        q: &qa,
        k: &ka,
        v: &va,
        past: None,
        new: None,
        add: (kind == "add").then_some(&added),
        allow: (kind == "allow").then_some(&allow),
        lengths,
        sinks: sunk.as_ref(),
        scores: None,
    };
    let ctx = Context::new(Topology::default_machine());
    let options =
        LaunchOptions { fidelity: Some(kernbench::engine::Fidelity::Message), ..LaunchOptions::default() };
    let answer = attention_of::<T>(&ctx, &a, &arrays, &options).unwrap_or_else(|e| panic!("{a:?}: {e}"));
    let (exact, low) = (general(&a, &inputs), plain_general::<T>(&a, &inputs));
    let heads_first = |y: &[f32]| match a.q_layout {
        Layout::HeadsFirst => y.to_vec(),
        // The transposition back is the one of the axes the other way round.
        Layout::TokensFirst => laid_out(y, a.q_layout, [a.batch, a.queries, a.q_heads, a.d_v]),
    };
    let y = tolerance::check::<T>(&heads_first(&answer.y.floats()), &exact.y, &low.y);
    let lse = tolerance::check::<f32>(&answer.lse.floats(), &exact.lse, &low.lse);
    assert!(y.correct && lse.correct, "case {number}, {}: {a:#?}\n{y:#?}\n{lse:#?}", T::TYPE);
    (y.max_error / y.error_bound).max(lse.max_error / lse.error_bound)
}

fn largest(numbers: std::ops::Range<u64>, work: usize) -> f64 {
    let one = |number: u64| match number % 3 {
        0 => ratio::<f16>(number, work),
        1 => ratio::<bf16>(number, work),
        _ => ratio::<f32>(number, work),
    };
    numbers.map(one).fold(0.0, f64::max)
}

#[test]
fn a_sample_of_the_grid() {
    println!("largest error over bound: {:.3}", largest(0..200, 40_000_000));
}

#[test]
#[ignore = "an hour or so"]
fn the_grid() {
    println!("largest error over bound: {:.3}", largest(1000..4000, 4_000_000_000));
}

fn bench(settings: &str) -> Result<Outcome, Failure> {
    let ctx = Context::new(Topology::default_machine());
    let params = Params::parse("attention", ATTENTION.params, settings.split_whitespace())?;
    let inputs = (ATTENTION.inputs)(&ctx, &params, Fill::Seed(3))?;
    (ATTENTION.run)(&ctx, &params, &inputs, &LaunchOptions::default())
}

#[test]
fn the_bench() {
    for (settings, shape) in [
        ("t_q=33 s_kv=100 dtype=bf16", [1, 32, 33, 128]),
        ("batch=2 h_q=6 h_kv=2 t_q=7 s_kv=50 d=24 d_v=40 causal=false dtype=f32", [2, 6, 7, 40]),
        ("h_q=5 h_kv=1 t_q=65 s_kv=65 d=64 window=0 align=top-left", [1, 5, 65, 64]),
        ("h_q=4 h_kv=4 t_q=40 s_kv=90 d=80 window=17 softcap=15 scale=0.3", [1, 4, 40, 80]),
        ("h_q=2 h_kv=1 t_q=9 s_kv=5 d=16 softcap=2.5", [1, 2, 9, 16]),
        ("batch=3 h_q=8 h_kv=2 t_q=1 s_kv=300 d=64", [3, 8, 1, 64]),
    ] {
        let outcome = bench(settings).unwrap_or_else(|e| panic!("{settings}: {e}"));
        assert!(outcome.check.unwrap().correct, "{settings}: {:?}", outcome.check);
        assert_eq!(outcome.outputs[0].shape, shape, "{settings}");
    }
}

#[test]
fn parameters_that_do_not_fit() {
    let said = |settings: &str| bench(settings).unwrap_err().to_string();
    let wrong = ["h_q=30", "window=all", "softcap=-1", "align=left", "causal=no", "d_v=0"];
    insta::assert_snapshot!(wrong.map(said).join("\n"), @"
    error[KB0623]: 30 query heads do not divide by 8 key/value heads
      help: set h_q=32 or another multiple of 8
    error[KB0621]: `window=all`: a whole number from 0 to 2147483648 or `none` is expected
      help: write `--set window=VALUE` with a whole number from 0 to 2147483648 or `none`
    error[KB0621]: `softcap=-1`: a finite number of at least 0 is expected
      help: write `--set softcap=VALUE` with a finite number of at least 0
    error[KB0621]: `align=left`: one of `top-left`, `bottom-right` is expected
      help: write `--set align=VALUE` with one of `top-left`, `bottom-right`
    error[KB0621]: `causal=no`: `true` or `false` is expected
      help: write `--set causal=VALUE` with `true` or `false`
    error[KB0621]: `d_v=0`: a whole number from 1 to 2147483648 is expected
      help: write `--set d_v=VALUE` with a whole number from 1 to 2147483648
    ");
    // Too large to be counted.
    let ctx = Context::new(Topology::default_machine()).data(false);
    let large = ["batch=2147483648", "h_q=2147483648", "h_kv=2147483648", "t_q=2147483648"];
    let params = Params::parse("attention", ATTENTION.params, large).unwrap();
    let inputs = (ATTENTION.inputs)(&ctx, &params, Fill::Nothing).unwrap();
    let large = (ATTENTION.run)(&ctx, &params, &inputs, &LaunchOptions::default()).unwrap_err().to_string();
    insta::assert_snapshot!(large.lines().next().unwrap(), @"error[KB0609]: tensor `q` of shape [18446744073709551615, 128] has a dimension past 4294967295");
}
