//! Conversions between the bytes of memory, the widened values of scratch, and element types.

use crate::ty::ElementType;

/// Whether values of the type are held as f32; the others are held as i32.
pub(super) const fn is_float(ty: ElementType) -> bool {
    matches!(ty, ElementType::F16 | ElementType::Bf16 | ElementType::F32)
}

/// The value, but one quiet NaN for all: which of two NaNs an addition returns differs between hosts.
#[inline(always)]
pub(super) fn canonical(x: f32) -> f32 {
    if x.is_nan() { f32::NAN } else { x }
}

/// Rounds to the nearest f16, ties to even. By hand, so that loops over it become vector code.
#[inline(always)]
pub(super) fn to_f16(x: f32) -> f32 {
    const MIN_NORMAL: u32 = 0x3880_0000; // 2^-14
    const OVERFLOW: u32 = 0x4780_0000; // 2^16
    let bits = x.to_bits() & 0x7FFF_FFFF;
    let up = 0xFFF + ((bits >> 13) & 1);
    let normal = bits.wrapping_add(up) & !0x1FFF;
    let normal = if normal >= OVERFLOW { f32::INFINITY } else { f32::from_bits(normal) };
    // Below the normal numbers f16 is a grid of 2^-24, as is f32 between 1/2 and 1.
    let subnormal = (f32::from_bits(bits) + 0.5) - 0.5;
    let magnitude = if bits < MIN_NORMAL { subnormal } else { normal };
    if x.is_nan() { f32::NAN } else { magnitude.copysign(x) }
}

/// Rounds to the nearest bf16, ties to even.
#[inline(always)]
pub(super) fn to_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    let up = 0x7FFF + ((bits >> 16) & 1);
    if x.is_nan() { f32::NAN } else { f32::from_bits(bits.wrapping_add(up) & 0xFFFF_0000) }
}

/// Wraps every value to the width of `ty`, as Rust's `as` between integers.
#[inline(always)]
pub(super) fn wrap_ints(ty: ElementType, values: &mut [i32]) {
    match ty {
        ElementType::I8 => values.iter_mut().for_each(|x| *x = i32::from(*x as i8)),
        ElementType::U8 => values.iter_mut().for_each(|x| *x = i32::from(*x as u8)),
        _ => {}
    }
}

/// Float to integer as Rust's `as`: towards zero, saturating, NaN to 0.
#[inline(always)]
pub(super) fn float_to_int(ty: ElementType, x: f32) -> i32 {
    match ty {
        ElementType::I8 => i32::from(x as i8),
        ElementType::U8 => i32::from(x as u8),
        _ => x as i32,
    }
}

/// Integer to float, for `round_floats` to finish: to f32 rounded to nearest even, to the half types
/// exact but for a sticky last bit, so that the second rounding is the only one.
#[inline(always)]
pub(super) fn int_to_float(ty: ElementType, x: i32) -> f32 {
    if ty == ElementType::F32 {
        return x as f32;
    }
    let a = x.unsigned_abs();
    let drop = 8u32.saturating_sub(a.leading_zeros());
    let kept = a >> drop << drop;
    let sticky = u32::from(kept != a) << drop;
    let m = (kept | sticky) as f32;
    if x < 0 { -m } else { m }
}

/// Reads little-endian elements of an integer type. Missing bytes leave values alone.
pub(super) fn read_ints(ty: ElementType, bytes: &[u8], out: &mut [i32]) {
    match ty {
        ElementType::I32 => {
            out.iter_mut().zip(bytes.as_chunks::<4>().0).for_each(|(o, b)| *o = i32::from_le_bytes(*b));
        }
        ElementType::I8 => out.iter_mut().zip(bytes).for_each(|(o, b)| *o = i32::from(*b as i8)),
        _ => out.iter_mut().zip(bytes).for_each(|(o, b)| *o = i32::from(*b)),
    }
}

/// Appends little-endian elements; the values already fit `ty`.
pub(super) fn write_ints(ty: ElementType, values: &[i32], out: &mut Vec<u8>) {
    match ty {
        ElementType::I32 => out.extend(values.iter().flat_map(|x| x.to_le_bytes())),
        _ => out.extend(values.iter().map(|x| *x as u8)),
    }
}
