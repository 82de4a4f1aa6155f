//! The intrinsics that build expressions: each is a step, and records no op by itself.

use super::expr::{Expr, Node, Operand};
use super::scope::At;
use crate::diag::Diagnostic;
use crate::ir::Fun;
use crate::ty::{ElementType, Float, Mask, Num};

macro_rules! steps {
    ($($name:ident $bound:ident $fun:ident ($($arg:ident),*);)*) => { $(
        impl<'s> At<'s> {
            #[track_caller]
            #[inline]
            pub fn $name<'e, T: $bound>(self, $($arg: impl Operand<'e, T>),*) -> Expr<'e, T> {
                self.apply(Fun::$fun, T::TYPE, [$($arg.node()),*])
            }
        }
    )* };
}

steps! {
    exp Float Exp (x);
    log Float Log (x);
    sqrt Float Sqrt (x);
    rsqrt Float Rsqrt (x);
    recip Float Recip (x);
    tanh Float Tanh (x);
    abs Num Abs (x);
    maximum Num Max (a, b);
    minimum Num Min (a, b);
    fma Num Fma (a, b, c);
}

macro_rules! comparisons {
    ($($name:ident $fun:ident),*) => { $(
        impl<'s> At<'s> {
            #[track_caller]
            pub fn $name<'e, T: Num>(self, a: impl Operand<'e, T>, b: impl Operand<'e, T>) -> Expr<'e, Mask> {
                self.apply(Fun::$fun, ElementType::Mask, [a.node(), b.node()])
            }
        }
    )* };
}

comparisons!(ge Ge, gt Gt, le Le, lt Lt, eq Eq, ne Ne);

impl<'s> At<'s> {
    #[track_caller]
    #[inline]
    fn apply<'e, T, const N: usize>(self, fun: Fun, ty: ElementType, args: [Node<'e>; N]) -> Expr<'e, T> {
        let mut all = [Node::NONE; 3];
        all[..N].copy_from_slice(&args);
        if args.iter().all(|a| a.rec.is_none() && !a.is_poison()) {
            self.mistake("KB0115", || {
                Diagnostic::error(
                    "KB0115",
                    format!("`{}` of scalars alone has no tile to work on", fun.name()),
                )
                .help("compute it in plain Rust, or make one operand a tile")
            });
            return Expr::of(Node::POISON);
        }
        Expr::step(fun, ty, all)
    }

    #[track_caller]
    pub fn clamp<'e, T: Num>(
        self,
        x: impl Operand<'e, T>,
        low: impl Operand<'e, T>,
        high: impl Operand<'e, T>,
    ) -> Expr<'e, T> {
        let raised: Expr<'e, T> = self.apply(Fun::Max, T::TYPE, [x.node(), low.node()]);
        self.apply(Fun::Min, T::TYPE, [Operand::<T>::node(raised), high.node()])
    }

    #[track_caller]
    pub fn and<'e>(self, a: impl Operand<'e, Mask>, b: impl Operand<'e, Mask>) -> Expr<'e, Mask> {
        self.apply(Fun::And, ElementType::Mask, [a.node(), b.node()])
    }

    #[track_caller]
    pub fn or<'e>(self, a: impl Operand<'e, Mask>, b: impl Operand<'e, Mask>) -> Expr<'e, Mask> {
        self.apply(Fun::Or, ElementType::Mask, [a.node(), b.node()])
    }

    #[track_caller]
    pub fn not<'e>(self, a: impl Operand<'e, Mask>) -> Expr<'e, Mask> {
        self.apply(Fun::Not, ElementType::Mask, [a.node()])
    }

    #[track_caller]
    pub fn select<'e, T: Num>(
        self,
        mask: impl Operand<'e, Mask>,
        a: impl Operand<'e, T>,
        b: impl Operand<'e, T>,
    ) -> Expr<'e, T> {
        self.apply(Fun::Select, T::TYPE, [mask.node(), a.node(), b.node()])
    }
}
