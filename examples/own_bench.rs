//! A program with a bench of its own: `cargo run --example own_bench -- run double`.

use kernbench::diag::Failure;
use kernbench::host::{Context, LaunchOptions};
use kernbench::kernels::bench::{BENCHES, Bench, Fill, HostArray, Outcome, Param, Params};
use kernbench::kernels::{random, tolerance};
use kernbench::ndarray::Array2;
use kernbench::placement::Placement;
use kernbench::prelude::*;
use std::process::ExitCode;

fn main() -> ExitCode {
    kernbench::cli::main(&[&[DOUBLE], BENCHES])
}

const N: usize = 16;

/// Multiplies by `times`; right only if that is 2.
const DOUBLE: Bench = Bench {
    name: "double",
    about: "doubles a row of numbers",
    params: &[Param { key: "times", default: "2", about: "what it multiplies by; anything but 2 is wrong" }],
    inputs,
    run,
};

#[kernel]
fn scale(x: In<f32>, y: Out<f32>, times: f32) {
    let x = tl::load(x);
    tl::store(y, tl::eval(x * times));
}

fn inputs(_: &Context, _: &Params, fill: Fill) -> Result<Vec<HostArray>, Failure> {
    let values = match fill {
        Fill::Seed(seed) => random::normal::<f32>(seed, "x", N),
        Fill::Nothing => vec![],
    };
    Ok(vec![HostArray { name: "x".to_owned(), ty: ElementType::F32, shape: vec![1, N], values }])
}

fn run(ctx: &Context, p: &Params, inputs: &[HostArray], options: &LaunchOptions) -> Result<Outcome, Failure> {
    let times = p.count("times", 0)? as f32;
    let place = Placement::replicated().on(1, 1);
    let values = &inputs[0].values;
    let x = match values.is_empty() {
        true => ctx.zeros::<f32>([1, N], place, "x")?,
        false => ctx.from_array(&Array2::from_shape_fn((1, N), |(_, j)| values[j]), place, "x")?,
    };
    let mut y = ctx.empty::<f32>([1, N], place, "y")?;
    let launched = ctx.launch_with("double", scale { x: x.input(), y: y.output(), times }, options)?;
    if !launched.computed {
        return Ok(Outcome { launched, outputs: vec![], check: None });
    }
    let got: Vec<f32> = ctx.read(&y)?.iter().copied().collect();
    let want: Vec<f64> = values.iter().map(|&x| 2.0 * f64::from(x)).collect();
    let low: Vec<f32> = values.iter().map(|x| 2.0 * x).collect();
    let check = Some(tolerance::check::<f32>(&got, &want, &low));
    let y = HostArray { name: "y".to_owned(), ty: ElementType::F32, shape: vec![1, N], values: got };
    Ok(Outcome { launched, outputs: vec![y], check })
}
