//! The benches of grouped-query attention at long context.

use super::{Long, gqa_decode_long, gqa_prefill_long};
use crate::bench::{Bench, Fill, HostArray, Outcome, Param, Params, for_type};
use crate::oracle::{self, Problem};
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Context, LaunchOptions};
use kernbench_core::placement::Placement;
use kernbench_core::ty::Float;
use std::sync::Arc;

// What both benches take.
const H_Q: Param = Param::new("h_q", "32", "query heads; a multiple of h_kv");
const H_KV: Param = Param::new("h_kv", "8", "key/value heads");
const D: Param = Param::new("d", "128", "head size");
const VALID: Param = Param::new("valid", "auto", "keys that count, the rest is padding; auto: all");
const CUBES: Param = Param::new("cubes", "16", "cubes that share the keys");
const SCALE: Param = Param::new("scale", "auto", "factor of the scores; auto: 1/sqrt(d)");
const DTYPE: Param = Param::new("dtype", "f16", "element type: f16, bf16 or f32");

/// Decode of one token with a context that all cubes share.
pub const DECODE_LONG: Bench = Bench {
    name: "gqa-decode-long",
    about: "grouped-query attention of one new token per head, keys split over all cubes",
    params: &[
        H_Q,
        H_KV,
        D,
        Param::new("s_kv", "8192", "keys of each head; a multiple of the PEs in use"),
        VALID,
        CUBES,
        SCALE,
        DTYPE,
    ],
    inputs,
    run: |ctx, p, inputs, options| for_type!(p.float_type("dtype")?, decode(ctx, p, inputs, options)),
};

/// Prefill of a prompt that all cubes share.
pub const PREFILL_LONG: Bench = Bench {
    name: "gqa-prefill-long",
    about: "grouped-query attention of a prompt, queries and keys split over all cubes",
    params: &[
        H_Q,
        H_KV,
        D,
        Param::new("t_q", "1024", "queries of each head; a multiple of the cubes in use"),
        Param::new("s_kv", "1024", "keys of each head; a multiple of the PEs in use"),
        Param::new("causal", "true", "query i sees keys up to i"),
        VALID,
        CUBES,
        SCALE,
        DTYPE,
    ],
    inputs,
    run: |ctx, p, inputs, options| for_type!(p.float_type("dtype")?, prefill(ctx, p, inputs, options)),
};

/// What the parameters say: the problem and how it is spread.
fn problem(ctx: &Context, p: &Params) -> Result<(Problem, Long), Failure> {
    let topology = ctx.topology();
    let machine = topology.machine();
    let (h_q, h_kv, d) = (p.count("h_q", 1)?, p.count("h_kv", 1)?, p.count("d", 1)?);
    let (s_kv, cubes) = (p.count("s_kv", 1)?, p.count("cubes", 1)?);
    // Only prefill has these.
    let prefill = !p.text("t_q").is_empty();
    let (t_q, causal) = if prefill { (p.count("t_q", 1)?, p.flag("causal")?) } else { (1, false) };
    let wrong = |text: String, help: String| Err(Diagnostic::error("KB0623", text).help(help).into());
    let pes = cubes * machine.pes() as usize;
    if !h_q.is_multiple_of(h_kv) {
        return wrong(
            format!("{h_q} query heads do not divide by {h_kv} key/value heads"),
            format!("set h_q={} or another multiple of {h_kv}", h_q.next_multiple_of(h_kv)),
        );
    }
    if cubes > machine.cubes() as usize {
        return wrong(
            format!("{cubes} cubes, but a SIP of this machine has {}", machine.cubes()),
            format!("set cubes to at most {}", machine.cubes()),
        );
    }
    if prefill && !t_q.is_multiple_of(cubes) {
        return wrong(
            format!("{t_q} queries do not divide by {cubes} cubes"),
            format!("set t_q={} or another multiple of {cubes}", t_q.next_multiple_of(cubes)),
        );
    }
    if !s_kv.is_multiple_of(pes) {
        return wrong(
            format!("{s_kv} keys do not divide by the {pes} PEs of {cubes} cubes"),
            format!("set s_kv={} or another multiple of {pes}", s_kv.next_multiple_of(pes)),
        );
    }
    let valid = p.count_or_auto("valid", 0)?.unwrap_or(s_kv);
    if valid > s_kv {
        return wrong(format!("valid={valid} of {s_kv} keys"), format!("set valid to at most {s_kv}"));
    }
    let scale = p.number_or_auto("scale")?.unwrap_or(1.0 / (d as f32).sqrt());
    let (mesh_columns, pe_grid) = (machine.cube_mesh[0] as usize, machine.pe_grid.map(|n| n as usize));
    let long = Long { h_q, h_kv, d, keys: s_kv / pes, valid, scale, cubes, mesh_columns, pe_grid };
    Ok((Problem { h_q, h_kv, d, t_q, s_kv, valid, causal, scale }, long))
}

