//! Reference attention and products: in f64, and plainly in the storage type, without any of the kernels'
//! structure.
//!
//! Blocks of keys are widened once for many queries; every host gives the same bits.

mod general;
mod lanes;

pub use general::{Inputs, Outputs, general, plain_general, with_outliers};

use crate::bench::HostArray;
use kernbench_core::ty::{ElementType, Float};
use lanes::{KEYS, ROWS, Real, add_products, exp, sum, widen_transposed};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use std::marker::PhantomData;

/// A grouped-query attention problem over arrays in memory: q and the result are `(t_q, h_q, d)`,
/// k and v are `(h_kv, s_kv, d)`, all row-major.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Problem {
    pub h_q: usize,
    pub h_kv: usize,
    pub d: usize,
    pub t_q: usize,
    pub s_kv: usize,
    /// Keys from this one on do not count.
    pub valid: usize,
    /// Query `i` sees keys up to `i`.
    pub causal: bool,
    pub scale: f32,
}

impl Problem {
    /// Keys that query `t` sees; they are the first ones.
    fn seen(&self, t: usize) -> usize {
        let causal = if self.causal { t + 1 } else { self.s_kv };
        self.valid.min(self.s_kv).min(causal)
    }
}

/// Floating-point elements in row-major order, wherever they are.
pub trait Elements: Sync {
    /// Writes the elements from `first` on to `out`, as f32.
    fn widen(&self, first: usize, out: &mut [f32]);
}

impl<V: AsRef<[f32]> + Sync> Elements for V {
    fn widen(&self, first: usize, out: &mut [f32]) {
        out.copy_from_slice(&self.as_ref()[first..][..out.len()]);
    }
}

impl Elements for HostArray {
    fn widen(&self, first: usize, out: &mut [f32]) {
        let size = self.ty.bytes() as usize;
        self.ty.widen(&self.bytes[first * size..][..out.len() * size], out);
    }
}

/// Attention in f64. A row that sees no key, or whose scores are all -inf, is 0, as where a mask does it;
/// NaN in a key that is seen makes the row NaN.
#[must_use]
pub fn attention(p: &Problem, q: &dyn Elements, k: &dyn Elements, v: &dyn Elements) -> Vec<f64> {
    attend(p, [q, k, v], &Exact { scale: f64::from(p.scale) })
}

/// Attention as a plain implementation in `T` does it: products accumulate in f32, and scores,
/// weights and outputs are rounded to `T`. The tolerance rule measures how far that is off.
#[must_use]
pub fn plain<T: Float>(p: &Problem, q: &dyn Elements, k: &dyn Elements, v: &dyn Elements) -> Vec<f32> {
    let mut out = attend(p, [q, k, v], &Plain::<T> { scale: p.scale, ty: PhantomData });
    round(T::TYPE, &mut out);
    out
}

/// The arithmetic of a reference.
trait Arithmetic: Sync {
    type F: Real;

    /// Makes weights of the products of a query and the keys it sees, and tells what to divide their
    /// sum of values by; `None` where the row is 0.
    fn weights(&self, row: &mut [Self::F]) -> Option<Self::F>;
}

struct Exact {
    scale: f64,
}

impl Arithmetic for Exact {
    type F = f64;

    #[inline(always)]
    fn weights(&self, row: &mut [f64]) -> Option<f64> {
        row.iter_mut().for_each(|s| *s *= self.scale);
        let top = lanes::max(row);
        row.iter_mut().for_each(|s| *s = exp(*s - top));
        (top != f64::NEG_INFINITY).then(|| sum(row))
    }
}

struct Plain<T> {
    scale: f32,
    ty: PhantomData<fn() -> T>,
}

impl<T: Float> Arithmetic for Plain<T> {
    type F = f32;

