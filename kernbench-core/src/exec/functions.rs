//! Exponential, logarithm and hyperbolic tangent: computed in f64, rounded once to f32.
//!
//! The order of operations is fixed and each is exact or rounded as IEEE 754 says, fused multiply-adds
//! included, so the bits are those of every host. No branches: loops over them become vector code.

use std::f64::consts::{LN_2, LOG2_E};

/// Beyond, `exp` is 0 or infinite in f32; within, powers of two are normal f64 numbers.
const FAR: f64 = 200.0;

/// `e^x` as `power * (1 + rest)`, `power` the nearest power of two; for `|x| <= FAR`, or NaN in `rest`.
#[inline(always)]
fn split_exp(x: f64) -> (f64, f64) {
    // Added to a small number, it leaves the nearest integer in the low bits.
    const MAGIC: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
    let shifted = x.mul_add(LOG2_E, MAGIC);
    let r = (shifted - MAGIC).mul_add(-LN_2, x);
    // Taylor: the next term of the factor of r is below 7e-11 for |r| <= ln(2) / 2.
    let mut q = 1.0 / 362_880.0;
    for factorial in [40_320.0, 5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0] {
        q = r.mul_add(q, 1.0 / factorial);
    }
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1.0f64.to_bits()));
    (power, r * q)
}

/// Within `FAR` of 0; NaN stays.
#[inline(always)]
fn near(x: f64) -> f64 {
    let x = if x > FAR { FAR } else { x };
    if x < -FAR { -FAR } else { x }
}

/// The exponential function.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let (power, rest) = split_exp(near(f64::from(x)));
    power.mul_add(rest, power) as f32
}

/// The hyperbolic tangent, as `t / (t + 2)` with `t = e^(2 x) - 1`.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let (power, rest) = split_exp(near(2.0 * f64::from(x)));
    let t = power.mul_add(rest, power - 1.0);
    ((t / (t + 2.0)) as f32).copysign(x)
}

/// The natural logarithm, as `e ln 2 + 2 artanh((m - 1) / (m + 1))` with `x = m 2^e` and `m` nearest to 1.
#[inline(always)]
pub(super) fn log(x: f32) -> f32 {
    const SQRT_HALF: i64 = 0x3fe6_a09e_667f_3bcd;
    const MANTISSA: i64 = (1 << 52) - 1;
    let bits = (f64::from(x).to_bits() as i64).wrapping_sub(SQRT_HALF);
    let e = f64::from((bits >> 52) as i32);
    let m = f64::from_bits((bits & MANTISSA).wrapping_add(SQRT_HALF) as u64);
    let s = (m - 1.0) / (m + 1.0);
    let y = s * s;
    // The next term is below 2e-12 of the sum.
    let mut q = 1.0 / 15.0;
    for odd in [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        q = y.mul_add(q, 1.0 / odd);
    }
    let value = e.mul_add(LN_2, 2.0 * s * q) as f32;
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    let value = if x == f32::INFINITY { x } else { value };
    if x >= 0.0 { value } else { f32::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::steps;
    use crate::ir::Fun;
    use pulp::Arch;

    /// Numbers of every exponent and sign, NaN and infinities among them.
    fn sweep() -> Vec<f32> {
        let special =
            [0.0, f32::INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::MAX, 1.0, 88.722_84, 103.972_08, 1e-45];
        (0..u32::MAX / 997)
            .map(|i| f32::from_bits(i * 997))
            .chain(special.iter().flat_map(|x| [*x, -x]))
            .collect()
    }

    /// Distance in units in the last place of the value in f32, which below the normal numbers is 2^-149.
    fn error(got: f32, want: f64) -> f64 {
        let rounded = want as f32;
        if got == rounded || (got.is_nan() && want.is_nan()) {
            return 0.0;
        }
        let exponent = libm::ilogb(want).clamp(-126, 127);
        (f64::from(got) - want).abs() / libm::exp2(f64::from(exponent - 23))
    }

    #[test]
    fn errors_are_at_most_a_unit_in_the_last_place() {
        let check = |name: &str, ours: fn(f32) -> f32, theirs: fn(f64) -> f64| {
            for x in sweep() {
                let (got, want) = (ours(x), theirs(f64::from(x)));
                assert!(error(got, want) < 0.501, "{name}({x:e}) is {want:e}, got {got:e}");
            }
        };
        check("exp", exp, libm::exp);
        check("log", log, libm::log);
        check("tanh", tanh, libm::tanh);
        assert_eq!([exp(f32::NEG_INFINITY), exp(f32::INFINITY), exp(-0.0)], [0.0, f32::INFINITY, 1.0]);
        assert!(tanh(-0.0).is_sign_negative() && log(-1.0).is_nan());
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let x: Vec<f32> = sweep().into_iter().step_by(61).collect();
        for fun in [Fun::Exp, Fun::Log, Fun::Tanh] {
            let run = |arch: Arch| {
                let mut out = vec![0.0; x.len()];
                steps::float(arch, fun, &mut out, [&x, &[], &[]]);
                steps::round(arch, crate::ty::ElementType::F32, &mut out);
                out.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            };
            let best = run(Arch::new());
            assert!(best == run(Arch::Scalar), "{fun:?}");
            #[cfg(target_arch = "x86_64")]
            if let Some(v3) = pulp::x86::V3::try_new() {
                assert!(best == run(Arch::V3(v3)), "{fun:?}");
            }
        }
    }
}
