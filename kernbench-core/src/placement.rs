//! Where the bytes of a tensor are: how it is split over cubes and PEs, and at which addresses.

use crate::diag::Diagnostic;
use crate::ir::{PeId, Transfer};
use crate::topology::{Machine, PeAt};
use crate::ty::ElementType;

/// What an axis of the machine does with a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// Every member holds the whole part.
    Replicate,
    /// Members hold consecutive rows.
    RowWise,
    /// Members hold consecutive columns.
    ColumnWise,
}

/// How a tensor is spread over the cubes and PEs of one SIP: cubes split first,
/// then the PEs of a cube split the cube's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// What cubes do.
    pub cube: Split,
    /// What the PEs of a cube do.
    pub pe: Split,
    /// How many cubes, from cube 0; `None` for all of the SIP.
    pub num_cubes: Option<usize>,
    /// How many PEs of each cube, from PE 0; `None` for all of the cube.
    pub num_pes: Option<usize>,
}

impl Placement {
    /// A placement over all cubes and PEs of a SIP.
    #[must_use]
    pub const fn new(cube: Split, pe: Split) -> Self {
        Placement { cube, pe, num_cubes: None, num_pes: None }
    }

    /// Every PE holds the whole tensor.
    #[must_use]
    pub const fn replicated() -> Self {
        Placement::new(Split::Replicate, Split::Replicate)
    }

    /// Rows split over cubes, then over the PEs of each cube: each PE holds one contiguous chunk.
    #[must_use]
    pub const fn row_wise() -> Self {
        Placement::new(Split::RowWise, Split::RowWise)
    }

    /// The same on the first `cubes` cubes and the first `pes` PEs of each.
    #[must_use]
    pub const fn on(self, cubes: usize, pes: usize) -> Self {
        Placement { num_cubes: Some(cubes), num_pes: Some(pes), ..self }
    }
}

/// A tensor's placement worked out on a machine: the shape of a shard and the address of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    /// The SIP that holds them.
    pub sip: u32,
    /// Cubes and PEs per cube that hold one.
    pub grid: [u32; 2],
    /// Rows and columns of the tensor.
    pub tensor: [usize; 2],
    /// Rows and columns of a shard.
    pub shard: [usize; 2],
    /// Element type.
    pub ty: ElementType,
    /// Byte address in the slice of each holder, cube by cube, PE by PE.
    pub addr: Vec<u64>,
    placement: Placement,
}

/// A rectangle of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Rect {
    pub row: usize,
    pub col: usize,
    pub rows: usize,
    pub cols: usize,
}

/// A part of a rectangle that lies in one shard, and who holds that shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The part, in the tensor's own rows and columns.
    pub rect: Rect,
    pub(crate) holders: Holders,
}

/// The PEs that hold a part: cubes and PEs of each, as (first, count), of a SIP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holders {
    sip: u32,
    cubes: (u32, u32),
    pes: (u32, u32),
}

impl Piece {
    /// How many PEs hold it.
    #[must_use]
    pub const fn replicas(&self) -> u32 {
        self.holders.cubes.1 * self.holders.pes.1
    }

    /// Whether a PE holds it.
    #[must_use]
    pub const fn is_held_by(&self, at: PeAt) -> bool {
        let Holders { sip, cubes: c, pes: p } = self.holders;
        at.sip == sip && at.cube >= c.0 && at.cube < c.0 + c.1 && at.pe >= p.0 && at.pe < p.0 + p.1
    }
}

impl Holders {
    /// The PEs, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = PeAt> {
        let Holders { sip, cubes: c, pes: p } = self;
        (c.0..c.0 + c.1).flat_map(move |cube| (p.0..p.0 + p.1).map(move |pe| PeAt { sip, cube, pe }))
    }

    /// The SIP they are on.
    pub(crate) const fn sip(self) -> u32 {
        self.sip
    }
}

