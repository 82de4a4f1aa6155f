//! General attention of arrays on the host: placed, launched, read back.

use super::{Layout, Masks, Spec, Stage, attention, attention_scores, extend_cache};
use crate::bench::HostArray;
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Context, LaunchOptions, Tensor};
use kernbench_core::placement::Placement;
use kernbench_core::ty::{Dtype, Float};

/// The arrays of a problem; see [`attention()`] for their shapes.
#[derive(Clone, Copy, Debug)]
pub struct Arrays<'a> {
    /// Queries.
    pub q: &'a HostArray,
    /// Keys; with a past the new ones, in the layout `new`.
    pub k: &'a HostArray,
    /// Values, as the keys.
    pub v: &'a HostArray,
    /// Keys and values of the past, heads first.
    pub past: Option<[&'a HostArray; 2]>,
    /// The layout of the new keys and values if there is a cache; the cache is heads first.
    pub new: Option<Layout>,
    /// An additive mask.
    pub add: Option<&'a HostArray>,
    /// A mask of bytes that is 0 where a key is off.
    pub allow: Option<&'a HostArray>,
    /// Keys of each batch that count.
    pub lengths: Option<&'a [i32]>,
    /// A score of each query head without a value.
    pub sinks: Option<&'a HostArray>,
    /// Which scores are asked for.
    pub scores: Option<Stage>,
}

/// What comes out.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Outputs.
    pub y: HostArray,
    /// Log-sum-exp of each row.
    pub lse: HostArray,
    /// The cache of keys and values, if there is one.
    pub present: Option<[HostArray; 2]>,
    /// The scores, if they were asked for.
    pub scores: Option<HostArray>,
}

/// Computes attention on the first SIP: blocks of rows go to all its PEs, one after the other.
///
/// # Errors
/// Whatever a launch says; a context without data (`KB0624`).
pub fn attention_of<T: Float>(
    ctx: &Context,
    a: &Spec,
    x: &Arrays,
    options: &LaunchOptions,
) -> Result<Answer, Failure> {
    let place = place(ctx, a);
    let (batch, kv) = (a.batch, a.kv_heads);
    let q_shape = |d| a.q_layout.shape(batch, [a.q_heads, a.queries, d]);
    let q = put::<T>(ctx, x.q, q_shape(a.d), place)?;
    let (k, v) = match x.new {
        None => {
            let shape = |d| a.kv_layout.shape(batch, [kv, a.keys, d]);
            (put::<T>(ctx, x.k, shape(a.d), place)?, put::<T>(ctx, x.v, shape(a.d_v), place)?)
        }
        Some(layout) => {
            let cache = |new: &HostArray, past: Option<&HostArray>, d: usize| {
                let old = past.map_or(0, |past| past.shape[2]);
                let past = past.map(|past| put::<T>(ctx, past, [batch * kv * old, d], place)).transpose()?;
                let new = put::<T>(ctx, new, layout.shape(batch, [kv, a.keys - old, d]), place)?;
                let mut present = ctx.empty::<T>([batch * kv * a.keys, d], place, "present")?;
                let (past, heads) = (past.as_ref().map(Tensor::input), kv);
                let kernel =
                    extend_cache { past, new: new.input(), present: present.output(), layout, batch, heads };
                ctx.launch_with("extend_cache", kernel, options)?;
                Ok::<_, Failure>(present)
            };
            (cache(x.k, x.past.map(|p| p[0]), a.d)?, cache(x.v, x.past.map(|p| p[1]), a.d_v)?)
        }
    };
    let mask_shape = [a.mask[0] * a.mask[1] * a.mask[2], a.mask[3]];
    let add = x.add.map(|m| put::<T>(ctx, m, mask_shape, place)).transpose()?;
    let allow = x.allow.map(|m| put::<u8>(ctx, m, mask_shape, place)).transpose()?;
    let masks = Masks { add: add.as_ref().map(Tensor::input), allow: allow.as_ref().map(Tensor::input) };
    let sinks = x.sinks.map(|s| put::<T>(ctx, s, [a.q_heads, 1], place)).transpose()?;
    let lengths = x.lengths.map(|n| HostArray::new("lengths", &[1, batch], n));
    let lengths = lengths.map(|n| put::<i32>(ctx, &n, [1, batch], place)).transpose()?;
    let rows = batch * a.q_heads * a.queries;
    let mut o = ctx.empty::<T>(q_shape(a.d_v), place, "o")?;
    let mut lse = ctx.empty::<f32>([rows, 1], place, "lse")?;
    let kernel = attention {
        q: q.input(),
        k: k.input(),
        v: v.input(),
        o: o.output(),
        lengths: lengths.as_ref().map(Tensor::input),
        masks,
        sinks: sinks.as_ref().map(Tensor::input),
        lse: Some(lse.output()),
        a: a.clone(),
    };
    if !ctx.launch_with("attention", kernel, options)?.computed {
        let d = Diagnostic::error("KB0624", "attention of arrays needs a context with data");
        return Err(d.help("leave `data(false)` out").into());
    }
    let scores = match x.scores {
        None => None,
        Some(stage) => {
            let mut scores = ctx.empty::<T>([rows, a.keys], place, "scores")?;
            let kernel = attention_scores {
                q: q.input(),
                k: k.input(),
                o: scores.output(),
                lengths: lengths.as_ref().map(Tensor::input),
                masks,
                lse: lse.input(),
                stage,
                a: a.clone(),
            };
            ctx.launch_with("attention_scores", kernel, options)?;
            Some(get(ctx, &scores, "scores")?)
        }
    };
    let present = match x.new {
        None => None,
        Some(_) => Some([get(ctx, &k, "present_key")?, get(ctx, &v, "present_value")?]),
    };
    Ok(Answer { y: get(ctx, &o, "y")?, lse: get(ctx, &lse, "lse")?, present, scores })
}

/// Every PE has everything, of as many cubes as there is work for.
pub(super) fn place(ctx: &Context, a: &Spec) -> Placement {
    let (pes, cubes) = (ctx.topology().machine().pes() as usize, ctx.topology().machine().cubes() as usize);
    let work = a.blocks(32).take(pes * cubes).count();
    Placement::replicated().on(work.div_ceil(pes).max(1), pes)
}

fn put<T: Dtype>(
    ctx: &Context,
    x: &HostArray,
    shape: [usize; 2],
    place: Placement,
) -> Result<Tensor<T>, Failure> {
    ctx.from_bytes(&x.bytes, shape, place, &x.name)
}

fn get<T: Dtype>(ctx: &Context, x: &Tensor<T>, name: &str) -> Result<HostArray, Failure> {
    let values = ctx.read(x)?;
    let shape = values.shape().to_vec();
    Ok(HostArray::new(name, &shape, &values.into_iter().collect::<Vec<T>>()))
}
