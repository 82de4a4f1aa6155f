//! Views: what a kernel sees of a tensor. They are copied freely and borrow nothing.

use crate::ir::TensorId;
use crate::ty::{Block, Dtype};
use std::fmt;
use std::marker::PhantomData;

/// A rectangle of a tensor; a mistake made while slicing is kept and reported where the view is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    /// Tells the tensor from all others there ever were; its number may be another one's later.
    pub(crate) serial: u64,
    pub(crate) tensor: TensorId,
    /// First element, in the tensor or, if `local`, from the first element of the PE's shard.
    pub(crate) offset: u64,
    pub(crate) shape: [u32; 2],
    pub(crate) stride: u32,
    pub(crate) local: bool,
    /// Rows and columns of a shard, and of the tensor.
    shard: [u32; 2],
    whole: [u32; 2],
    pub(crate) mistake: Option<Mistake>,
}

/// A slice or reshape that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    Rows { start: u64, end: u64, have: u32 },
    Cols { start: u64, end: u64, have: u32 },
    Count { from: [u32; 2], to: [u64; 2] },
    Strided { from: [u32; 2] },
    LocalOfPart,
}

impl Mistake {
    pub(crate) fn message(self, of: &str) -> String {
        match self {
            Mistake::Rows { start, end, have } => {
                format!("rows {start}..{end} of {of} do not exist: there are {have} rows")
            }
            Mistake::Cols { start, end, have } => {
                format!("columns {start}..{end} of {of} do not exist: there are {have} columns")
            }
            Mistake::Count { from: [m, n], to: [p, q] } => format!(
                "{of} of shape [{m}, {n}] has {} elements and cannot become [{p}, {q}] of {}",
                u64::from(m) * u64::from(n),
                u128::from(p) * u128::from(q)
            ),
            Mistake::Strided { from: [m, n] } => format!(
                "{of} of shape [{m}, {n}] is a slice of columns: its rows are apart in memory and cannot be reshaped"
            ),
            Mistake::LocalOfPart => {
                format!("`local()` of a part of {of}: only a whole tensor has a shard")
            }
        }
    }

    /// What mends it.
    pub(crate) const fn help(self) -> &'static str {
        match self {
            Mistake::Rows { .. } => "slice within the shape; `nrows()` gives the rows",
            Mistake::Cols { .. } => "slice within the shape; `ncols()` gives the columns",
            Mistake::Count { .. } => "reshape to as many elements; `shape()` gives the shape it has",
            Mistake::Strided { .. } => {
                "reshape first and slice then, or copy the slice to a tile of its own with `tl::eval`"
            }
            Mistake::LocalOfPart => "call `local()` first, then slice the shard",
        }
    }
}

/// The same arithmetic for views and tiles: shape, elements between rows, first element.
pub(crate) type Window = ([u32; 2], u32, u64);

pub(crate) fn rows((shape, stride, offset): Window, r: Block) -> Result<Window, Mistake> {
    let (start, end) = (r.start as u64, r.end() as u64);
    if end > u64::from(shape[0]) {
        return Err(Mistake::Rows { start, end, have: shape[0] });
    }
    Ok(([r.len as u32, shape[1]], stride, offset + start * u64::from(stride)))
}

pub(crate) fn cols((shape, stride, offset): Window, r: Block) -> Result<Window, Mistake> {
    let (start, end) = (r.start as u64, r.end() as u64);
    if end > u64::from(shape[1]) {
        return Err(Mistake::Cols { start, end, have: shape[1] });
    }
    Ok(([shape[0], r.len as u32], stride, offset + start))
}

pub(crate) fn reshape((from, stride, offset): Window, [m, n]: [usize; 2]) -> Result<Window, Mistake> {
    let to = [m as u64, n as u64];
    if Some(u64::from(from[0]) * u64::from(from[1])) != to[0].checked_mul(to[1]) {
        return Err(Mistake::Count { from, to });
    }
    if from[0] > 1 && stride != from[1] {
        return Err(Mistake::Strided { from });
    }
    Ok(([m as u32, n as u32], n as u32, offset))
}

impl Raw {
    /// The whole of a tensor.
    pub(crate) fn whole(serial: u64, tensor: TensorId, whole: [usize; 2], shard: [usize; 2]) -> Raw {
        let whole = whole.map(|n| n as u32);
        let shard = shard.map(|n| n as u32);
        Raw {
            serial,
            tensor,
            offset: 0,
            shape: whole,
            stride: whole[1],
            local: false,
            shard,
            whole,
            mistake: None,
        }
    }

