//! Reference attention and products: in f64, and plainly in the storage type, without any of the kernels'
//! structure.

use kernbench_core::ty::Float;

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

/// Rows of q and out, k and v of one query and head, handed to `f` with the number of keys seen.
fn for_each_row(p: &Problem, q: &[f32], k: &[f32], v: &[f32], mut f: impl FnMut(&[f32], &[f32], &[f32])) {
    let group = p.h_q / p.h_kv;
    for t in 0..p.t_q {
        for h in 0..p.h_q {
            let row = (t * p.h_q + h) * p.d;
            let head = h / group * p.s_kv * p.d;
            let keys = p.seen(t) * p.d;
            f(&q[row..row + p.d], &k[head..head + keys], &v[head..head + keys]);
        }
    }
}

/// Attention in f64. A row that sees no key, or whose scores are all -inf, is 0, as where a mask does it;
/// NaN in a key that is seen makes the row NaN.
#[must_use]
pub fn attention(p: &Problem, q: &[f32], k: &[f32], v: &[f32]) -> Vec<f64> {
    let mut out = Vec::with_capacity(p.t_q * p.h_q * p.d);
    let scale = f64::from(p.scale);
    for_each_row(p, q, k, v, |q, k, v| {
        let dot = |k: &[f32]| q.iter().zip(k).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
        let scores: Vec<f64> = k.chunks_exact(p.d).map(|k| dot(k) * scale).collect();
        let top = scores.iter().fold(f64::NEG_INFINITY, |m, &s| if s > m || s.is_nan() { s } else { m });
        let weights: Vec<f64> = scores.iter().map(|s| libm::exp(s - top)).collect();
        let total: f64 = weights.iter().sum();
        let start = out.len();
        out.resize(start + p.d, 0.0);
        for (w, v) in weights.iter().zip(v.chunks_exact(p.d)) {
            for (o, &v) in out[start..].iter_mut().zip(v) {
                *o += w * f64::from(v);
            }
        }
        if top == f64::NEG_INFINITY {
            out[start..].fill(0.0);
        } else {
            out[start..].iter_mut().for_each(|o| *o /= total);
        }
    });
    out
}

/// Attention as a plain implementation in `T` does it: products accumulate in f32, and scores,
/// weights and outputs are rounded to `T`. The tolerance rule measures how far that is off.
#[must_use]
pub fn plain<T: Float>(p: &Problem, q: &[f32], k: &[f32], v: &[f32]) -> Vec<f32> {
    let round = |x: f32| T::from_f32(x).to_f32();
    let mut out = Vec::with_capacity(p.t_q * p.h_q * p.d);
    for_each_row(p, q, k, v, |q, k, v| {
        let dot = |k: &[f32]| q.iter().zip(k).map(|(&a, &b)| a * b).sum::<f32>();
        let scores: Vec<f32> = k.chunks_exact(p.d).map(|k| round(round(dot(k)) * p.scale)).collect();
        let top = scores.iter().fold(f32::NEG_INFINITY, |m, &s| if s > m || s.is_nan() { s } else { m });
        let weights: Vec<f32> = scores.iter().map(|s| libm::expf(s - top)).collect();
        let total: f32 = weights.iter().sum();
        let start = out.len();
        out.resize(start + p.d, 0.0f32);
        for (w, v) in weights.iter().zip(v.chunks_exact(p.d)) {
            let w = round(w / total);
            for (o, &v) in out[start..].iter_mut().zip(v) {
                *o += w * v;
            }
        }
        if top == f32::NEG_INFINITY {
            out[start..].fill(0.0);
        }
        out[start..].iter_mut().for_each(|o| *o = round(*o));
    });
    out
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
