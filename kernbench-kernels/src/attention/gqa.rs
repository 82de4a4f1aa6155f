//! Grouped-query attention over whole heads: the problem, and which PE does which part of it.

use kernbench_core::prelude::*;

/// A grouped-query attention problem and how it is spread. K and V are head-stacked: shape
/// `(h_kv * s_kv, d)`, all keys of head 0, then head 1, row-wise over cubes and PEs.
#[derive(Clone, Copy, Debug)]
pub struct Gqa {
    /// Query heads; a multiple of `h_kv`.
    pub h_q: usize,
    /// Key/value heads.
    pub h_kv: usize,
    /// Head size.
    pub d: usize,
    /// Queries of each head.
    pub t_q: usize,
    /// Keys of each head.
    pub s_kv: usize,
    /// Keys that count; the others, up to `s_kv`, are padding.
    pub valid: usize,
    /// Query `i` sees keys up to `i` (top-left).
    pub causal: bool,
    /// Factor of the scores, usually `1 / sqrt(d)`.
    pub scale: f32,
    /// Whole KV heads each cube owns: a divisor of the PEs of a cube.
    pub kv_per_cube: usize,
    /// Width and height of the grid of PEs of a cube.
    pub pe_grid: [usize; 2],
}

impl Gqa {
    /// Query heads of each KV head.
    #[must_use]
    pub fn group(&self) -> usize {
        self.h_q / self.h_kv
    }
}

/// The PEs that share one KV head: a run of PEs of the cube's grid, its first one the root.
/// Partials go west along the rows of the group, then north along its first column.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The KV head.
    pub head: usize,
    rank: usize,
    size: usize,
    width: usize,
}

impl Group {
    /// The group of a PE.
    #[must_use]
    pub fn of(a: &Gqa, cube: usize, pe: usize) -> Self {
        let [width, height] = a.pe_grid;
        let size = width * height / a.kv_per_cube;
        Group { head: cube * a.kv_per_cube + pe / size, rank: pe % size, size, width: size.min(width) }
    }

    /// The keys of this PE that count, counted in its head.
    #[must_use]
    pub fn keys(&self, a: &Gqa) -> Block {
        let n = a.s_kv / self.size;
        let start = self.rank * n;
        Block::new(start, n.min(a.valid.saturating_sub(start)))
    }

    /// The rows of K and V that hold some keys of the head.
    #[must_use]
    pub fn rows(&self, a: &Gqa, keys: Block) -> Block {
        Block::new(self.head * a.s_kv + keys.start, keys.len)
    }

    /// Where partials come from: the right neighbour of the row, then, in the first column, the row below.
    #[must_use]
    pub fn sources(&self) -> Vec<Dir> {
        let column = self.rank % self.width;
        let mut from = vec![];
        if column + 1 < self.width {
            from.push(Dir::IntraE);
        }
        if column == 0 && self.rank + self.width < self.size {
            from.push(Dir::IntraS);
        }
        from
    }

    /// Where the partial goes: `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Dir> {
        match (self.rank % self.width, self.rank) {
            (0, 0) => None,
            (0, _) => Some(Dir::IntraN),
            _ => Some(Dir::IntraW),
        }
    }
}
