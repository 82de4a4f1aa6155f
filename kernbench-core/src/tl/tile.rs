//! Tiles: matrices in the scratch of a PE, as handles tied to the scope that holds them.

use super::expr::{Expr, Node, Operand};
use super::recorder::Recorder;
use super::view::{self, Mistake, Window};
use crate::ir::{Fun, TileId};
use crate::ty::{Block, Dtype};
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

/// A matrix in PE-local scratch. A handle: copying it copies no data. `'s` is its scratch scope.
pub struct Tile<'s, T> {
    pub(crate) rec: &'s Recorder,
    pub(crate) id: TileId,
    pub(crate) shape: [u32; 2],
    ty: PhantomData<T>,
}

/// The tile of a mistake already reported: everything done with it is silent.
pub(crate) const POISON: TileId = TileId(u32::MAX);

impl<T> Clone for Tile<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Tile<'_, T> {}

impl<T: Dtype> fmt::Debug for Tile<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{} {}[{}, {}]", self.id, T::TYPE, self.shape[0], self.shape[1])
    }
}

impl<'s, T: Dtype> Tile<'s, T> {
    pub(crate) fn new(rec: &'s Recorder, id: TileId, shape: [u32; 2]) -> Self {
        Tile { rec, id, shape, ty: PhantomData }
    }

    /// Rows.
    #[must_use]
    pub fn nrows(self) -> usize {
        self.shape[0] as usize
    }

    /// Columns.
    #[must_use]
    pub fn ncols(self) -> usize {
        self.shape[1] as usize
    }

    /// Rows and columns.
    #[must_use]
    pub fn shape(self) -> [usize; 2] {
        self.shape.map(|n| n as usize)
    }

    /// The transposed matrix, for `tl::dot` only; costs nothing.
    #[must_use]
    pub fn t(self) -> Transposed<'s, T> {
        Transposed(self)
    }

    /// The rows of a range, as `a..b` or a [`Block`]; the same bytes, not a copy.
    #[must_use]
    #[track_caller]
    pub fn rows(self, r: impl Into<Block>) -> Self {
        let r = r.into();
        self.slice([r.len as u32, self.shape[1]], |w| view::rows(w, r))
    }

    /// The columns of a range, as `a..b` or a [`Block`]; the same bytes, not a copy.
    #[must_use]
    #[track_caller]
    pub fn cols(self, r: impl Into<Block>) -> Self {
        let r = r.into();
        self.slice([self.shape[0], r.len as u32], |w| view::cols(w, r))
    }

    /// The same elements in row-major order under another shape of as many elements; not a copy.
    #[must_use]
    #[track_caller]
    pub fn reshape(self, shape: [usize; 2]) -> Self {
        self.slice(shape.map(|n| n as u32), |w| view::reshape(w, shape))
    }

    #[track_caller]
    fn slice(self, wanted: [u32; 2], f: impl FnOnce(Window) -> Result<Window, Mistake>) -> Self {
        let (id, shape) = self.rec.slice(self.id, wanted, f, Location::caller());
        Tile { id, shape, ..self }
    }

    /// The elements converted to another type, as an expression.
    #[track_caller]
    pub fn cast<U: Dtype>(self) -> Expr<'s, U> {
        Expr::step(Fun::Cast, U::TYPE, [Operand::<T>::node(self), Node::NONE, Node::NONE])
    }
}

/// A transposed tile, as an operand of `tl::dot`.
pub struct Transposed<'s, T>(pub(crate) Tile<'s, T>);

impl<T> Clone for Transposed<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Transposed<'_, T> {}

impl<T: Dtype> fmt::Debug for Transposed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}.t()", self.0)
    }
}

/// An operand of `tl::dot`: a tile or a transposed tile.
#[diagnostic::on_unimplemented(
    message = "`tl::dot` takes tiles of one element type, not `{Self}`",
    label = "expected a tile or a transposed tile of `{T}`",
    note = "finish an expression first: `tl::eval(..)`; to change the element type: `tl::eval(x.cast::<{T}>())`"
)]
pub trait Matrix<'s, T> {
    /// The tile, its shape as the operand, whether it is transposed.
    #[doc(hidden)]
    fn parts(self) -> (TileId, [u32; 2], bool);
}

impl<'s, T: Dtype> Matrix<'s, T> for Tile<'s, T> {
    fn parts(self) -> (TileId, [u32; 2], bool) {
        (self.id, self.shape, false)
    }
}

impl<'s, T: Dtype> Matrix<'s, T> for Transposed<'s, T> {
    fn parts(self) -> (TileId, [u32; 2], bool) {
        let [m, n] = self.0.shape;
        (self.0.id, [n, m], true)
    }
}

/// Something on its way: finish it with `tl::wait`.
#[must_use = "what is pending must be finished: `tl::wait(p)`"]
pub struct Pending<'s, R> {
    pub(crate) op: Option<crate::ir::OpId>,
    pub(crate) result: R,
    pub(crate) scope: PhantomData<&'s ()>,
}

impl<R> fmt::Debug for Pending<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}
