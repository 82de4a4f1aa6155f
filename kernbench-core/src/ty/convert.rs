//! Floating-point elements in memory to f32 and back, many at a time.

use super::{ElementType, bf16, f16};
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// Elements converted at a time through a buffer on the stack.
const CHUNK: usize = 256;

impl ElementType {
    /// Reads little-endian elements of a floating-point type, exactly. What has no bytes keeps its value;
    /// so does everything if the type is an integer.
    pub fn widen(self, bytes: &[u8], out: &mut [f32]) {
        if self == ElementType::F32 {
            for (o, b) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *o = f32::from_le_bytes(*b);
            }
            return;
        }
        let mut bits = [0u16; CHUNK];
        for (out, bytes) in out.chunks_mut(CHUNK).zip(bytes.chunks(2 * CHUNK)) {
            let n = out.len().min(bytes.len() / 2);
            for (o, b) in bits.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *o = u16::from_le_bytes(*b);
            }
            match self {
                ElementType::F16 => {
                    bits[..n].reinterpret_cast::<f16>().convert_to_f32_slice(&mut out[..n]);
                }
                ElementType::Bf16 => {
                    bits[..n].reinterpret_cast::<bf16>().convert_to_f32_slice(&mut out[..n]);
                }
                _ => {}
            }
        }
    }

    /// Writes elements of a floating-point type, little-endian, rounded to nearest even. `out` has the
    /// bytes of as many elements; of an integer type nothing is written.
    pub fn narrow(self, values: &[f32], out: &mut [u8]) {
        if self == ElementType::F32 {
            for (o, x) in out.as_chunks_mut::<4>().0.iter_mut().zip(values) {
                *o = x.to_le_bytes();
            }
            return;
        }
        let mut bits = [0u16; CHUNK];
        for (out, values) in out.chunks_mut(2 * CHUNK).zip(values.chunks(CHUNK)) {
            let bits = &mut bits[..values.len()];
            match self {
                ElementType::F16 => bits.reinterpret_cast_mut::<f16>().convert_from_f32_slice(values),
                ElementType::Bf16 => bits.reinterpret_cast_mut::<bf16>().convert_from_f32_slice(values),
                _ => return,
            }
            for (o, b) in out.as_chunks_mut::<2>().0.iter_mut().zip(bits) {
                *o = b.to_le_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ty::Float;

    fn agrees<T: Float>() {
        let values: Vec<f32> = (0..777)
            .map(|i| (i as f32 - 300.0) * 1.37 * 2f32.powi(i % 40 - 20))
            .chain([f32::INFINITY])
            .collect();
        let mut one_by_one = vec![];
        values.iter().for_each(|x| T::from_f32(*x).write(&mut one_by_one));
        let mut bytes = vec![0; one_by_one.len()];
        T::TYPE.narrow(&values, &mut bytes);
        assert_eq!(bytes, one_by_one);
        let mut wide = vec![0.0; values.len()];
        T::TYPE.widen(&bytes, &mut wide);
        let want: Vec<f32> = values.iter().map(|x| T::from_f32(*x).to_f32()).collect();
        assert_eq!(wide, want);
    }

    #[test]
    fn many_at_a_time_is_one_by_one() {
        agrees::<f16>();
        agrees::<bf16>();
        agrees::<f32>();
    }
}
