//! A program with a bench of its own: `cargo run --example own_bench -- run double`.

use kernbench::diag::Failure;
use kernbench::host::{Context, LaunchOptions};
use kernbench::kernels::bench::{BENCHES, Bench, Fill, HostArray, Outcome, Param, Params};
use kernbench::kernels::{random, tolerance};
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
    Ok(vec![HostArray::new("x", &[1, N], &values)])
}

fn run(ctx: &Context, p: &Params, inputs: &[HostArray], options: &LaunchOptions) -> Result<Outcome, Failure> {
    let times = p.count("times", 0)? as f32;
    let place = Placement::replicated().on(1, 1);
    let x = match inputs[0].bytes.is_empty() {
        true => ctx.zeros::<f32>([1, N], place, "x")?,
        false => ctx.from_bytes(&inputs[0].bytes, [1, N], place, "x")?,
    };
    let mut y = ctx.empty::<f32>([1, N], place, "y")?;
    let launched = ctx.launch_with("double", scale { x: x.input(), y: y.output(), times }, options)?;
    if !launched.computed {
        return Ok(Outcome { launches: vec![launched], outputs: vec![], check: None });
    }
    let got: Vec<f32> = ctx.read(&y)?.iter().copied().collect();
    let values = inputs[0].floats();
    let want: Vec<f64> = values.iter().map(|&x| 2.0 * f64::from(x)).collect();
    let low: Vec<f32> = values.iter().map(|x| 2.0 * x).collect();
    let check = Some(tolerance::check::<f32>(&got, &want, &low));
    let y = HostArray::new("y", &[1, N], &got);
    Ok(Outcome { launches: vec![launched], outputs: vec![y], check })
}
