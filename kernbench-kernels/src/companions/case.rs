//! The benches of the companions.

use super::norm::{layer_norm, rms_norm};
use super::oracle::{self, Arithmetic};
use super::rotary::{Layout, Rotary, rotary};
use super::softmax::softmax;
use crate::bench::{Bench, Fill, HostArray, Outcome, Param, Params, for_type};
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Context, LaunchOptions};
use kernbench_core::placement::Placement;
use kernbench_core::ty::Float;
use std::sync::Arc;

// What several of the benches take.
const ROWS: Param = Param::new("rows", "1024", "rows of x and y; a multiple of the PEs");
const COLS: Param = Param::new("cols", "1024", "columns of x and y");
const EPS: Param = Param::new("eps", "1e-5", "added to the mean square, so that nothing is divided by 0");
const CUBES: Param = Param::new("cubes", "4", "cubes that share the rows");
const PES: Param = Param::new("pes", "auto", "PEs of each cube that share its rows; auto: all");
const DTYPE: Param = Param::new("dtype", "f16", "element type: f16, bf16 or f32");

/// Softmax of as many rows as 32 heads have for 32 queries each.
pub const SOFTMAX: Bench = Bench {
    name: "softmax",
    about: "softmax along rows, which are split over PEs",
    params: &[ROWS, COLS, CUBES, PES, DTYPE],
    inputs: |_, p, fill| Ok(vec![matrix(p, fill, "x")?]),
    run: |ctx, p, inputs, options| for_type!(p.float_type("dtype")?, run_softmax(ctx, p, inputs, options)),
};

/// Layer norm of activations.
pub const LAYER_NORM: Bench = Bench {
    name: "layer-norm",
    about: "layer norm along rows, which are split over PEs",
    params: &[ROWS, COLS, EPS, CUBES, PES, DTYPE],
    inputs: |_, p, fill| Ok(vec![matrix(p, fill, "x")?, row(p, fill, "w")?, row(p, fill, "b")?]),
    run: |ctx, p, inputs, options| for_type!(p.float_type("dtype")?, run_layer_norm(ctx, p, inputs, options)),
};

/// RMS norm of activations.
pub const RMS_NORM: Bench = Bench {
    name: "rms-norm",
    about: "RMS norm along rows, which are split over PEs",
    params: &[ROWS, COLS, EPS, CUBES, PES, DTYPE],
    inputs: |_, p, fill| Ok(vec![matrix(p, fill, "x")?, row(p, fill, "w")?]),
    run: |ctx, p, inputs, options| for_type!(p.float_type("dtype")?, run_rms_norm(ctx, p, inputs, options)),
};

/// Rotary embedding of the queries of a Llama-3-8B layer by default, but for its base.
pub const ROTARY: Bench = Bench {
    name: "rotary",
    about: "rotary position embedding of the heads of each token, tokens split over PEs",
    params: &[
        Param::new("tokens", "128", "rows of x and y; a multiple of the PEs"),
        Param::new("heads", "32", "heads of a token"),
        Param::new("d", "128", "head size"),
        Param::new("rotary", "auto", "columns of each head that are rotated, the first ones; auto: all"),
        Param::new("layout", "halves", "pairs are columns of both `halves`, or neighbours: `interleaved`"),
        Param::new("base", "10000", "pair i turns by base^(-2 i / rotary) from token to token"),
        CUBES,
        PES,
        DTYPE,
    ],
    inputs: rotary_inputs,
    run: |ctx, p, inputs, options| for_type!(p.float_type("dtype")?, run_rotary(ctx, p, inputs, options)),
};

fn matrix(p: &Params, fill: Fill, name: &str) -> Result<HostArray, Failure> {
    Ok(fill.array(name, p.float_type("dtype")?, &[p.count("rows", 1)?, p.count("cols", 1)?]))
}

fn row(p: &Params, fill: Fill, name: &str) -> Result<HostArray, Failure> {
    Ok(fill.array(name, p.float_type("dtype")?, &[1, p.count("cols", 1)?]))
}

/// The placements of what is split by rows and of what every PE has.
fn placements(ctx: &Context, p: &Params, rows: &str) -> Result<[Placement; 2], Failure> {
    let topology = ctx.topology();
    let most = [topology.machine().cubes() as usize, topology.machine().pes() as usize];
    let (cubes, pes) = (p.count("cubes", 1)?, p.count_or_auto("pes", 1)?.unwrap_or(most[1]));
    let (n, all) = (p.count(rows, 1)?, cubes * pes);
    let wrong = |text: String, help: String| Err(Diagnostic::error("KB0623", text).help(help).into());
    for (have, most, [what, of]) in [(cubes, most[0], ["cubes", "a SIP"]), (pes, most[1], ["PEs", "a cube"])]
    {
        if have > most {
            let help = format!("set at most {most}, or describe a larger machine with `--topology`");
            return wrong(format!("{have} {what}, but {of} of this machine has {most}"), help);
        }
    }
    if !n.is_multiple_of(all) {
        let text = format!("`{rows}` is {n}, which the {all} PEs of `cubes={cubes} pes={pes}` cannot share");
        return wrong(text, format!("use a multiple of {all}, or other `cubes` and `pes`"));
    }
    Ok([Placement::row_wise(), Placement::replicated()].map(|place| place.on(cubes, pes)))
}

/// The result in f64 and that of a plain implementation in `T`.
fn both<T: Float>(result: impl Fn(Arithmetic) -> Vec<f64>) -> (Vec<f64>, Vec<f32>) {
    let low = result(Arithmetic::plain::<T>()).into_iter().map(|x| x as f32).collect();
    (result(Arithmetic::EXACT), low)
}

