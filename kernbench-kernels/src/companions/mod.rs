//! The kernels beside attention and products, a file each: what to read first to learn the language.
//!
//! In all of them rows are split over PEs and no PE needs another: each loads a block of its own rows, computes
//! and stores it, while the next block is on its way.

mod case;
pub mod norm;
pub mod oracle;
pub mod rotary;
pub mod softmax;

pub use case::{LAYER_NORM, RMS_NORM, ROTARY, SOFTMAX};

/// Rows of a block: as many as have some 16 Ki elements, up to 64, and one at least. Smaller blocks cost more
/// for their ops than for their elements; larger ones leave the scratch no room for two of them.
#[must_use]
pub fn rows_at_once(cols: usize) -> usize {
    (16 * 1024 / cols.max(1)).clamp(1, 64)
}
