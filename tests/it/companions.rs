//! The companions of attention: softmax, norms, rotary embedding, quantised products.

use kernbench::diag::Failure;
use kernbench::host::Context;
use kernbench::kernels::bench::{BENCHES, Bench, Fill, HostArray, Outcome, Params};
use kernbench::prelude::*;
use std::sync::Arc;

fn bench(name: &str) -> &'static Bench {
    BENCHES.iter().find(|b| b.name == name).unwrap()
}

fn run(name: &str, settings: &str, change: impl Fn(&mut [HostArray])) -> Result<Outcome, Failure> {
    let ctx = Context::new(Topology::default_machine());
    let bench = bench(name);
    let params = Params::parse(name, bench.params, settings.split_whitespace())?;
    let mut inputs = (bench.inputs)(&ctx, &params, Fill::Seed(7))?;
    change(&mut inputs);
    (bench.run)(&ctx, &params, &inputs, &LaunchOptions::default())
}

/// Changes the first input of a bench, and how many elements of the result are NaN then.
type Case = (fn(&mut [f32]), usize);

/// Runs a bench in a type; the result is right and has as many NaN as said.
fn right(name: &str, settings: &str, dtype: &str, (change, nan): Case) -> Outcome {
    let settings = format!("{settings} dtype={dtype}");
    let outcome = run(name, &settings, |inputs| rewrite(&mut inputs[0], change)).unwrap();
    let check = outcome.check.unwrap();
    assert!(check.correct && check.nan == nan, "{name} {settings}: {check:?}");
    outcome
}

/// The same in each type; and the bound is small beside the result, for one that anything keeps proves nothing.
fn check(name: &str, settings: &str, case: Case) {
    for (dtype, most) in [("f16", 0.05), ("bf16", 0.05), ("f32", 1e-4)] {
        let outcome = right(name, settings, dtype, case);
        let finite = outcome.outputs[0].floats().into_iter().filter(|x| x.is_finite());
        let largest = f64::from(finite.fold(0.0, |a: f32, x| a.max(x.abs())));
        let bound = outcome.check.unwrap().error_bound;
        assert!(bound <= most * largest || largest == 0.0, "{name} {settings} {dtype}: {bound} of {largest}");
    }
}

/// Changes the values of an array of floating-point type.
fn rewrite(array: &mut HostArray, change: fn(&mut [f32])) {
    let mut values = array.floats();
    change(&mut values);
    let mut bytes = vec![0; array.bytes.len()];
    array.ty.narrow(&values, &mut bytes);
    array.bytes = Arc::new(bytes);
}

const AS_IT_IS: Case = (|_| (), 0);

/// Shapes: one row or column, odd sizes, blocks with a last shorter one, a block a row, many PEs.
const SHAPES: &[&str] = &[
    "rows=1 cols=1 cubes=1 pes=1",
    "rows=1 cols=97 cubes=1 pes=1",
    "rows=37 cols=1 cubes=1 pes=1",
    "rows=130 cols=33 cubes=1 pes=1",
    "rows=21 cols=1000 cubes=1 pes=1",
    "rows=45 cols=601 cubes=3 pes=5",
    "rows=128 cols=7 cubes=16",
    "rows=2 cols=20000 cubes=1 pes=1",
];

#[test]
fn softmax_of_any_shape() {
    for shape in SHAPES {
        check("softmax", shape, AS_IT_IS);
    }
}

#[test]
fn softmax_of_values_that_overflow_or_are_masked() {
    const SHAPE: &str = "rows=6 cols=50 cubes=1 pes=2";
    // Far past what `exp` can take, also as differences.
    check("softmax", SHAPE, (|x| x.iter_mut().for_each(|x| *x *= 10_000.0), 0));
    check("softmax", SHAPE, (|x| x.iter_mut().for_each(|x| *x += 500.0), 0));
    check("softmax", SHAPE, (|x| x.iter_mut().step_by(3).for_each(|x| *x = f32::NEG_INFINITY), 0));
    // All but one masked; then all, which is 0 / 0; then +inf, which is inf - inf.
    check("softmax", SHAPE, (|x| x[50..99].fill(f32::NEG_INFINITY), 0));
    check("softmax", SHAPE, (|x| x[50..100].fill(f32::NEG_INFINITY), 50));
    check("softmax", SHAPE, (|x| x[120] = f32::INFINITY, 50));
    check("softmax", SHAPE, (|x| x[120] = f32::NAN, 50));
}

