//! What each element-wise function computes, over slices of equal length.
//!
//! Floats compute in f32, each function rounding once in f32; i32 wraps. Exponential, logarithm and
//! hyperbolic tangent are our own, so the bits do not depend on the host.

use super::functions;
use super::round::{canonical, float_to_int, int_to_float, to_bf16, to_f16, wrap_ints};
use crate::ir::Fun;
use crate::ty::ElementType;
use pulp::{Arch, Simd, WithSimd};

/// An element-wise loop. Not a closure: only a method that is always inlined is compiled for the
/// vectors of the host.
struct Loop<'a, O, X, F>(&'a mut [O], X, F);

impl<O, A: Copy, F: Fn(A) -> O> WithSimd for Loop<'_, O, [&[A]; 1], F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Loop(o, [a], f) = self;
        for (o, a) in o.iter_mut().zip(a) {
            *o = f(*a);
        }
    }
}

impl<O, A: Copy, F: Fn(A, A) -> O> WithSimd for Loop<'_, O, [&[A]; 2], F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Loop(o, [a, b], f) = self;
        for ((o, a), b) in o.iter_mut().zip(a).zip(b) {
            *o = f(*a, *b);
        }
    }
}

impl<O, M: Copy, A: Copy, F: Fn(M, A, A) -> O> WithSimd for Loop<'_, O, (&[M], [&[A]; 2]), F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Loop(o, (m, [a, b]), f) = self;
        for (((o, m), a), b) in o.iter_mut().zip(m).zip(a).zip(b) {
            *o = f(*m, *a, *b);
        }
    }
}

impl<O: Copy, A: Copy, F: Fn(O, A) -> O> WithSimd for Loop<'_, O, &[A], F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Loop(o, a, f) = self;
        for (o, a) in o.iter_mut().zip(a) {
            *o = f(*o, *a);
        }
    }
}

impl<O: Copy, F: Fn(O) -> O> WithSimd for Loop<'_, O, (), F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Loop(o, (), f) = self;
        for o in o {
            *o = f(*o);
        }
    }
}

fn map1<A: Copy, O>(arch: Arch, o: &mut [O], a: &[A], f: impl Fn(A) -> O) {
    arch.dispatch(Loop(o, [a], f));
}

fn map2<A: Copy, O>(arch: Arch, o: &mut [O], args: [&[A]; 2], f: impl Fn(A, A) -> O) {
    arch.dispatch(Loop(o, args, f));
}

fn map3<M: Copy, A: Copy, O>(arch: Arch, o: &mut [O], m: &[M], args: [&[A]; 2], f: impl Fn(M, A, A) -> O) {
    arch.dispatch(Loop(o, (m, args), f));
}

/// Folds each element of `a` into that of `o`.
pub(super) fn accumulate<O: Copy, A: Copy>(arch: Arch, o: &mut [O], a: &[A], f: impl Fn(O, A) -> O) {
    arch.dispatch(Loop(o, a, f));
}

/// The larger; NaN if either is; +0 is larger than -0.
#[inline(always)]
pub(super) fn max(a: f32, b: f32) -> f32 {
    let equal = f32::from_bits(a.to_bits() & b.to_bits());
    let larger = if a > b { a } else { b };
    let ordered = if a == b { equal } else { larger };
    if a.is_nan() | b.is_nan() { f32::NAN } else { ordered }
}

/// The smaller; NaN if either is; -0 is smaller than +0.
#[inline(always)]
pub(super) fn min(a: f32, b: f32) -> f32 {
    let equal = f32::from_bits(a.to_bits() | b.to_bits());
    let smaller = if a < b { a } else { b };
    let ordered = if a == b { equal } else { smaller };
    if a.is_nan() | b.is_nan() { f32::NAN } else { ordered }
}

/// The integer quotient towards zero, wrapping; 0 if the divisor is 0.
#[inline(always)]
fn div(a: i32, b: i32) -> i32 {
    if b == 0 { 0 } else { a.wrapping_div(b) }
}

/// A function from floats to floats. The reciprocal square root is `1 / sqrt(x)`, each rounded in f32.
pub(super) fn float(arch: Arch, fun: Fun, o: &mut [f32], [a, b, c]: [&[f32]; 3]) {
    match fun {
        Fun::Add => map2(arch, o, [a, b], |x, y| x + y),
        Fun::Sub => map2(arch, o, [a, b], |x, y| x - y),
        Fun::Mul => map2(arch, o, [a, b], |x, y| x * y),
        Fun::Div => map2(arch, o, [a, b], |x, y| x / y),
        Fun::Max => map2(arch, o, [a, b], max),
        Fun::Min => map2(arch, o, [a, b], min),
        Fun::Neg => map1(arch, o, a, |x| -x),
        Fun::Abs => map1(arch, o, a, f32::abs),
        Fun::Fma => map3(arch, o, a, [b, c], f32::mul_add),
        Fun::Exp => map1(arch, o, a, functions::exp),
        Fun::Log => map1(arch, o, a, functions::log),
        Fun::Tanh => map1(arch, o, a, functions::tanh),
        Fun::Sqrt => map1(arch, o, a, f32::sqrt),
        Fun::Rsqrt => map1(arch, o, a, |x| 1.0 / x.sqrt()),
        Fun::Recip => map1(arch, o, a, |x| 1.0 / x),
        _ => o.copy_from_slice(a),
    }
}

