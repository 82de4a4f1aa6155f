//! Layer norm and RMS norm along rows.

use super::rows_at_once;
use kernbench_core::prelude::*;
use kernbench_macros::{device, kernel};

/// `y = (x - mean) / sqrt(variance + eps) * w + b` with the mean and the variance of each row (Ba, Kiros and
/// Hinton, Layer Normalization, 2016).
///
/// As the ONNX operator LayerNormalization along the last axis: the variance is that of all elements, divided by
/// their number, of differences from a mean worked out before. Statistics are in f32.
///
/// Work per PE: 10 vector operations for each element of its rows; each element is read and written once, and the
/// weights once in all.
#[kernel]
pub fn layer_norm<T: Float>(
    /// (rows, cols), row-wise over cubes and PEs.
    x: In<T>,
    /// (1, cols), replicated.
    w: In<T>,
    /// (1, cols), replicated.
    b: In<T>,
    /// Laid out like `x`.
    y: Out<T>,
    eps: f32,
) {
    let (x, y) = (x.local(), y.local());
    let w = tl::eval(tl::load(w).cast::<f32>());
    let b = tl::eval(tl::load(b).cast::<f32>());
    for rows in Block::new(0, x.nrows()).blocks(rows_at_once(x.ncols())) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(x.rows(rows));
            let centre = mean(tl, x.cast(), x.ncols());
            let centred = tl::eval(x.cast::<f32>() - centre);
            let variance = mean(tl, centred * centred, x.ncols());
            let factor = tl::eval(tl::rsqrt(variance + eps));
            tl::store(y.rows(rows), (centred * factor * w + b).cast::<T>());
        });
    }
}

/// `y = x / sqrt(mean of x^2 + eps) * w` in each row (Zhang and Sennrich, Root Mean Square Layer Normalization,
/// 2019), as in Llama: no mean is subtracted and there is no bias. Statistics are in f32.
///
/// Work per PE: 7 vector operations for each element of its rows; each element is read and written once, and the
/// weights once in all.
#[kernel]
pub fn rms_norm<T: Float>(
    /// (rows, cols), row-wise over cubes and PEs.
    x: In<T>,
    /// (1, cols), replicated.
    w: In<T>,
    /// Laid out like `x`.
    y: Out<T>,
    eps: f32,
) {
    let (x, y) = (x.local(), y.local());
    let w = tl::eval(tl::load(w).cast::<f32>());
    for rows in Block::new(0, x.nrows()).blocks(rows_at_once(x.ncols())) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(x.rows(rows));
            let square = mean(tl, (x * x).cast(), x.ncols());
            let factor = tl::eval(tl::rsqrt(square + eps));
            tl::store(y.rows(rows), (x.cast::<f32>() * factor * w).cast::<T>());
        });
    }
}

/// The mean of each row of `n` elements.
#[device]
fn mean(tl: &Scope, x: Expr<f32>, n: usize) -> Tile<'_, f32> {
    tl::eval(tl::sum(x, Axis::Cols) / n as f32)
}
