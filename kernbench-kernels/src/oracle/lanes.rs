//! The loops of the references. An element of a product is one chain of fused multiply-adds, and sums run
//! in lanes of a fixed number, so every host gives the same bits.

// Loops of fixed length are indexed: only so does the compiler keep blocks in registers.
#![allow(clippy::needless_range_loop)]

use super::Elements;
use pulp::Simd;
use std::ops::{Add, Div, Mul};

/// f32 or f64, and vectors of them.
pub(super) trait Real:
    Copy + Default + Send + Sync + PartialOrd + Add<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    type Vector<S: Simd>: Copy;
    const NEG_INFINITY: Self;
    fn from_f32(x: f32) -> Self;
    fn is_nan(self) -> bool;
    fn vectors<S: Simd>(x: &[Self]) -> &[Self::Vector<S>];
    fn vectors_mut<S: Simd>(x: &mut [Self]) -> &mut [Self::Vector<S>];
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Vector<S>;
    /// `a b + c`, rounded once.
    fn fma<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;
}

macro_rules! real {
    ($($t:ident, $vector:ident, $as:ident, $as_mut:ident, $splat:ident, $fma:ident;)*) => { $(
        impl Real for $t {
            type Vector<S: Simd> = S::$vector;
            const NEG_INFINITY: Self = $t::NEG_INFINITY;
            #[inline(always)]
            fn from_f32(x: f32) -> Self { $t::from(x) }
            #[inline(always)]
            fn is_nan(self) -> bool { self.is_nan() }
            #[inline(always)]
            fn vectors<S: Simd>(x: &[Self]) -> &[S::$vector] { S::$as(x).0 }
            #[inline(always)]
            fn vectors_mut<S: Simd>(x: &mut [Self]) -> &mut [S::$vector] { S::$as_mut(x).0 }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, x: Self) -> S::$vector { simd.$splat(x) }
            #[inline(always)]
            fn fma<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$fma(a, b, c)
            }
        }
    )* };
}
real! {
    f64, f64s, as_simd_f64s, as_mut_simd_f64s, splat_f64s, mul_add_f64s;
    f32, f32s, as_simd_f32s, as_mut_simd_f32s, splat_f32s, mul_add_f32s;
}

/// Keys at a time, and what lengths of rows are padded to: whole vectors on every host.
pub(super) const KEYS: usize = 64;
/// Rows at a time.
pub(super) const ROWS: usize = 4;

/// `ROWS` values of each column: rows are padded with zeros to a multiple of `ROWS`.
pub(super) type Stripe<F> = [F; ROWS];

/// Widens elements from `first` on, through `narrow`, into rows of length `d`, padded to `padded`.
#[inline(always)]
pub(super) fn widen<F: Real>(
    from: &dyn Elements,
    first: usize,
    narrow: &mut [f32],
    [d, padded]: [usize; 2],
    to: &mut [F],
) {
    from.widen(first, narrow);
    for (to, from) in to.chunks_exact_mut(padded).zip(narrow.chunks_exact(d)) {
        for (to, x) in to.iter_mut().zip(from) {
            *to = F::from_f32(*x);
        }
    }
}

/// Widens at most `KEYS` rows of length `d` from element `first` on, transposed: column `j` of `to` is row
/// `j`.
#[inline(always)]
pub(super) fn widen_transposed<F: Real>(
    from: &dyn Elements,
    first: usize,
    narrow: &mut [f32],
    d: usize,
    to: &mut [[F; KEYS]],
) {
    /// Side of the squares that are transposed at a time.
    const SIDE: usize = 8;
    from.widen(first, narrow);
    let squares = narrow.len() / (SIDE * d);
    for j in 0..squares {
        let row = |r: usize| narrow[(j * SIDE + r) * d..][..d].as_chunks::<SIDE>().0;
        let rows = [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
        for (i, to) in to.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
            let square = [
                &rows[0][i],
                &rows[1][i],
                &rows[2][i],
                &rows[3][i],
                &rows[4][i],
                &rows[5][i],
                &rows[6][i],
                &rows[7][i],
            ];
            for (c, to) in to.iter_mut().enumerate() {
                let to = &mut to[j * SIDE..][..SIDE];
                for r in 0..SIDE {
                    to[r] = F::from_f32(square[r][c]);
                }
            }
        }
    }
    // What no square covers: the last columns, and the last rows.
    for (j, row) in narrow.chunks_exact(d).enumerate() {
        let done = if j < squares * SIDE { d / SIDE * SIDE } else { 0 };
        for (to, x) in to.iter_mut().zip(row).skip(done) {
            to[j] = F::from_f32(*x);
        }
    }
}

