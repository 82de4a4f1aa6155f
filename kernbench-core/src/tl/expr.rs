//! Expressions: element-wise vector programs, built by operators and finished once.

use super::recorder::Recorder;
use super::tile::{POISON, Tile};
use crate::ir::{self, Fun};
use crate::ty::{Dtype, ElementType, Float, Num};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::panic::Location;

/// A vector program that has not run yet; neither `Copy` nor `Clone`: whoever names its destination
/// (`tl::eval`, `tl::copy_to`, `tl::store`, a reduction) finishes it, as one MATH op.
#[must_use = "an expression computes nothing: finish it with `tl::eval`, `tl::copy_to`, `tl::store` or a reduction"]
pub struct Expr<'s, T> {
    node: Node<'s>,
    ty: PhantomData<T>,
}

impl<T> fmt::Debug for Expr<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an expression of shape [{}, {}]", self.node.shape[0], self.node.shape[1])
    }
}

/// An operand as the recorder sees it: a tile, a scalar, or the contiguous steps of an expression.
#[derive(Clone, Copy)]
pub struct Node<'s> {
    pub(crate) rec: Option<&'s Recorder>,
    pub(crate) root: ir::Operand,
    pub(crate) shape: [u32; 2],
    pub(crate) first: u32,
    pub(crate) len: u32,
}

impl<'s> Node<'s> {
    pub(crate) const NONE: Node<'s> =
        Node { rec: None, root: ir::Operand::None, shape: [1, 1], first: 0, len: 0 };

    pub(crate) const POISON: Node<'s> = Node { root: ir::Operand::Tile(POISON), ..Node::NONE };

    fn scalar(root: ir::Operand) -> Self {
        Node { root, ..Node::NONE }
    }

    pub(crate) fn is_poison(&self) -> bool {
        matches!(self.root, ir::Operand::Tile(t) if t == POISON)
    }
}

impl<'s, T> Expr<'s, T> {
    pub(crate) fn of(node: Node<'s>) -> Self {
        Expr { node, ty: PhantomData }
    }

    /// A step over up to three operands, at least one of them no scalar.
    #[track_caller]
    #[inline]
    pub(crate) fn step(fun: Fun, ty: ElementType, args: [Node<'s>; 3]) -> Self {
        let rec = args[0].rec.or(args[1].rec).or(args[2].rec);
        // Asked here: inside the closure the caller would be this line.
        let location = Location::caller();
        Expr::of(rec.map_or(Node::POISON, |rec| rec.step(fun, ty, args, location)))
    }
}

impl<'s, T: Dtype> Expr<'s, T> {
    /// The elements converted to another type: rounded to nearest even, to an integer as Rust's `as`.
    #[track_caller]
    pub fn cast<U: Dtype>(self) -> Expr<'s, U> {
        Expr::step(Fun::Cast, U::TYPE, [self.node, Node::NONE, Node::NONE])
    }
}

/// An operand: a tile, an expression or a scalar of element type `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand for tiles of `{T}`",
    label = "expected a tile, an expression or a scalar of element type `{T}`",
    note = "to change the element type write `x.cast::<{T}>()`; scalars are `f32` beside floating-point tiles and `i32` beside `i32` tiles"
)]
pub trait Operand<'s, T> {
    #[doc(hidden)]
    fn node(self) -> Node<'s>;
}

impl<'s, T: Dtype> Operand<'s, T> for Tile<'s, T> {
    #[inline]
    fn node(self) -> Node<'s> {
        Node { rec: Some(self.rec), root: ir::Operand::Tile(self.id), shape: self.shape, first: 0, len: 0 }
    }
}

impl<'s, T> Operand<'s, T> for Expr<'s, T> {
    #[inline]
    fn node(self) -> Node<'s> {
        self.node
    }
}

impl<'s, T: Float> Operand<'s, T> for f32 {
    #[inline]
    fn node(self) -> Node<'s> {
        Node::scalar(ir::Operand::F32(self))
    }
}

impl<'s> Operand<'s, i32> for i32 {
    #[inline]
    fn node(self) -> Node<'s> {
        Node::scalar(ir::Operand::I32(self))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident),*) => { $(
        operators!(# $trait $method Tile);
        operators!(# $trait $method Expr);
    )* };
    (# $trait:ident $method:ident $left:ident) => {
        impl<'s, T: Num, R: Operand<'s, T>> $trait<R> for $left<'s, T> {
            type Output = Expr<'s, T>;
            #[track_caller]
            #[inline]
            fn $method(self, right: R) -> Expr<'s, T> {
                Expr::step(Fun::$trait, T::TYPE, [Operand::<T>::node(self), right.node(), Node::NONE])
            }
        }
        impl<'s, T: Float> $trait<$left<'s, T>> for f32 {
            type Output = Expr<'s, T>;
            #[track_caller]
            fn $method(self, right: $left<'s, T>) -> Expr<'s, T> {
                let left = Operand::<T>::node(self);
                Expr::step(Fun::$trait, T::TYPE, [left, Operand::<T>::node(right), Node::NONE])
            }
        }
        impl<'s> $trait<$left<'s, i32>> for i32 {
            type Output = Expr<'s, i32>;
            #[track_caller]
            fn $method(self, right: $left<'s, i32>) -> Expr<'s, i32> {
                let left = Operand::<i32>::node(self);
                Expr::step(Fun::$trait, ElementType::I32, [left, Operand::<i32>::node(right), Node::NONE])
            }
        }
    };
}
operators!(Add add, Sub sub, Mul mul, Div div);

macro_rules! negation {
    ($($operand:ident),*) => { $(
        impl<'s, T: Num> Neg for $operand<'s, T> {
            type Output = Expr<'s, T>;
            #[track_caller]
            fn neg(self) -> Expr<'s, T> {
                Expr::step(Fun::Neg, T::TYPE, [Operand::<T>::node(self), Node::NONE, Node::NONE])
            }
        }
    )* };
}
negation!(Tile, Expr);

/// Never holds: a comparison by operator says what to write instead. Where rustc prefers its own words
/// for `==`, it still names this trait.
#[diagnostic::on_unimplemented(
    message = "tiles and expressions are not compared with operators",
    label = "a comparison of elements is an expression",
    note = "write `tl::eq`, `tl::ne`, `tl::gt`, `tl::ge`, `tl::lt` or `tl::le` and use it in `tl::select`"
)]
pub trait UseTlEqOrTlGtInstead {}

macro_rules! no_comparison {
    ($($operand:ident),*) => { $(
        impl<T, R: UseTlEqOrTlGtInstead> PartialEq<R> for $operand<'_, T> {
            fn eq(&self, _: &R) -> bool {
                false
            }
        }
        impl<T, R: UseTlEqOrTlGtInstead> PartialOrd<R> for $operand<'_, T> {
            fn partial_cmp(&self, _: &R) -> Option<std::cmp::Ordering> {
                None
            }
        }
    )* };
}
no_comparison!(Tile, Expr);
