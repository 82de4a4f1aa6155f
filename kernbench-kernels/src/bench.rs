//! Benches: named problems with parameters, inputs, a launch and a check.
//!
//! A bench is a value of `Bench` in a table; the command line runs any table of them.

mod params;

pub use params::{Param, Params};

use crate::random;
use crate::tolerance::{self, Check};
use kernbench_core::diag::Failure;
use kernbench_core::host::{Context, LaunchOptions, Launched, Tensor};
use kernbench_core::placement::Placement;
use kernbench_core::ty::{Dtype, ElementType, Float};
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

    /// A tensor of its name, a matrix whose columns are the last axis; of zeros if only the shape matters.
    ///
    /// # Errors
    /// The placement does not fit the shape or the machine.
    pub fn tensor<T: Dtype>(&self, ctx: &Context, placement: Placement) -> Result<Tensor<T>, Failure> {
        let (columns, rows) = self.shape.split_last().unwrap_or((&1, &[]));
        // A tensor so large is refused.
        let shape = [rows.iter().fold(1, |n: usize, m| n.saturating_mul(*m)), *columns];
        match self.bytes.is_empty() {
            true => ctx.zeros(shape, placement, &self.name),
            false => ctx.from_bytes(&self.bytes, shape, placement, &self.name),
        }
    }
}

/// Calls a function that is generic over the element type with a floating-point type that is a value.
macro_rules! for_type {
    ($ty:expr, $function:ident($($argument:expr),*)) => {
        match $ty {
            kernbench_core::ty::ElementType::F16 => $function::<kernbench_core::ty::f16>($($argument),*),
            kernbench_core::ty::ElementType::Bf16 => $function::<kernbench_core::ty::bf16>($($argument),*),
            _ => $function::<f32>($($argument),*),
        }
    };
}
pub(crate) use for_type;

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

impl Outcome {
    /// What one launch has done that computes `y`. `references` gives the result in f64 and that of a plain
    /// implementation in `T`; it is only called if there is something to compare.
    ///
    /// # Errors
    /// Elements of `y` that nobody has written.
    pub fn of<T: Float>(
        ctx: &Context,
        launched: Launched,
        y: &Tensor<T>,
        references: impl FnOnce() -> (Vec<f64>, Vec<f32>),
    ) -> Result<Outcome, Failure> {
        if !launched.computed {
            return Ok(Outcome { launches: vec![launched], outputs: vec![], check: None });
        }
        let elements: Vec<T> = ctx.read(y)?.into_iter().collect();
        let output = HostArray::new(y.name(), &y.shape(), &elements);
        let (reference, low) = references();
        let check = Some(tolerance::check::<T>(&output.floats(), &reference, &low));
        Ok(Outcome { launches: vec![launched], outputs: vec![output], check })
    }

    /// The same with outputs of another shape of as many elements.
    #[must_use]
    pub fn shaped(mut self, shape: &[usize]) -> Outcome {
        self.outputs.iter_mut().for_each(|o| o.shape = shape.to_vec());
        self
    }
}

/// The benches of this crate.
pub const BENCHES: &[Bench] = &[
    crate::attention::DECODE_SHORT,
    crate::attention::PREFILL_SHORT,
    crate::attention::DECODE_LONG,
    crate::attention::PREFILL_LONG,
    crate::attention::ATTENTION,
    crate::attention::MLA_DECODE,
    crate::gemm::GEMM,
    crate::gemm::GEMM_DEQUANT,
    crate::companions::SOFTMAX,
    crate::companions::LAYER_NORM,
    crate::companions::RMS_NORM,
    crate::companions::ROTARY,
    crate::collectives::ALL_REDUCE,
    crate::mlp::MLP,
];
