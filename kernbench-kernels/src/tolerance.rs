//! When a result is right: the rule of the FlashAttention test suite.
//!
//! With `reference` the f64 oracle and `low` the plain implementation in the storage type,
//! `max|out - reference| <= 2 max|low - reference| + one rounding step of the output`.

use kernbench_core::ty::{ElementType, Float};
use serde::Serialize;

/// How a result compares with its reference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Whether every element is within the bound, and NaN or infinite only where the reference is.
    pub correct: bool,
    /// The largest error; infinite if an element is NaN or infinite on one side only.
    pub max_error: f64,
    /// The bound.
    pub error_bound: f64,
    /// Where the largest error is, in row-major order.
    pub at: usize,
    /// The element there.
    pub got: f64,
    /// The reference there.
    pub want: f64,
    /// Elements that are NaN on both sides.
    pub nan: usize,
}

/// Distance from `x` to the next larger number of a type with as large an exponent.
fn rounding_step(ty: ElementType, x: f64) -> f64 {
    let (bits, least) = match ty {
        ElementType::F16 => (10, -14),
        ElementType::Bf16 => (7, -126),
        _ => (23, -126),
    };
    let exponent = if x == 0.0 { least } else { libm::ilogb(x).max(least) };
    libm::exp2(f64::from(exponent - bits))
}

/// The error of one element; 0 where both are NaN or the same infinity.
fn error<T: Float>(out: f32, reference: f64) -> f64 {
    // A finite reference too large for the type is right as an infinity.
    let rounded = || f64::from(T::from_f32(reference as f32).to_f32());
    let out = f64::from(out);
    match (out.is_finite(), reference.is_finite()) {
        (true, true) => (out - reference).abs(),
        _ if out.is_nan() && reference.is_nan() => 0.0,
        _ if out == rounded() => 0.0,
        _ => f64::INFINITY,
    }
}

/// Compares a result of type `T`, widened, with its references of the same length.
#[must_use]
pub fn check<T: Float>(out: &[f32], reference: &[f64], low: &[f32]) -> Check {
    let finite = || reference.iter().zip(low).filter(|(r, l)| r.is_finite() && l.is_finite());
    let low_error = finite().map(|(r, &l)| (f64::from(l) - r).abs()).fold(0.0, f64::max);
    let largest = finite().map(|(r, _)| r.abs()).fold(0.0, f64::max);
    let error_bound = 2.0 * low_error + rounding_step(T::TYPE, largest);
    let mut worst = (0.0, 0);
    for (i, (&o, &r)) in out.iter().zip(reference).enumerate() {
        let e = error::<T>(o, r);
        if e > worst.0 {
            worst = (e, i);
        }
    }
    let (max_error, at) = worst;
    Check {
        correct: out.len() == reference.len() && max_error <= error_bound,
        max_error,
        error_bound,
        at,
        got: out.get(at).map_or(0.0, |&x| f64::from(x)),
        want: reference.get(at).copied().unwrap_or(0.0),
        nan: out.iter().zip(reference).filter(|(o, r)| o.is_nan() && r.is_nan()).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernbench_core::ty::{bf16, f16};

    #[test]
    fn a_rounding_step_is_the_gap_to_the_next_number() {
        for x in [1.0f32, 1.5, 3.0, 1024.0, 0.124, 6e-5, 0.0] {
            let h = f16::from_f32(x);
            let gap = f64::from(f16::from_bits(h.to_bits() + 1).to_f32()) - f64::from(h.to_f32());
            assert_eq!(rounding_step(ElementType::F16, f64::from(h.to_f32())), gap, "f16 {x}");
            let b = bf16::from_f32(x);
            let gap = f64::from(bf16::from_bits(b.to_bits() + 1).to_f32()) - f64::from(b.to_f32());
            assert_eq!(rounding_step(ElementType::Bf16, f64::from(b.to_f32())), gap, "bf16 {x}");
        }
    }

    #[test]
    fn one_sided_nan_and_infinity_fail_and_two_sided_pass() {
        let check = |out: f32, r: f64| check::<f16>(&[out, 1.0], &[r, 1.0], &[1.0, 1.0]);
        assert!(!check(f32::NAN, 1.0).correct);
        assert!(!check(1.0, f64::NAN).correct);
        assert!(!check(f32::INFINITY, 1.0).correct);
        assert!(check(f32::NAN, f64::NAN).correct);
        assert!(check(f32::INFINITY, 1e6).correct, "past the largest f16");
        assert!(!check(f32::NEG_INFINITY, f64::INFINITY).correct);
        let c = check(1.25, 1.0);
        assert!(!c.correct && c.max_error == 0.25 && c.at == 0 && c.got == 1.25 && c.want == 1.0);
    }
}
