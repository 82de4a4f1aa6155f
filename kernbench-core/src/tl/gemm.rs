//! Describing a composite GEMM: `Gemm::new(a, b, out).bias(x, Level::OutputTile)`.
//!
//! The types follow the values: a product of tiles of `T` is of `T::Acc`, `dequant` makes f32 of i32,
//! and [`StoredAs`] says which outputs take the result.

use super::tile::{Matrix, Tile, Transposed};
use super::view::{In, InOut, Out, Raw, Readable, Writable};
use crate::ir::{self, EpilogueFun, EpilogueStep, Level, TileId};
use crate::ty::{Dtype, ElementType, Float};
use std::fmt;
use std::marker::PhantomData;

/// A composite GEMM that has not been recorded: `out = epilogue(a * b)`.
///
/// `V` is the type its values have so far, f32 or i32, and `O` the element type of its output. Steps
/// apply in the order in which they are written; their levels may not go back.
#[must_use = "a composite GEMM computes nothing by itself: give it to `tl::composite`"]
pub struct Gemm<'g, V, O> {
    pub(super) a: Side,
    pub(super) b: Side,
    pub(super) out: Side,
    pub(super) ty: ElementType,
    pub(super) epilogue: Vec<EpilogueStep>,
    of: PhantomData<(&'g (), V, O)>,
}

impl<V, O> fmt::Debug for Gemm<'_, V, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [[m, k], [_, n]] = [self.a.shape(), self.b.shape()];
        write!(f, "a composite GEMM of [{m}, {k}] and [{k}, {n}]")
    }
}

impl<'g, V: Dtype, O: Dtype> Gemm<'g, V, O> {
    /// `out = a * b`, of shapes `[m, k]`, `[k, n]` and `[m, n]`. Operands and output are views in HBM,
    /// moved tile by tile, or tiles; an operand may be a transposed tile.
    pub fn new<T: Dtype<Acc = V>>(
        a: impl GemmInput<'g, T>,
        b: impl GemmInput<'g, T>,
        out: impl GemmOutput<'g, O>,
    ) -> Self {
        let (a, b, out) = (a.side(), b.side(), out.side());
        Gemm { a, b, out, ty: T::TYPE, epilogue: vec![], of: PhantomData }
    }

    /// Adds `x`, which broadcasts to `[m, n]`; at [`Level::KTile`] to `[k tiles, n]`, a row for each.
    pub fn bias(self, x: impl Factor<'g, V>, level: Level) -> Self {
        self.with(EpilogueFun::Bias, level, x.operand())
    }

    /// Multiplies by `x`, which broadcasts as that of [`Gemm::bias`].
    pub fn scale(self, x: impl Factor<'g, V>, level: Level) -> Self {
        self.with(EpilogueFun::Scale, level, x.operand())
    }

    /// The larger of each element and 0.
    pub fn relu(self, level: Level) -> Self {
        self.with(EpilogueFun::Relu, level, ir::Operand::None)
    }

    fn with<W>(self, fun: EpilogueFun, level: Level, operand: ir::Operand) -> Gemm<'g, W, O> {
        let Gemm { a, b, out, ty, mut epilogue, .. } = self;
        epilogue.push(EpilogueStep { fun, level, operand });
        Gemm { a, b, out, ty, epilogue, of: PhantomData }
    }
}

impl<'g, O: Dtype> Gemm<'g, i32, O> {
    /// Makes f32 of i32 and multiplies by `scale`, which broadcasts as the operand of [`Gemm::bias`]; at
    /// [`Level::KTile`] the tiles' products are added up in f32.
    pub fn dequant(self, scale: impl Factor<'g, f32>, level: Level) -> Gemm<'g, f32, O> {
        self.with(EpilogueFun::Dequant, level, scale.operand())
    }
}

/// An operand or the output of a composite as the recorder sees it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// In HBM.
    View(Raw),
    /// In scratch: the tile, its shape as the operand, whether it is transposed.
    Tile(TileId, [u32; 2], bool),
}

impl Side {
    pub(super) const fn shape(&self) -> [u32; 2] {
        match self {
            Side::View(raw) => raw.shape,
            Side::Tile(_, shape, _) => *shape,
        }
    }
}

/// An operand of a composite GEMM: a view, a tile or a transposed tile of `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand of a composite GEMM of `{T}`",
    label = "expected a view that can be read, a tile or a transposed tile of `{T}`",
    note = "both operands have one element type; finish an expression first: `tl::eval(..)`"
)]
pub trait GemmInput<'g, T> {
    #[doc(hidden)]
    fn side(self) -> Side;
}

/// The output of a composite GEMM: a view that can be written, or a tile, of `O`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an output of a composite GEMM",
    label = "expected a view that can be written, or a tile",
    note = "declare the argument `Out<T>` or `InOut<T>`, or make a tile: `tl::zeros([m, n])`"
)]
pub trait GemmOutput<'g, O> {
    #[doc(hidden)]
    fn side(self) -> Side;
}

macro_rules! sides {
    ($($direction:ident $bound:ident $view:ident;)*) => { $(
        impl<T: Dtype> $direction<'_, T> for $view<T> {
            fn side(self) -> Side { Side::View($bound::raw(self)) }
        }
    )* };
}
sides! {
    GemmInput Readable In;
    GemmInput Readable InOut;
    GemmOutput Writable Out;
    GemmOutput Writable InOut;
}

impl<'g, T: Dtype> GemmInput<'g, T> for Tile<'g, T> {
    fn side(self) -> Side {
        let (id, shape, transposed) = self.parts();
        Side::Tile(id, shape, transposed)
    }
}
impl<'g, T: Dtype> GemmInput<'g, T> for Transposed<'g, T> {
    fn side(self) -> Side {
        let (id, shape, transposed) = self.parts();
        Side::Tile(id, shape, transposed)
    }
}
impl<'g, T: Dtype> GemmOutput<'g, T> for Tile<'g, T> {
    fn side(self) -> Side {
        Side::Tile(self.id, self.shape, false)
    }
}

/// What an epilogue step takes beside values of `V`: a tile or a constant.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand of an epilogue step on values of `{V}`",
    label = "expected a tile or a constant",
    note = "beside f32 values it is a floating-point tile or `f32`, beside i32 values an `i32` tile or `i32`; load a view first: `tl::load(..)`"
)]
pub trait Factor<'g, V> {
    #[doc(hidden)]
    fn operand(self) -> ir::Operand;
}

impl<'g, T: Float> Factor<'g, f32> for Tile<'g, T> {
    fn operand(self) -> ir::Operand {
        ir::Operand::Tile(self.id)
    }
}
impl<'g> Factor<'g, i32> for Tile<'g, i32> {
    fn operand(self) -> ir::Operand {
        ir::Operand::Tile(self.id)
    }
}
impl Factor<'_, f32> for f32 {
    fn operand(self) -> ir::Operand {
        ir::Operand::F32(self)
    }
}
impl Factor<'_, i32> for i32 {
    fn operand(self) -> ir::Operand {
        ir::Operand::I32(self)
    }
}

/// Values of a composite that an output of `O` takes: f32 rounds to a floating-point type, i32 stays.
#[diagnostic::on_unimplemented(
    message = "a composite GEMM with values of `{Self}` has no output of `{O}`",
    label = "the output has another type",
    note = "f32 values go to f16, bf16 or f32; i32 values, the products of i8, u8 and i32, go to i32 or through `.dequant(..)`"
)]
pub trait StoredAs<O>: Dtype {}
impl<O: Float> StoredAs<O> for f32 {}
impl StoredAs<i32> for i32 {}
