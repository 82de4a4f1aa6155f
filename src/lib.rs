//! kernbench: a kernel language for AI accelerators and a simulator of the machine it runs on.

/// The command line, for any table of benches.
pub mod cli;
/// Diagnostics as a terminal shows them.
pub mod render;

pub use kernbench_core as core;
pub use kernbench_core::{
    ccl, diag, engine, exec, host, ir, launch_by_type, log, ndarray, placement, report, scratch_scope, store,
    tl, topology, ty, units, verify,
};
pub use kernbench_kernels as kernels;
pub use kernbench_macros::{device, kernel};

/// Everything a kernel and its host program need.
pub mod prelude {
    pub use kernbench_core::host::{Backend, Context, LaunchOptions, ReduceOp, Tensor, Worker};
    pub use kernbench_core::placement::{Placement, Split};
    pub use kernbench_core::prelude::*;
    pub use kernbench_core::topology::Topology;
    pub use kernbench_macros::{device, kernel};
}

#[cfg(doctest)]
#[doc = include_str!("../docs/writing-kernels.md")]
struct Kernels;

#[cfg(doctest)]
#[doc = include_str!("../docs/host-programs.md")]
struct HostPrograms;
