//! Kernels of my own: a file for each, and the table of their benches.

pub mod norm_linear;

use kernbench::kernels::bench::Bench;

/// What the program runs by name; each name once.
pub const MINE: &[Bench] = &[norm_linear::NORM_LINEAR];
