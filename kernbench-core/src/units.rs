//! Time, bandwidth and rates, in integers: no float ever enters a simulated time.

/// Picoseconds of simulated time.
pub type Ps = u64;

/// Converts nanoseconds of a configuration file to picoseconds, rounded up once.
///
/// ```
/// assert_eq!(kernbench_core::units::ns(16.384), 16_384);
/// assert_eq!(kernbench_core::units::ns(0.0001), 1);
/// ```
#[must_use]
pub fn ns(ns: f64) -> Ps {
    // The margin keeps 8.001 ns, stored as 8.00100000000000122, at 8001 ps.
    (ns * 1000.0 - 1e-6).ceil().max(0.0) as Ps
}

/// The bytes that a size means: `4096`, `512 B`, `16KiB`, `1_000`, `2MiB` or `1GiB`; `None` if it is none.
///
/// ```
/// use kernbench_core::units::bytes;
/// assert_eq!([bytes("4096"), bytes("16KiB"), bytes("2 MiB")], [Some(4096), Some(16384), Some(2 << 20)]);
/// assert_eq!([bytes("16KB"), bytes("1.5KiB"), bytes("-1"), bytes("")], [None; 4]);
/// ```
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    digits.replace('_', "").parse::<u64>().ok()?.checked_mul(factor)
}

/// A rate in units per microsecond: bytes for a wire, operations for an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    /// Units per microsecond; never 0.
    pub per_us: u64,
}

impl Rate {
    /// A bandwidth of `gbs` GB/s (1 GB/s is 1 byte/ns).
    ///
    /// ```
    /// use kernbench_core::units::Rate;
    /// assert_eq!(Rate::gbs(256.0).time(256), 1000);
    /// assert_eq!(Rate::gbs(512.0).time(1), 2); // 1.95 ps, rounded up
    /// ```
    #[must_use]
    pub fn gbs(gbs: f64) -> Rate {
        Rate { per_us: (gbs * 1000.0).round().max(1.0) as u64 }
    }

    /// A compute rate of `tflops` TFLOPS.
    #[must_use]
    pub fn tflops(tflops: f64) -> Rate {
        Rate { per_us: (tflops * 1e6).round().max(1.0) as u64 }
    }

    /// Picoseconds that `n` units take, rounded up.
    #[must_use]
    pub fn time(self, n: u64) -> Ps {
        let exact = u128::from(n) * 1_000_000;
        exact.div_ceil(u128::from(self.per_us)) as Ps
    }

    /// The rate in GB/s, for printing.
    #[must_use]
    pub fn as_gbs(self) -> f64 {
        self.per_us as f64 / 1000.0
    }
}