fn inputs(ctx: &Context, p: &Params, fill: Fill) -> Result<Vec<HostArray>, Failure> {
    let (a, _) = problem(ctx, p)?;
    let (ty, kv) = (p.float_type("dtype")?, [a.h_kv * a.s_kv, a.d]);
    // One query of each head is a row of its own; see the kernels.
    let q = if p.text("t_q").is_empty() { [a.h_q, a.d] } else { [a.t_q, a.h_q * a.d] };
    Ok(vec![fill.array("q", ty, &q), fill.array("k", ty, &kv), fill.array("v", ty, &kv)])
}

/// From head-stacked, `(h_kv * s_kv, d)`, to shard-stacked: the rows of each PE's keys, head after head.
fn shard_stacked(a: &Long, array: &HostArray) -> HostArray {
    let piece = a.keys * a.d * array.ty.bytes() as usize;
    let pes = a.cubes * a.pes();
    let pieces = (0..pes).flat_map(|pe| (0..a.h_kv).map(move |head| head * pes + pe));
    let bytes = match array.bytes.is_empty() {
        true => vec![],
        false => pieces.flat_map(|i| array.bytes[i * piece..(i + 1) * piece].iter().copied()).collect(),
    };
    HostArray { bytes: Arc::new(bytes), ..array.clone() }
}

fn decode<T: Float>(
    ctx: &Context,
    p: &Params,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let (problem, a) = problem(ctx, p)?;
    let [q, k, v] = of(inputs)?;
    let (everywhere, split) = placements(&a);
    let tq = q.tensor::<T>(ctx, everywhere)?;
    let [tk, tv] =
        [shard_stacked(&a, k).tensor::<T>(ctx, split)?, shard_stacked(&a, v).tensor::<T>(ctx, split)?];
    let mut to = ctx.empty::<T>(tq.shape(), everywhere, "o")?;
    let kernel = gqa_decode_long { q: tq.input(), k: tk.input(), v: tv.input(), o: to.output(), a };
    let launched = ctx.launch_with("decode", kernel, options)?;
    Outcome::of(ctx, launched, &to, || references::<T>(&problem, [q, k, v]))
}

fn prefill<T: Float>(
    ctx: &Context,
    p: &Params,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let (problem, a) = problem(ctx, p)?;
    let [q, k, v] = of(inputs)?;
    let (everywhere, split) = placements(&a);
    let tq = q.tensor::<T>(ctx, everywhere)?;
    let [tk, tv] =
        [shard_stacked(&a, k).tensor::<T>(ctx, split)?, shard_stacked(&a, v).tensor::<T>(ctx, split)?];
    let mut to = ctx.empty::<T>(tq.shape(), everywhere, "o")?;
    let causal = problem.causal;
    let kernel = gqa_prefill_long { q: tq.input(), k: tk.input(), v: tv.input(), o: to.output(), causal, a };
    let launched = ctx.launch_with("prefill", kernel, options)?;
    Outcome::of(ctx, launched, &to, || references::<T>(&problem, [q, k, v]))
}

fn of(inputs: &[HostArray]) -> Result<&[HostArray; 3], Failure> {
    inputs.try_into().map_err(|_| Diagnostic::error("KB0624", "the bench needs inputs q, k and v").into())
}

/// Of queries and outputs, and of keys and values.
fn placements(a: &Long) -> (Placement, Placement) {
    (Placement::replicated().on(a.cubes, a.pes()), Placement::row_wise().on(a.cubes, a.pes()))
}

fn references<T: Float>(problem: &Problem, [q, k, v]: [&HostArray; 3]) -> (Vec<f64>, Vec<f32>) {
    (oracle::attention(problem, q, k, v), oracle::plain::<T>(problem, q, k, v))
}
