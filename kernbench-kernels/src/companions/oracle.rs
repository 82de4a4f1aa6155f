//! The companions by definition, a row at a time: in f64, and plainly in a storage type.

use super::rotary::{Layout, Rotary};
use kernbench_core::ty::Float;

/// What a reference computes in: how each value is rounded that a plain implementation keeps in memory, and what
/// it keeps in registers.
#[derive(Clone, Copy, Debug)]
pub struct Arithmetic {
    /// To the storage type.
    pub stored: fn(f64) -> f64,
    /// To the type of sums and what is computed of them.
    pub computed: fn(f64) -> f64,
}

impl Arithmetic {
    /// Everything in f64.
    pub const EXACT: Arithmetic =
        Arithmetic { stored: std::convert::identity, computed: std::convert::identity };

    /// Values in `T`, statistics in f32: what PyTorch does with tensors of `T`.
    #[must_use]
    pub fn plain<T: Float>() -> Arithmetic {
        Arithmetic {
            stored: |x| f64::from(T::from_f32(x as f32).to_f32()),
            computed: |x| f64::from(x as f32),
        }
    }

    fn sum(self, values: impl Iterator<Item = f64>) -> f64 {
        values.fold(0.0, |sum, x| (self.computed)(sum + x))
    }

    fn mean(self, values: impl ExactSizeIterator<Item = f64>) -> f64 {
        let n = values.len() as f64;
        (self.computed)(self.sum(values) / n)
    }
}

/// Softmax of rows of `n`.
#[must_use]
pub fn softmax(with: Arithmetic, x: &[f32], n: usize) -> Vec<f64> {
    let Arithmetic { stored, computed } = with;
    rows(x, n, |x| {
        // Not `f64::max`, which ignores NaN.
        let max = x.iter().fold(f64::NEG_INFINITY, |a, &b| if a > b || a.is_nan() { a } else { b });
        let e: Vec<f64> = x.iter().map(|x| computed(libm::exp(computed(x - max)))).collect();
        let sum = with.sum(e.iter().copied());
        e.iter().map(|e| stored(e / sum)).collect()
    })
}

/// Layer norm of rows as long as `w` and `b`.
#[must_use]
pub fn layer_norm(with: Arithmetic, x: &[f32], w: &[f32], b: &[f32], eps: f32) -> Vec<f64> {
    let Arithmetic { stored, computed } = with;
    rows(x, w.len(), |x| {
        let mean = with.mean(x.iter().copied());
        let variance = with.mean(x.iter().map(|x| computed(computed(x - mean) * computed(x - mean))));
        let deviation = computed((variance + f64::from(eps)).sqrt());
        let normal = x.iter().map(|x| stored(computed(x - mean) / deviation));
        normal
            .zip(w.iter().zip(b))
            .map(|(x, (&w, &b))| stored(stored(x * f64::from(w)) + f64::from(b)))
            .collect()
    })
}

/// RMS norm of rows as long as `w`.
#[must_use]
pub fn rms_norm(with: Arithmetic, x: &[f32], w: &[f32], eps: f32) -> Vec<f64> {
    let Arithmetic { stored, computed } = with;
    rows(x, w.len(), |x| {
        let square = with.mean(x.iter().map(|x| computed(x * x)));
        let root = computed((square + f64::from(eps)).sqrt());
        x.iter().zip(w).map(|(x, &w)| stored(stored(x / root) * f64::from(w))).collect()
    })
}

/// Rotary embedding of rows of `n` by tables with a column for each pair of a head.
#[must_use]
pub fn rotary(with: Arithmetic, a: Rotary, x: &[f32], cos: &[f32], sin: &[f32], n: usize) -> Vec<f64> {
    let Rotary { d, rotary, layout } = a;
    let (stored, pairs) = (with.stored, rotary / 2);
    let mut token = 0..;
    rows(x, n, |x| {
        let first = token.next().unwrap_or(0) * pairs;
        let turned = |column: usize| {
            let (head, i) = (column / d * d, column % d);
            if i >= rotary {
                return x[column];
            }
            let (pair, second) = match layout {
                Layout::Halves => (i % pairs, i >= pairs),
                Layout::Interleaved => (i / 2, i % 2 == 1),
            };
            let other = head
                + match layout {
                    Layout::Halves => (i + pairs) % rotary,
                    Layout::Interleaved => i ^ 1,
                };
            let sin = f64::from(sin[first + pair]);
            let sin = if second { sin } else { -sin };
            stored(stored(x[column] * f64::from(cos[first + pair])) + stored(x[other] * sin))
        };
        (0..n).map(turned).collect()
    })
}

/// Applies a function to each row of `n` elements.
fn rows(x: &[f32], n: usize, mut f: impl FnMut(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let row = |x: &[f32]| f(&x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>());
    x.chunks_exact(n).flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Arithmetic = Arithmetic::EXACT;

    fn near(got: &[f64], want: &[f64]) {
        let apart = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(got.len() == want.len() && apart < 1e-6, "{got:?} {want:?}");
    }

    #[test]
    fn rows_worked_out_by_hand() {
        near(&softmax(EXACT, &[0.0, 3f32.ln(), 7.0, 7.0], 2), &[0.25, 0.75, 0.5, 0.5]);
        near(&layer_norm(EXACT, &[1.0, 5.0], &[1.0, 2.0], &[0.0, 10.0], 0.0), &[-1.0, 12.0]);
        near(&layer_norm(EXACT, &[5.0, 5.0], &[1.0, 2.0], &[0.0, 10.0], 1.0), &[0.0, 10.0]);
        near(&rms_norm(EXACT, &[1.0, 7.0], &[1.0, 2.0], 0.0), &[0.2, 2.8]);
        near(&rms_norm(EXACT, &[0.0, 0.0], &[1.0, 2.0], 1e-5), &[0.0, 0.0]);
    }

    #[test]
    fn quarter_and_half_turns_by_hand() {
        // Pair 0 turns by a quarter and pair 1 by a half; column 4 stays.
        let turned = |layout| {
            let a = Rotary { d: 5, rotary: 4, layout };
            rotary(EXACT, a, &[1.0, 2.0, 3.0, 4.0, 5.0], &[0.0, -1.0], &[1.0, 0.0], 5)
        };
        near(&turned(Layout::Halves), &[-3.0, -2.0, 1.0, -4.0, 5.0]);
        near(&turned(Layout::Interleaved), &[-2.0, 1.0, -3.0, -4.0, 5.0]);
    }
}
