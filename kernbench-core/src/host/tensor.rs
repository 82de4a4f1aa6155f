//! Tensors: matrices in the HBM of a SIP, as the host holds them.

use super::Shared;
use crate::diag::{Diagnostic, Failure};
use crate::ir::TensorId;
use crate::tl::{In, InOut, Out, Raw};
use crate::ty::{Dtype, ElementType};
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

/// A matrix in the HBM of one SIP. Dropping it frees its memory.
pub struct Tensor<T> {
    pub(super) shared: Shared,
    pub(super) raw: Raw,
    pub(super) name: String,
    pub(super) ty: PhantomData<T>,
}

impl<T> Tensor<T> {
    /// Checks that it belongs to a context.
    pub(super) fn is_of(&self, shared: &Shared) -> Result<(), Failure> {
        if Rc::ptr_eq(shared, &self.shared) {
            return Ok(());
        }
        Err(Diagnostic::error("KB0110", format!("tensor `{}` belongs to another context", self.name))
            .help("use the context that made it")
            .into())
    }
}

impl<T: Dtype> Tensor<T> {
    /// Rows and columns.
    #[must_use]
    pub fn shape(&self) -> [usize; 2] {
        In::<T>::of(self.raw).shape()
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> ElementType {
        T::TYPE
    }

    /// The name it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number in the context.
    #[must_use]
    pub fn id(&self) -> TensorId {
        self.raw.tensor
    }

    /// A view for a kernel that reads it.
    #[must_use]
    pub fn input(&self) -> In<T> {
        In::of(self.raw)
    }

    /// A view for a kernel that writes it.
    #[must_use]
    pub fn output(&mut self) -> Out<T> {
        Out::of(self.raw)
    }

    /// A view for a kernel that reads and writes it.
    #[must_use]
    pub fn inout(&mut self) -> InOut<T> {
        InOut::of(self.raw)
    }
}

impl<T: Dtype> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n] = self.shape();
        write!(f, "{} {}[{m}, {n}]", self.name, T::TYPE)
    }
}

impl<T> Drop for Tensor<T> {
    fn drop(&mut self) {
        // A context that is borrowed is running a launch and keeps the tensor alive through its views.
        if let Ok(mut state) = self.shared.try_borrow_mut() {
            state.drop_tensor(self.raw.tensor);
        }
    }
}