fn missing(names: &str) -> Failure {
    Diagnostic::error("KB0624", format!("the bench needs inputs {names}")).into()
}

fn run_softmax<T: Float>(
    ctx: &Context,
    p: &Params,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let [x] = inputs else { return Err(missing("x")) };
    let [split, _] = placements(ctx, p, "rows")?;
    let tx = x.tensor::<T>(ctx, split)?;
    let mut y = ctx.empty::<T>(tx.shape(), split, "y")?;
    let launched = ctx.launch_with("softmax", softmax { x: tx.input(), y: y.output() }, options)?;
    let n = x.shape[1];
    Outcome::of(ctx, launched, &y, || both::<T>(|with| oracle::softmax(with, &x.floats(), n)))
}

fn run_layer_norm<T: Float>(
    ctx: &Context,
    p: &Params,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let [x, w, b] = inputs else { return Err(missing("x, w and b")) };
    let [split, everywhere] = placements(ctx, p, "rows")?;
    let eps = p.number("eps")?;
    let tx = x.tensor::<T>(ctx, split)?;
    let (tw, tb) = (w.tensor::<T>(ctx, everywhere)?, b.tensor::<T>(ctx, everywhere)?);
    let mut y = ctx.empty::<T>(tx.shape(), split, "y")?;
    let kernel = layer_norm { x: tx.input(), w: tw.input(), b: tb.input(), y: y.output(), eps };
    let launched = ctx.launch_with("layer_norm", kernel, options)?;
    Outcome::of(ctx, launched, &y, || {
        both::<T>(|with| oracle::layer_norm(with, &x.floats(), &w.floats(), &b.floats(), eps))
    })
}

fn run_rms_norm<T: Float>(
    ctx: &Context,
    p: &Params,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let [x, w] = inputs else { return Err(missing("x and w")) };
    let [split, everywhere] = placements(ctx, p, "rows")?;
    let eps = p.number("eps")?;
    let (tx, tw) = (x.tensor::<T>(ctx, split)?, w.tensor::<T>(ctx, everywhere)?);
    let mut y = ctx.empty::<T>(tx.shape(), split, "y")?;
    let kernel = rms_norm { x: tx.input(), w: tw.input(), y: y.output(), eps };
    let launched = ctx.launch_with("rms_norm", kernel, options)?;
    Outcome::of(ctx, launched, &y, || both::<T>(|with| oracle::rms_norm(with, &x.floats(), &w.floats(), eps)))
}

/// What the parameters of the bench of rotary embeddings say.
fn turn(p: &Params) -> Result<Rotary, Failure> {
    let d = p.count("d", 1)?;
    let rotary = p.count_or_auto("rotary", 2)?.unwrap_or(d);
    let layout = p.choice("layout", &[("halves", Layout::Halves), ("interleaved", Layout::Interleaved)])?;
    if rotary > d || !rotary.is_multiple_of(2) {
        let text = format!("rotary={rotary} of heads of d={d} are no pairs of columns");
        let help = match d {
            1 => "set d to at least 2".to_owned(),
            _ => format!("set rotary to an even number from 2 to {}", d / 2 * 2),
        };
        return Err(Diagnostic::error("KB0623", text).help(help).into());
    }
    Ok(Rotary { d, rotary, layout })
}

fn rotary_inputs(_: &Context, p: &Params, fill: Fill) -> Result<Vec<HostArray>, Failure> {
    let (a, ty) = (turn(p)?, p.float_type("dtype")?);
    let (tokens, heads) = (p.count("tokens", 1)?, p.count("heads", 1)?);
    let base = f64::from(p.number("base")?);
    let pairs = a.rotary / 2;
    let table = |name: &str, f: fn(f64) -> f64| {
        let angle = |at: usize| {
            let exponent = -2.0 * (at % pairs) as f64 / a.rotary as f64;
            (at / pairs) as f64 * libm::pow(base, exponent)
        };
        let mut bytes = vec![];
        if fill != Fill::Nothing {
            let values: Vec<f32> = (0..tokens * pairs).map(|at| f(angle(at)) as f32).collect();
            bytes.resize(values.len() * ty.bytes() as usize, 0);
            ty.narrow(&values, &mut bytes);
        }
        HostArray { name: name.to_owned(), ty, shape: vec![tokens, pairs], bytes: Arc::new(bytes) }
    };
    Ok(vec![fill.array("x", ty, &[tokens, heads * a.d]), table("cos", libm::cos), table("sin", libm::sin)])
}

fn run_rotary<T: Float>(
    ctx: &Context,
    p: &Params,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let [x, cos, sin] = inputs else { return Err(missing("x, cos and sin")) };
    let [split, _] = placements(ctx, p, "tokens")?;
    let a = turn(p)?;
    let [tx, tc, ts] =
        [x.tensor::<T>(ctx, split)?, cos.tensor::<T>(ctx, split)?, sin.tensor::<T>(ctx, split)?];
    let mut y = ctx.empty::<T>(tx.shape(), split, "y")?;
    let kernel = rotary { x: tx.input(), cos: tc.input(), sin: ts.input(), y: y.output(), a };
    let launched = ctx.launch_with("rotary", kernel, options)?;
    let n = x.shape[1];
    Outcome::of(ctx, launched, &y, || {
        both::<T>(|with| oracle::rotary(with, a, &x.floats(), &cos.floats(), &sin.floats(), n))
    })
}
