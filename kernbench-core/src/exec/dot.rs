//! The matrix product: each element is a chain of fused multiply-adds in k order.
//!
//! Element `(i, j)` is `fma(a[i][k], b[k][j], acc)` over k from 0, from what `out` held. Blocking and
//! vectors only change which elements are computed together, never the order within one, so the bits
//! are those of the plain loop on every host. Without fused multiply-add in hardware it is emulated.

use super::steps;
use super::tiles::View;
use pulp::{Arch, Simd, WithSimd};

/// Vectors of a register block.
const NV: usize = 2;
/// Steps of k between loads and stores of the accumulators, which are exact: a packed panel of
/// `KC` rows stays in the first-level cache.
const KC: usize = 256;
/// The most rows of a register block, and the most columns on any host.
const MAX_MR: usize = 12;
const MAX_NR: usize = 32;

/// Side of the squares that are transposed at a time.
const SQUARE: usize = 4;

/// Packed operands, kept from product to product.
#[derive(Debug, Default)]
pub(super) struct Packing {
    broadcast: Vec<f32>,
    vector: Vec<f32>,
}

/// Adds `a` (m x k) times `b` (k x n) to `out` (m x n, row-major).
pub(super) fn dot_floats(arch: Arch, packing: &mut Packing, a: View<f32>, b: View<f32>, out: &mut [f32]) {
    if out.is_empty() || a.cols == 0 {
        return;
    }
    arch.dispatch(Product { packing, a, b, out });
}

/// `out += a * b`: `b` is packed into panels of vectors, the elements of `a` are broadcast.
struct Product<'a> {
    packing: &'a mut Packing,
    a: View<'a, f32>,
    b: View<'a, f32>,
    out: &'a mut [f32],
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Product { packing, a, b, out } = self;
        let (m, n, depth, nr) = (a.rows, b.cols, a.cols, NV * S::F32_LANES);
        for k in (0..depth).step_by(KC) {
            let kc = KC.min(depth - k);
            // Rows of the broadcast side with neighbouring k are used in place.
            let in_place = a.col == 1;
            if !in_place {
                pack_lines(&mut packing.broadcast, &a, k, kc);
            }
            for j in (0..n).step_by(nr) {
                let width = nr.min(n - j);
                pack_panel(&mut packing.vector, &b, (k, kc), (j, width), nr);
                let panel = S::as_simd_f32s(&packing.vector).0;
                let mut i = 0;
                while i < m {
                    let line = |r: usize| {
                        if in_place {
                            &a.data[r * a.row + k..][..kc]
                        } else {
                            &packing.broadcast[r * kc..][..kc]
                        }
                    };
                    let target = Target { i, j, width, n };
                    let rows = match m - i {
                        12.. if S::F32_LANES >= 16 => block::<S, 12>(simd, panel, line, &target, out),
                        8.. if S::F32_LANES >= 16 => block::<S, 8>(simd, panel, line, &target, out),
                        6.. => block::<S, 6>(simd, panel, line, &target, out),
                        4.. => block::<S, 4>(simd, panel, line, &target, out),
                        2.. => block::<S, 2>(simd, panel, line, &target, out),
                        _ => block::<S, 1>(simd, panel, line, &target, out),
                    };
                    i += rows;
                }
            }
        }
    }
}

/// Where a register block lies in the output.
struct Target {
    i: usize,
    j: usize,
    width: usize,
    n: usize,
}

impl Target {
    /// The position of an element of the block in the output.
    #[inline(always)]
    fn at(&self, i: usize, j: usize) -> usize {
        (self.i + i) * self.n + self.j + j
    }
}

