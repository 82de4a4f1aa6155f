//! Grouped-query attention at long context: the keys of every head are split over all PEs of all cubes.
//!
//! Work per PE: `2 * 2 * h_q * s_kv / PEs * d` flop; each key is read once. Partials of a head go west along the rows of
//! PEs and north along their first column to PE 0 of each cube, then the same way over the cubes: a log-sum-exp reduction
//! in order of key, as in flash decoding (Dao et al., 2023).

use super::{Node, Softmax, Tree};
use kernbench_core::prelude::*;
use kernbench_macros::kernel;

/// Keys of a block.
const KEYS: usize = 64;

/// A grouped-query decode and the grid it is spread over. K and V are shard-stacked: shape `(PEs * h_kv * keys, d)`, of
/// each PE the keys of head 0, then head 1, row-wise over cubes and PEs.
#[derive(Clone, Copy, Debug)]
pub struct Long {
    /// Query heads; a multiple of `h_kv`.
    pub h_q: usize,
    /// Key/value heads.
    pub h_kv: usize,
    /// Head size.
    pub d: usize,
    /// Keys of each head on each PE.
    pub keys: usize,
    /// Keys that count; the others, up to `keys` times PEs, are padding.
    pub valid: usize,
    /// Factor of the scores, usually `1 / sqrt(d)`.
    pub scale: f32,
    /// Cubes in use, the first ones.
    pub cubes: usize,
    /// Columns of the mesh of cubes.
    pub mesh_columns: usize,
    /// Columns and rows of the grid of PEs of a cube.
    pub pe_grid: [usize; 2],
}

impl Long {
    /// PEs of a cube.
    #[must_use]
    pub const fn pes(&self) -> usize {
        self.pe_grid[0] * self.pe_grid[1]
    }

    /// The way of partials from a PE.
    #[must_use]
    pub const fn tree(&self, cube: usize, pe: usize) -> Tree {
        Tree {
            pe: Node { at: pe, columns: self.pe_grid[0], count: self.pes() },
            cube: Node { at: cube, columns: self.mesh_columns, count: self.cubes },
        }
    }
}

/// Grouped-query decode, long context: one query of each head.
#[kernel]
pub fn gqa_decode_long<T: Float>(
    /// (h_q, d), replicated.
    q: In<T>,
    /// Shard-stacked, row-wise over cubes and PEs.
    k: In<T>,
    /// Laid out like `k`.
    v: In<T>,
    /// (h_q, d), replicated; the root writes it.
    o: Out<T>,
    a: Long,
) {
    let tree = a.tree(tl::cube(), tl::pe());
    let (k, v) = (k.local(), v.local());
    let first = tree.rank() * a.keys;
    let mine = Block::new(0, a.keys.min(a.valid.saturating_sub(first)));
    for head in 0..a.h_kv {
        let heads = Block::new(head * (a.h_q / a.h_kv), a.h_q / a.h_kv);
        scratch_scope!(buffers = 2, {
            let q = tl::load(q.rows(heads));
            let acc = Softmax::empty(tl, q.nrows(), a.d);
            for keys in mine.blocks(KEYS) {
                scratch_scope!(buffers = 2, {
                    let rows = Block::new(head * a.keys + keys.start, keys.len);
                    let (kt, vt) = (tl::load(k.rows(rows)), tl::load(v.rows(rows)));
                    let s = tl::dot(q, kt.t());
                    acc.update(tl, s * a.scale, vt);
                });
            }
            for from in tree.sources() {
                acc.merge_partial(tl, from);
            }
            match tree.parent() {
                Some(to) => acc.send_partial(tl, to),
                None => tl::store(o.rows(heads), acc.output::<T>(tl)),
            }
        });
    }
}
