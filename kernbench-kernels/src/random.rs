//! Seeded inputs: the same bytes for the same seed and name on every host.

use kernbench_core::ty::Float;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

/// `n` values of a standard normal distribution, rounded to `T` and widened again. Tensors of
/// different names get independent streams of the same seed.
#[must_use]
pub fn normal<T: Float>(seed: u64, name: &str, n: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // FNV-1a of the name picks the stream.
    let stream = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    rng.set_stream(stream);
    (0..n)
        .map(|_| {
            let x: f32 = StandardNormal.sample(&mut rng);
            T::from_f32(x).to_f32()
        })
        .collect()
}