    #[inline(always)]
    fn weights(&self, row: &mut [f32]) -> Option<f32> {
        round(T::TYPE, row);
        row.iter_mut().for_each(|s| *s *= self.scale);
        round(T::TYPE, row);
        let top = lanes::max(row);
        row.iter_mut().for_each(|s| *s = exp(f64::from(*s - top)) as f32);
        let total = sum(row);
        row.iter_mut().for_each(|s| *s /= total);
        round(T::TYPE, row);
        (top != f32::NEG_INFINITY).then_some(1.0)
    }
}

/// Rounds to a floating-point type.
fn round(ty: ElementType, values: &mut [f32]) {
    const CHUNK: usize = 256;
    if ty == ElementType::F32 {
        return;
    }
    let mut bytes = [0; 2 * CHUNK];
    for values in values.chunks_mut(CHUNK) {
        let bytes = &mut bytes[..2 * values.len()];
        ty.narrow(values, bytes);
        ty.widen(bytes, values);
    }
}

/// Some rows of one key/value head: row `r` is query `r / group`, head `r % group` of the group.
struct Rows<'a, A> {
    p: &'a Problem,
    from: [&'a dyn Elements; 3],
    arithmetic: &'a A,
    head: usize,
    rows: std::ops::Range<usize>,
}

/// Attention of all rows, in parallel.
fn attend<A: Arithmetic>(p: &Problem, from: [&dyn Elements; 3], arithmetic: &A) -> Vec<A::F> {
    /// Scores held at a time.
    const SCORES: usize = 1 << 17;
    let group = p.h_q / p.h_kv;
    let (rows, most) = (p.t_q * group, (SCORES / p.s_kv.max(1)).clamp(8, 128));
    let parts: Vec<(usize, usize)> =
        (0..p.h_kv).flat_map(|head| (0..rows).step_by(most).map(move |row| (head, row))).collect();
    let (arch, mut out) = (Arch::new(), vec![A::F::default(); p.t_q * p.h_q * p.d]);
    let done: Vec<Vec<A::F>> = parts
        .par_iter()
        .map(|&(head, row)| {
            arch.dispatch(Rows { p, from, arithmetic, head, rows: row..rows.min(row + most) })
        })
        .collect();
    for ((head, first), values) in parts.into_iter().zip(done) {
        for (i, values) in values.chunks_exact(p.d).enumerate() {
            let (t, h) = ((first + i) / group, head * group + (first + i) % group);
            out[(t * p.h_q + h) * p.d..][..p.d].copy_from_slice(values);
        }
    }
    out
}

