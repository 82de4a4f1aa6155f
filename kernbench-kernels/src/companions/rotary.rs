//! Rotary position embedding of the heads of a query or key.

use super::rows_at_once;
use kernbench_core::prelude::*;
use kernbench_macros::{device, kernel};

/// Which columns of a head are the two coordinates of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Column `i` of the first half and of the second, as in GPT-NeoX and Llama.
    Halves,
    /// Columns `2 i` and `2 i + 1`, as in RoFormer and GPT-J.
    Interleaved,
}

/// What is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotary {
    /// Columns of a head.
    pub d: usize,
    /// The columns of each head that are rotated, the first ones; even. The others stay as they are.
    pub rotary: usize,
    /// How they pair.
    pub layout: Layout,
}

/// Turns each pair `(a, b)` of a head by the angle of its token and place: `(a cos - b sin, b cos + a sin)` (Su et
/// al., RoFormer, 2021; partial as in GPT-J and GPT-NeoX).
///
/// Work per PE: a copy of its rows and 6 vector operations for each pair; each element is read and written once. What is
/// interleaved is copied twice more.
#[kernel]
pub fn rotary<T: Float>(
    /// (tokens, heads * d), row-wise over cubes and PEs.
    x: In<T>,
    /// (tokens, rotary / 2), row-wise over cubes and PEs: a column for each pair of a head.
    cos: In<T>,
    /// Laid out like `cos`.
    sin: In<T>,
    /// Laid out like `x`.
    y: Out<T>,
    a: Rotary,
) {
    let (x, y, cos, sin) = (x.local(), y.local(), cos.local(), sin.local());
    for rows in Block::new(0, x.nrows()).blocks(rows_at_once(x.ncols())) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(x.rows(rows));
            let angle = Angle { cos: tl::load(cos.rows(rows)), sin: tl::load(sin.rows(rows)) };
            // A copy, in which what is not rotated is right already.
            let out = tl::eval(x);
            for head in Block::new(0, x.ncols()).blocks(a.d) {
                let cols = Block::new(head.start, a.rotary);
                match a.layout {
                    Layout::Halves => angle.rotate_halves(tl, x.cols(cols), out.cols(cols)),
                    Layout::Interleaved => angle.rotate_interleaved(tl, x.cols(cols), out.cols(cols)),
                }
            }
            tl::store(y.rows(rows), out);
        });
    }
}

/// The angles of some tokens and pairs.
#[derive(Clone, Copy, Debug)]
struct Angle<'s, T: Float> {
    cos: Tile<'s, T>,
    sin: Tile<'s, T>,
}

impl<T: Float> Angle<'_, T> {
    /// Turns the points whose coordinates are the elements of `a` and `b`.
    #[device]
    fn rotate(self, tl: &Scope, [a, b]: [Tile<T>; 2], [to_a, to_b]: [Tile<T>; 2]) {
        tl::copy_to(to_a, a * self.cos - b * self.sin);
        tl::copy_to(to_b, b * self.cos + a * self.sin);
    }

    /// Turns the rotated columns of a head, `[rows, rotary]`, by angles of `[rows, rotary / 2]`.
    #[device]
    fn rotate_halves(self, tl: &Scope, x: Tile<T>, to: Tile<T>) {
        self.rotate(tl, halves(x), halves(to));
    }

    /// The same for pairs of neighbours.
    #[device]
    fn rotate_interleaved(self, tl: &Scope, x: Tile<T>, to: Tile<T>) {
        scratch_scope!({
            // The columns of a head are apart in memory from row to row: only a copy can be cut into pairs.
            let from = tl::eval(x);
            let turned = tl::zeros::<T>(x.shape());
            let each = [self.cos.nrows() * self.cos.ncols(), 1];
            let angle = Angle { cos: self.cos.reshape(each), sin: self.sin.reshape(each) };
            angle.rotate(tl, neighbours(from), neighbours(turned));
            tl::copy_to(to, turned);
        });
    }
}

/// Both halves of the columns.
fn halves<T: Float>(x: Tile<'_, T>) -> [Tile<'_, T>; 2] {
    let n = x.ncols() / 2;
    [x.cols(0..n), x.cols(n..2 * n)]
}

/// Even and odd columns, each as one column: with a row for each pair they are the two columns of a tile.
fn neighbours<T: Float>(x: Tile<'_, T>) -> [Tile<'_, T>; 2] {
    let pairs = x.reshape([x.nrows() * x.ncols() / 2, 2]);
    [pairs.cols(0..1), pairs.cols(1..2)]
}
