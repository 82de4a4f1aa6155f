//! Grouped-query attention at long context: the keys of every head are split over all PEs of all cubes.
//!
//! Work per PE: `2 * 2 * h_q * s_kv / PEs * d` flop; each key is read once. Partials of a head go west along the rows of
//! PEs and north along their first column to PE 0 of each cube, then the same way over the cubes: a log-sum-exp reduction
//! in order of key, as in flash decoding (Dao et al., 2023).

use super::Softmax;
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

    /// Where the partials of a PE come from within its cube: east, and in the first column south.
    #[must_use]
    pub fn sources_in_cube(&self, pe: usize) -> Vec<Dir> {
        sources(pe, self.pe_grid[0], self.pes(), [Dir::IntraE, Dir::IntraS])
    }

    /// Where its partial goes within its cube: `None` for PE 0.
    #[must_use]
    pub fn parent_in_cube(&self, pe: usize) -> Option<Dir> {
        parent(pe, self.pe_grid[0], [Dir::IntraW, Dir::IntraN])
    }

    /// The same over all cubes: PE 0 goes on with the cubes to the east and south.
    #[must_use]
    pub fn sources(&self, cube: usize, pe: usize) -> Vec<Dir> {
        let mut from = self.sources_in_cube(pe);
        if pe == 0 {
            from.extend(sources(cube, self.mesh_columns, self.cubes, [Dir::E, Dir::S]));
        }
        from
    }

    /// Where the partial goes: `None` for the root, PE 0 of cube 0.
    #[must_use]
    pub fn parent(&self, cube: usize, pe: usize) -> Option<Dir> {
        self.parent_in_cube(pe).or_else(|| parent(cube, self.mesh_columns, [Dir::W, Dir::N]))
    }
}

/// The neighbours whose partials number `at` of the first `count` of a grid gets.
fn sources(at: usize, columns: usize, count: usize, [east, south]: [Dir; 2]) -> Vec<Dir> {
    let right = at % columns + 1 < columns && at + 1 < count;
    let below = at.is_multiple_of(columns) && at + columns < count;
    [right.then_some(east), below.then_some(south)].into_iter().flatten().collect()
}

/// The neighbour that gets its partial.
fn parent(at: usize, columns: usize, [west, north]: [Dir; 2]) -> Option<Dir> {
    match (at, at % columns) {
        (0, _) => None,
        (_, 0) => Some(north),
        _ => Some(west),
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
    let (cube, pe) = (tl::cube(), tl::pe());
    let (k, v) = (k.local(), v.local());
    let first = (cube * a.pes() + pe) * a.keys;
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
            for from in a.sources(cube, pe) {
                acc.merge_partial(tl, from);
            }
            match a.parent(cube, pe) {
                Some(to) => acc.send_partial(tl, to),
                None => tl::store(o.rows(heads), acc.output::<T>(tl)),
            }
        });
    }
}
