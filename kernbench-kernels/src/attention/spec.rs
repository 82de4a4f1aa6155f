//! What general attention computes, and how it is cut into blocks of rows for the PEs.

use kernbench_core::prelude::*;

/// How the heads of a tensor lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `(batch, heads, length, d)`, as a matrix `(batch * heads * length, d)`.
    HeadsFirst,
    /// `(batch, length, heads, d)`, as a matrix `(batch * length, heads * d)`.
    TokensFirst,
}

/// Where query 0 stands among the keys; query `i` stands `i` keys later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// At key 0.
    TopLeft,
    /// Where the last query stands at the last key that counts.
    BottomRight,
    /// At this key: the length of a past, say.
    Offset(i64),
}

/// A general attention problem. Every variant may be combined with every other.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Independent problems.
    pub batch: usize,
    /// Query heads; a multiple of `kv_heads`.
    pub q_heads: usize,
    /// Key/value heads.
    pub kv_heads: usize,
    /// Head size of queries and keys.
    pub d: usize,
    /// Head size of values and outputs.
    pub d_v: usize,
    /// Queries of each head.
    pub queries: usize,
    /// Keys of each head.
    pub keys: usize,
    /// Of queries and outputs.
    pub q_layout: Layout,
    /// Of keys and values.
    pub kv_layout: Layout,
    /// Factor of the products of queries and keys.
    pub scale: f32,
    /// Where query 0 stands, for `causal` and `window`.
    pub align: Align,
    /// A query sees no keys behind its own place.
    pub causal: bool,
    /// How many keys before and behind its own place a query sees; `None`: all.
    pub window: [Option<usize>; 2],
    /// The first keys, which are seen from outside of the window too.
    pub sink_keys: usize,
    /// Scores become `c tanh(s / c)`; 0: they stay.
    pub softcap: f32,
    /// Batches, heads and queries of the mask, each all or 1, and its columns: it is off behind them.
    pub mask: [usize; 4],
}

/// Some rows of one batch that share their keys: queries of one head or, where each head has one query, heads of
/// one key/value head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The batch.
    pub batch: usize,
    /// Query heads.
    pub heads: Block,
    /// Queries of them.
    pub queries: Block,
}

impl Spec {
    /// Plain attention of heads of one size: no mask, no window, keys and queries as they are.
    #[must_use]
    pub fn new(
        batch: usize,
        [q_heads, kv_heads]: [usize; 2],
        [queries, keys]: [usize; 2],
        [d, d_v]: [usize; 2],
    ) -> Spec {
        Spec {
            batch,
            q_heads,
            kv_heads,
            d,
            d_v,
            queries,
            keys,
            q_layout: Layout::HeadsFirst,
            kv_layout: Layout::HeadsFirst,
            scale: 1.0 / (d as f32).sqrt(),
            align: Align::TopLeft,
            causal: false,
            window: [None, None],
            sink_keys: 0,
            softcap: 0.0,
            mask: [1, 1, 1, keys],
        }
    }

    /// Query heads of each key/value head.
    #[must_use]
    pub fn group(&self) -> usize {
        self.q_heads / self.kv_heads.max(1)
    }

    /// All rows, cut into blocks of at most `most`.
    pub fn blocks(&self, most: usize) -> impl Iterator<Item = Rows> + use<> {
        let (batch, kv_heads, group, queries) = (self.batch, self.kv_heads, self.group(), self.queries);
        (0..batch * kv_heads).flat_map(move |i| {
            let heads = Block::new(i % kv_heads * group, group);
            let of_a_head = move |head: Block| {
                Block::new(0, queries).blocks(most).map(move |q| Rows {
                    batch: i / kv_heads,
                    heads: head,
                    queries: q,
                })
            };
            heads.blocks(if queries == 1 { most } else { 1 }).flat_map(of_a_head)
        })
    }

    /// How far query 0 stands behind key 0, of a batch with `valid` keys.
    #[must_use]
    pub fn offset(&self, valid: usize) -> i64 {
        match self.align {
            Align::TopLeft => 0,
            Align::BottomRight => valid as i64 - self.queries as i64,
            Align::Offset(offset) => offset,
        }
    }

    /// The first keys, behind which none of the rows sees any, and those of them that no row sees because they
    /// lie before its window.
    #[must_use]
    pub fn seen(&self, rows: &Rows, valid: usize) -> [usize; 2] {
        let [first, last] =
            [rows.queries.start, rows.queries.end().max(1) - 1].map(|i| i as i64 + self.offset(valid));
        let behind = if self.causal { Some(0) } else { self.window[1] };
        let most = valid.min(self.mask[3]) as i64;
        let end = behind.map_or(most, |right| most.min(last.saturating_add(right as i64).saturating_add(1)));
        let start = self.window[0].map_or(0, |left| first - left as i64);
        [end.max(0) as usize, start.max(0) as usize]
    }
}

impl Layout {
    /// Rows and columns of some heads of a batch, each of them some of `length` vectors of size `d`. Of several
    /// heads all vectors are meant, or their only one.
    #[must_use]
    pub fn part(self, batch: usize, [all, length, d]: [usize; 3], heads: Block, at: Block) -> [Block; 2] {
        match self {
            Layout::HeadsFirst => {
                let first = (batch * all + heads.start) * length + at.start;
                [Block::new(first, heads.len * at.len), Block::new(0, d)]
            }
            Layout::TokensFirst => {
                [Block::new(batch * length + at.start, at.len), Block::new(heads.start * d, heads.len * d)]
            }
        }
    }

    /// Rows and columns of the whole tensor.
    #[must_use]
    pub fn shape(self, batch: usize, [heads, length, d]: [usize; 3]) -> [usize; 2] {
        match self {
            Layout::HeadsFirst => [batch * heads * length, d],
            Layout::TokensFirst => [batch * length, heads * d],
        }
    }
}
