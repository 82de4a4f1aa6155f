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
/// Element types, axes, directions, ranges.
pub mod ty;
/// Time, bandwidth and rates, in integers.
pub mod units;
mod yaml;

/// The simulator of time.
pub mod engine;
/// The bytes of tensors, and who wrote them.
pub mod store;
/// Executes a program on data.
pub mod exec;
/// The op log: what happened.
pub mod log;
/// Why a launch took as long as it did.
pub mod report;