impl<A: Arithmetic> WithSimd for Rows<'_, A> {
    type Output = Vec<A::F>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<A::F> {
        let Rows { p, from: [q, k, v], arithmetic, head, rows } = self;
        let zero = A::F::default();
        let (d, group, first) = (p.d, p.h_q / p.h_kv, rows.start);
        let (stripes, width) = (rows.len().div_ceil(ROWS), d.next_multiple_of(KEYS));
        let seen = |row: usize| p.seen((first + row) / group);
        let most = seen(rows.len() - 1);
        let length = most.next_multiple_of(KEYS);
        let mut narrow = vec![0.0; KEYS * d];

        let mut queries = vec![[zero; ROWS]; stripes * d];
        for (i, row) in rows.clone().enumerate() {
            let (t, h) = (row / group, head * group + row % group);
            q.widen((t * p.h_q + h) * d, &mut narrow[..d]);
            for (to, x) in queries[i / ROWS * d..].iter_mut().zip(&narrow[..d]) {
                to[i % ROWS] = A::F::from_f32(*x);
            }
        }
        let mut scores = vec![zero; stripes * ROWS * length];
        let mut keys = vec![[zero; KEYS]; d];
        for key in (0..most).step_by(KEYS) {
            let n = KEYS.min(most - key);
            widen_transposed(k, (head * p.s_kv + key) * d, &mut narrow[..n * d], d, &mut keys);
            for (query, out) in queries.chunks_exact(d).zip(scores.chunks_exact_mut(ROWS * length)) {
                add_products(simd, query, keys.as_flattened(), KEYS, &mut out[key..], length);
            }
        }

        let mut divisors = vec![None; rows.len()];
        for (i, (divisor, row)) in divisors.iter_mut().zip(scores.chunks_exact_mut(length.max(1))).enumerate()
        {
            *divisor = arithmetic.weights(&mut row[..seen(i)]);
        }

        let mut sums = vec![zero; stripes * ROWS * width];
        let mut values = vec![zero; KEYS * width];
        let mut weights = [[zero; ROWS]; KEYS];
        for key in (0..most).step_by(KEYS) {
            let n = KEYS.min(most - key);
            lanes::widen(v, (head * p.s_kv + key) * d, &mut narrow[..n * d], [d, width], &mut values);
            for (stripe, out) in sums.chunks_exact_mut(ROWS * width).enumerate() {
                let row = stripe * ROWS;
                for r in 0..ROWS {
                    let from = &scores[(row + r) * length + key..][..n];
                    weights.iter_mut().zip(from).for_each(|(to, w)| to[r] = *w);
                }
                if seen(row) >= key + n {
                    add_products(simd, &weights[..n], &values, width, out, width);
                    continue;
                }
                // A weight of 0 would not hide a NaN of a key that is not seen: a row at a time.
                for r in 0..ROWS.min(rows.len() - row) {
                    let n = n.min(seen(row + r).saturating_sub(key));
                    let mut alone = [[zero; ROWS]; KEYS];
                    alone.iter_mut().zip(&weights).for_each(|(to, w)| to[0] = w[r]);
                    let mut line = vec![zero; ROWS * width];
                    line[..width].copy_from_slice(&out[r * width..][..width]);
                    add_products(simd, &alone[..n], &values, width, &mut line, width);
                    out[r * width..][..width].copy_from_slice(&line[..width]);
                }
            }
        }

        let mut out = vec![zero; rows.len() * d];
        for ((out, sums), divisor) in out.chunks_exact_mut(d).zip(sums.chunks_exact(width)).zip(divisors) {
            if let Some(divisor) = divisor {
                out.iter_mut().zip(sums).for_each(|(o, x)| *o = *x / divisor);
            }
        }
        out
    }
}

/// A matrix product of arrays in memory: `x` is `(m, k)`, `w` is `(k, n)`, row-major.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Product<'a> {
    pub m: usize,
    pub k: usize,
    pub n: usize,
    pub x: &'a [f32],
    pub w: &'a [f32],
}