/// One register block of `MR` rows and `NV` vectors over the k of the panel; gives `MR`.
#[inline(always)]
fn block<'l, S: Simd, const MR: usize>(
    simd: S,
    panel: &[S::f32s],
    line: impl Fn(usize) -> &'l [f32],
    to: &Target,
    out: &mut [f32],
) -> usize {
    const { assert!(MR <= MAX_MR) };
    let kc = panel.len() / NV;
    let lines: [&[f32]; MR] = std::array::from_fn(|i| &line(to.i + i)[..kc]);
    let nr = NV * S::F32_LANES;
    let direct = to.width == nr;
    let mut edge = [[0.0; MAX_NR]; MR];
    let mut acc = [[simd.splat_f32s(0.0); NV]; MR];
    for i in 0..MR {
        let row: &[f32] = if direct {
            &out[to.at(i, 0)..][..nr]
        } else {
            for j in 0..to.width {
                edge[i][j] = out[to.at(i, j)];
            }
            &edge[i][..nr]
        };
        acc[i].copy_from_slice(&S::as_simd_f32s(row).0[..NV]);
    }
    for (k, b) in panel.as_chunks::<NV>().0.iter().enumerate().take(kc) {
        for i in 0..MR {
            let a = simd.splat_f32s(lines[i][k]);
            for v in 0..NV {
                acc[i][v] = simd.mul_add_f32s(a, b[v], acc[i][v]);
            }
        }
    }
    for i in 0..MR {
        let row: &mut [f32] = if direct { &mut out[to.at(i, 0)..][..nr] } else { &mut edge[i][..nr] };
        S::as_mut_simd_f32s(row).0[..NV].copy_from_slice(&acc[i]);
        if !direct {
            for j in 0..to.width {
                out[to.at(i, j)] = edge[i][j];
            }
        }
    }
    MR
}

/// Copies columns `k..k + kc` of all rows, each row's k neighbouring.
#[inline(always)]
fn pack_lines(to: &mut Vec<f32>, a: &View<f32>, k: usize, kc: usize) {
    to.resize(a.rows * kc, 0.0);
    for (i, line) in to.chunks_exact_mut(kc).enumerate() {
        let from = &a.data[i * a.row + k * a.col..];
        for (x, from) in line.iter_mut().zip(from.iter().step_by(a.col)) {
            *x = *from;
        }
    }
}

/// Copies `width` columns from `j` of rows `k..k + kc` into a panel of `nr` columns.
#[inline(always)]
fn pack_panel(
    to: &mut Vec<f32>,
    b: &View<f32>,
    (k, kc): (usize, usize),
    (j, width): (usize, usize),
    nr: usize,
) {
    to.resize(kc * nr, 0.0);
    if b.col == 1 {
        for (i, line) in to.chunks_exact_mut(nr).enumerate() {
            line[..width].copy_from_slice(&b.data[(k + i) * b.row + j..][..width]);
        }
        return;
    }
    // Transposed: square by square, so that both sides move whole vectors.
    let start = |c: usize| (j + c) * b.col + k * b.row;
    let mut col = 0;
    while b.row == 1 && col + SQUARE <= width {
        let from: [&[[f32; SQUARE]]; SQUARE] =
            std::array::from_fn(|c| b.data[start(col + c)..][..kc].as_chunks().0);
        for (i, rows) in to.chunks_exact_mut(SQUARE * nr).enumerate() {
            let square: [[f32; SQUARE]; SQUARE] = std::array::from_fn(|c| from[c][i]);
            for (r, row) in rows.chunks_exact_mut(nr).enumerate() {
                let line: [f32; SQUARE] = std::array::from_fn(|c| square[c][r]);
                row[col..col + SQUARE].copy_from_slice(&line);
            }
        }
        for i in kc / SQUARE * SQUARE..kc {
            for c in col..col + SQUARE {
                to[i * nr + c] = b.data[start(c) + i];
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

/// Adds `a` (m x k) times `b` (k x n) to `out`, wrapping; the order does not matter.
pub(super) fn dot_ints(arch: Arch, a: View<i32>, b: View<i32>, out: &mut [i32]) {
    let n = b.cols;
    if out.is_empty() || a.cols == 0 {
        return;
    }
    for (i, row) in out.chunks_exact_mut(n).enumerate() {
        for k in 0..a.cols {
            let x = a.data[i * a.row + k * a.col];
            let from = &b.data[k * b.row..];
            if b.col == 1 {
                steps::accumulate(arch, row, &from[..n], |o, y: i32| o.wrapping_add(x.wrapping_mul(y)));
            } else {
                for (o, y) in row.iter_mut().zip(from.iter().step_by(b.col)) {
                    *o = o.wrapping_add(x.wrapping_mul(*y));
                }
            }
        }
    }
}
