//! Which elements of a tensor an op reads or writes, and which bytes of which HBM slices those are.

use super::{PeId, TensorId};

/// A rectangle of a tensor that an op reads or writes: element `(i, j)` is element
/// `offset + i * stride + j` of the tensor in row-major order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    /// The first element.
    pub offset: u64,
    /// The tensor.
    pub tensor: TensorId,
    /// Rows and columns.
    pub shape: [u32; 2],
    /// Elements from one row to the next.
    pub stride: u32,
    /// The first of its transfers in [`super::PeProgram::transfers`].
    pub first: u32,
    /// How many transfers.
    pub len: u32,
}

impl Access {
    /// The ranges of consecutive elements, in order.
    pub fn runs(&self) -> impl Iterator<Item = std::ops::Range<u64>> + use<> {
        let [rows, cols] = self.shape.map(u64::from);
        let (offset, stride) = (self.offset, u64::from(self.stride));
        let (count, len) = match rows * cols {
            0 => (0, 0),
            n if stride == cols || rows == 1 => (1, n),
            _ => (rows, cols),
        };
        (0..count).map(move |i| offset + i * stride..offset + i * stride + len)
    }
}

/// The part of an access that lies in one HBM slice: `runs` runs of `run_bytes`, `stride_bytes` apart.
/// In the tensor it is a rectangle of `rows` rows from element `element` on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transfer {
    /// The first element in the tensor.
    pub element: u64,
    /// Rows of the tensor.
    pub rows: u32,
    /// Byte address of the first run in the slice.
    pub addr: u64,
    /// The PE whose slice it is.
    pub home: PeId,
    /// Bytes of one run.
    pub run_bytes: u32,
    /// How many runs.
    pub runs: u32,
    /// Bytes from the start of one run to that of the next.
    pub stride_bytes: u32,
}

impl Transfer {
    /// Bytes moved.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.run_bytes as u64 * self.runs as u64
    }

    /// Pages of `page_bytes` it touches; one that several runs in a row touch counts once.
    #[must_use]
    pub fn pages(&self, page_bytes: u64) -> u64 {
        let (mut pages, mut newest, page) = (0, None, page_bytes.max(1));
        for run in 0..u64::from(if self.run_bytes > 0 { self.runs } else { 0 }) {
            let first = self.addr + run * u64::from(self.stride_bytes);
            let (first, last) = (first / page, (first + u64::from(self.run_bytes) - 1) / page);
            pages += last - first + u64::from(newest != Some(first));
            newest = Some(last);
        }
        pages
    }

    /// The ranges of elements it covers, row by row, of a tensor of `width` columns and elements of
    /// `size` bytes.
    pub fn elements(&self, width: u64, size: u64) -> impl Iterator<Item = std::ops::Range<u64>> + use<> {
        let (first, rows) = (self.element, u64::from(self.rows));
        let len = self.bytes() / (rows * size).max(1);
        (0..rows).map(move |i| first + i * width..first + i * width + len)
    }
}