impl Shards {
    /// Works a placement out on a machine; addresses are still to be allocated.
    ///
    /// # Errors
    /// A count larger than the machine's, or a dimension that does not divide.
    pub fn new(
        machine: &Machine,
        sip: u32,
        placement: Placement,
        tensor: [usize; 2],
        ty: ElementType,
        name: &str,
    ) -> Result<Shards, Diagnostic> {
        let count = |wanted: Option<usize>, have: u32, what: &str| match wanted {
            None => Ok(have as usize),
            Some(n) if n >= 1 && n <= have as usize => Ok(n),
            Some(n) => Err(Diagnostic::error(
                "KB0602",
                format!("tensor `{name}` is placed on {n} {what}, but there are {have}"),
            )
            .help(format!("place it on 1 to {have} {what}, or describe a larger machine with `--topology`"))),
        };
        let cubes = count(placement.num_cubes, machine.cubes(), "cubes")?;
        let pes = count(placement.num_pes, machine.pes(), "PEs of each cube")?;
        let mut shard = tensor;
        for (split, n, what) in [(placement.cube, cubes, "cubes"), (placement.pe, pes, "PEs of a cube")] {
            let axis = match split {
                Split::Replicate => continue,
                Split::RowWise => 0,
                Split::ColumnWise => 1,
            };
            if !shard[axis].is_multiple_of(n) {
                let dimension = ["rows", "columns"][axis];
                let step = tensor[axis] / shard[axis].max(1) * n;
                let below = tensor[axis] / step.max(1) * step;
                let near =
                    if below == 0 { format!("{step}") } else { format!("{below} or {}", below + step) };
                return Err(Diagnostic::error(
                    "KB0603",
                    format!("tensor `{name}`: {} {dimension} do not divide by {n} {what}", shard[axis]),
                )
                .help(format!("give the tensor {near} {dimension} instead of {}", tensor[axis])));
            }
            shard[axis] /= n;
        }
        let grid = [cubes as u32, pes as u32];
        Ok(Shards { sip, grid, tensor, shard, ty, addr: vec![0; cubes * pes], placement })
    }

    /// Bytes of one shard.
    #[must_use]
    pub fn shard_bytes(&self) -> u64 {
        self.shard[0] as u64 * self.shard[1] as u64 * u64::from(self.ty.bytes())
    }

    /// Whether any part is held by more than one PE.
    #[must_use]
    pub fn is_replicated(&self) -> bool {
        (self.placement.cube == Split::Replicate && self.grid[0] > 1)
            || (self.placement.pe == Split::Replicate && self.grid[1] > 1)
    }

    /// Whether a PE holds a shard.
    #[must_use]
    pub fn has(&self, at: PeAt) -> bool {
        at.sip == self.sip && at.cube < self.grid[0] && at.pe < self.grid[1]
    }

    /// The first row and column of a holder's shard.
    #[must_use]
    pub fn origin(&self, cube: u32, pe: u32) -> [usize; 2] {
        let index = |split: Split| {
            let inner = if self.placement.pe == split { self.grid[1] } else { 1 };
            let outer = if self.placement.cube == split { cube } else { 0 };
            (outer * inner + if self.placement.pe == split { pe } else { 0 }) as usize
        };
        [index(Split::RowWise) * self.shard[0], index(Split::ColumnWise) * self.shard[1]]
    }

    /// The cubes, as (first, count), and PEs that hold shard (`row`, `col`) of the grid of shards.
    fn piece(&self, row: usize, col: usize, rect: Rect) -> Piece {
        let p = self.placement;
        let inner = |split| if p.pe == split { self.grid[1] as usize } else { 1 };
        let cubes = match p.cube {
            Split::Replicate => (0, self.grid[0]),
            Split::RowWise => ((row / inner(Split::RowWise)) as u32, 1),
            Split::ColumnWise => ((col / inner(Split::ColumnWise)) as u32, 1),
        };
        let pes = match p.pe {
            Split::Replicate => (0, self.grid[1]),
            Split::RowWise => ((row % self.grid[1] as usize) as u32, 1),
            Split::ColumnWise => ((col % self.grid[1] as usize) as u32, 1),
        };
        Piece { rect, holders: Holders { sip: self.sip, cubes, pes } }
    }

