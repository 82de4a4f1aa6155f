//! Softmax along rows.

use super::rows_at_once;
use kernbench_core::prelude::*;
use kernbench_macros::kernel;

/// `y = exp(x - max x) / sum(exp(x - max x))` in each row: subtracting the largest element changes nothing but
/// keeps `exp` from overflowing.
///
/// As `torch.softmax` and the ONNX operator Softmax along the last axis: -inf gives 0, and a row of nothing but
/// -inf gives NaN. Rows are processed in one piece, so the scratch bounds `cols`: two buffers of 8 bytes for each
/// element of f16 are 65,000 columns in 1 MiB.
///
/// Work per PE: 7 vector operations for each element of its rows; each element is read and written once.
#[kernel]
pub fn softmax<T: Float>(
    /// (rows, cols), row-wise over cubes and PEs.
    x: In<T>,
    /// Laid out like `x`.
    y: Out<T>,
) {
    let (x, y) = (x.local(), y.local());
    for rows in Block::new(0, x.nrows()).blocks(rows_at_once(x.ncols())) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(x.rows(rows));
            let max = tl::max(x, Axis::Cols);
            // In f32, so that the sum and its terms do not round before the quotient does.
            let e = tl::eval(tl::exp(x - max).cast::<f32>());
            let sum = tl::sum(e, Axis::Cols);
            tl::store(y.rows(rows), (e / sum).cast::<T>());
        });
    }
}
