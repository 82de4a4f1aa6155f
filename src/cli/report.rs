//! What `kernbench run` prints: for people, and as JSON.

mod human;
mod json;

pub(super) use human::human;
pub(super) use json::json;

use super::inputs::Odd;
use kernbench_core::report::Report;
use kernbench_core::topology::Machine;
use kernbench_core::units::Ps;
use kernbench_kernels::bench::{Bench, Outcome, Params};
use std::time::Duration;

/// A finished run.
pub(super) struct Run<'a> {
    pub(super) bench: &'a Bench,
    pub(super) params: &'a Params,
    /// Where the inputs came from.
    pub(super) inputs: String,
    /// Inputs with NaN or infinity; `None` without data.
    pub(super) odd: Option<Vec<Odd>>,
    pub(super) outcome: &'a Outcome,
    pub(super) report: Report,
    pub(super) machine: &'a Machine,
    pub(super) deploy_ps: Ps,
    pub(super) wall: Duration,
}
