//! The running softmax of flash attention, and how partials of it move and merge.

use kernbench_core::prelude::*;
use kernbench_macros::device;

/// The attention of some queries over some keys, so far: row maximum, row sum, weighted values
/// (Dao et al., FlashAttention, 2022, algorithm 1). Shapes `[rows, 1]`, `[rows, 1]`, `[rows, d]`.
#[derive(Clone, Copy, Debug)]
pub struct Softmax<'s> {
    m: Tile<'s, f32>,
    l: Tile<'s, f32>,
    o: Tile<'s, f32>,
}

impl<'s> Softmax<'s> {
    /// The partial of no keys.
    #[device]
    pub fn empty(tl: &Scope, rows: usize, d: usize) -> Softmax<'_> {
        Softmax {
            m: tl::full([rows, 1], f32::NEG_INFINITY),
            l: tl::zeros([rows, 1]),
            o: tl::zeros([rows, d]),
        }
    }

    /// Makes the partial of no keys one of a score without a value, `[rows, 1]` or `[1, 1]`.
    #[device]
    pub fn start_with(self, tl: &Scope, s: Expr<f32>) {
        tl::copy_to(self.m, s);
        tl::copy_to(self.l, 1.0);
    }

    /// The natural logarithm of the sum of all weights `[rows, 1]`; -inf in a row without keys.
    #[device]
    pub fn log_sum(self, tl: &Scope) -> Tile<'_, f32> {
        tl::eval(self.m + tl::log(self.l))
    }

    /// The partial of some of its queries; the same bytes.
    #[must_use]
    pub fn rows(self, r: Block) -> Self {
        Softmax { m: self.m.rows(r), l: self.l.rows(r), o: self.o.rows(r) }
    }

    /// Row maximum, row sum, weighted values.
    #[must_use]
    pub fn tiles(self) -> [Tile<'s, f32>; 3] {
        [self.m, self.l, self.o]
    }

    /// The blocks of its rows that fit a slot.
    #[device]
    pub fn messages(self, tl: &Scope) -> Vec<Block> {
        let rows = (tl::slot_size() / (4 * self.o.ncols())).max(1);
        Block::new(0, self.o.nrows()).blocks(rows).collect()
    }

    /// Folds a block of scores `[rows, keys]` and its values `[keys, d]` in.
    #[device]
    pub fn update<T: Float>(self, tl: &Scope, s: Expr<f32>, v: Tile<T>) {
        let s = tl::eval(s);
        let m = tl::max(tl::maximum(self.m, s), Axis::Cols);
        let shift = finite(tl, m);
        let p = tl::eval(tl::exp(s - shift));
        let alpha = tl::eval(tl::exp(self.m - shift));
        tl::copy_to(self.l, self.l * alpha + tl::sum(p, Axis::Cols));
        let p = tl::eval(p.cast::<T>());
        tl::copy_to(self.o, self.o * alpha + tl::dot(p, v));
        tl::copy_to(self.m, m);
    }

    /// Merges a partial of the same queries over other keys in, by log-sum-exp.
    #[device]
    pub fn merge(self, tl: &Scope, other: Softmax) {
        let m = tl::eval(tl::maximum(self.m, other.m));
        let shift = finite(tl, m);
        let a = tl::eval(tl::exp(self.m - shift));
        let b = tl::eval(tl::exp(other.m - shift));
        tl::copy_to(self.l, self.l * a + other.l * b);
        tl::copy_to(self.o, self.o * a + other.o * b);
        tl::copy_to(self.m, m);
    }

    /// Sends the partial, in blocks of rows that fit a slot.
    #[device]
    pub fn send_partial(self, tl: &Scope, to: Dir) {
        for rows in self.messages(tl) {
            self.rows(rows).tiles().into_iter().for_each(|tile| tl::send(to, tile));
        }
    }

    /// Receives a partial of the same queries and merges it in, block by block.
    #[device]
    pub fn merge_partial(self, tl: &Scope, from: Dir) {
        let d = self.o.ncols();
        for rows in self.messages(tl) {
            scratch_scope!({
                let other = Softmax {
                    m: tl::recv(from, [rows.len, 1]),
                    l: tl::recv(from, [rows.len, 1]),
                    o: tl::recv(from, [rows.len, d]),
                };
                self.rows(rows).merge(tl, other);
            });
        }
    }

    /// The attention output; 0 in a row without keys, NaN where an input was NaN.
    #[device]
    pub fn output<T: Float>(self, tl: &Scope) -> Tile<'_, T> {
        tl::eval(tl::select(tl::eq(self.l, 0.0), 0.0, self.o / self.l).cast())
    }
}

impl<'s> From<[Tile<'s, f32>; 3]> for Softmax<'s> {
    fn from([m, l, o]: [Tile<'s, f32>; 3]) -> Self {
        Softmax { m, l, o }
    }
}

/// `m`, or 0 where `m` is -inf: a row without keys must not become NaN.
#[device]
fn finite(tl: &Scope, m: Tile<f32>) -> Tile<'_, f32> {
    tl::eval(tl::select(tl::eq(m, f32::NEG_INFINITY), 0.0, m))
}
