//! Scores of some rows against some keys: product, softcap, masks.

use super::{Rows, Spec};
use kernbench_core::prelude::*;
use kernbench_macros::device;

/// How far scores are worked out; the numbers are those of ONNX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The scaled product.
    Product = 0,
    /// After the softcap.
    Capped = 1,
    /// After all masks.
    Masked = 2,
    /// After the softmax.
    Weights = 3,
}

/// Masks of scores: additive ones, and ones that are 0 where a key is off. Row-major, see [`Spec::mask`].
#[derive(Clone, Copy, Debug)]
pub struct Masks<T: Float> {
    /// What is added to the scores.
    pub add: Option<In<T>>,
    /// Nonzero where a key counts.
    pub allow: Option<In<u8>>,
}

impl Spec {
    /// The rows of the mask that rows take, one or as many.
    fn mask_rows(&self, rows: &Rows) -> Block {
        let [batches, heads, queries, _] = self.mask;
        let at = |n: usize, i: Block| if n == 1 { Block::new(0, 1) } else { i };
        let (b, h, q) =
            (at(batches, Block::new(rows.batch, 1)), at(heads, rows.heads), at(queries, rows.queries));
        Block::new((b.start * heads + h.start) * queries + q.start, h.len * q.len)
    }
}

/// The scores `[rows, keys]` up to a stage before the softmax, of `q` `[rows, d]` and `k` `[keys, d]`. `offset` is
/// that of [`Spec::offset`]. A key is seen by a query if all masks let it be.
#[device]
pub fn score<'s, T: Float>(
    tl: &'s Scope,
    q: Tile<T>,
    k: Tile<T>,
    masks: Masks<T>,
    (a, rows, keys, offset): (&Spec, &Rows, Block, i64),
    stage: Stage,
) -> Tile<'s, f32> {
    let s = tl::dot(q, k.t());
    let s = match a.softcap {
        c if c > 0.0 && stage >= Stage::Capped => tl::eval(tl::tanh(s * (a.scale / c)) * c),
        _ => tl::eval(s * a.scale),
    };
    if stage < Stage::Masked {
        return s;
    }
    if let Some(add) = masks.add {
        let add = tl::load(add.rows(a.mask_rows(rows)).cols(keys));
        tl::copy_to(s, s + add.cast::<f32>());
    }
    if let Some(allow) = masks.allow {
        let allow = tl::load(allow.rows(a.mask_rows(rows)).cols(keys));
        tl::copy_to(s, tl::select(tl::ne(allow.cast::<f32>(), 0.0), s, f32::NEG_INFINITY));
    }
    // Query i stands at key i + offset.
    let [first, last] = [rows.queries.start, rows.queries.end() - 1].map(|i| i as i64 + offset);
    let within = |n: i64| n.clamp(-(1 << 30), 1 << 30) as i32;
    let behind = if a.causal { Some(0) } else { a.window[1] };
    if let Some(right) = behind.filter(|right| keys.end() as i64 - 1 > first + *right as i64) {
        let (i, j) = (tl::arange(rows.queries, Axis::Rows), tl::arange(keys, Axis::Cols));
        let seen = tl::le(j, i + within(offset + right as i64));
        tl::copy_to(s, tl::select(seen, s, f32::NEG_INFINITY));
    }
    if let Some(left) = a.window[0].filter(|left| (keys.start as i64) < last - *left as i64) {
        let (i, j) = (tl::arange(rows.queries, Axis::Rows), tl::arange(keys, Axis::Cols));
        let seen = tl::or(tl::ge(j, i + within(offset - left as i64)), tl::lt(j, a.sink_keys as i32));
        tl::copy_to(s, tl::select(seen, s, f32::NEG_INFINITY));
    }
    s
}
