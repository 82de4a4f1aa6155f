//! The benches of grouped-query attention at short context.

use super::{Gqa, gqa_decode_short, gqa_prefill_short};
use crate::bench::{Bench, Fill, HostArray, Outcome, Param, Params};
use crate::oracle::{self, Problem};
use crate::tolerance;
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Context, LaunchOptions};
use kernbench_core::placement::Placement;
use kernbench_core::ty::{ElementType, Float, bf16, f16};

// What both benches take.
const H_Q: Param = Param::new("h_q", "32", "query heads; a multiple of h_kv");
const H_KV: Param = Param::new("h_kv", "8", "key/value heads");
const D: Param = Param::new("d", "128", "head size");
const VALID: Param = Param::new("valid", "auto", "keys that count, the rest is padding; auto: all");
const KV_PER_CUBE: Param =
    Param::new("kv_per_cube", "1", "whole KV heads each cube owns: 1, 2, 4 or 8 on the default machine");
const SCALE: Param = Param::new("scale", "auto", "factor of the scores; auto: 1/sqrt(d)");
const DTYPE: Param = Param::new("dtype", "f16", "element type: f16, bf16 or f32");

/// Decode of one token of a Llama-3-8B layer by default.
pub const DECODE_SHORT: Bench = Bench {
    name: "gqa-decode-short",
    about: "grouped-query attention of one new token per head, whole KV heads per cube",
    params: &[
        H_Q,
        H_KV,
        D,
        Param::new("s_kv", "8192", "keys of each head"),
        VALID,
        KV_PER_CUBE,
        SCALE,
        DTYPE,
    ],
    inputs,
    run,
};

/// Prefill of a short prompt.
pub const PREFILL_SHORT: Bench = Bench {
    name: "gqa-prefill-short",
    about: "grouped-query attention of a prompt, whole KV heads per cube",
    params: &[
        H_Q,
        H_KV,
        D,
        Param::new("t_q", "128", "queries of each head"),
        Param::new("s_kv", "128", "keys of each head"),
        Param::new("causal", "true", "query i sees keys up to i"),
        VALID,
        KV_PER_CUBE,
        SCALE,
        DTYPE,
    ],
    inputs,
    run,
};

/// Reads the parameters of either bench; `decode` has no `t_q` and no `causal`.
fn problem(ctx: &Context, p: &Params) -> Result<Gqa, Failure> {
    let topology = ctx.topology();
    let machine = topology.machine();
    let (h_q, h_kv, d) = (p.count("h_q", 1)?, p.count("h_kv", 1)?, p.count("d", 1)?);
    let s_kv = p.count("s_kv", 1)?;
    let prefill = is_prefill(p);
    let kv_per_cube = p.count("kv_per_cube", 1)?;
    let a = Gqa {
        h_q,
        h_kv,
        d,
        t_q: if prefill { p.count("t_q", 1)? } else { 1 },
        s_kv,
        valid: p.count_or_auto("valid", 0)?.unwrap_or(s_kv),
        causal: prefill && p.flag("causal")?,
        scale: p.number_or_auto("scale")?.unwrap_or(1.0 / (d as f32).sqrt()),
        kv_per_cube,
        pe_grid: machine.pe_grid.map(|n| n as usize),
    };
    p.float_type("dtype")?;
    let pes = machine.pes() as usize;
    let wrong =
        |message: String, help: String| Err(Failure::from(Diagnostic::error("KB0623", message).help(help)));
    if !h_q.is_multiple_of(h_kv) {
        let (below, above) = (h_q / h_kv * h_kv, h_q.next_multiple_of(h_kv));
        let near = if below == 0 { format!("{above}") } else { format!("{below} or {above}") };
        return wrong(
            format!("{h_q} query heads are no multiple of {h_kv} key/value heads"),
            format!("set h_q={near}"),
        );
    }
    let width = machine.pe_grid[0] as usize;
    let size = pes / kv_per_cube.max(1);
    let groups =
        pes.is_multiple_of(kv_per_cube) && (size.is_multiple_of(width) || width.is_multiple_of(size));
    if !groups {
        let fits = (1..=pes).filter(|&n| {
            let size = pes / n;
            pes.is_multiple_of(n) && (size.is_multiple_of(width) || width.is_multiple_of(size))
        });
        let fits: Vec<String> = fits.map(|n| n.to_string()).collect();
        return wrong(
            format!("{kv_per_cube} KV heads cannot share the {pes} PEs of a cube in equal groups"),
            format!("set kv_per_cube to one of {}", fits.join(", ")),
        );
    }
    if !h_kv.is_multiple_of(kv_per_cube) {
        return wrong(
            format!("{h_kv} key/value heads do not divide by kv_per_cube={kv_per_cube}"),
            format!("set h_kv={} or another multiple of {kv_per_cube}", h_kv.next_multiple_of(kv_per_cube)),
        );
    }
    let cubes = h_kv / kv_per_cube;
    if cubes > machine.cubes() as usize {
        return wrong(
            format!(
                "{h_kv} key/value heads, {kv_per_cube} per cube, need {cubes} cubes, but a SIP of this machine has {}",
                machine.cubes()
            ),
            "raise kv_per_cube, or describe a larger `sip.cube_mesh` with `--topology`".to_owned(),
        );
    }
    if !s_kv.is_multiple_of(size) {
        let (below, above) = (s_kv / size * size, s_kv.next_multiple_of(size));
        let near = if below == 0 { format!("{above}") } else { format!("{below} or {above}") };
        return wrong(
            format!("{s_kv} keys do not divide by the {size} PEs that share a head"),
            format!("set s_kv={near}"),
        );
    }
    if a.valid > s_kv {
        return wrong(format!("valid={} of {s_kv} keys", a.valid), format!("set valid to at most {s_kv}"));
    }
    Ok(a)
}

