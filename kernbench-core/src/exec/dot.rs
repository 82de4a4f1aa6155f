//! The matrix product: each element is a chain of fused multiply-adds in k order.
//!
//! Element `(i, j)` is `fma(a[i][k], b[k][j], acc)` over k from 0, from 0 or what `out` held. Blocking and
//! vectors only change which elements are computed together, never the order within one, so the bits
//! are those of the plain loop on every host. Without fused multiply-add in hardware it is emulated.

// Loops of fixed length are indexed: only so does the compiler keep blocks in registers.
#![allow(clippy::needless_range_loop)]

use super::packing::Packing;
use super::steps;
use super::tiles::View;
use pulp::{Arch, Simd, WithSimd};

/// Steps of k between loads and stores of the accumulators, which are exact: a panel of `KC` rows stays
/// in the first-level cache.
const KC: usize = 256;
/// Steps of k between checks of bounds.
const UNROLL: usize = 4;
/// The most rows of a register block, and the most columns on any host.
const MAX_MR: usize = 8;
const MAX_NR: usize = 32;
/// Up to so many rows `b` is read where it is, if its rows are in order: packing would not pay.
const FEW: usize = 3 * MAX_MR;

/// Where a product goes: element `(i, j)` at `i * row + j`.
pub(super) struct Output<'a> {
    pub data: &'a mut [f32],
    pub row: usize,
    /// Whether the product is added to what is there.
    pub accumulate: bool,
}

/// Writes `a` (m x k) times `b` (k x n) to `out`, or adds it. `version` tells the values of the buffer of
/// `b` from all others it has or had. A NaN is the one NaN of `round::canonical`.
pub(super) fn dot_floats(
    arch: Arch,
    packing: &mut Packing,
    a: View<f32>,
    (b, version): (View<f32>, u64),
    out: Output,
) {
    let n = b.cols;
    if a.rows == 0 || n == 0 {
        return;
    }
    if a.cols > 0 {
        arch.dispatch(Product { packing, a, b, version, out });
    } else if !out.accumulate {
        (0..a.rows).for_each(|i| out.data[i * out.row..][..n].fill(0.0));
    }
}

struct Product<'a> {
    packing: &'a mut Packing,
    a: View<'a, f32>,
    b: View<'a, f32>,
    version: u64,
    out: Output<'a>,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if self.b.cols <= S::F32_LANES { self.run::<S, 1>(simd) } else { self.run::<S, 2>(simd) }
    }
}

impl Product<'_> {
    /// In panels of `NV` vectors of columns.
    #[inline(always)]
    fn run<S: Simd, const NV: usize>(self, simd: S) {
        let Product { packing, a, b, version, out } = self;
        let (m, n, depth, nr) = (a.rows, b.cols, a.cols, NV * S::F32_LANES);
        let (a, packed) = packing.of(&a, &b, version, nr, m <= FEW);
        for k in (0..depth).step_by(KC) {
            let kc = KC.min(depth - k);
            for j in (0..n).step_by(nr) {
                let (data, row) = packed.panel(&b, j, nr);
                let panel = Panel { data: &data[k * row..], row, kc };
                let mut to = Target {
                    out: &mut *out.data,
                    row: out.row,
                    at: [0, j],
                    width: nr.min(n - j),
                    load: out.accumulate || k > 0,
                    last: k + kc == depth,
                };
                while to.at[0] < m {
                    let line = |r: usize| &a.data[r * a.row + k..][..kc];
                    to.at[0] += match m - to.at[0] {
                        8.. if S::F32_LANES >= 16 => block::<S, 8, NV>(simd, &panel, line, &mut to),
                        6.. => block::<S, 6, NV>(simd, &panel, line, &mut to),
                        4.. => block::<S, 4, NV>(simd, &panel, line, &mut to),
                        2.. => block::<S, 2, NV>(simd, &panel, line, &mut to),
                        _ => block::<S, 1, NV>(simd, &panel, line, &mut to),
                    };
                }
            }
        }
    }
}

/// Some columns of `b` over `kc` steps of k: those of a step at `k * row`.
struct Panel<'a> {
    data: &'a [f32],
    row: usize,
    kc: usize,
}

