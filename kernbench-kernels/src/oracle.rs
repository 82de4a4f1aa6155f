//! Reference attention: in f64, and plainly in the storage type, without any of the kernels' structure.
//!
//! Sums run in eight or sixteen lanes of fixed number, so that every host gives the same bits.

mod lanes;

use crate::bench::HostArray;
use kernbench_core::ty::{ElementType, Float};
use lanes::{Real, add_products, dots, exp, sum};
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
    const SCORES: usize = 1 << 18;
    let group = p.h_q / p.h_kv;
    let (rows, most) = (p.t_q * group, (SCORES / p.s_kv.max(1)).clamp(8, 32));
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
    fn with_simd<S: Simd>(self, _: S) -> Vec<A::F> {
        /// Keys widened at a time.
        const KEYS: usize = 64;
        let Rows { p, from: [q, k, v], arithmetic, head, rows } = self;
        let (d, group, count, first) = (p.d, p.h_q / p.h_kv, rows.len(), rows.start);
        let most = p.seen(rows.clone().last().unwrap_or(0) / group);
        let mut narrow = vec![0.0; KEYS * d];
        let mut queries = vec![A::F::default(); count * d];
        for (i, to) in rows.clone().zip(queries.chunks_exact_mut(d)) {
            let (t, h) = (i / group, head * group + i % group);
            lanes::widen(q, (t * p.h_q + h) * d, &mut narrow[..d], to);
        }
        let mut block = vec![A::F::default(); KEYS * d];
        let mut scores = vec![A::F::default(); count * most];
        for key in (0..most).step_by(KEYS) {
            let n = KEYS.min(most - key);
            lanes::widen(k, (head * p.s_kv + key) * d, &mut narrow[..n * d], &mut block[..n * d]);
            dots(&queries, &block[..n * d], d, &mut scores[key..], most);
        }
        let mut divisors = Vec::with_capacity(count);
        for (i, row) in rows.zip(scores.chunks_exact_mut(most.max(1))) {
            divisors.push(arithmetic.weights(&mut row[..p.seen(i / group)]));
        }
        divisors.resize(count, None);
        let mut out = vec![A::F::default(); count * d];
        for key in (0..most).step_by(KEYS) {
            let n = KEYS.min(most - key);
            lanes::widen(v, (head * p.s_kv + key) * d, &mut narrow[..n * d], &mut block[..n * d]);
            if p.seen(first / group) >= key + n {
                add_products(&scores[key..], most, &block[..n * d], d, &mut out);
                continue;
            }
            // A weight of 0 would not hide a NaN of a key that is not seen.
            for (i, out) in out.chunks_exact_mut(d).enumerate() {
                let n = n.min(p.seen((first + i) / group).saturating_sub(key));
                add_products(&scores[i * most + key..], most, &block[..n * d], d, out);
            }
        }
        for (out, divisor) in out.chunks_exact_mut(d).zip(divisors) {
            match divisor {
                Some(divisor) => out.iter_mut().for_each(|o| *o = *o / divisor),
                None => out.fill(A::F::default()),
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
