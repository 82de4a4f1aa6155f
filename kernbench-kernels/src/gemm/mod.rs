//! Matrix products with an epilogue, `y = epilogue(x w)`: each PE computes its own columns of `y`.
//!
//! The weights are split by columns over cubes and PEs, so each PE reads its part from its own slice; the
//! activations are replicated. Work per PE: `2 m k n / PEs` flop. Both kernels read a block's rows of `x` once
//! and all of the PE's weights for each block of rows.

mod case;
mod dequant;
mod dequant_case;

pub use case::GEMM;
pub use dequant::{gemm_dequant_composite, gemm_dequant_simple};
pub use dequant_case::GEMM_DEQUANT;

use kernbench_core::prelude::*;
use kernbench_macros::kernel;

/// Rows of a block: one tile of the default machine's matrix engine.
const ROWS: usize = 32;
/// Columns of a block, and the part of k that is loaded at a time, of the simple kernel.
const COLUMNS: usize = 32;
const DEPTH: usize = 256;

/// What becomes of the product, in f32; `e` is a row of as many columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epilogue {
    /// Nothing.
    None,
    /// `y + e`.
    Bias,
    /// The larger of `y` and 0.
    Relu,
    /// `y * e`.
    Scale,
    /// The larger of `y + e` and 0.
    BiasRelu,
}

/// The product as composite GEMMs, one for each block of rows, which stays in scratch meanwhile.
#[kernel]
pub fn gemm_composite<T: Float>(
    /// (m, k), replicated.
    x: In<T>,
    /// (k, n), column-wise over cubes and PEs.
    w: In<T>,
    /// (1, n), laid out like `w`.
    e: In<T>,
    /// (m, n), laid out like `w`.
    y: Out<T>,
    epilogue: Epilogue,
) {
    let (w, y) = (w.local(), y.local());
    let e = tl::load(e.local());
    for rows in Block::new(0, x.nrows()).blocks(ROWS) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(x.rows(rows));
            let product = Gemm::new(x, w, y.rows(rows));
            let each = Level::OutputTile;
            let written = tl::composite(match epilogue {
                Epilogue::None => product,
                Epilogue::Bias => product.bias(e, each),
                Epilogue::Relu => product.relu(each),
                Epilogue::Scale => product.scale(e, each),
                Epilogue::BiasRelu => product.bias(e, each).relu(each),
            });
            // Nothing here needs what it writes: the next block may begin.
            let _ = written;
        });
    }
}

/// The same product with a `dot_add` for each part of k, a MATH op for the epilogue, and a store.
#[kernel]
pub fn gemm_simple<T: Float>(
    /// (m, k), replicated.
    x: In<T>,
    /// (k, n), column-wise over cubes and PEs.
    w: In<T>,
    /// (1, n), laid out like `w`.
    e: In<T>,
    /// (m, n), laid out like `w`.
    y: Out<T>,
    epilogue: Epilogue,
) {
    let (w, y) = (w.local(), y.local());
    let e = tl::load(e.local());
    for rows in Block::new(0, x.nrows()).blocks(ROWS) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(x.rows(rows));
            for cols in Block::new(0, w.ncols()).blocks(COLUMNS) {
                scratch_scope!(buffers = 2, {
                    let acc = tl::zeros::<f32>([rows.len, cols.len]);
                    for k in Block::new(0, x.ncols()).blocks(DEPTH) {
                        scratch_scope!(buffers = 2, {
                            let w = tl::load(w.rows(k).cols(cols));
                            tl::dot_add(acc, x.cols(k), w);
                        });
                    }
                    let e = tl::eval(e.cols(cols).cast::<f32>());
                    let out = match epilogue {
                        Epilogue::None => acc.cast::<T>(),
                        Epilogue::Bias => (acc + e).cast(),
                        Epilogue::Relu => tl::maximum(acc, 0.0).cast(),
                        Epilogue::Scale => (acc * e).cast(),
                        Epilogue::BiasRelu => tl::maximum(acc + e, 0.0).cast(),
                    };
                    tl::store(y.rows(rows).cols(cols), out);
                });
            }
        });
    }
}
