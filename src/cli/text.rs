//! Quantities as people read them.

use kernbench_core::units::Ps;

/// Four significant digits, without zeros that say nothing.
fn digits(x: f64) -> String {
    let places = match x.abs() {
        x if x >= 100.0 => 1,
        x if x >= 10.0 => 2,
        _ => 3,
    };
    trim(format!("{x:.places$}"))
}

fn trim(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn scaled(x: f64, step: f64, units: &[&str]) -> String {
    let mut x = x;
    let mut at = 0;
    // 999.96 would print as 1000.
    while x >= step - 0.05 && at + 1 < units.len() {
        x /= step;
        at += 1;
    }
    format!("{} {}", digits(x), units[at])
}

/// `77 ns`, `12.35 us`.
pub(super) fn time(ps: Ps) -> String {
    if ps == 0 { "0 ns".to_owned() } else { scaled(ps as f64, 1000.0, &["ps", "ns", "us", "ms", "s"]) }
}

/// Nanoseconds to the picosecond, without the unit: `77`, `368.5`.
pub(super) fn ns(ps: Ps) -> String {
    let text = format!("{}.{:03}", ps / 1000, ps % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The same with a sign: `0`, `+148.5`, `-2`.
pub(super) fn signed_ns(ps: i64) -> String {
    let sign = match ps {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", ns(ps.unsigned_abs()))
}

/// `512 B`, `33.5 MiB`.
pub(super) fn bytes(n: u64) -> String {
    scaled(n as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Bytes per microsecond as `256 GB/s`.
pub(super) fn bandwidth(per_us: u64) -> String {
    scaled(per_us as f64, 1000.0, &["MB/s", "GB/s", "TB/s", "PB/s"])
}

/// Operations per microsecond as `8 TFLOPS`.
pub(super) fn flops(per_us: u64) -> String {
    scaled(per_us as f64, 1000.0, &["MFLOPS", "GFLOPS", "TFLOPS", "PFLOPS"])
}

/// Millionths as `53.2%`.
pub(super) fn share(ppm: u64) -> String {
    match ppm {
        0 => "0%".to_owned(),
        1..1000 => "<0.1%".to_owned(),
        _ => format!("{:.1}%", ppm as f64 / 10_000.0),
    }
}

/// A value of a tensor with six significant digits.
pub(super) fn value(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    let exponent = x.abs().log10().floor() as i32;
    match exponent {
        -5..6 => trim(format!("{x:.*}", (5 - exponent) as usize)),
        _ => format!("{x:.5e}"),
    }
}

/// An error: three significant digits.
pub(super) fn error(x: f64) -> String {
    match x {
        0.0 => "0".to_owned(),
        0.001..1000.0 => trim(format!("{x:.*}", (2 - x.log10().floor() as i32).max(0) as usize)),
        x if x.is_finite() => format!("{x:.2e}"),
        x => x.to_string(),
    }
}

/// `1 PE`, `2 PEs`.
pub(super) fn plural(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        assert_eq!(
            [0, 999, 1000, 77_000, 12_345_678].map(time),
            ["0 ns", "999 ps", "1 ns", "77 ns", "12.35 us"]
        );
        assert_eq!(time(999_960_000), "1 ms");
        assert_eq!([0, 1, 500, 368_500, 1_000_000].map(ns), ["0", "0.001", "0.5", "368.5", "1000"]);
        assert_eq!([0, -2_000, 148_500].map(signed_ns), ["0", "-2", "+148.5"]);
        assert_eq!(
            [0, 512, 1024, 1536, 35_127_296].map(bytes),
            ["0 B", "512 B", "1 KiB", "1.5 KiB", "33.5 MiB"]
        );
        assert_eq!([256_000, 16_384_000].map(bandwidth), ["256 GB/s", "16.38 TB/s"]);
        assert_eq!(
            [0, 1, 999, 1000, 531_849, 1_000_000].map(share),
            ["0%", "<0.1%", "<0.1%", "0.1%", "53.2%", "100.0%"]
        );
        assert_eq!(
            [0.0, 0.012_344_360, -1.5, 123_456.7, 1e-7].map(value),
            ["0", "0.0123444", "-1.5", "123457", "1.00000e-7"]
        );
        assert_eq!(
            [0.0, 0.000_244_14, 0.012_34, 2.061, 512.3, f64::INFINITY].map(error),
            ["0", "2.44e-4", "0.0123", "2.06", "512", "inf"]
        );
    }
}
