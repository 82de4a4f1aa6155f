//! The bench of general attention.

use super::on_host::place;
use super::{Align, Masks, Spec, attention};
use crate::bench::{Bench, Fill, HostArray, Outcome, Param, Params, for_type};
use crate::oracle::{Inputs, general, plain_general};
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Context, LaunchOptions};
use kernbench_core::ty::Float;

/// Prefill of a chunk of a prompt, of a Llama-3-8B layer, by default.
pub const ATTENTION: Bench = Bench {
    name: "attention",
    about: "attention of any shape with its variants, blocks of queries spread over all PEs",
    params: &[
        Param::new("batch", "1", "independent problems"),
        Param::new("h_q", "32", "query heads; a multiple of h_kv"),
        Param::new("h_kv", "8", "key/value heads"),
        Param::new("t_q", "128", "queries of each head"),
        Param::new("s_kv", "512", "keys of each head"),
        Param::new("d", "128", "head size of queries and keys"),
        Param::new("d_v", "auto", "head size of values and outputs; auto: d"),
        Param::new("causal", "true", "a query sees no keys behind its own place"),
        Param::new(
            "align",
            "bottom-right",
            "the last query is at the last key; top-left: the first at the first",
        ),
        Param::new("window", "none", "keys before its own place that a query sees; none: all"),
        Param::new("softcap", "0", "scores become softcap tanh(score / softcap); 0: they stay"),
        Param::new("scale", "auto", "factor of the scores; auto: 1/sqrt(d)"),
        Param::new("dtype", "f16", "element type: f16, bf16 or f32"),
    ],
    inputs,
    run: |ctx, p, inputs, options| for_type!(p.float_type("dtype")?, run(ctx, p, inputs, options)),
};

fn problem(p: &Params) -> Result<Spec, Failure> {
    let (h_q, h_kv, d) = (p.count("h_q", 1)?, p.count("h_kv", 1)?, p.count("d", 1)?);
    if !h_q.is_multiple_of(h_kv) {
        let text = format!("{h_q} query heads do not divide by {h_kv} key/value heads");
        let help = format!("set h_q={} or another multiple of {h_kv}", h_q.next_multiple_of(h_kv));
        return Err(Diagnostic::error("KB0623", text).help(help).into());
    }
    let lengths = [p.count("t_q", 1)?, p.count("s_kv", 1)?];
    let d_v = p.count_or_auto("d_v", 1)?.unwrap_or(d);
    let mut a = Spec::new(p.count("batch", 1)?, [h_q, h_kv], lengths, [d, d_v]);
    a.causal = p.flag("causal")?;
    a.align = p.choice("align", &[("top-left", Align::TopLeft), ("bottom-right", Align::BottomRight)])?;
    a.window[0] = p.count_or_none("window", 0)?;
    a.softcap = p.number("softcap")?;
    a.scale = p.number_or_auto("scale")?.unwrap_or(a.scale);
    Ok(a)
}

fn inputs(_: &Context, p: &Params, fill: Fill) -> Result<Vec<HostArray>, Failure> {
    let (a, ty) = (problem(p)?, p.float_type("dtype")?);
    Ok(vec![
        fill.array("q", ty, &[a.batch, a.q_heads, a.queries, a.d]),
        fill.array("k", ty, &[a.batch, a.kv_heads, a.keys, a.d]),
        fill.array("v", ty, &[a.batch, a.kv_heads, a.keys, a.d_v]),
    ])
}

fn run<T: Float>(
    ctx: &Context,
    p: &Params,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let [q, k, v] = inputs else {
        return Err(Diagnostic::error("KB0624", "the bench needs inputs q, k and v").into());
    };
    let a = problem(p)?;
    let place = place(ctx, &a);
    let (tq, tk, tv) = (q.tensor::<T>(ctx, place)?, k.tensor::<T>(ctx, place)?, v.tensor::<T>(ctx, place)?);
    let mut o = ctx.empty::<T>([tq.shape()[0], a.d_v], place, "o")?;
    let kernel = attention {
        q: tq.input(),
        k: tk.input(),
        v: tv.input(),
        o: o.output(),
        lengths: None,
        masks: Masks { add: None, allow: None },
        sinks: None,
        lse: None,
        a: a.clone(),
    };
    let launched = ctx.launch_with("attention", kernel, options)?;
    let outcome = Outcome::of(ctx, launched, &o, || {
        let (q, k, v) = (q.floats(), k.floats(), v.floats());
        let x = Inputs { q: &q, k: &k, v: &v, mask: None, lengths: None, sinks: None };
        (general(&a, &x).y, plain_general::<T>(&a, &x).y)
    })?;
    Ok(outcome.shaped(&[a.batch, a.q_heads, a.queries, a.d_v]))
}
