//! The bench of grouped-query decode at long context.

use super::{Long, gqa_decode_long};
use crate::bench::{Bench, Fill, HostArray, Outcome, Param, Params};
use crate::oracle::{self, Problem};
use crate::tolerance;
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Context, LaunchOptions};
use kernbench_core::placement::Placement;
use kernbench_core::ty::{ElementType, Float, bf16, f16};
use std::sync::Arc;

/// Decode of one token with a context that all cubes share.
pub const DECODE_LONG: Bench = Bench {
    name: "gqa-decode-long",
    about: "grouped-query attention of one new token per head, keys split over all cubes",
    params: &[
        Param::new("h_q", "32", "query heads; a multiple of h_kv"),
        Param::new("h_kv", "8", "key/value heads"),
        Param::new("d", "128", "head size"),
        Param::new("s_kv", "8192", "keys of each head; a multiple of the PEs in use"),
        Param::new("valid", "auto", "keys that count, the rest is padding; auto: all"),
        Param::new("cubes", "16", "cubes that share the keys"),
        Param::new("scale", "auto", "factor of the scores; auto: 1/sqrt(d)"),
        Param::new("dtype", "f16", "element type: f16, bf16 or f32"),
    ],
    inputs,
    run,
};

fn problem(ctx: &Context, p: &Params) -> Result<Long, Failure> {
    let topology = ctx.topology();
    let machine = topology.machine();
    let (h_q, h_kv, d) = (p.count("h_q", 1)?, p.count("h_kv", 1)?, p.count("d", 1)?);
    let (s_kv, cubes) = (p.count("s_kv", 1)?, p.count("cubes", 1)?);
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
    Ok(Long {
        h_q,
        h_kv,
        d,
        keys: s_kv / pes,
        valid,
        scale: p.number_or_auto("scale")?.unwrap_or(1.0 / (d as f32).sqrt()),
        cubes,
        mesh_columns: machine.cube_mesh[0] as usize,
        pe_grid: machine.pe_grid.map(|n| n as usize),
    })
}

fn inputs(ctx: &Context, p: &Params, fill: Fill) -> Result<Vec<HostArray>, Failure> {
    let a = problem(ctx, p)?;
    let (ty, kv) = (p.float_type("dtype")?, [a.h_kv * a.keys * a.cubes * a.pes(), a.d]);
    Ok(vec![fill.array("q", ty, &[a.h_q, a.d]), fill.array("k", ty, &kv), fill.array("v", ty, &kv)])
}

fn run(ctx: &Context, p: &Params, inputs: &[HostArray], options: &LaunchOptions) -> Result<Outcome, Failure> {
    let a = problem(ctx, p)?;
    match p.float_type("dtype")? {
        ElementType::F16 => run_in::<f16>(ctx, a, inputs, options),
        ElementType::Bf16 => run_in::<bf16>(ctx, a, inputs, options),
        _ => run_in::<f32>(ctx, a, inputs, options),
    }
}

/// From head-stacked, `(h_kv * s_kv, d)`, to shard-stacked: the rows of each PE's keys, head after head.
fn shard_stacked(a: &Long, array: &HostArray) -> Arc<Vec<u8>> {
    let piece = a.keys * a.d * array.ty.bytes() as usize;
    let pes = a.cubes * a.pes();
    let pieces = (0..pes).flat_map(|pe| (0..a.h_kv).map(move |head| head * pes + pe));
    Arc::new(pieces.flat_map(|i| array.bytes[i * piece..(i + 1) * piece].iter().copied()).collect())
}

fn run_in<T: Float>(
    ctx: &Context,
    a: Long,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let [q, k, v] = inputs else {
        return Err(Diagnostic::error("KB0624", "the bench needs inputs q, k and v").into());
    };
    let everywhere = Placement::replicated().on(a.cubes, a.pes());
    let split = Placement::row_wise().on(a.cubes, a.pes());
    let place = |x: &HostArray, bytes: &Arc<Vec<u8>>, placement| {
        let shape = [x.shape[0], x.shape[1]];
        match bytes.is_empty() {
            true => ctx.zeros::<T>(shape, placement, &x.name),
            false => ctx.from_bytes(bytes, shape, placement, &x.name),
        }
    };
    let stacked = |x: &HostArray| if x.bytes.is_empty() { x.bytes.clone() } else { shard_stacked(&a, x) };
    let tq = place(q, &q.bytes, everywhere)?;
    let (tk, tv) = (place(k, &stacked(k), split)?, place(v, &stacked(v), split)?);
    let mut to = ctx.empty::<T>([a.h_q, a.d], everywhere, "o")?;
    let kernel = gqa_decode_long { q: tq.input(), k: tk.input(), v: tv.input(), o: to.output(), a };
    let launched = ctx.launch_with("decode", kernel, options)?;
    if !launched.computed {
        return Ok(Outcome { launches: vec![launched], outputs: vec![], check: None });
    }
    let Long { h_q, h_kv, d, valid, scale, .. } = a;
    let s_kv = a.keys * a.cubes * a.pes();
    let problem = Problem { h_q, h_kv, d, t_q: 1, s_kv, valid, causal: false, scale };
    let (reference, low) = (oracle::attention(&problem, q, k, v), oracle::plain::<T>(&problem, q, k, v));
    let out: Vec<T> = ctx.read(&to)?.into_iter().collect();
    let output = HostArray::new("o", &q.shape, &out);
    let check = Some(tolerance::check::<T>(&output.floats(), &reference, &low));
    Ok(Outcome { launches: vec![launched], outputs: vec![output], check })
}