    /// Cuts a rectangle at the borders of shards.
    pub fn pieces(&self, rect: Rect, mut f: impl FnMut(Piece)) {
        let [sr, sc] = self.shard;
        let mut row = rect.row;
        while row < rect.row + rect.rows {
            let rows = (sr - row % sr).min(rect.row + rect.rows - row);
            let mut col = rect.col;
            while col < rect.col + rect.cols {
                let cols = (sc - col % sc).min(rect.col + rect.cols - col);
                f(self.piece(row / sr, col / sc, Rect { row, col, rows, cols }));
                col += cols;
            }
            row += rows;
        }
    }

    /// The transfer of a piece from or to one of its holders.
    #[must_use]
    pub fn transfer(&self, machine: &Machine, piece: &Piece, cube: u32, pe: u32) -> Transfer {
        let [_, sc] = self.shard;
        let bytes = u64::from(self.ty.bytes());
        let (row, col) = (piece.rect.row % self.shard[0], piece.rect.col % sc);
        let addr = self.addr[(cube * self.grid[1] + pe) as usize] + (row * sc + col) as u64 * bytes;
        let home: PeId = machine.pe(PeAt { sip: self.sip, cube, pe });
        let (run, runs) = if piece.rect.cols == sc {
            (piece.rect.rows * sc, 1)
        } else {
            (piece.rect.cols, piece.rect.rows)
        };
        let bytes = bytes as usize;
        Transfer {
            element: (piece.rect.row * self.tensor[1] + piece.rect.col) as u64,
            rows: piece.rect.rows as u32,
            addr,
            home,
            run_bytes: (run * bytes) as u32,
            runs: runs as u32,
            stride_bytes: (sc * bytes) as u32,
        }
    }
}

/// The rectangles that `rows` runs of `cols` elements, `stride` apart, cover in a tensor of
/// `width` columns, in order.
pub fn rects(offset: u64, [rows, cols]: [u32; 2], stride: u32, width: usize, mut f: impl FnMut(Rect)) {
    if rows == 0 || cols == 0 {
        return;
    }
    let (offset, rows, cols, stride) = (offset as usize, rows as usize, cols as usize, stride as usize);
    let (row, col) = (offset / width, offset % width);
    if col + cols <= width && (stride == width || rows == 1) {
        return f(Rect { row, col, rows, cols });
    }
    let runs = if stride == cols { 1 } else { rows };
    let len = if runs == 1 { rows * cols } else { cols };
    for i in 0..runs {
        let (mut at, end) = (offset + i * stride, offset + i * stride + len);
        while at < end {
            let (row, col) = (at / width, at % width);
            let whole = if col == 0 { (end - at) / width } else { 0 };
            let (rows, cols) = if whole > 0 { (whole, width) } else { (1, (width - col).min(end - at)) };
            f(Rect { row, col, rows, cols });
            at += rows * cols;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(offset: u64, shape: [u32; 2], stride: u32, width: usize) -> Vec<usize> {
        let mut all = vec![];
        rects(offset, shape, stride, width, |r| {
            for i in 0..r.rows {
                for j in 0..r.cols {
                    all.push((r.row + i) * width + r.col + j);
                }
            }
        });
        all
    }

    #[test]
    fn rects_cover_exactly_the_elements_of_a_view_in_order() {
        for (offset, shape, stride, width) in
            [(0, [4, 8], 8, 8), (3, [2, 2], 8, 8), (5, [3, 7], 7, 8), (1, [1, 30], 30, 8), (6, [3, 4], 10, 8)]
        {
            let want: Vec<usize> = (0..shape[0] as usize)
                .flat_map(|i| (0..shape[1] as usize).map(move |j| offset as usize + i * stride as usize + j))
                .collect();
            assert_eq!(covered(offset, shape, stride, width), want, "{offset} {shape:?} {stride} {width}");
        }
    }
}
