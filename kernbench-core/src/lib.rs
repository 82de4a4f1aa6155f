//! The core of kernbench: text and kernels in, values out; it reads no files.
//!
//! Modules in the order in which data flows through them.

/// The configuration of collectives, `ccl.yaml`.
pub mod ccl;
/// What a user is told when something is wrong.
pub mod diag;
/// The typed op graph of one launch.
pub mod ir;
/// The simulated machine: description, graph, dense tables, routes.
pub mod topology;
/// Element types, axes, directions, ranges.
pub mod ty;
/// Time, bandwidth and rates, in integers.
pub mod units;
mod yaml;

/// The simulator of time.
pub mod engine;
/// The op log: what happened.
pub mod log;
/// Why a launch took as long as it did.
pub mod report;