    /// From the first to one past the last element, of a view that is not of a shard.
    pub(crate) fn elements(&self) -> std::ops::Range<u64> {
        let [m, n] = self.shape.map(u64::from);
        let len = if m == 0 || n == 0 { 0 } else { (m - 1) * u64::from(self.stride) + n };
        self.offset..self.offset + len
    }

    /// The rectangle of `shape` from row `row`, column `col` on, which lies inside.
    pub(crate) fn part(self, [row, col]: [u32; 2], shape: [u32; 2]) -> Raw {
        let offset = self.offset + u64::from(row) * u64::from(self.stride) + u64::from(col);
        Raw { shape, offset, ..self }
    }

    fn with(self, window: Result<Window, Mistake>) -> Raw {
        match window {
            _ if self.mistake.is_some() => self,
            Ok((shape, stride, offset)) => Raw { shape, stride, offset, ..self },
            Err(mistake) => Raw { mistake: Some(mistake), ..self },
        }
    }

    fn window(self) -> Window {
        (self.shape, self.stride, self.offset)
    }

    fn local(self) -> Raw {
        if self.local && self.shape == self.shard {
            return self;
        }
        let untouched = !self.local && self.shape == self.whole && self.stride == self.whole[1];
        let mistake = self.mistake.or((!untouched).then_some(Mistake::LocalOfPart));
        Raw { local: true, shape: self.shard, stride: self.shard[1], mistake, ..self }
    }
}

macro_rules! views {
    ($($(#[$doc:meta])* $view:ident),*) => { $(
        $(#[$doc])*
        pub struct $view<T> { pub(crate) raw: Raw, ty: PhantomData<T> }

        impl<T> Clone for $view<T> {
            fn clone(&self) -> Self { *self }
        }
        impl<T> Copy for $view<T> {}

        impl<T: Dtype> fmt::Debug for $view<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let [m, n] = self.raw.shape;
                write!(f, "{}<{}>[{m}, {n}] of tensor {}", stringify!($view), T::TYPE, self.raw.tensor)
            }
        }

        impl<T: Dtype> $view<T> {
            pub(crate) fn of(raw: Raw) -> Self { $view { raw, ty: PhantomData } }

            fn with(self, raw: Raw) -> Self { $view { raw, ty: PhantomData } }

            /// The rows of a range, as `a..b` or a [`Block`].
            #[must_use]
            pub fn rows(self, r: impl Into<Block>) -> Self {
                self.with(self.raw.with(rows(self.raw.window(), r.into())))
            }

            /// The columns of a range, as `a..b` or a [`Block`].
            #[must_use]
            pub fn cols(self, r: impl Into<Block>) -> Self {
                self.with(self.raw.with(cols(self.raw.window(), r.into())))
            }

            /// The same elements in row-major order under another shape of as many elements.
            #[must_use]
            pub fn reshape(self, shape: [usize; 2]) -> Self {
                self.with(self.raw.with(reshape(self.raw.window(), shape)))
            }

            /// The shard of the PE that runs the kernel.
            #[must_use]
            pub fn local(self) -> Self { self.with(self.raw.local()) }

            /// Rows.
            #[must_use]
            pub fn nrows(self) -> usize { self.raw.shape[0] as usize }

            /// Columns.
            #[must_use]
            pub fn ncols(self) -> usize { self.raw.shape[1] as usize }

            /// Rows and columns.
            #[must_use]
            pub fn shape(self) -> [usize; 2] { self.raw.shape.map(|n| n as usize) }

            /// The tensor it is a view of.
            #[doc(hidden)]
            #[must_use]
            pub fn tensor(self) -> TensorId { self.raw.tensor }
        }
    )* };
}

views! {
    /// A kernel argument that is read.
    In,
    /// A kernel argument that is written.
    Out,
    /// A kernel argument that is read and written.
    InOut
}

/// A view that can be read.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read",
    label = "not readable",
    note = "declare the argument `In<T>` or `InOut<T>`"
)]
pub trait Readable<T: Dtype>: Copy {
    #[doc(hidden)]
    fn raw(self) -> Raw;
}

/// A view that can be written.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written",
    label = "not writable",
    note = "declare the argument `Out<T>` or `InOut<T>`"
)]
pub trait Writable<T: Dtype>: Copy {
    #[doc(hidden)]
    fn raw(self) -> Raw;
}

impl<T: Dtype> Readable<T> for In<T> {
    fn raw(self) -> Raw {
        self.raw
    }
}
impl<T: Dtype> Readable<T> for InOut<T> {
    fn raw(self) -> Raw {
        self.raw
    }
}
impl<T: Dtype> Writable<T> for Out<T> {
    fn raw(self) -> Raw {
        self.raw
    }
}
impl<T: Dtype> Writable<T> for InOut<T> {
    fn raw(self) -> Raw {
        self.raw
    }
}
