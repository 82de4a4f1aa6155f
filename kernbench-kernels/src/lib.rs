//! Kernels for kernbench, the oracles they are checked against, and the benches that run them.

/// Attention kernels.
pub mod attention;
/// What `kernbench run NAME` runs, and how a user adds to it.
pub mod bench;
pub mod collectives;
pub mod companions;
/// Matrix products with an epilogue.
pub mod gemm;
/// Linear layers shared by ranks.
pub mod mlp;
/// Reference results in f64, independent of the kernels' structure.
pub mod oracle;
/// Seeded inputs.
pub mod random;
/// When a result is right.
pub mod tolerance;