impl Panel<'_> {
    #[inline(always)]
    fn vectors<S: Simd, const NV: usize>(&self, k: usize) -> [S::f32s; NV] {
        let all = S::as_simd_f32s(&self.data[k * self.row..][..NV * S::F32_LANES]).0;
        std::array::from_fn(|v| all[v])
    }
}

/// Where a register block lies in the output, and whether it begins or ends the chains there.
struct Target<'a> {
    out: &'a mut [f32],
    row: usize,
    at: [usize; 2],
    width: usize,
    load: bool,
    last: bool,
}

impl Target<'_> {
    /// Row `i` of the block.
    #[inline(always)]
    fn line(&mut self, i: usize) -> &mut [f32] {
        &mut self.out[(self.at[0] + i) * self.row + self.at[1]..][..self.width]
    }

    #[inline(always)]
    fn load<S: Simd, const NV: usize>(&mut self, simd: S, i: usize) -> [S::f32s; NV] {
        let mut edge = [0.0; MAX_NR];
        let nr = NV * S::F32_LANES;
        let line = self.line(i);
        let line: &[f32] = if line.len() == nr {
            line
        } else {
            edge.iter_mut().zip(line).for_each(|(e, x)| *e = *x);
            &edge[..nr]
        };
        let mut acc = [simd.splat_f32s(0.0); NV];
        acc.copy_from_slice(&S::as_simd_f32s(line).0[..NV]);
        acc
    }

    #[inline(always)]
    fn store<S: Simd, const NV: usize>(&mut self, simd: S, i: usize, mut acc: [S::f32s; NV]) {
        if self.last {
            let nan = simd.splat_f32s(f32::NAN);
            acc = acc.map(|x| simd.select_f32s(simd.equal_f32s(x, x), x, nan));
        }
        let nr = NV * S::F32_LANES;
        let line = self.line(i);
        if line.len() == nr {
            S::as_mut_simd_f32s(line).0[..NV].copy_from_slice(&acc);
        } else {
            let mut edge = [0.0; MAX_NR];
            S::as_mut_simd_f32s(&mut edge[..nr]).0[..NV].copy_from_slice(&acc);
            line.iter_mut().zip(edge).for_each(|(x, e)| *x = e);
        }
    }
}

/// One register block of `MR` rows and `NV` vectors over the k of the panel; gives `MR`.
#[inline(always)]
fn block<'l, S: Simd, const MR: usize, const NV: usize>(
    simd: S,
    panel: &Panel,
    line: impl Fn(usize) -> &'l [f32],
    to: &mut Target,
) -> usize {
    const { assert!(MR <= MAX_MR) };
    let first = to.at[0];
    let lines: [&[f32]; MR] = std::array::from_fn(|i| line(first + i));
    let mut acc = [[simd.splat_f32s(0.0); NV]; MR];
    if to.load {
        for i in 0..MR {
            acc[i] = to.load(simd, i);
        }
    }
    let chunks = lines.map(|l| l.as_chunks::<UNROLL>().0);
    let whole = panel.kc / UNROLL;
    for c in 0..whole {
        let a: [&[f32; UNROLL]; MR] = std::array::from_fn(|i| &chunks[i][c]);
        for u in 0..UNROLL {
            step(simd, panel.vectors::<S, NV>(c * UNROLL + u), |i| a[i][u], &mut acc);
        }
    }
    for k in whole * UNROLL..panel.kc {
        step(simd, panel.vectors::<S, NV>(k), |i| lines[i][k], &mut acc);
    }
    for i in 0..MR {
        to.store(simd, i, acc[i]);
    }
    MR
}

/// One step of k.
#[inline(always)]
fn step<S: Simd, const MR: usize, const NV: usize>(
    simd: S,
    b: [S::f32s; NV],
    a: impl Fn(usize) -> f32,
    acc: &mut [[S::f32s; NV]; MR],
) {
    for i in 0..MR {
        let a = simd.splat_f32s(a(i));
        for v in 0..NV {
            acc[i][v] = simd.mul_add_f32s(a, b[v], acc[i][v]);
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
