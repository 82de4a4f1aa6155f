//! General attention by its definition, one row after the other: in f64, and plainly in the storage type.

use crate::attention::{Align, Spec};
use kernbench_core::ty::{ElementType, Float};
use rayon::prelude::*;

/// The arrays of a problem, all heads first: queries `(batch, q_heads, queries, d)`, keys and values
/// `(batch, kv_heads, keys, ..)`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Inputs<'a> {
    pub q: &'a [f32],
    pub k: &'a [f32],
    pub v: &'a [f32],
    /// Added to the scores, of shape [`Spec::mask`]; -inf where a key is off.
    pub mask: Option<&'a [f32]>,
    /// Keys that count, of each batch.
    pub lengths: Option<&'a [i32]>,
    /// A score of each query head without a value.
    pub sinks: Option<&'a [f32]>,
}

/// Outputs and log-sum-exps.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Outputs<F> {
    pub y: Vec<F>,
    pub lse: Vec<F>,
}

/// Attention in f64.
#[must_use]
pub fn general(a: &Spec, x: &Inputs) -> Outputs<f64> {
    rows(a, x, |sum, x, y| sum + x * y, |x| x)
}

/// Attention as a plain implementation in `T` does it: products accumulate in f32; scores, weights and outputs are
/// rounded to `T`.
#[must_use]
pub fn plain_general<T: Float>(a: &Spec, x: &Inputs) -> Outputs<f32> {
    let round = |x: f64| f64::from(T::from_f32(x as f32).to_f32());
    let of = rows(a, x, |sum, x, y| f64::from(sum as f32 + x as f32 * y as f32), round);
    let narrow = |x: Vec<f64>| x.into_iter().map(|x| x as f32).collect();
    Outputs { y: narrow(of.y), lse: narrow(of.lse) }
}

/// `add` is a step of a product, `round` what becomes of scores, weights and outputs.
fn rows(
    a: &Spec,
    x: &Inputs,
    add: impl Fn(f64, f64, f64) -> f64 + Sync,
    round: impl Fn(f64) -> f64 + Sync,
) -> Outputs<f64> {
    let row = |i: usize| {
        let (b, h, t) = (i / a.queries / a.q_heads, i / a.queries % a.q_heads, i % a.queries);
        let head = (b * a.kv_heads + h / (a.q_heads / a.kv_heads)) * a.keys;
        let valid = x.lengths.map_or(a.keys as i64, |n| i64::from(n[b]));
        let at = t as i64
            + match a.align {
                Align::TopLeft => 0,
                Align::BottomRight => valid - a.queries as i64,
                Align::Offset(offset) => offset,
            };
        let seen = |j: usize| {
            let after = j as i64 - at;
            let left = a.window[0].is_none_or(|n| -after <= n as i64) || j < a.sink_keys;
            let right = a.window[1].is_none_or(|n| after <= n as i64);
            (j as i64) < valid && j < a.mask[3] && left && (after <= 0 || !a.causal && right)
        };
        let query = &x.q[i * a.d..][..a.d];
        let score = |j: usize| {
            let key = &x.k[(head + j) * a.d..][..a.d];
            let product =
                query.iter().zip(key).fold(0.0, |sum, (q, k)| add(sum, f64::from(*q), f64::from(*k)));
            let s = round(round(product) * f64::from(a.scale));
            let cap = f64::from(a.softcap);
            let s = if cap > 0.0 { round(cap * libm::tanh(s / cap)) } else { s };
            let [batches, heads, queries, columns] = a.mask;
            let at = |n: usize, i: usize| if n == 1 { 0 } else { i };
            let row = (at(batches, b) * heads + at(heads, h)) * queries + at(queries, t);
            round(s + x.mask.map_or(0.0, |mask| f64::from(mask[row * columns + j])))
        };
        let keys: Vec<(usize, f64)> = (0..a.keys).filter(|j| seen(*j)).map(|j| (j, score(j))).collect();
        let sink = x.sinks.map_or(f64::NEG_INFINITY, |s| f64::from(s[h]));
        let top = keys
            .iter()
            .fold(sink, |top, (_, s)| if s.is_nan() || top.is_nan() { f64::NAN } else { top.max(*s) });
        let mut y = vec![0.0; a.d_v];
        if top == f64::NEG_INFINITY {
            return (y, top);
        }
        let total = keys.iter().fold(libm::exp(sink - top), |sum, (_, s)| sum + libm::exp(s - top));
        for (j, s) in &keys {
            let weight = round(libm::exp(s - top) / total);
            let value = &x.v[(head + j) * a.d_v..][..a.d_v];
            y.iter_mut().zip(value).for_each(|(y, v)| *y = add(*y, weight, f64::from(*v)));
        }
        (y.into_iter().map(&round).collect(), top + libm::log(total))
    };
    let done: Vec<(Vec<f64>, f64)> = (0..a.batch * a.q_heads * a.queries).into_par_iter().map(row).collect();
    let mut out = Outputs::default();
    for (y, lse) in done {
        out.y.extend(y);
        out.lse.push(lse);
    }
    out
}

/// Inputs with outliers: `N(0, 1) + 10 N(0, 1) Bernoulli(0.001)`, rounded to a type.
#[must_use]
pub fn with_outliers(ty: ElementType, seed: u64, name: &str, n: usize) -> Vec<f32> {
    let normal = |what: &str| crate::random::normal::<f32>(seed, &format!("{name}{what}"), n);
    let (base, large, which) = (normal(""), normal(" outliers"), normal(" which"));
    // A normal value is above 3.09 once in a thousand times.
    let mix = |i: usize| if which[i] > 3.0902 { base[i] + 10.0 * large[i] } else { base[i] };
    let values: Vec<f32> = (0..n).map(mix).collect();
    let mut bytes = vec![0; n * ty.bytes() as usize];
    ty.narrow(&values, &mut bytes);
    let mut rounded = vec![0.0; n];
    ty.widen(&bytes, &mut rounded);
    rounded
}
