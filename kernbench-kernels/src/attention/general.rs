//! General attention: every variant of [`Spec`], any shape; blocks of rows are spread over all PEs of a SIP.
//!
//! Work: `2 * batch * q_heads * queries * keys seen * (d + d_v)` flop; a block of rows reads the keys that it sees once
//! (Dao et al., FlashAttention, 2022). Semantics are those of the ONNX operator Attention, opsets 23 to 25.

use super::{Layout, Masks, Rows, Softmax, Spec, Stage, score};
use kernbench_core::prelude::*;
use kernbench_macros::{device, kernel};

/// Rows, or keys, of `d` elements each of a block: as many as are 32 KiB, of which two buffers of all tiles fit the
/// default scratch.
fn fit<T: Float>(most: usize, d: usize) -> usize {
    ((1 << 15) / (T::TYPE.bytes() as usize * d.max(1))).clamp(1, most)
}

/// The blocks of rows of this PE: every n-th of all.
#[device]
fn mine<T: Float>(tl: &Scope, a: &Spec) -> Vec<Rows> {
    let pes = tl::num_programs(0);
    let (at, all) = (tl::cube() * pes + tl::pe(), pes * tl::num_programs(1));
    a.blocks(fit::<T>(32, a.d.max(a.d_v))).skip(at).step_by(all).collect()
}

/// Loads vectors of size `d` of some heads, a row each.
#[device]
fn load_part<T: Float>(tl: &Scope, x: In<T>, [rows, cols]: [Block; 2], d: usize) -> Tile<'_, T> {
    let tile = tl::load(x.rows(rows).cols(cols));
    tile.reshape([rows.len * cols.len / d, d])
}

impl Spec {
    /// Where the queries of rows are, or their outputs.
    fn of_rows(&self, rows: &Rows, d: usize) -> [Block; 2] {
        self.q_layout.part(rows.batch, [self.q_heads, self.queries, d], rows.heads, rows.queries)
    }

    /// Where some keys of the head of rows are, or their values.
    fn of_keys(&self, rows: &Rows, keys: Block, d: usize) -> [Block; 2] {
        let head = Block::new(rows.heads.start / self.group(), 1);
        self.kv_layout.part(rows.batch, [self.kv_heads, self.keys, d], head, keys)
    }
}

/// Attention. Tensors that a problem does not have are left out.
#[kernel]
pub fn attention<T: Float>(
    /// (batch, q_heads, queries, d) in the layout of queries.
    q: In<T>,
    /// (batch, kv_heads, keys, d) in the layout of keys.
    k: In<T>,
    /// (batch, kv_heads, keys, d_v) in the layout of keys.
    v: In<T>,
    /// (batch, q_heads, queries, d_v) in the layout of queries.
    o: Out<T>,
    /// (1, batch): how many of the keys count.
    lengths: Option<In<i32>>,
    /// Masks; see [`Spec::mask`].
    masks: Masks<T>,
    /// (q_heads, 1): a score of each head that takes part in its softmax without a value.
    sinks: Option<In<T>>,
    /// (batch * q_heads * queries, 1): natural logarithm of the sum of the weights before they were divided by it.
    lse: Option<Out<f32>>,
    a: Spec,
) {
    let lengths = lengths.map(|lengths| tl::read(lengths));
    for rows in mine::<T>(tl, &a) {
        scratch_scope!(buffers = 2, {
            let valid = lengths.as_ref().map_or(a.keys, |n| n[rows.batch].clamp(0, a.keys as i32) as usize);
            let q = load_part(tl, q, a.of_rows(&rows, a.d), a.d);
            let acc = Softmax::empty(tl, q.nrows(), a.d_v);
            if let Some(sinks) = sinks {
                let s = tl::load(sinks.rows(rows.heads));
                acc.start_with(tl, s.cast::<f32>());
            }
            let [end, start] = a.seen(&rows, valid);
            for keys in Block::new(0, end).blocks(fit::<T>(64, a.d.max(a.d_v))) {
                if keys.end() <= start && keys.start >= a.sink_keys {
                    continue; // wholly before the window
                }
                scratch_scope!(buffers = 2, {
                    let kt = load_part(tl, k, a.of_keys(&rows, keys, a.d), a.d);
                    let vt = load_part(tl, v, a.of_keys(&rows, keys, a.d_v), a.d_v);
                    let s = score(tl, q, kt, masks, (&a, &rows, keys, a.offset(valid)), Stage::Masked);
                    acc.update(tl, s + 0.0, vt);
                });
            }
            let [at, cols] = a.of_rows(&rows, a.d_v);
            tl::store(o.rows(at).cols(cols), acc.output::<T>(tl).reshape([at.len, cols.len]));
            if let Some(lse) = lse {
                let [at, _] =
                    Layout::HeadsFirst.part(rows.batch, [a.q_heads, a.queries, 1], rows.heads, rows.queries);
                tl::store(lse.rows(at), acc.log_sum(tl));
            }
        });
    }
}

/// The matrix of scores at a stage.
#[kernel]
pub fn attention_scores<T: Float>(
    /// As of [`attention`].
    q: In<T>,
    /// As of [`attention`].
    k: In<T>,
    /// (batch * q_heads * queries, keys).
    o: Out<T>,
    /// As of [`attention`].
    lengths: Option<In<i32>>,
    /// As of [`attention`].
    masks: Masks<T>,
    /// What [`attention`] has written there.
    lse: In<f32>,
    stage: Stage,
    a: Spec,
) {
    let lengths = lengths.map(|lengths| tl::read(lengths));
    for rows in mine::<T>(tl, &a) {
        let valid = lengths.as_ref().map_or(a.keys, |n| n[rows.batch].clamp(0, a.keys as i32) as usize);
        let [at, _] =
            Layout::HeadsFirst.part(rows.batch, [a.q_heads, a.queries, 1], rows.heads, rows.queries);
        // Behind `end` all keys are off.
        let end = if stage < Stage::Masked { a.keys } else { valid.min(a.mask[3]) };
        scratch_scope!(buffers = 2, {
            let q = load_part(tl, q, a.of_rows(&rows, a.d), a.d);
            let lse = tl::load(lse.rows(at));
            for keys in Block::new(0, end).blocks(fit::<T>(64, a.d)) {
                scratch_scope!(buffers = 2, {
                    let kt = load_part(tl, k, a.of_keys(&rows, keys, a.d), a.d);
                    let s = score(tl, q, kt, masks, (&a, &rows, keys, a.offset(valid)), stage);
                    let out = match stage {
                        Stage::Weights => tl::select(tl::eq(lse, f32::NEG_INFINITY), 0.0, tl::exp(s - lse)),
                        _ => s + 0.0,
                    };
                    tl::store(o.rows(at).cols(keys), out.cast::<T>());
                });
            }
            let off = if stage == Stage::Weights { 0.0 } else { f32::NEG_INFINITY };
            for keys in Block::new(end, a.keys - end).blocks(64) {
                scratch_scope!({
                    let out = tl::full([at.len, keys.len], off);
                    tl::store(o.rows(at).cols(keys), out.cast::<T>());
                });
            }
        });
    }
}
