//! Grouped-query attention at short context: each cube owns whole KV heads, the PEs of a group split
//! the keys of one head, and partials are reduced to the group's root. Nothing leaves a cube.
//!
//! Work per PE: `2 * 2 * h_q / h_kv * t_q * s_kv * kv_per_cube / PEs * d` flop; each key is read once.

use super::{Gqa, Group, Softmax};
use kernbench_core::prelude::*;
use kernbench_macros::kernel;

/// Keys of a block.
const KEYS: usize = 64;
/// Query rows of a block in prefill.
const ROWS: usize = 32;

/// Grouped-query decode, short context: one query of each head.
#[kernel]
pub fn gqa_decode_short<T: Float>(
    /// (h_q, d), replicated.
    q: In<T>,
    /// (h_kv * s_kv, d), row-wise over cubes and PEs.
    k: In<T>,
    /// Laid out like `k`.
    v: In<T>,
    /// (h_q, d), replicated; each group root writes the rows of its head.
    o: Out<T>,
    a: Gqa,
) {
    let group = Group::of(&a, tl::cube(), tl::pe());
    let heads = Block::new(group.head * a.group(), a.group());
    let q = tl::load(q.rows(heads));
    let acc = Softmax::empty(tl, q.nrows(), a.d);
    for keys in group.keys(&a).blocks(KEYS) {
        scratch_scope!(buffers = 2, {
            let kt = tl::load(k.rows(group.rows(&a, keys)));
            let vt = tl::load(v.rows(group.rows(&a, keys)));
            let s = tl::dot(q, kt.t());
            acc.update(tl, s * a.scale, vt);
        });
    }
    for from in group.sources() {
        acc.merge_partial(tl, from);
    }
    match group.parent() {
        Some(to) => acc.send_partial(tl, to),
        None => tl::store(o.rows(heads), acc.output::<T>(tl)),
    }
}

/// Grouped-query prefill, short context: `t_q` queries of each head, causal or not.
#[kernel]
pub fn gqa_prefill_short<T: Float>(
    /// (t_q, h_q * d), replicated.
    q: In<T>,
    /// (h_kv * s_kv, d), row-wise over cubes and PEs.
    k: In<T>,
    /// Laid out like `k`.
    v: In<T>,
    /// (t_q, h_q * d), replicated; each group root writes the columns of its head.
    o: Out<T>,
    a: Gqa,
) {
    let group = Group::of(&a, tl::cube(), tl::pe());
    let heads = Block::new(group.head * a.group() * a.d, a.group() * a.d);
    // Row i of these tiles is query i / group: the heads of a query follow each other.
    let q = tl::load(q.cols(heads)).reshape([a.t_q * a.group(), a.d]);
    let acc = Softmax::empty(tl, q.nrows(), a.d);
    for keys in group.keys(&a).blocks(KEYS) {
        if a.causal && keys.start >= a.t_q {
            break; // wholly above the diagonal
        }
        scratch_scope!(buffers = 2, {
            let kt = tl::load(k.rows(group.rows(&a, keys)));
            let vt = tl::load(v.rows(group.rows(&a, keys)));
            for rows in Block::new(0, q.nrows()).blocks(ROWS) {
                if a.causal && keys.start * a.group() >= rows.end() {
                    continue;
                }
                scratch_scope!({
                    let acc = acc.rows(rows);
                    let s = tl::dot(q.rows(rows), kt.t()) * a.scale;
                    if !a.causal || (keys.end() - 1) * a.group() <= rows.start {
                        acc.update(tl, s, vt); // wholly below: no mask
                        continue;
                    }
                    // Query i / group sees key j exactly when i >= j * group.
                    let i = tl::arange(rows, Axis::Rows);
                    let j = tl::arange(keys, Axis::Cols);
                    let causal = tl::ge(i, j * a.group() as i32);
                    acc.update(tl, tl::select(causal, s, f32::NEG_INFINITY), vt);
                });
            }
        });
    }
    for from in group.sources() {
        acc.merge_partial(tl, from);
    }
    match group.parent() {
        Some(to) => acc.send_partial(tl, to),
        None => tl::store(o.cols(heads), acc.output::<T>(tl).reshape([a.t_q, heads.len])),
    }
}
