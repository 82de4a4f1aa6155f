//! The bench of quantised products.

use super::{gemm_dequant_composite, gemm_dequant_simple};
use crate::bench::{Bench, Fill, HostArray, Outcome, Param, Params, for_type};
use crate::random;
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Context, LaunchOptions};
use kernbench_core::placement::{Placement, Split};
use kernbench_core::ty::{ElementType, Float};
use std::sync::Arc;

/// The layer of the other products, with weights and activations of i8.
pub const GEMM_DEQUANT: Bench = Bench {
    name: "gemm-dequant",
    about: "a matrix product of i8 in i32, scaled by column, its columns split over PEs",
    params: &[
        Param::new("m", "32", "rows of x and y"),
        Param::new("k", "1024", "columns of x and rows of w; up to 131,071, so that i32 holds all sums"),
        Param::new("n", "1024", "columns of w and y; a multiple of the PEs"),
        Param::new("cubes", "4", "cubes that share the columns"),
        Param::new("composite", "true", "a composite GEMM, or else dot, MATH and store"),
        Param::new("dtype", "f16", "element type of y: f16, bf16 or f32"),
    ],
    inputs,
    run: |ctx, p, inputs, options| for_type!(p.float_type("dtype")?, run_in(ctx, p, inputs, options)),
};

fn inputs(_: &Context, p: &Params, fill: Fill) -> Result<Vec<HostArray>, Failure> {
    let (m, k, n) = (p.count("m", 1)?, p.count("k", 1)?, p.count("n", 1)?);
    p.float_type("dtype")?;
    if k > MOST_K {
        let text = format!("`k` is {k}: sums of more than {MOST_K} products of i8 do not fit i32");
        return Err(Diagnostic::error("KB0623", text).help(format!("set k to at most {MOST_K}")).into());
    }
    Ok(vec![quantised(fill, "x", [m, k]), quantised(fill, "w", [k, n]), scales(fill, n)])
}

/// Products of i8 are at most 2^14.
const MOST_K: usize = (1 << 17) - 1;
/// What a quantised value of 1 stands for, in standard deviations: four of them use the whole range of i8.
const UNIT: f32 = 1.0 / 32.0;

/// Normal values in units of [`UNIT`], rounded and cut to i8.
fn quantised(fill: Fill, name: &str, shape: [usize; 2]) -> HostArray {
    let values = match fill {
        Fill::Nothing => vec![],
        Fill::Seed(seed) => random::normal::<f32>(seed, name, shape[0] * shape[1]),
    };
    let values: Vec<i8> = values.iter().map(|x| libm::rintf(x / UNIT).clamp(-128.0, 127.0) as i8).collect();
    HostArray::new(name, &shape, &values)
}

/// A scale for each of `n` columns: what a product of two ones stands for, times a normal value.
fn scales(fill: Fill, n: usize) -> HostArray {
    let normal = fill.array("s", ElementType::F32, &[1, n]);
    if normal.bytes.is_empty() {
        return normal;
    }
    let scales: Vec<f32> = normal.floats().iter().map(|s| s * (UNIT * UNIT)).collect();
    HostArray::new("s", &[1, n], &scales)
}

fn run_in<T: Float>(
    ctx: &Context,
    p: &Params,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let [x, w, s] = inputs else {
        return Err(Diagnostic::error("KB0624", "the bench needs inputs x, w and s").into());
    };
    let (cubes, pes) = (p.count("cubes", 1)?, ctx.topology().machine().pes() as usize);
    let everywhere = Placement::replicated().on(cubes, pes);
    let columns = Placement::new(Split::ColumnWise, Split::ColumnWise).on(cubes, pes);
    let (tx, tw) = (x.tensor::<i8>(ctx, everywhere)?, w.tensor::<i8>(ctx, columns)?);
    let ts = s.tensor::<f32>(ctx, columns)?;
    let [m, k, n] = [x.shape[0], x.shape[1], w.shape[1]];
    let mut y = ctx.empty::<T>([m, n], columns, "y")?;
    let (a, b, c) = (tx.input(), tw.input(), ts.input());
    let launched = if p.flag("composite")? {
        ctx.launch_with("gemm_dequant", gemm_dequant_composite { x: a, w: b, s: c, y: y.output() }, options)?
    } else {
        ctx.launch_with("gemm_dequant", gemm_dequant_simple { x: a, w: b, s: c, y: y.output() }, options)?
    };
    Outcome::of(ctx, launched, &y, || {
        let sums = sums(&x.bytes, &w.bytes, [m, k, n]);
        let scaled = || sums.iter().zip(s.floats().into_iter().cycle().take(sums.len()));
        let reference = scaled().map(|(&sum, s)| sum as f64 * f64::from(s)).collect();
        let low = scaled().map(|(&sum, s)| T::from_f32(sum as f32 * s).to_f32()).collect();
        (reference, low)
    })
}

/// The sums of products of elements of i8, exactly: `(m, k)` times `(k, n)`.
fn sums(x: &Arc<Vec<u8>>, w: &Arc<Vec<u8>>, [m, k, n]: [usize; 3]) -> Vec<i64> {
    let signed = |byte: u8| i64::from(byte.cast_signed());
    let mut sums = vec![0; m * n];
    for (x, sums) in x.chunks_exact(k).zip(sums.chunks_exact_mut(n)) {
        for (&x, w) in x.iter().zip(w.chunks_exact(n)) {
            sums.iter_mut().zip(w).for_each(|(sum, &w)| *sum += signed(x) * signed(w));
        }
    }
    sums
}
