//! The `gemm` bench is right in every form; what a composite of tiles saves.

use super::{ONE, context};
use kernbench::kernels::bench::{Bench, Fill, Outcome, Params};
use kernbench::kernels::gemm::GEMM;
use kernbench::prelude::*;

fn outcome(set: &[&str]) -> Outcome {
    let Bench { name, params, inputs, run, .. } = GEMM;
    let ctx = context();
    let params = Params::parse(name, params, set.iter().copied()).unwrap();
    let inputs = inputs(&ctx, &params, Fill::Seed(7)).unwrap();
    run(&ctx, &params, &inputs, &LaunchOptions::default()).unwrap()
}

#[test]
fn every_form_is_right_and_composite_and_simple_agree_bit_for_bit() {
    for dtype in ["dtype=f16", "dtype=bf16", "dtype=f32"] {
        for epilogue in ["none", "bias", "relu", "scale", "bias-relu"] {
            let epilogue = format!("epilogue={epilogue}");
            let shape = ["m=45", "k=200", "n=304", "cubes=2", dtype, &epilogue];
            let [one, many] = ["composite=true", "composite=false"]
                .map(|composite| outcome(&[&shape[..], &[composite]].concat()));
            assert!(one.check.unwrap().correct && many.check.unwrap().correct, "{shape:?}");
            assert_eq!(one.outputs, many.outputs, "{shape:?}");
        }
    }
}

/// A product of tiles with a relu: as one composite, or as a `dot` and a MATH op.
#[kernel]
fn of_tiles(x: In<f16>, w: In<f16>, y: Out<f16>, composite: bool) {
    let (x, w, out) = (tl::load(x), tl::load(w), tl::zeros([64, 64]));
    if composite {
        let done = tl::composite(Gemm::new(x, w, out).relu(Level::OutputTile));
        tl::wait(done);
    } else {
        let product = tl::dot(x, w);
        tl::copy_to(out, tl::maximum(product, 0.0).cast());
    }
    tl::store(y, out);
}

#[test]
fn a_composite_of_tiles_overlaps_what_ops_do_one_after_another() {
    let ctx = context();
    let (x, w) = (ctx.zeros([64, 512], ONE, "x").unwrap(), ctx.zeros([512, 64], ONE, "w").unwrap());
    let mut y = ctx.empty([64, 64], ONE, "y").unwrap();
    let mut took = |composite| {
        let kernel = of_tiles { x: x.input(), w: w.input(), y: y.output(), composite };
        ctx.launch("of_tiles", kernel).unwrap();
        let log = ctx.op_log();
        let ops = log.filter(|r| {
            matches!(r.name(), "composite_gemm" | "gemm_f16" | "math")
                && r.launch() == usize::from(!composite)
        });
        // Without the fill that makes the output.
        ops.filter(|r| !r.expression().starts_with("fill")).map(|r| r.duration_ps()).sum::<u64>()
    };
    // 32 tiles of 16.384 ns and 4 x 8 ns of MATH; one fetch of 16 ns and one store of 4 ns show.
    assert_eq!(took(true), 16_000 + 32 * 16_384 + 4 * 8_000 + 4_000);
    // All 128 KiB fetched first, 16 KiB stored last, then two steps of MATH on all of it.
    assert_eq!(took(false), 256_000 + 32 * 16_384 + 32_000 + 2 * 32_000);
}
