//! Benches: named problems with parameters, inputs, a launch and a check.
//!
//! A bench is a value of `Bench` in a table; the command line runs any table of them.

mod params;

pub use params::{Param, Params};

use crate::random;
use crate::tolerance::Check;
use kernbench_core::diag::Failure;
use kernbench_core::host::{Context, LaunchOptions, Launched};
use kernbench_core::ty::{Dtype, ElementType};
use std::sync::Arc;

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

impl Fill {
    /// An array of a floating-point type; each name has values of its own.
    #[must_use]
    pub fn array(self, name: &str, ty: ElementType, shape: &[usize]) -> HostArray {
        let bytes = match self {
            Fill::Nothing => vec![],
            Fill::Seed(seed) => random::normal_bytes(ty, seed, name, shape.iter().product()),
        };
        HostArray { name: name.to_owned(), ty, shape: shape.to_vec(), bytes: Arc::new(bytes) }
    }
}

/// A named array on the host, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct HostArray {
    /// The tensor's name, such as `q`.
    pub name: String,
    /// Its element type.
    pub ty: ElementType,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its elements, little-endian, as a tensor can share them; empty if only the shape matters.
    pub bytes: Arc<Vec<u8>>,
}

impl HostArray {
    /// An array of elements.
    #[must_use]
    pub fn new<T: Dtype>(name: &str, shape: &[usize], elements: &[T]) -> HostArray {
        let mut bytes = Vec::with_capacity(elements.len() * T::TYPE.bytes() as usize);
        elements.iter().for_each(|x| x.write(&mut bytes));
        HostArray { name: name.to_owned(), ty: T::TYPE, shape: shape.to_vec(), bytes: Arc::new(bytes) }
    }

    /// Its elements, if it is of floating-point type, as f32, exactly.
    #[must_use]
    pub fn floats(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.bytes.len() / self.ty.bytes() as usize];
        self.ty.widen(&self.bytes, &mut values);
        values
    }
}

/// What a bench has done.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The launches, in order of submission; one at least.
    pub launches: Vec<Launched>,
    /// What it computed; empty without data.
    pub outputs: Vec<HostArray>,
    /// How that compares with the oracle; `None` without data.
    pub check: Option<Check>,
}

/// The benches of this crate.
pub const BENCHES: &[Bench] = &[
    crate::attention::DECODE_SHORT,
    crate::attention::PREFILL_SHORT,
    crate::attention::DECODE_LONG,
    crate::gemm::GEMM,
    crate::collectives::ALL_REDUCE,
    crate::mlp::MLP,
];
