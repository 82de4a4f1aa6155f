//! The loops of the references, over lanes of a fixed number; compiled for the vectors of the host by
//! whoever calls them.

use super::Elements;
use std::ops::{Add, Div, Mul};

/// f32 or f64, and as many of them as make 64 bytes.
pub(super) trait Real:
    Copy + Default + Send + Sync + PartialOrd + Add<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    type Lanes: Copy;
    const ZERO: Self::Lanes;
    const LOWEST: Self;
    fn from_f32(x: f32) -> Self;
    fn is_nan(self) -> bool;
    /// `a b + c`, rounded once.
    fn fma(a: Self, b: Self, c: Self) -> Self;
    /// Adds the products of lanes to `c`.
    fn fma_lanes(a: &Self::Lanes, b: &Self::Lanes, c: &mut Self::Lanes);
    /// Adds the products of one value and lanes to `c`.
    fn scale_lanes(a: Self, b: &Self::Lanes, c: &mut Self::Lanes);
    /// Whole lanes, and the values left over.
    fn split(x: &[Self]) -> (&[Self::Lanes], &[Self]);
    fn split_mut(x: &mut [Self]) -> (&mut [Self::Lanes], &mut [Self]);
    /// The sum, by halves.
    fn total(x: Self::Lanes) -> Self;
}

macro_rules! real {
    ($($t:ident, $lanes:literal;)*) => { $(
        impl Real for $t {
            type Lanes = [$t; $lanes];
            const ZERO: Self::Lanes = [0.0; $lanes];
            const LOWEST: Self = $t::NEG_INFINITY;
            #[inline(always)]
            fn from_f32(x: f32) -> Self { $t::from(x) }
            #[inline(always)]
            fn is_nan(self) -> bool { self.is_nan() }
            #[inline(always)]
            fn fma(a: Self, b: Self, c: Self) -> Self { a.mul_add(b, c) }
            #[inline(always)]
            fn fma_lanes(a: &Self::Lanes, b: &Self::Lanes, c: &mut Self::Lanes) {
                for i in 0..$lanes {
                    c[i] = a[i].mul_add(b[i], c[i]);
                }
            }
            #[inline(always)]
            fn scale_lanes(a: Self, b: &Self::Lanes, c: &mut Self::Lanes) {
                for i in 0..$lanes {
                    c[i] = a.mul_add(b[i], c[i]);
                }
            }
            #[inline(always)]
            fn split(x: &[Self]) -> (&[Self::Lanes], &[Self]) { x.as_chunks() }
            #[inline(always)]
            fn split_mut(x: &mut [Self]) -> (&mut [Self::Lanes], &mut [Self]) { x.as_chunks_mut() }
            #[inline(always)]
            fn total(mut x: Self::Lanes) -> Self {
                let mut n = $lanes;
                while n > 1 {
                    n /= 2;
                    for i in 0..n {
                        x[i] += x[i + n];
                    }
                }
                x[0]
            }
        }
    )* };
}
real! {
    f64, 8;
    f32, 16;
}

/// Widens elements from `first` on, through `narrow`.
#[inline(always)]
pub(super) fn widen<F: Real>(from: &dyn Elements, first: usize, narrow: &mut [f32], to: &mut [F]) {
    from.widen(first, narrow);
    for (to, x) in to.iter_mut().zip(narrow) {
        *to = F::from_f32(*x);
    }
}

/// Rows, and keys, of a register block.
const SIDE: usize = 4;

