//! Products of quantised matrices, `y = (x w) * s` with a scale for each column of `w`: the sums of products of i8
//! are exact in i32, and only then become floating-point numbers.
//!
//! Placement and work are those of the other products of this module, at a byte for each element of `x` and `w`. As in
//! Dettmers et al., LLM.int8(), 2022, section 2, without outliers: a row of scales that holds for all of `x`.

use super::{COLUMNS, DEPTH, ROWS};
use kernbench_core::prelude::*;
use kernbench_macros::kernel;

/// The product as composite GEMMs, one for each block of rows.
#[kernel]
pub fn gemm_dequant_composite<T: Float>(
    /// (m, k), replicated.
    x: In<i8>,
    /// (k, n), column-wise over cubes and PEs.
    w: In<i8>,
    /// (1, n), laid out like `w`.
    s: In<f32>,
    /// (m, n), laid out like `w`.
    y: Out<T>,
) {
    let (w, y) = (w.local(), y.local());
    let s = tl::load(s.local());
    for rows in Block::new(0, x.nrows()).blocks(ROWS) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(x.rows(rows));
            let product = Gemm::new(x, w, y.rows(rows));
            let written = tl::composite(product.dequant(s, Level::OutputTile));
            // Nothing here needs what it writes: the next block may begin.
            let _ = written;
        });
    }
}

/// The same product with a `dot_add` for each part of k, a MATH op that scales, and a store.
#[kernel]
pub fn gemm_dequant_simple<T: Float>(
    /// (m, k), replicated.
    x: In<i8>,
    /// (k, n), column-wise over cubes and PEs.
    w: In<i8>,
    /// (1, n), laid out like `w`.
    s: In<f32>,
    /// (m, n), laid out like `w`.
    y: Out<T>,
) {
    let (w, y) = (w.local(), y.local());
    let s = tl::load(s.local());
    for rows in Block::new(0, x.nrows()).blocks(ROWS) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(x.rows(rows));
            for cols in Block::new(0, w.ncols()).blocks(COLUMNS) {
                scratch_scope!(buffers = 2, {
                    let acc = tl::zeros::<i32>([rows.len, cols.len]);
                    for k in Block::new(0, x.ncols()).blocks(DEPTH) {
                        scratch_scope!(buffers = 2, {
                            let w = tl::load(w.rows(k).cols(cols));
                            tl::dot_add(acc, x.cols(k), w);
                        });
                    }
                    let scaled = acc.cast::<f32>() * s.cols(cols);
                    tl::store(y.rows(rows).cols(cols), scaled.cast::<T>());
                });
            }
        });
    }
}
