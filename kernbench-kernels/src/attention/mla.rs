//! Multi-head latent attention: one token of each batch, whose heads share one compressed cache.
//!
//! A head scores a key by the product of its query and the key's latent vector, which is its value too, plus that of
//! what carries positions. The projections from latent space to heads are absorbed into queries and outputs (DeepSeek-V2,
//! 2024, section 2.1; FlashMLA), so this is attention with one key/value head, keys of `latent + rope` and values of
//! `latent`, but each key is loaded once.
//!
//! Some cubes take a block of heads and their PEs share the keys; partials are reduced to the first PE, as in flash
//! decoding (Dao et al., 2023). Work: `2 * batch * heads * keys * (2 * latent + rope)` flop. The cache of a batch is read
//! once for each of its blocks of heads.

use super::{Node, Softmax, Tree};
use kernbench_core::prelude::*;
use kernbench_macros::kernel;

/// Latent attention of one token, and how it is spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mla {
    /// Independent tokens, each with a cache of its own.
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    /// Elements of a latent vector. Partials travel a row at a time, as f32: a slot must hold one.
    pub latent: usize,
    /// Elements of what carries positions.
    pub rope: usize,
    /// Keys of each batch.
    pub keys: usize,
    /// Factor of the scores: `1 / sqrt(head size)` of the heads before their projections were absorbed.
    pub scale: f32,
    /// Cubes that share the keys of a block of heads, neighbours in a row of the mesh: a team. More of them read less
    /// each, of larger blocks, and reduce for longer, so that more pay at long contexts.
    pub split: usize,
    /// Columns and rows of the grid of PEs of a cube.
    pub pe_grid: [usize; 2],
}

impl Mla {
    /// Batches and blocks of their heads: one for each team of cubes, or more if a block would have over 32 heads. So many
    /// fill a tile of the default matrix engine; fewer take as long, but leave less to reduce.
    pub fn blocks(&self, teams: usize) -> impl Iterator<Item = (usize, Block)> + use<> {
        let all = Block::new(0, self.heads);
        let most = self.fit(32, 4); // accumulators are f32
        let count = self.heads.div_ceil(most).max(teams / self.batch.max(1));
        let size = self.heads.div_ceil(count.max(1));
        (0..self.batch).flat_map(move |batch| all.blocks(size).map(move |heads| (batch, heads)))
    }

    /// The way of partials from a PE to the first of its team.
    fn tree(&self, cube: usize, pe: usize) -> Tree {
        let [columns, rows] = self.pe_grid;
        Tree {
            pe: Node { at: pe, columns, count: columns * rows },
            cube: Node { at: cube % self.split, columns: self.split, count: self.split },
        }
    }

    /// The keys of a PE, of the first `valid`.
    fn share(&self, valid: usize, rank: usize) -> Block {
        let pes = self.pe_grid[0] * self.pe_grid[1] * self.split;
        Block::new(0, valid).blocks(valid.div_ceil(pes)).nth(rank).unwrap_or(Block::new(0, 0))
    }

    /// Vectors of a block: at most 64 KiB of them, so that the default scratch holds two buffers of keys beside the heads.
    fn fit(&self, most: usize, bytes: usize) -> usize {
        ((1 << 16) / (bytes * self.latent.max(self.rope).max(1))).clamp(1, most)
    }
}

/// Decodes one token of each batch. A batch without keys gives 0.
#[kernel]
pub fn mla_decode<T: Float>(
    /// (batch * heads, latent): queries in latent space.
    q_c: In<T>,
    /// (batch * heads, rope): their parts with positions.
    q_r: In<T>,
    /// (batch * keys, latent): keys, and values.
    c: In<T>,
    /// (batch * keys, rope): parts of keys with positions.
    k_r: In<T>,
    /// (batch * heads, latent): outputs in latent space; the first PE of a team writes them.
    o: Out<T>,
    /// (1, batch): how many of the keys count.
    lengths: Option<In<i32>>,
    a: Mla,
) {
    let (team, teams) = (tl::cube() / a.split, tl::num_programs(1) / a.split);
    let tree = a.tree(tl::cube(), tl::pe());
    let lengths = lengths.map(|lengths| tl::read(lengths));
    for (batch, heads) in a.blocks(teams).skip(team).step_by(teams) {
        let valid = lengths.as_ref().map_or(a.keys, |n| usize::try_from(n[batch]).unwrap_or(0).min(a.keys));
        let heads = Block::new(batch * a.heads + heads.start, heads.len);
        // One buffer: blocks of keys have two, and blocks of heads follow each other rarely.
        scratch_scope!({
            let (q_c, q_r) = (tl::load(q_c.rows(heads)), tl::load(q_r.rows(heads)));
            let acc = Softmax::empty(tl, heads.len, a.latent);
            for keys in a.share(valid, tree.rank()).blocks(a.fit(64, T::TYPE.bytes() as usize)) {
                scratch_scope!(buffers = 2, {
                    let keys = Block::new(batch * a.keys + keys.start, keys.len);
                    let (c, k_r) = (tl::load(c.rows(keys)), tl::load(k_r.rows(keys)));
                    let s = tl::dot(q_c, c.t());
                    tl::dot_add(s, q_r, k_r.t());
                    acc.update(tl, s * a.scale, c);
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