/// Adds to `ROWS` rows of `out`, `length` apart, the rows of `b` times the weights of each. All rows have
/// a multiple of `KEYS` elements.
#[inline(always)]
pub(super) fn add_products<F: Real, S: Simd>(
    simd: S,
    weights: &[Stripe<F>],
    b: &[F],
    width: usize,
    out: &mut [F],
    length: usize,
) {
    if S::F32_LANES >= 16 {
        add_columns::<F, S, 4>(simd, weights, b, width, out, length);
    } else {
        add_columns::<F, S, 2>(simd, weights, b, width, out, length);
    }
}

/// In blocks of `NV` vectors of columns, which stay in registers.
#[inline(always)]
fn add_columns<F: Real, S: Simd, const NV: usize>(
    simd: S,
    weights: &[Stripe<F>],
    b: &[F],
    width: usize,
    out: &mut [F],
    length: usize,
) {
    let (b, width) = (F::vectors::<S>(b), F::vectors::<S>(&b[..width]).len());
    for v in (0..width).step_by(NV) {
        let mut acc = [[F::splat(simd, F::default()); NV]; ROWS];
        for r in 0..ROWS {
            let from = &F::vectors::<S>(&out[r * length..])[v..v + NV];
            acc[r].copy_from_slice(from);
        }
        for (weights, row) in weights.iter().zip(b.chunks_exact(width)) {
            let row = &row[v..v + NV];
            for r in 0..ROWS {
                let weight = F::splat(simd, weights[r]);
                for l in 0..NV {
                    acc[r][l] = F::fma(simd, weight, row[l], acc[r][l]);
                }
            }
        }
        for r in 0..ROWS {
            let to = &mut F::vectors_mut::<S>(&mut out[r * length..])[v..v + NV];
            to.copy_from_slice(&acc[r]);
        }
    }
}

/// Lanes of sums and maxima.
const LANES: usize = 16;

/// The sum of a row.
#[inline(always)]
pub(super) fn sum<F: Real>(row: &[F]) -> F {
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut lanes = [F::default(); LANES];
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = *lane + *x;
        }
    }
    lanes.iter().chain(rest).fold(F::default(), |sum, x| sum + *x)
}

/// The largest value; NaN if there is one; -inf of nothing.
#[inline(always)]
pub(super) fn max<F: Real>(row: &[F]) -> F {
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut lanes = [F::NEG_INFINITY; LANES];
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = if *x > *lane { *x } else { *lane };
        }
    }
    let top = lanes.iter().chain(rest).fold(F::NEG_INFINITY, |top, x| if *x > top { *x } else { top });
    // A NaN never compares: it makes the sum NaN, as do infinities of both signs.
    if !sum(row).is_nan() {
        return top;
    }
    row.iter().copied().find(|x| x.is_nan()).unwrap_or(top)
}

/// `exp` of a number that is not positive, to 2 units in the last place; 0 below the normal numbers.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    // Adding this leaves the nearest integer in the low bits.
    const MAGIC: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let shifted = x.mul_add(std::f64::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    // Taylor; the next term is below 2e-16 for |r| <= ln(2) / 2.
    let mut sum = 1.0 / 479_001_600.0;
    for factorial in
        [39_916_800.0, 3_628_800.0, 362_880.0, 40_320.0, 5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0]
    {
        sum = r.mul_add(sum, 1.0 / factorial);
    }
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1.0f64.to_bits()));
    let value = sum * power;
    if x < -708.0 { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_exponential_is_that_of_the_library() {
        for i in 0..200_000 {
            let x = -f64::from(i) * 0.003_541;
            let (got, want) = (super::exp(x), libm::exp(x));
            assert!((got - want).abs() <= 2.0 * f64::EPSILON * want || x < -708.0, "{x}: {got} {want}");
        }
        assert_eq!([0.0, f64::NEG_INFINITY].map(super::exp), [1.0, 0.0]);
        assert!(super::exp(f64::NAN).is_nan());
    }
}
