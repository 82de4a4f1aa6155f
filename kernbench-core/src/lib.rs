//! The core of kernbench: text and kernels in, values out; it reads no files.
//!
//! Modules in the order in which data flows through them.

/// Time, bandwidth and rates, in integers.
pub mod units;
/// What a user is told when something is wrong.
pub mod diag;
/// YAML with exact places.
mod yaml;
/// Element types, axes, directions, ranges.
pub mod ty;
/// The typed op graph of one launch.
pub mod ir;
/// The simulated machine: description, graph, dense tables, routes.
pub mod topology;
/// The configuration of collectives.
pub mod ccl;
/// Where the bytes of a tensor are.
pub mod placement;
/// The kernel language.
pub mod tl;
/// Checks of a program before any time passes.
pub mod verify;
/// The simulator of time.
pub mod engine;
/// What transfers cost: published rows, a catalogue, traffic of one's own.
pub mod probe;
/// The bytes of tensors, and who wrote them.
pub mod store;
/// Executes a program on data.
pub mod exec;
/// The op log: what happened.
pub mod log;
/// Why a launch took as long as it did.
pub mod report;
/// The host program: a context, its tensors, and launches.
pub mod host;

/// What kernels are written with.
pub mod prelude {
    pub use crate::scratch_scope;
    pub use crate::tl::{
        self, Expr, Gemm, In, InOut, Kernel, Level, Matrix, Operand, Out, Pending, Readable, Scope, Tile,
        Transposed, Writable,
    };
    pub use crate::ty::{Axis, Block, Dir, Dtype, ElementType, Float, Group, Mask, Num, bf16, f16};
}
pub use ndarray;
