//! Seeded inputs: the same bytes for the same seed and name on every host and any number of threads.
//!
//! Pair `i` of a stream is the Box-Muller transform of the `i`-th output of SplitMix64 (Steele, Lea and
//! Flood, 2014), which is a function of `i`: so the values can be made in any order, many at a time.

use kernbench_core::ty::{ElementType, Float};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Pairs made at a time: `PAIRS` cosines, then the `PAIRS` sines of the same pairs.
const PAIRS: usize = 256;
/// Elements made at a time.
const BLOCK: usize = 2 * PAIRS;
/// Blocks a thread takes at a time.
const SHARE: usize = 64;

/// `n` values of a standard normal distribution, rounded to `T` and widened again. Tensors of
/// different names get independent streams of the same seed. The largest magnitude is 5.77.
#[must_use]
pub fn normal<T: Float>(seed: u64, name: &str, n: usize) -> Vec<f32> {
    let mut values = vec![0.0; n];
    T::TYPE.widen(&normal_bytes(T::TYPE, seed, name, n), &mut values);
    values
}

/// The values of [`normal`] as little-endian bytes of a floating-point type.
#[must_use]
pub fn normal_bytes(ty: ElementType, seed: u64, name: &str, n: usize) -> Vec<u8> {
    // FNV-1a of the name picks the stream.
    let name = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let key = mix(mix(seed) ^ name);
    let size = ty.bytes() as usize;
    let mut bytes = vec![0; n * size];
    let arch = Arch::new();
    bytes.par_chunks_mut(SHARE * BLOCK * size).enumerate().for_each(|(share, bytes)| {
        for (i, bytes) in bytes.chunks_mut(BLOCK * size).enumerate() {
            let first = ((share * SHARE + i) * PAIRS) as u64;
            let values = arch.dispatch(Block { key, first });
            ty.narrow(&values[..bytes.len() / size], bytes);
        }
    });
    bytes
}

/// The output function of SplitMix64.
#[inline(always)]
const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `PAIRS` pairs of the stream `key` from pair `first` on. Not a closure: only a method that is always
/// inlined is compiled for the vectors of the host.
struct Block {
    key: u64,
    first: u64,
}

impl WithSimd for Block {
    type Output = [f32; BLOCK];

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> [f32; BLOCK] {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut out = [0.0; BLOCK];
        let (cosines, sines) = out.split_at_mut(PAIRS);
        for (i, (c, s)) in cosines.iter_mut().zip(sines).enumerate() {
            let counter = (self.first + i as u64).wrapping_add(1);
            let bits = mix(self.key.wrapping_add(counter.wrapping_mul(GOLDEN)));
            [*c, *s] = pair((bits >> 40) as i32, (bits as i32) >> 8);
        }
        out
    }
}

/// Box and Muller (1958): two normal values from 24 bits of radius (unsigned) and 24 of angle (signed).
/// Multiplications and additions round one by one, so every host gives the same bits.
#[inline(always)]
fn pair(radius: i32, angle: i32) -> [f32; 2] {
    const UNIT: f32 = 1.0 / (1 << 24) as f32;
    let r = (-2.0 * ln((radius + 1) as f32 * UNIT)).sqrt();
    // The angle in turns is angle / 2^24: a quarter that is nearest, and what is left of it.
    let quarter = (angle + (1 << 21)) >> 22;
    let x = (angle - (quarter << 22)) as f32 * (UNIT * std::f32::consts::TAU);
    let (sin, cos) = sin_cos(x);
    let (sin, cos) = if quarter & 1 == 0 { (sin, cos) } else { (cos, -sin) };
    let sign = if quarter & 2 == 0 { r } else { -r };
    [sign * cos, sign * sin]
}

/// Sine and cosine of at most an eighth of a turn: Taylor, the next terms are below 4e-7.
#[inline(always)]
fn sin_cos(x: f32) -> (f32, f32) {
    let y = x * x;
    let sin = x + x * y * (-1.0 / 6.0 + y * (1.0 / 120.0 + y * (-1.0 / 5040.0)));
    let cos = 1.0 + y * (-0.5 + y * (1.0 / 24.0 + y * (-1.0 / 720.0 + y * (1.0 / 40320.0))));
    (sin, cos)
}

/// Natural logarithm of a normal number, as `e ln 2 + 2 artanh((m - 1) / (m + 1))` with `x = m 2^e` and
/// `m` nearest to 1; the next term of the series is below 1e-9.
#[inline(always)]
fn ln(x: f32) -> f32 {
    const SQRT_HALF: i32 = 0x3f35_04f3;
    let bits = x.to_bits() as i32 - SQRT_HALF;
    let e = (bits >> 23) as f32;
    let m = f32::from_bits(((bits & 0x7f_ffff) + SQRT_HALF) as u32);
    let s = (m - 1.0) / (m + 1.0);
    let y = s * s;
    let series = 2.0 * s * (1.0 + y * (1.0 / 3.0 + y * (1.0 / 5.0 + y * (1.0 / 7.0 + y * (1.0 / 9.0)))));
    e * std::f32::consts::LN_2 + series
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernbench_core::ty::f16;

    #[test]
    fn values_are_the_transform_of_their_bits_in_f64() {
        for i in 0..100_000u64 {
            let bits = mix(i.wrapping_mul(0x1234_5678_9abc_def1));
            let (radius, angle) = ((bits >> 40) as i32, (bits as i32) >> 8);
            let r = (-2.0 * (f64::from(radius + 1) / f64::from(1 << 24)).ln()).sqrt();
            let turn = f64::from(angle) / f64::from(1 << 24) * std::f64::consts::TAU;
            let [a, b] = pair(radius, angle).map(f64::from);
            let (da, db) = (a - r * turn.cos(), b - r * turn.sin());
            assert!(da.abs() < 4e-6 && db.abs() < 4e-6, "{radius} {angle}: {da} {db}");
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let run = |arch: Arch| arch.dispatch(Block { key: 7, first: 1 << 40 }).map(f32::to_bits);
        let best = run(Arch::new());
        assert_eq!(best, run(Arch::Scalar));
        #[cfg(target_arch = "x86_64")]
        if let Some(v3) = pulp::x86::V3::try_new() {
            assert_eq!(best, run(Arch::V3(v3)));
        }
    }

    #[test]
    fn moments_are_those_of_a_standard_normal_distribution() {
        let n = 1 << 20;
        let x = normal::<f32>(3, "x", n);
        let moment = |p: i32| x.iter().map(|x| f64::from(*x).powi(p)).sum::<f64>() / n as f64;
        // Five standard errors each: the variance of x^p is its (2p)-th moment less its p-th squared.
        for (p, want, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            let (got, bound) = (moment(p), 5.0 * f64::sqrt(variance / f64::from(n as u32)));
            assert!((got - want).abs() < bound, "moment {p} is {got}, not {want} within {bound}");
        }
        let neighbours = x.windows(2).map(|w| f64::from(w[0] * w[1])).sum::<f64>() / n as f64;
        assert!(neighbours.abs() < 5.0 / f64::sqrt(f64::from(n as u32)), "{neighbours}");
    }

    #[test]
    fn streams_differ_and_a_longer_one_begins_as_a_shorter_one() {
        let long = normal::<f16>(0, "k", 40_000);
        assert_eq!(long[..1000], normal::<f16>(0, "k", 1000));
        assert_ne!(long[..1000], normal::<f16>(0, "v", 1000));
        assert_ne!(long[..1000], normal::<f16>(1, "k", 1000));
    }
}