#[test]
fn norms_of_any_shape() {
    for shape in SHAPES {
        // One column leaves nothing of x but its bias, and nothing of the bound but a rounding step.
        check("layer-norm", shape, AS_IT_IS);
        check("rms-norm", shape, AS_IT_IS);
        check("rms-norm", &format!("{shape} eps=0"), AS_IT_IS);
    }
}

#[test]
fn norms_of_constant_shifted_large_and_small_rows() {
    const SHAPE: &str = "rows=6 cols=52 cubes=1 pes=2";
    for name in ["layer-norm", "rms-norm"] {
        check(name, SHAPE, (|x| x.fill(3.0), 0));
        // The mean of such a row rounds, and 1 / sqrt(eps) makes 316 times as much of that, in plain f32 as well: the
        // bound is no small one.
        for dtype in ["f16", "bf16", "f32"] {
            right(name, SHAPE, dtype, (|x| x[52..104].fill(-0.7), 0));
        }
        check(name, SHAPE, (|x| x.fill(0.0), 0));
        check(name, SHAPE, (|x| x.iter_mut().for_each(|x| *x *= 5000.0), 0));
        check(name, SHAPE, (|x| x.iter_mut().for_each(|x| *x *= 1e-3), 0));
        check(name, SHAPE, (|x| x.iter_mut().for_each(|x| *x += 20.0), 0));
        check(name, SHAPE, (|x| x[60] = f32::INFINITY, if name == "rms-norm" { 1 } else { 52 }));
    }
}

#[test]
fn rotary_of_any_shape() {
    for shape in [
        "tokens=1 heads=1 d=2 cubes=1 pes=1",
        "tokens=1 heads=3 d=64 rotary=16 cubes=1 pes=1",
        "tokens=67 heads=5 d=17 rotary=2 cubes=1 pes=1",
        "tokens=135 heads=2 d=24 rotary=22 base=500000 cubes=3 pes=5",
        "tokens=128 heads=4 d=32 cubes=16",
        "tokens=10 heads=32 d=128 cubes=1 pes=2",
    ] {
        for layout in ["halves", "interleaved"] {
            check("rotary", &format!("{shape} layout={layout}"), AS_IT_IS);
        }
    }
}

/// The two layouts are one another under a permutation of columns, and what is not rotated keeps its bits.
#[test]
fn rotary_layouts_and_the_columns_left_alone() {
    let (d, rotary) = (10, 6);
    let out = |layout: &str| {
        let settings = format!("tokens=3 heads=2 d={d} rotary={rotary} cubes=1 pes=1 layout={layout}");
        let permute = |inputs: &mut [HostArray]| {
            if layout == "halves" {
                rewrite(&mut inputs[0], |x| {
                    for head in x.chunks_mut(10) {
                        let old = head.to_vec();
                        (0..6).for_each(|i| head[i / 2 + i % 2 * 3] = old[i]);
                    }
                });
            }
        };
        run("rotary", &settings, permute).unwrap().outputs[0].floats()
    };
    let x = bench("rotary");
    let params = Params::parse("rotary", x.params, ["tokens=3", "heads=2", "d=10", "rotary=6"]).unwrap();
    let x =
        (x.inputs)(&Context::new(Topology::default_machine()), &params, Fill::Seed(7)).unwrap()[0].floats();
    let (halves, pairs) = (out("halves"), out("interleaved"));
    for ((halves, pairs), x) in halves.chunks(d).zip(pairs.chunks(d)).zip(x.chunks(d)) {
        assert!((0..rotary).all(|i| halves[i / 2 + i % 2 * rotary / 2] == pairs[i]));
        assert_eq!((&halves[rotary..], &pairs[rotary..]), (&x[rotary..], &x[rotary..]));
    }
    // Token 0 is at angle 0.
    assert_eq!(pairs[..2 * d], x[..2 * d]);
}

