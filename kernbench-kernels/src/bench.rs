//! Benches: named problems with parameters, inputs, a launch and a check.
//!
//! A bench is a value of `Bench` in a table; the command line runs any table of them.

mod params;

pub use params::{Param, Params};

use crate::tolerance::Check;
use kernbench_core::diag::Failure;
use kernbench_core::host::{Context, LaunchOptions, Launched};
use kernbench_core::ty::ElementType;

/// A named problem that `kernbench run` runs.
#[derive(Clone, Copy, Debug)]
pub struct Bench {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What `--set` takes, with defaults.
    pub params: &'static [Param],
    /// The inputs it needs for some parameters, filled from a seed.
    ///
    /// # Errors
    /// Parameters that do not fit together or the machine.
    pub inputs: fn(&Context, &Params, Fill) -> Result<Vec<HostArray>, Failure>,
    /// Places the inputs, launches and checks.
    ///
    /// # Errors
    /// Whatever the launch or the parameters do wrong.
    pub run: fn(&Context, &Params, &[HostArray], &LaunchOptions) -> Result<Outcome, Failure>,
}

/// Where the values of inputs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Standard normal values of a seed.
    Seed(u64),
    /// No values: names, types and shapes only.
    Nothing,
}

/// A named matrix on the host, its elements widened to f32 (exact for f16, bf16 and f32).
#[derive(Clone, Debug, PartialEq)]
pub struct HostArray {
    /// The tensor's name, such as `q`.
    pub name: String,
    /// The element type it stands for.
    pub ty: ElementType,
    /// Its shape, row-major.
    pub shape: Vec<usize>,
    /// Its elements; empty if only the shape matters.
    pub values: Vec<f32>,
}

/// What a bench has done.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The launch.
    pub launched: Launched,
    /// What it computed; empty without data.
    pub outputs: Vec<HostArray>,
    /// How that compares with the oracle; `None` without data.
    pub check: Option<Check>,
}

/// The benches of this crate.
pub const BENCHES: &[Bench] =
    &[crate::attention::DECODE_SHORT, crate::attention::PREFILL_SHORT, crate::gemm::GEMM];
