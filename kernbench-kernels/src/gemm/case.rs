//! The bench of matrix products.

use super::{Epilogue, gemm_composite, gemm_simple};
use crate::bench::{Bench, Fill, HostArray, Outcome, Param, Params};
use crate::oracle::Product;
use crate::tolerance;
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Context, LaunchOptions};
use kernbench_core::placement::{Placement, Split};
use kernbench_core::ty::{ElementType, Float, bf16, f16};

/// A linear layer with its weights in HBM, 32 columns on each PE by default.
pub const GEMM: Bench = Bench {
    name: "gemm",
    about: "a matrix product with an epilogue, its columns split over PEs",
    params: &[
        Param::new("m", "32", "rows of x and y"),
        Param::new("k", "1024", "columns of x and rows of w"),
        Param::new("n", "1024", "columns of w and y; a multiple of the PEs"),
        Param::new("cubes", "4", "cubes that share the columns"),
        Param::new("composite", "true", "a composite GEMM, or else dot, MATH and store"),
        Param::new("epilogue", "bias", "none, bias, relu, scale or bias-relu"),
        Param::new("dtype", "f16", "element type: f16, bf16 or f32"),
    ],
    inputs,
    run,
};

const EPILOGUES: [(&str, Epilogue); 5] = [
    ("none", Epilogue::None),
    ("bias", Epilogue::Bias),
    ("relu", Epilogue::Relu),
    ("scale", Epilogue::Scale),
    ("bias-relu", Epilogue::BiasRelu),
];

fn inputs(_: &Context, p: &Params, fill: Fill) -> Result<Vec<HostArray>, Failure> {
    let (m, k, n) = (p.count("m", 1)?, p.count("k", 1)?, p.count("n", 1)?);
    let ty = p.float_type("dtype")?;
    let array = |name: &str, shape: [usize; 2]| fill.array(name, ty, &shape);
    Ok(vec![array("x", [m, k]), array("w", [k, n]), array("e", [1, n])])
}

fn run(ctx: &Context, p: &Params, inputs: &[HostArray], options: &LaunchOptions) -> Result<Outcome, Failure> {
    match p.float_type("dtype")? {
        ElementType::F16 => run_in::<f16>(ctx, p, inputs, options),
        ElementType::Bf16 => run_in::<bf16>(ctx, p, inputs, options),
        _ => run_in::<f32>(ctx, p, inputs, options),
    }
}

fn run_in<T: Float>(
    ctx: &Context,
    p: &Params,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let [x, w, e] = inputs else {
        return Err(Diagnostic::error("KB0624", "the bench needs inputs x, w and e").into());
    };
    let epilogue = p.choice("epilogue", &EPILOGUES)?;
    let (cubes, pes) = (p.count("cubes", 1)?, ctx.topology().machine().pes() as usize);
    let everywhere = Placement::replicated().on(cubes, pes);
    let columns = Placement::new(Split::ColumnWise, Split::ColumnWise).on(cubes, pes);
    let place = |x: &HostArray, placement| {
        let (m, n) = (x.shape[0], x.shape[1]);
        match x.bytes.is_empty() {
            true => ctx.zeros::<T>([m, n], placement, &x.name),
            false => ctx.from_bytes(&x.bytes, [m, n], placement, &x.name),
        }
    };
    let (tx, tw, te) = (place(x, everywhere)?, place(w, columns)?, place(e, columns)?);
    let [m, k, n] = [x.shape[0], x.shape[1], w.shape[1]];
    let mut ty = ctx.empty::<T>([m, n], columns, "y")?;
    let (a, b, c) = (tx.input(), tw.input(), te.input());
    let launched = if p.flag("composite")? {
        ctx.launch_with("gemm", gemm_composite { x: a, w: b, e: c, y: ty.output(), epilogue }, options)?
    } else {
        ctx.launch_with("gemm", gemm_simple { x: a, w: b, e: c, y: ty.output(), epilogue }, options)?
    };
    if !launched.computed {
        return Ok(Outcome { launches: vec![launched], outputs: vec![], check: None });
    }
    let out: Vec<T> = ctx.read(&ty)?.into_iter().collect();
    let output = HostArray::new("y", &[m, n], &out);
    let (x, w, e) = (x.floats(), w.floats(), e.floats());
    let product = Product { m, k, n, x: &x, w: &w };
    let (reference, low) = (product.exact(), product.plain::<T>());
    let e = |at: usize| e[at % n];
    let reference: Vec<f64> =
        reference.into_iter().enumerate().map(|(at, y)| finish(epilogue, y, f64::from(e(at)))).collect();
    let round = |y: f64| T::from_f32(y as f32).to_f32();
    let low: Vec<f32> = low
        .into_iter()
        .enumerate()
        .map(|(at, y)| round(finish(epilogue, f64::from(y), f64::from(e(at)))))
        .collect();
    let check = Some(tolerance::check::<T>(&output.floats(), &reference, &low));
    Ok(Outcome { launches: vec![launched], outputs: vec![output], check })
}

/// The epilogue of one element.
fn finish(epilogue: Epilogue, y: f64, e: f64) -> f64 {
    let relu = |y: f64| if y < 0.0 { 0.0 } else { y };
    match epilogue {
        Epilogue::None => y,
        Epilogue::Bias => y + e,
        Epilogue::Relu => relu(y),
        Epilogue::Scale => y * e,
        Epilogue::BiasRelu => relu(y + e),
    }
}
