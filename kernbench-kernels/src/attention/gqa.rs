//! Grouped-query attention over whole heads: the problem, and which PE does which part of it.

use super::Node;
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
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The KV head.
    pub head: usize,
    node: Node,
}

impl Group {
    /// The group of a PE.
    #[must_use]
    pub fn of(a: &Gqa, cube: usize, pe: usize) -> Self {
        let [width, height] = a.pe_grid;
        let size = width * height / a.kv_per_cube;
        let node = Node { at: pe % size, columns: size.min(width), count: size };
        Group { head: cube * a.kv_per_cube + pe / size, node }
    }

    /// The keys of this PE that count, counted in its head.
    #[must_use]
    pub fn keys(&self, a: &Gqa) -> Block {
        let n = a.s_kv / self.node.count;
        let start = self.node.at * n;
        Block::new(start, n.min(a.valid.saturating_sub(start)))
    }

    /// The rows of K and V that hold some keys of the head.
    #[must_use]
    pub fn rows(&self, a: &Gqa, keys: Block) -> Block {
        Block::new(self.head * a.s_kv + keys.start, keys.len)
    }

    /// Where partials come from.
    pub fn sources(&self) -> impl Iterator<Item = Dir> + use<> {
        self.node.sources([Dir::IntraE, Dir::IntraS])
    }

    /// Where the partial goes: `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Dir> {
        self.node.parent([Dir::IntraW, Dir::IntraN])
    }
}