/// Products of every row of `a` with every row of `b`, both of length `d`: that of rows `i` and `j` at
/// `i * stride + j` of `out`.
#[inline(always)]
pub(super) fn dots<F: Real>(a: &[F], b: &[F], d: usize, out: &mut [F], stride: usize) {
    let (rows, keys) = (a.len() / d, b.len() / d);
    for i in (0..rows).step_by(SIDE) {
        for j in (0..keys).step_by(SIDE) {
            if i + SIDE <= rows && j + SIDE <= keys {
                square::<F, SIDE>(a, b, d, [i, j], out, stride);
            } else {
                for i in i..rows.min(i + SIDE) {
                    for j in j..keys.min(j + SIDE) {
                        square::<F, 1>(a, b, d, [i, j], out, stride);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn square<F: Real, const N: usize>(
    a: &[F],
    b: &[F],
    d: usize,
    [i, j]: [usize; 2],
    out: &mut [F],
    stride: usize,
) {
    let a: [(&[F::Lanes], &[F]); N] = std::array::from_fn(|r| F::split(&a[(i + r) * d..][..d]));
    let b: [(&[F::Lanes], &[F]); N] = std::array::from_fn(|c| F::split(&b[(j + c) * d..][..d]));
    let chunks = a[0].0.len();
    let (la, lb) = (a.map(|x| &x.0[..chunks]), b.map(|x| &x.0[..chunks]));
    let mut acc = [[F::ZERO; N]; N];
    for k in 0..chunks {
        for r in 0..N {
            for c in 0..N {
                F::fma_lanes(&la[r][k], &lb[c][k], &mut acc[r][c]);
            }
        }
    }
    for r in 0..N {
        for c in 0..N {
            let rest = a[r].1.iter().zip(b[c].1);
            let total = rest.fold(F::total(acc[r][c]), |sum, (x, y)| F::fma(*x, *y, sum));
            out[(i + r) * stride + j + c] = total;
        }
    }
}

/// Adds to each row of `out`, of length `d`, the rows of `b` times the weights of that row, which are at
/// `i * stride` of `weights`.
#[inline(always)]
pub(super) fn add_products<F: Real>(weights: &[F], stride: usize, b: &[F], d: usize, out: &mut [F]) {
    let keys = b.len() / d;
    let mut i = 0;
    while i * d < out.len() {
        let (of, to) = (&weights[i * stride..], &mut out[i * d..]);
        i += match to.len() / d {
            8.. => stripe::<F, 8>(of, stride, b, [keys, d], to),
            4.. => stripe::<F, 4>(of, stride, b, [keys, d], to),
            _ => stripe::<F, 1>(of, stride, b, [keys, d], to),
        };
    }
}

#[inline(always)]
fn stripe<F: Real, const N: usize>(
    weights: &[F],
    stride: usize,
    b: &[F],
    [keys, d]: [usize; 2],
    out: &mut [F],
) -> usize {
    /// Lanes of a row in registers.
    const WIDE: usize = 2;
    let weights: [&[F]; N] = std::array::from_fn(|r| &weights[r * stride..][..keys]);
    let whole = F::split(&out[..d]).0.len() / WIDE * WIDE;
    for lane in (0..whole).step_by(WIDE) {
        let mut acc = [[F::ZERO; WIDE]; N];
        for r in 0..N {
            acc[r].copy_from_slice(&F::split(&out[r * d..][..d]).0[lane..lane + WIDE]);
        }
        for (j, row) in b.chunks_exact(d).enumerate().take(keys) {
            let row = &F::split(row).0[lane..lane + WIDE];
            for r in 0..N {
                for l in 0..WIDE {
                    F::scale_lanes(weights[r][j], &row[l], &mut acc[r][l]);
                }
            }
        }
        for r in 0..N {
            F::split_mut(&mut out[r * d..][..d]).0[lane..lane + WIDE].copy_from_slice(&acc[r]);
        }
    }
    let first = whole * size_of::<F::Lanes>() / size_of::<F>();
    for r in 0..N {
        let out = &mut out[r * d..][first..d];
        for (j, row) in b.chunks_exact(d).enumerate().take(keys) {
            for (o, x) in out.iter_mut().zip(&row[first..]) {
                *o = F::fma(weights[r][j], *x, *o);
            }
        }
    }
    N
}

/// The sum of a row.
#[inline(always)]
pub(super) fn sum<F: Real>(row: &[F]) -> F {
    let (lanes, rest) = F::split(row);
    let mut acc = F::ZERO;
    lanes.iter().for_each(|x| F::scale_lanes(F::from_f32(1.0), x, &mut acc));
    rest.iter().fold(F::total(acc), |sum, x| sum + *x)
}

/// The largest value; NaN if there is one; -inf of nothing.
#[inline(always)]
pub(super) fn max<F: Real>(row: &[F]) -> F {
    // A NaN never compares: it makes the sum NaN, as do infinities of both signs.
    let top = row.iter().fold(F::LOWEST, |m, &s| if s > m { s } else { m });
    if !sum(row).is_nan() {
        return top;
    }
    row.iter().copied().find(|s| s.is_nan()).unwrap_or(top)
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
