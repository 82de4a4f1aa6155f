//! The element ranges of a rectangular access, and the PE whose slice holds each.

use crate::ir::{Access, PeId, Transfer};
use std::ops::Range;

/// The runs of consecutive elements of an access, in order.
pub(crate) fn runs(access: &Access) -> impl Iterator<Item = Range<u64>> + use<> {
    let [rows, cols] = access.shape.map(u64::from);
    let (offset, stride) = (access.offset, u64::from(access.stride));
    let (count, len) = match rows * cols {
        0 => (0, 0),
        n if stride == cols || rows == 1 => (1, n),
        _ => (rows, cols),
    };
    (0..count).map(move |i| offset + i * stride..offset + i * stride + len)
}

/// Calls `f` with the ranges of an access and the PE whose slice holds each; with `pe` if the access
/// has no transfers. `size` is the element size in bytes.
pub(crate) fn for_each_part(
    access: &Access,
    transfers: &[Transfer],
    size: u32,
    pe: PeId,
    mut f: impl FnMut(Range<u64>, PeId),
) {
    let home = transfers.first().map_or(pe, |t| t.home);
    if transfers.iter().all(|t| t.home == home) {
        return runs(access).for_each(|run| f(run, home));
    }
    let [rows, cols] = access.shape;
    let row_bytes: u64 = transfers.iter().map(|t| u64::from(t.run_bytes)).sum();
    // Slices side by side: each transfer has a run in every row. Otherwise they follow each other.
    let side_by_side =
        row_bytes == u64::from(cols) * u64::from(size) && transfers.iter().all(|t| t.runs == rows);
    let bytes = |t: &Transfer| if side_by_side { u64::from(t.run_bytes) } else { t.bytes() };
    let piece = |t: &Transfer| (bytes(t) / u64::from(size), t.home);
    let mut left = transfers.iter().map(piece);
    let mut part = left.next();
    for row in 0..u64::from(rows) {
        if side_by_side {
            left = transfers.iter().map(piece);
            part = left.next();
        }
        let mut at = access.offset + row * u64::from(access.stride);
        let end = at + u64::from(cols);
        while at < end {
            let (n, home) = match part {
                Some((0, _)) => {
                    part = left.next();
                    continue;
                }
                Some((n, home)) => (n.min(end - at), home),
                None => (end - at, pe),
            };
            f(at..at + n, home);
            at += n;
            part = part.map(|(left, home)| (left - n, home));
        }
    }
}