#[test]
fn quantised_products_are_right_and_both_kernels_agree_bit_for_bit() {
    for shape in [
        "m=1 k=1 n=8 cubes=1",
        "m=5 k=100 n=24 cubes=1",
        "m=37 k=301 n=592 cubes=2",
        "m=64 k=512 n=128 cubes=4",
    ] {
        for dtype in ["f16", "bf16", "f32"] {
            let [composite, simple] = ["true", "false"].map(|composite| {
                let settings = format!("{shape} composite={composite} dtype={dtype}");
                let outcome = run("gemm-dequant", &settings, |_| ()).unwrap();
                let check = outcome.check.unwrap();
                assert!(check.correct, "{settings}: {check:?}");
                outcome.outputs
            });
            assert_eq!(composite, simple, "{shape} {dtype}");
        }
    }
    // The extremes of i8: every product is 2^14 and the sums are the largest that k allows.
    let extremes = |inputs: &mut [HostArray]| {
        for x in &mut inputs[..2] {
            x.bytes = Arc::new(vec![0x80; x.bytes.len()]);
        }
    };
    for composite in [true, false] {
        let settings = format!("m=2 k=131071 n=8 cubes=1 composite={composite} dtype=f32");
        let check = run("gemm-dequant", &settings, extremes).unwrap().check.unwrap();
        assert!(check.correct, "{composite}: {check:?}");
    }
}

#[test]
fn parameters_that_do_not_fit() {
    let said = |(name, settings)| match run(name, settings, |_| ()) {
        Ok(_) => panic!("{name} {settings} runs"),
        Err(failure) => failure.to_string(),
    };
    let wrong = [
        ("softmax", "rows=7"),
        ("layer-norm", "cubes=17"),
        ("rms-norm", "pes=9"),
        ("rms-norm", "eps=-1"),
        ("rotary", "tokens=100"),
        ("rotary", "rotary=130"),
        ("rotary", "d=7"),
        ("rotary", "d=1"),
        ("gemm-dequant", "k=131072"),
    ];
    insta::assert_snapshot!(wrong.map(said).join("\n"), @"
    error[KB0623]: `rows` is 7, which the 32 PEs of `cubes=4 pes=8` cannot share
      help: use a multiple of 32, or other `cubes` and `pes`
    error[KB0623]: 17 cubes, but a SIP of this machine has 16
      help: set at most 16, or describe a larger machine with `--topology`
    error[KB0623]: 9 PEs, but a cube of this machine has 8
      help: set at most 8, or describe a larger machine with `--topology`
    error[KB0621]: `eps=-1`: a finite number of at least 0 is expected
      help: write `--set eps=VALUE` with a finite number of at least 0
    error[KB0623]: `tokens` is 100, which the 32 PEs of `cubes=4 pes=8` cannot share
      help: use a multiple of 32, or other `cubes` and `pes`
    error[KB0623]: rotary=130 of heads of d=128 are no pairs of columns
      help: set rotary to an even number from 2 to 128
    error[KB0623]: rotary=7 of heads of d=7 are no pairs of columns
      help: set rotary to an even number from 2 to 6
    error[KB0623]: rotary=1 of heads of d=1 are no pairs of columns
      help: set d to at least 2
    error[KB0623]: `k` is 131072: sums of more than 131071 products of i8 do not fit i32
      help: set k to at most 131071
    ");
    let long = said(("softmax", "rows=8 cols=100000 cubes=1"));
    insta::assert_snapshot!(long.lines().next().unwrap(), @"error[KB0203]: the kernel needs 1600256 bytes of scratch at once, but a PE has 1048576 bytes (and 7 more PEs):");
}
