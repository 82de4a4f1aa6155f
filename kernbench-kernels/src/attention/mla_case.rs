//! The bench of latent attention.

use super::{Mla, Spec, mla_decode};
use crate::bench::{Bench, Fill, HostArray, Outcome, Param, Params, for_type};
use crate::oracle::{Inputs, general, plain_general};
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Context, LaunchOptions, Tensor};
use kernbench_core::placement::Placement;
use kernbench_core::ty::Float;

/// Decode of one token of a DeepSeek-V3 layer by default.
pub const MLA_DECODE: Bench = Bench {
    name: "mla-decode",
    about: "multi-head latent attention of one new token, heads split over cubes, keys over their PEs",
    params: &[
        Param::new("batch", "1", "independent tokens, each with a cache of its own"),
        Param::new("heads", "128", "query heads"),
        Param::new("latent", "512", "elements of a latent vector of the cache, both key and value"),
        Param::new("rope", "64", "elements of a key that carry its position"),
        Param::new("keys", "4096", "keys of each batch"),
        Param::new("lengths", "auto", "keys of each batch that count, with commas between them; auto: all"),
        Param::new("d", "192", "head size before projections were absorbed; only the scale depends on it"),
        Param::new("scale", "auto", "factor of the scores; auto: 1/sqrt(d)"),
        Param::new("split", "1", "cubes that share the keys of a block of heads, neighbours in a row"),
        Param::new("dtype", "bf16", "element type: f16, bf16 or f32"),
    ],
    inputs,
    run: |ctx, p, inputs, options| for_type!(p.float_type("dtype")?, run(ctx, p, inputs, options)),
};

/// The problem, and how many keys of each batch count if not all do.
fn problem(ctx: &Context, p: &Params) -> Result<(Mla, Option<Vec<i32>>), Failure> {
    let machine = ctx.topology().machine().clone();
    let columns = machine.cube_mesh[0] as usize;
    let a = Mla {
        batch: p.count("batch", 1)?,
        heads: p.count("heads", 1)?,
        latent: p.count("latent", 1)?,
        rope: p.count("rope", 1)?,
        keys: p.count("keys", 1)?,
        scale: p.number_or_auto("scale")?.unwrap_or(1.0 / (p.count("d", 1)? as f32).sqrt()),
        split: p.count("split", 1)?,
        pe_grid: machine.pe_grid.map(|n| n as usize),
    };
    let wrong = |text: String, help: String| Err(Diagnostic::error("KB0623", text).help(help).into());
    if !columns.is_multiple_of(a.split) {
        let text = format!("split={}, but {columns} cubes in a row do not divide by it", a.split);
        let nearest =
            (1..=columns).filter(|n| columns.is_multiple_of(*n)).min_by_key(|n| n.abs_diff(a.split));
        return wrong(text, format!("set split={}", nearest.unwrap_or(1)));
    }
    let Some(lengths) = p.counts_or_auto("lengths", 0)? else { return Ok((a, None)) };
    if lengths.len() != a.batch {
        let text = format!("`lengths` is a list of {}, but batch={}", lengths.len(), a.batch);
        return wrong(text, format!("give a length of each batch, or set batch={}", lengths.len()));
    }
    if let Some(n) = lengths.iter().find(|n| **n > a.keys) {
        return wrong(
            format!("`lengths` has {n}, but keys={}", a.keys),
            format!("write at most {}, or set keys={n}", a.keys),
        );
    }
    Ok((a, Some(lengths.into_iter().map(|n| i32::try_from(n).unwrap_or(i32::MAX)).collect())))
}

fn inputs(ctx: &Context, p: &Params, fill: Fill) -> Result<Vec<HostArray>, Failure> {
    let ((a, _), ty) = (problem(ctx, p)?, p.float_type("dtype")?);
    Ok(vec![
        fill.array("q_c", ty, &[a.batch, a.heads, a.latent]),
        fill.array("q_r", ty, &[a.batch, a.heads, a.rope]),
        fill.array("c", ty, &[a.batch, a.keys, a.latent]),
        fill.array("k_r", ty, &[a.batch, a.keys, a.rope]),
    ])
}

fn run<T: Float>(
    ctx: &Context,
    p: &Params,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let [q_c, q_r, c, k_r] = inputs else {
        return Err(Diagnostic::error("KB0624", "the bench needs inputs q_c, q_r, c and k_r").into());
    };
    let (a, lengths) = problem(ctx, p)?;
    let (pes, cubes) = (ctx.topology().machine().pes() as usize, ctx.topology().machine().cubes() as usize);
    let teams = cubes / a.split;
    // Every PE has all of the cache, and reads its keys from its own slice.
    let place = Placement::replicated().on(a.blocks(teams).take(teams).count() * a.split, pes);
    let [tq_c, tq_r] = [q_c.tensor::<T>(ctx, place)?, q_r.tensor::<T>(ctx, place)?];
    let [tc, tk_r] = [c.tensor::<T>(ctx, place)?, k_r.tensor::<T>(ctx, place)?];
    let counted = lengths.as_ref().map(|n| HostArray::new("lengths", &[1, a.batch], n));
    let counted = counted.map(|n| n.tensor::<i32>(ctx, place)).transpose()?;
    let mut o = ctx.empty::<T>(tq_c.shape(), place, "o")?;
    let kernel = mla_decode {
        q_c: tq_c.input(),
        q_r: tq_r.input(),
        c: tc.input(),
        k_r: tk_r.input(),
        o: o.output(),
        lengths: counted.as_ref().map(Tensor::input),
        a,
    };
    let launched = ctx.launch_with("mla_decode", kernel, options)?;
    let outcome = Outcome::of(ctx, launched, &o, || {
        let sizes = [a.latent + a.rope, a.latent];
        let spec = Spec { scale: a.scale, ..Spec::new(a.batch, [a.heads, 1], [1, a.keys], sizes) };
        let (q, k, v) = (joined(q_c, q_r), joined(c, k_r), c.floats());
        let x = Inputs { q: &q, k: &k, v: &v, mask: None, lengths: lengths.as_deref(), sinks: None };
        (general(&spec, &x).y, plain_general::<T>(&spec, &x).y)
    })?;
    Ok(outcome.shaped(&[a.batch, a.heads, a.latent]))
}

/// Two arrays side by side: each vector of one is followed by that of the other.
fn joined(a: &HostArray, b: &HostArray) -> Vec<f32> {
    let [n, m] = [a, b].map(|x| x.shape[x.shape.len() - 1]);
    let (a, b) = (a.floats(), b.floats());
    a.chunks_exact(n).zip(b.chunks_exact(m)).flat_map(|(a, b)| a.iter().chain(b)).copied().collect()
}
