//! The bench of matrix products.

use super::{Epilogue, gemm_composite, gemm_simple};
use crate::bench::{Bench, Fill, HostArray, Outcome, Param, Params, for_type};
use crate::oracle::Product;
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Context, LaunchOptions};
use kernbench_core::placement::{Placement, Split};
use kernbench_core::ty::Float;

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
    run: |ctx, p, inputs, options| for_type!(p.float_type("dtype")?, run_in(ctx, p, inputs, options)),
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
    let tx = x.tensor::<T>(ctx, everywhere)?;
    let (tw, te) = (w.tensor::<T>(ctx, columns)?, e.tensor::<T>(ctx, columns)?);
    let [m, k, n] = [x.shape[0], x.shape[1], w.shape[1]];
    let mut ty = ctx.empty::<T>([m, n], columns, "y")?;
    let (a, b, c) = (tx.input(), tw.input(), te.input());
    let launched = if p.flag("composite")? {
        ctx.launch_with("gemm", gemm_composite { x: a, w: b, e: c, y: ty.output(), epilogue }, options)?
    } else {
        ctx.launch_with("gemm", gemm_simple { x: a, w: b, e: c, y: ty.output(), epilogue }, options)?
    };
    Outcome::of(ctx, launched, &ty, || {
        let (x, w, e) = (x.floats(), w.floats(), e.floats());
        let product = Product { m, k, n, x: &x, w: &w };
        let finish = |(at, y): (usize, f64)| finish(epilogue, y, f64::from(e[at % n]));
        let round = |y: f64| T::from_f32(y as f32).to_f32();
        let low = product.plain::<T>().into_iter().map(f64::from);
        (
            product.exact().into_iter().enumerate().map(finish).collect(),
            low.enumerate().map(finish).map(round).collect(),
        )
    })
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
