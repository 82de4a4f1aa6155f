//! Operands of products, rearranged so that a product reads them in order.
//!
//! The right operand is cut into panels of a few vectors of columns. Those of the last operands are kept
//! with the version of their buffer, for loops multiply many blocks of rows by the same tile.

use super::tiles::View;

/// How many packed operands are kept: a loop of attention uses the keys and the values of a block.
const KEPT: usize = 2;
/// Side of the squares that are transposed at a time.
const SQUARE: usize = 4;

/// What tells a packed operand from others: version of the buffer, place in it (what follows), rows and
/// columns and their distances, columns of a panel.
type Key = (u64, usize, [usize; 4], usize);

/// Packed operands, kept from product to product.
#[derive(Debug, Default)]
pub(super) struct Packing {
    /// The left operand with each row's k neighbouring.
    lines: Vec<f32>,
    /// The last panel of a right operand that is otherwise read where it is.
    edge: Vec<f32>,
    kept: [(Option<Key>, Vec<f32>); KEPT],
    oldest: usize,
}

/// A right operand, packed as far as it has to be.
pub(super) enum Packed<'a> {
    /// All panels, one after the other.
    All(&'a [f32]),
    /// Only the panel that has not all of its columns.
    Edge(&'a [f32]),
}

impl<'a> Packed<'a> {
    /// The panel of the `nr` columns from `j` on, and the distance between its rows.
    #[inline(always)]
    pub fn panel(&self, b: &View<'a, f32>, j: usize, nr: usize) -> (&'a [f32], usize) {
        match self {
            Packed::All(data) => (&data[j * b.rows..], nr),
            Packed::Edge(data) if j + nr > b.cols => (data, nr),
            Packed::Edge(_) => (&b.data[j..], b.row),
        }
    }
}

impl Packing {
    /// The operands of a product; `b` is left where it is if `few` rows use it and its columns are neighbours.
    #[inline(always)]
    pub fn of<'a>(
        &'a mut self,
        a: &View<'a, f32>,
        b: &View<'_, f32>,
        version: u64,
        nr: usize,
        few: bool,
    ) -> (View<'a, f32>, Packed<'a>) {
        let Packing { lines, edge, kept, oldest } = self;
        let a = if a.col == 1 {
            *a
        } else {
            pack_lines(lines, a);
            View { data: lines, row: a.cols, col: 1, ..*a }
        };
        if few && b.col == 1 {
            let j = b.cols / nr * nr;
            if j < b.cols {
                edge.resize(b.rows * nr, 0.0);
                pack_panel(edge, b, j, nr);
            }
            return (a, Packed::Edge(edge));
        }
        let key = (version, b.data.len(), [b.rows, b.cols, b.row, b.col], nr);
        let at = match kept.iter().position(|(have, _)| *have == Some(key)) {
            Some(at) => at,
            None => {
                let at = *oldest;
                *oldest = (at + 1) % KEPT;
                kept[at].0 = Some(key);
                let data = &mut kept[at].1;
                data.resize(b.cols.next_multiple_of(nr) * b.rows, 0.0);
                for j in (0..b.cols).step_by(nr) {
                    pack_panel(&mut data[j * b.rows..][..nr * b.rows], b, j, nr);
                }
                at
            }
        };
        (a, Packed::All(&kept[at].1))
    }
}

/// Copies a matrix so that each row's columns are neighbours.
#[inline(always)]
fn pack_lines(to: &mut Vec<f32>, a: &View<f32>) {
    to.resize(a.rows * a.cols, 0.0);
    for (i, line) in to.chunks_exact_mut(a.cols.max(1)).enumerate() {
        let from = &a.data[i * a.row..];
        for (x, from) in line.iter_mut().zip(from.iter().step_by(a.col)) {
            *x = *from;
        }
    }
}

/// Copies columns from `j` on into a panel of `nr` columns; what the panel has more is left as it is.
#[inline(always)]
fn pack_panel(to: &mut [f32], b: &View<f32>, j: usize, nr: usize) {
    let (depth, width) = (b.rows, nr.min(b.cols - j));
    if b.col == 1 {
        for (k, line) in to.chunks_exact_mut(nr).enumerate() {
            copy(&b.data[k * b.row + j..][..width], line);
        }
        return;
    }
    // Transposed: square by square, so that both sides move whole vectors.
    let start = |c: usize| (j + c) * b.col;
    let mut col = 0;
    while b.row == 1 && col + SQUARE <= width {
        let from = |c: usize| b.data[start(col + c)..][..depth].as_chunks::<SQUARE>().0;
        let from = [from(0), from(1), from(2), from(3)];
        for (i, rows) in to.chunks_exact_mut(SQUARE * nr).enumerate() {
            let [w, x, y, z] = [from[0][i], from[1][i], from[2][i], from[3][i]];
            for (r, row) in rows.chunks_exact_mut(nr).enumerate() {
                row[col..col + SQUARE].copy_from_slice(&[w[r], x[r], y[r], z[r]]);
            }
        }
        for k in depth / SQUARE * SQUARE..depth {
            for c in col..col + SQUARE {
                to[k * nr + c] = b.data[start(c) + k];
            }
        }
        col += SQUARE;
    }
    for c in col..width {
        let from = b.data[start(c)..].iter().step_by(b.row);
        for (row, x) in to.chunks_exact_mut(nr).zip(from) {
            row[c] = *x;
        }
    }
}

/// Copies a short line in pieces of fixed size: cheaper than a call.
#[inline(always)]
fn copy(from: &[f32], to: &mut [f32]) {
    const PIECE: usize = 8;
    let to = &mut to[..from.len()];
    let (pieces, rest) = from.as_chunks::<PIECE>();
    let (to_pieces, to_rest) = to.as_chunks_mut::<PIECE>();
    for (to, from) in to_pieces.iter_mut().zip(pieces) {
        *to = *from;
    }
    for (to, from) in to_rest.iter_mut().zip(rest) {
        *to = *from;
    }
}
