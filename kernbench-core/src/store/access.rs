//! The element ranges of a rectangular access.

use crate::ir::Access;
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