fn inputs(ctx: &Context, p: &Params, fill: Fill) -> Result<Vec<HostArray>, Failure> {
    let a = problem(ctx, p)?;
    let ty = p.float_type("dtype")?;
    let q = if is_prefill(p) { vec![a.t_q, a.h_q * a.d] } else { vec![a.h_q, a.d] };
    let kv = [a.h_kv * a.s_kv, a.d];
    Ok(vec![fill.array("q", ty, &q), fill.array("k", ty, &kv), fill.array("v", ty, &kv)])
}

fn run(ctx: &Context, p: &Params, inputs: &[HostArray], options: &LaunchOptions) -> Result<Outcome, Failure> {
    let a = problem(ctx, p)?;
    let kind = if is_prefill(p) { Kind::Prefill } else { Kind::Decode };
    match p.float_type("dtype")? {
        ElementType::F16 => run_in::<f16>(ctx, kind, a, inputs, options),
        ElementType::Bf16 => run_in::<bf16>(ctx, kind, a, inputs, options),
        _ => run_in::<f32>(ctx, kind, a, inputs, options),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Decode,
    Prefill,
}

/// Of the two benches, only prefill takes `t_q`.
fn is_prefill(p: &Params) -> bool {
    !p.text("t_q").is_empty()
}

fn run_in<T: Float>(
    ctx: &Context,
    kind: Kind,
    a: Gqa,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let (cubes, pes) = (a.h_kv / a.kv_per_cube, a.pe_grid[0] * a.pe_grid[1]);
    let everywhere = Placement::replicated().on(cubes, pes);
    let split = Placement::row_wise().on(cubes, pes);
    let [q, k, v] = inputs else {
        return Err(Diagnostic::error("KB0624", "the bench needs inputs q, k and v").into());
    };
    let place = |x: &HostArray, placement| {
        let (m, n) = (x.shape[0], x.shape[1]);
        match x.bytes.is_empty() {
            true => ctx.zeros::<T>([m, n], placement, &x.name),
            false => ctx.from_bytes(&x.bytes, [m, n], placement, &x.name),
        }
    };
    let tq = place(q, everywhere)?;
    let tk = place(k, split)?;
    let tv = place(v, split)?;
    let mut to = ctx.empty::<T>([q.shape[0], q.shape[1]], everywhere, "o")?;
    let Gqa { h_q, h_kv, d, t_q, s_kv, valid, causal, scale, .. } = a;
    let problem = Problem { h_q, h_kv, d, t_q, s_kv, valid, causal, scale };
    let (mut reference, mut low) = (vec![], vec![]);
    // The references need no launch: they use the threads that recording and simulating leave idle.
    let launched = rayon::in_place_scope(|scope| {
        if !q.bytes.is_empty() {
            scope.spawn(|_| reference = oracle::attention(&problem, q, k, v));
            scope.spawn(|_| low = oracle::plain::<T>(&problem, q, k, v));
        }
        if kind == Kind::Decode {
            let kernel = gqa_decode_short { q: tq.input(), k: tk.input(), v: tv.input(), o: to.output(), a };
            ctx.launch_with("decode", kernel, options)
        } else {
            let kernel = gqa_prefill_short { q: tq.input(), k: tk.input(), v: tv.input(), o: to.output(), a };
            ctx.launch_with("prefill", kernel, options)
        }
    })?;
    if !launched.computed {
        return Ok(Outcome { launches: vec![launched], outputs: vec![], check: None });
    }
    let out: Vec<T> = ctx.read(&to)?.into_iter().collect();
    let output = HostArray::new("o", &q.shape, &out);
    let check = Some(tolerance::check::<T>(&output.floats(), &reference, &low));
    Ok(Outcome { launches: vec![launched], outputs: vec![output], check })
}
