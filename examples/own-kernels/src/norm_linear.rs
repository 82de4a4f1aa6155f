//! A root-mean-square norm and the linear layer behind it, as one kernel: its bench, and what is right.

use kernbench::diag::{Diagnostic, Failure};
use kernbench::kernels::bench::{Bench, Fill, HostArray, Outcome, Param, Params};
use kernbench::kernels::tolerance;
use kernbench::prelude::*;

/// Rows of a block: one tile of the default machine's matrix engine.
const ROWS: usize = 32;
/// Keeps a row of zeros from a division by zero.
const EPSILON: f32 = 1e-6;

/// `y = norm(x) w`, where `norm` divides each row by its root mean square (Zhang and Sennrich, 2019). Each PE computes
/// the rows it holds; the normalised rows never leave its scratch.
#[kernel]
pub fn norm_linear(
    /// (rows, d), row-wise over cubes and PEs.
    x: In<f16>,
    /// (d, n), replicated.
    w: In<f16>,
    /// (rows, n), laid out like `x`.
    y: Out<f16>,
) {
    let (x, y) = (x.local(), y.local());
    let w = tl::load(w);
    for rows in Block::new(0, x.nrows()).blocks(ROWS) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(x.rows(rows));
            let normed = rms_norm(tl, x);
            tl::store(y.rows(rows), tl::dot(normed, w).cast::<f16>());
        });
    }
}

/// `x` with each row divided by its root mean square, computed in f32.
#[device]
fn rms_norm(tl: &Scope, x: Tile<f16>) -> Tile<'_, f16> {
    let wide = tl::eval(x.cast::<f32>());
    let mean = tl::eval(tl::sum(wide * wide, Axis::Cols) * (1.0 / x.ncols() as f32));
    tl::eval((wide * tl::rsqrt(mean + EPSILON)).cast::<f16>())
}

/// The bench: what `run norm-linear` runs.
pub const NORM_LINEAR: Bench = Bench {
    name: "norm-linear",
    about: "a root-mean-square norm and a linear layer in one kernel",
    params: &[
        Param::new("rows", "512", "rows of x; a multiple of the PEs in use"),
        Param::new("d", "256", "columns of x"),
        Param::new("n", "128", "columns of y"),
        Param::new("cubes", "1", "cubes that share the rows"),
    ],
    inputs,
    run,
};

fn inputs(ctx: &Context, p: &Params, fill: Fill) -> Result<Vec<HostArray>, Failure> {
    let (rows, d, n) = (p.count("rows", 1)?, p.count("d", 1)?, p.count("n", 1)?);
    let pes = p.count("cubes", 1)? * ctx.topology().machine().pes() as usize;
    if !rows.is_multiple_of(pes) {
        let text = format!("{rows} rows do not divide by {pes} PEs");
        let help = format!("set rows={} or another multiple of {pes}", rows.next_multiple_of(pes));
        return Err(Diagnostic::error("KB0623", text).help(help).into());
    }
    let array = |name, shape: [usize; 2]| fill.array(name, ElementType::F16, &shape);
    Ok(vec![array("x", [rows, d]), array("w", [d, n])])
}

fn run(ctx: &Context, p: &Params, inputs: &[HostArray], options: &LaunchOptions) -> Result<Outcome, Failure> {
    let (x, w) = (&inputs[0], &inputs[1]);
    let (cubes, pes) = (p.count("cubes", 1)?, ctx.topology().machine().pes() as usize);
    let by_rows = Placement::row_wise().on(cubes, pes);
    let everywhere = Placement::replicated().on(cubes, pes);
    let (tx, tw) = (place(ctx, x, by_rows)?, place(ctx, w, everywhere)?);
    let mut ty = ctx.empty::<f16>([x.shape[0], w.shape[1]], by_rows, "y")?;
    let kernel = norm_linear { x: tx.input(), w: tw.input(), y: ty.output() };
    let launched = ctx.launch_with("norm_linear", kernel, options)?;
    if !launched.computed {
        return Ok(Outcome { launches: vec![launched], outputs: vec![], check: None });
    }
    let y: Vec<f16> = ctx.read(&ty)?.into_iter().collect();
    let y = HostArray::new("y", &ty.shape(), &y);
    let check = tolerance::check::<f16>(&y.floats(), &exact(x, w), &plain(x, w));
    Ok(Outcome { launches: vec![launched], outputs: vec![y], check: Some(check) })
}

/// An input as a tensor; without values it is all zeros.
fn place(ctx: &Context, x: &HostArray, placement: Placement) -> Result<Tensor<f16>, Failure> {
    let shape = [x.shape[0], x.shape[1]];
    match x.bytes.is_empty() {
        true => ctx.zeros(shape, placement, &x.name),
        false => ctx.from_bytes(&x.bytes, shape, placement, &x.name),
    }
}

/// The oracle: everything in f64.
#[must_use]
pub fn exact(x: &HostArray, w: &HostArray) -> Vec<f64> {
    layer(x, w, |x| x)
}

/// What a plain program does in f16: its normalised rows and its results are rounded to f16.
fn plain(x: &HostArray, w: &HostArray) -> Vec<f32> {
    let round = |x: f64| f64::from(f16::from_f32(x as f32).to_f32());
    layer(x, w, round).into_iter().map(|y| round(y) as f32).collect()
}

fn layer(x: &HostArray, w: &HostArray, round: impl Fn(f64) -> f64) -> Vec<f64> {
    let wide = |a: &HostArray| -> Vec<f64> { a.floats().into_iter().map(f64::from).collect() };
    let (d, n) = (w.shape[0], w.shape[1]);
    let (x, w) = (wide(x), wide(w));
    let mut y = vec![0.0; x.len() / d * n];
    for (x, y) in x.chunks(d).zip(y.chunks_mut(n)) {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / d as f64;
        let factor = 1.0 / (mean + f64::from(EPSILON)).sqrt();
        for (x, w) in x.iter().zip(w.chunks(n)) {
            let x = round(x * factor);
            y.iter_mut().zip(w).for_each(|(y, w)| *y += x * w);
        }
    }
    y
}
