//! Grouped-query prefill at long context: every cube keeps its queries, keys and values travel over the cubes.
//!
//! Work per PE: `2 * 2 * h_q * t_q * s_kv / PEs * d` flop; each key is read once from HBM and sent to every cube once, both
//! ways along the open line of cubes, while the blocks that are there are computed with (ring attention, Liu et al.,
//! 2023). Within a cube the PEs hold different keys of the same queries, and partials go to PE 0.

use super::{Line, Long, Softmax};
use kernbench_core::prelude::*;
use kernbench_macros::kernel;

/// Grouped-query prefill, long context. `t_q` queries, as many on each cube, in order.
#[kernel]
pub fn gqa_prefill_long<T: Float>(
    /// (t_q, h_q * d), replicated; each cube takes its rows.
    q: In<T>,
    /// Shard-stacked, row-wise over cubes and PEs; see [`Long`].
    k: In<T>,
    /// Laid out like `k`.
    v: In<T>,
    /// (t_q, h_q * d), replicated; PE 0 of each cube writes its rows.
    o: Out<T>,
    /// Query `i` sees keys up to `i` (top-left).
    causal: bool,
    a: Long,
) {
    let (cube, pe) = (tl::cube(), tl::pe());
    let (k, v) = (k.local(), v.local());
    let tree = a.tree(cube, pe);
    let line = Line::of_cubes(cube, a.cubes, a.mesh_columns);
    let group = a.h_q / a.h_kv;
    let queries = Block::new(cube * (q.nrows() / a.cubes), q.nrows() / a.cubes);
    let fits = (tl::slot_size() / (T::TYPE.bytes() as usize * a.d)).max(1);
    for head in 0..a.h_kv {
        let heads = Block::new(head * group * a.d, group * a.d);
        scratch_scope!({
            // Row i is query i / group: the heads of a query follow each other.
            let q = tl::load(q.rows(queries).cols(heads)).reshape([queries.len * group, a.d]);
            let acc = Softmax::empty(tl, q.nrows(), a.d);
            for keys in Block::new(0, a.keys).blocks(fits) {
                scratch_scope!(buffers = 2, {
                    let rows = Block::new(head * a.keys + keys.start, keys.len);
                    let own = [tl::load(k.rows(rows)), tl::load(v.rows(rows))];
                    for (rank, [kt, vt]) in line.share(tl, own) {
                        let first = a.tree(line.number(rank), pe).rank() * a.keys + keys.start;
                        let counts = keys.len.min(a.valid.saturating_sub(first));
                        if counts == 0 || causal && first >= queries.end() {
                            continue; // padding, or wholly above the diagonal
                        }
                        scratch_scope!({
                            let (kt, vt) = (kt.rows(0..counts), vt.rows(0..counts));
                            let s = tl::dot(q, kt.t()) * a.scale;
                            if !causal || first + counts - 1 <= queries.start {
                                acc.update(tl, s, vt); // wholly below: no mask
                                continue;
                            }
                            // Query i / group sees key j exactly when i >= j * group.
                            let i = tl::arange(Block::new(queries.start * group, q.nrows()), Axis::Rows);
                            let j = tl::arange(Block::new(first, counts), Axis::Cols);
                            let causal = tl::ge(i, j * group as i32);
                            acc.update(tl, tl::select(causal, s, f32::NEG_INFINITY), vt);
                        });
                    }
                });
            }
            for from in tree.pe.sources([Dir::IntraE, Dir::IntraS]) {
                acc.merge_partial(tl, from);
            }
            match tree.pe.parent([Dir::IntraW, Dir::IntraN]) {
                Some(to) => acc.send_partial(tl, to),
                None => {
                    let out = acc.output::<T>(tl).reshape([queries.len, heads.len]);
                    tl::store(o.rows(queries).cols(heads), out);
                }
            }
        });
    }
}