impl Product<'_> {
    /// The product `(m, n)` in f64.
    #[must_use]
    pub fn exact(&self) -> Vec<f64> {
        self.rows(|sum: &mut f64, x, w| *sum += f64::from(x) * f64::from(w))
    }

    /// The product as a plain implementation in `T` does it: accumulated in f32 and rounded to `T`.
    #[must_use]
    pub fn plain<T: Float>(&self) -> Vec<f32> {
        let sums = self.rows(|sum: &mut f32, x, w| *sum += x * w);
        sums.into_iter().map(|sum| T::from_f32(sum).to_f32()).collect()
    }

    /// Adds up each element in k order, a row at a time.
    fn rows<S: Copy + Default>(&self, add: impl Fn(&mut S, f32, f32)) -> Vec<S> {
        let mut out = vec![S::default(); self.m * self.n];
        for (row, x) in out.chunks_exact_mut(self.n.max(1)).zip(self.x.chunks_exact(self.k.max(1))) {
            for (&x, w) in x.iter().zip(self.w.chunks_exact(self.n.max(1))) {
                row.iter_mut().zip(w).for_each(|(sum, &w)| add(sum, x, w));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Problem = Problem { h_q: 2, h_kv: 1, d: 1, t_q: 2, s_kv: 2, valid: 2, causal: true, scale: 1.0 };

    #[test]
    fn agrees_with_attention_worked_out_by_hand() {
        // Query 0 sees key 0 alone. Query 1 sees both, with scores q * (0, ln 3): weights 1/4, 3/4 at q = 1.
        let ln3 = 3f32.ln();
        let out = attention(&P, &[5.0, 7.0, 1.0, 0.0], &[0.0, ln3], &[4.0, 8.0]);
        let want = [4.0, 4.0, 7.0, 6.0];
        assert!(out.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{out:?}");
    }

    /// The definition, one multiplication after the other.
    fn by_definition(p: &Problem, q: &[f32], k: &[f32], v: &[f32]) -> Vec<f64> {
        let mut out = vec![];
        for (t, h, i) in (0..p.t_q * p.h_q * p.d).map(|x| (x / p.d / p.h_q, x / p.d % p.h_q, x % p.d)) {
            let head = h / (p.h_q / p.h_kv) * p.s_kv;
            let product = |j: usize, i: usize| {
                f64::from(q[(t * p.h_q + h) * p.d + i]) * f64::from(k[(head + j) * p.d + i])
            };
            let score = |j: usize| f64::from(p.scale) * (0..p.d).map(|i| product(j, i)).sum::<f64>();
            let weights: Vec<f64> = (0..p.seen(t)).map(|j| score(j).exp()).collect();
            let sum: f64 = weights.iter().zip(head..).map(|(w, j)| w * f64::from(v[j * p.d + i])).sum();
            out.push(if weights.is_empty() { 0.0 } else { sum / weights.iter().sum::<f64>() });
        }
        out
    }

    #[test]
    fn every_shape_agrees_with_the_definition() {
        for (h_q, h_kv, d, t_q, s_kv, causal) in [
            (4, 2, 19, 1, 7, false),
            (3, 1, 32, 13, 150, true),
            (8, 2, 40, 5, 66, false),
            (1, 1, 1, 70, 70, true),
        ] {
            for valid in [s_kv, s_kv / 2, 0] {
                let p = Problem { h_q, h_kv, d, t_q, s_kv, valid, causal, scale: 0.3 };
                let array = |name, n| crate::random::normal::<f32>(5, name, n);
                let (q, kv) = (array("q", t_q * h_q * d), h_kv * s_kv * d);
                let (k, mut v) = (array("k", kv), array("v", kv));
                let want = by_definition(&p, &q, &k, &v);
                // Values of keys that a query does not see must not touch it.
                for head in v.chunks_exact_mut(s_kv * d) {
                    head[valid * d..].fill(f32::NAN);
                }
                let got = attention(&p, &q, &k, &v);
                let low = plain::<f32>(&p, &q, &k, &v);
                for ((got, low), want) in got.iter().zip(low).zip(want) {
                    assert!((got - want).abs() < 1e-13 * (1.0 + want.abs()), "{p:?}: {got} {want}");
                    assert!((f64::from(low) - want).abs() < 1e-5, "{p:?}: {low} {want}");
                }
            }
        }
    }

    #[test]
    fn a_product_worked_out_by_hand() {
        let p = Product { m: 2, k: 2, n: 3, x: &[1.0, 2.0, 3.0, 4.0], w: &[1.0, 0.0, -1.0, 2.0, 1.0, 0.0] };
        assert_eq!(p.exact(), [5.0, 2.0, -1.0, 11.0, 4.0, -3.0]);
        assert_eq!(p.plain::<f32>(), [5.0, 2.0, -1.0, 11.0, 4.0, -3.0]);
    }

    #[test]
    fn a_row_without_keys_is_zero_and_a_nan_key_shows() {
        let none = Problem { valid: 0, ..P };
        assert_eq!(attention(&none, &[1.0; 4], &[1.0; 2], &[1.0; 2]), [0.0; 4]);
        assert_eq!(attention(&P, &[1.0; 4], &[f32::NEG_INFINITY; 2], &[1.0; 2]), [0.0; 4]);
        let out = attention(&P, &[1.0; 4], &[1.0, f32::NAN], &[1.0, 1.0]);
        assert_eq!(out[..2], [1.0, 1.0]);
        assert!(out[2].is_nan() && out[3].is_nan());
    }
}