/// A function from integers, or masks (1 and 0), to the same. The functions that only floats have
/// give 0.
pub(super) fn int(arch: Arch, fun: Fun, o: &mut [i32], [a, b, c]: [&[i32]; 3]) {
    match fun {
        Fun::Add => map2(arch, o, [a, b], i32::wrapping_add),
        Fun::Sub => map2(arch, o, [a, b], i32::wrapping_sub),
        Fun::Mul => map2(arch, o, [a, b], i32::wrapping_mul),
        Fun::Div => map2(arch, o, [a, b], div),
        Fun::Max => map2(arch, o, [a, b], i32::max),
        Fun::Min => map2(arch, o, [a, b], i32::min),
        Fun::Neg => map1(arch, o, a, i32::wrapping_neg),
        Fun::Abs => map1(arch, o, a, i32::wrapping_abs),
        Fun::Fma => map3(arch, o, a, [b, c], |x, y, z: i32| z.wrapping_add(i32::wrapping_mul(x, y))),
        Fun::And => map2(arch, o, [a, b], |x, y| x & y),
        Fun::Or => map2(arch, o, [a, b], |x, y| x | y),
        Fun::Not => map1(arch, o, a, |x| 1 - x),
        Fun::Exp | Fun::Log | Fun::Tanh | Fun::Sqrt | Fun::Rsqrt | Fun::Recip => o.fill(0),
        _ => o.copy_from_slice(a),
    }
}

/// A comparison, to 1 and 0. With a NaN all but `Ne` are 0.
pub(super) fn compare<T: Copy + PartialOrd>(arch: Arch, fun: Fun, o: &mut [i32], args: [&[T]; 2]) {
    match fun {
        Fun::Ge => map2(arch, o, args, |x, y| i32::from(x >= y)),
        Fun::Gt => map2(arch, o, args, |x, y| i32::from(x > y)),
        Fun::Le => map2(arch, o, args, |x, y| i32::from(x <= y)),
        Fun::Lt => map2(arch, o, args, |x, y| i32::from(x < y)),
        Fun::Eq => map2(arch, o, args, |x, y| i32::from(x == y)),
        _ => map2(arch, o, args, |x, y| i32::from(x != y)),
    }
}

/// Whether the result is a mask made of two values.
pub(super) const fn is_comparison(fun: Fun) -> bool {
    matches!(fun, Fun::Ge | Fun::Gt | Fun::Le | Fun::Lt | Fun::Eq | Fun::Ne)
}

/// `a` where the mask is not 0, else `b`; the bits pass untouched.
pub(super) fn select<T: Copy>(arch: Arch, o: &mut [T], mask: &[i32], args: [&[T]; 2]) {
    map3(arch, o, mask, args, |m, x, y| if m != 0 { x } else { y });
}

/// Rounds to a floating-point type, in place.
pub(super) fn round(arch: Arch, ty: ElementType, values: &mut [f32]) {
    match ty {
        ElementType::F16 => arch.dispatch(Loop(values, (), to_f16)),
        ElementType::Bf16 => arch.dispatch(Loop(values, (), to_bf16)),
        _ => arch.dispatch(Loop(values, (), canonical)),
    }
}

/// A cast between floating-point types.
pub(super) fn float_to_float(arch: Arch, ty: ElementType, o: &mut [f32], a: &[f32]) {
    match ty {
        ElementType::F16 => map1(arch, o, a, to_f16),
        ElementType::Bf16 => map1(arch, o, a, to_bf16),
        _ => map1(arch, o, a, canonical),
    }
}

/// A cast between integer types.
pub(super) fn int_to_int(ty: ElementType, o: &mut [i32], a: &[i32]) {
    o.copy_from_slice(a);
    wrap_ints(ty, o);
}

/// A cast to an integer type.
pub(super) fn floats_to_ints(arch: Arch, ty: ElementType, o: &mut [i32], a: &[f32]) {
    map1(arch, o, a, |x| float_to_int(ty, x));
}

/// A cast to a floating-point type.
pub(super) fn ints_to_floats(arch: Arch, ty: ElementType, o: &mut [f32], a: &[i32]) {
    map1(arch, o, a, |x| int_to_float(ty, x));
    round(arch, ty, o);
}
