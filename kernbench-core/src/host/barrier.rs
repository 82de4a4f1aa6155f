//! Host-read barriers: the methods of a tensor that show its values, and so wait for who writes them.

use super::worker::completed;
use super::{Tensor, here};
use crate::diag::{Diagnostic, Failure, Place};
use crate::ty::Dtype;
use ndarray::Array2;
use std::future::Future;
use std::ops::Range;

/// The methods of [`Tensor`] at which a worker first waits for all it has submitted, and for launches of others
/// that write what is read. They are exactly the `async` ones; nothing else of a tensor waits.
///
/// With nothing to wait for none of them gives way. They never wait for a collective: one that is pending and uses
/// the elements is an error (`KB0655`). [`Tensor::copy_from`] is a barrier on its source; for its target it waits
/// only for launches that use it.
pub const HOST_READ_BARRIERS: [&str; 6] = ["to_array", "data", "get", "slice", "to_text", "copy_from"];

impl<T: Dtype> Tensor<T> {
    /// All elements.
    ///
    /// # Errors
    /// Nobody has written some of them, the context computes no values, a pending collective uses them, or what was
    /// waited for has failed.
    #[track_caller]
    pub fn to_array(&self) -> impl Future<Output = Result<Array2<T>, Failure>> {
        let place = here();
        async move {
            self.settle(self.elements(), false, &place).await?;
            let [m, n] = self.shape();
            self.array([m, n], self.values(0..m, 0..n)?)
        }
    }

    /// All elements, row by row.
    ///
    /// # Errors
    /// As [`Tensor::to_array`].
    #[track_caller]
    pub fn data(&self) -> impl Future<Output = Result<Vec<T>, Failure>> {
        let place = here();
        async move {
            self.settle(self.elements(), false, &place).await?;
            let [m, n] = self.shape();
            self.values(0..m, 0..n)
        }
    }

    /// One element.
    ///
    /// # Errors
    /// As [`Tensor::to_array`], and a position that is not in the tensor.
    #[track_caller]
    pub fn get(&self, row: usize, col: usize) -> impl Future<Output = Result<T, Failure>> {
        let place = here();
        async move {
            let values = self.rectangle(row..row + 1, col..col + 1, &place).await?;
            Ok(values[0])
        }
    }

    /// The elements of some rows and columns.
    ///
    /// # Errors
    /// As [`Tensor::get`].
    #[track_caller]
    pub fn slice(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> impl Future<Output = Result<Array2<T>, Failure>> {
        let place = here();
        async move {
            let shape = [rows.len(), cols.len()];
            let values = self.rectangle(rows, cols, &place).await?;
            self.array(shape, values)
        }
    }

    /// The tensor with its values as text, for printing; large ones in parts.
    ///
    /// # Errors
    /// As [`Tensor::to_array`].
    #[track_caller]
    pub fn to_text(&self) -> impl Future<Output = Result<String, Failure>> {
        let place = here();
        async move {
            self.settle(self.elements(), false, &place).await?;
            let [m, n] = self.shape();
            let array = self.array([m, n], self.values(0..m, 0..n)?)?;
            Ok(format!("{self:?}\n{array}"))
        }
    }

    /// Copies all elements of another tensor, through the host.
    ///
    /// # Errors
    /// The shapes differ, and as [`Tensor::to_array`] for the source.
    #[track_caller]
    pub fn copy_from(&mut self, source: &Tensor<T>) -> impl Future<Output = Result<(), Failure>> {
        let place = here();
        async move {
            source.is_of(&self.shared)?;
            if self.shape() != source.shape() {
                let text = format!("`{self:?}` cannot take the elements of `{source:?}`: the shapes differ");
                return Err(Diagnostic::error("KB0605", text)
                    .at(place, "copied here")
                    .help("copy between tensors of one shape")
                    .into());
            }
            source.settle(source.elements(), false, &place).await?;
            self.settle(self.elements(), true, &place).await?;
            self.shared.borrow_mut().copy(self.id(), source.id())
        }
    }

    /// Waits as a host read, or write, of elements does.
    pub(super) async fn settle(&self, range: Range<u64>, write: bool, place: &Place) -> Result<(), Failure> {
        let ids = self.shared.borrow_mut().barrier(self.id(), range, write, place)?;
        completed(&self.shared, ids, place).await
    }

    pub(super) fn elements(&self) -> Range<u64> {
        let [m, n] = self.shape();
        0..m as u64 * n as u64
    }

    async fn rectangle(
        &self,
        rows: Range<usize>,
        cols: Range<usize>,
        place: &Place,
    ) -> Result<Vec<T>, Failure> {
        let [m, n] = self.shape();
        if rows.start > rows.end || rows.end > m || cols.start > cols.end || cols.end > n {
            let text = format!("rows {rows:?} and columns {cols:?} are not all in `{self:?}`");
            return Err(Diagnostic::error("KB0657", text)
                .at(place.clone(), "read here")
                .help(format!("read rows from 0..{m} and columns from 0..{n}"))
                .into());
        }
        let last = (rows.end.max(1) - 1) * n + cols.end;
        let range = (rows.start * n + cols.start) as u64..last as u64;
        self.settle(range, false, place).await?;
        self.values(rows, cols)
    }

    fn values(&self, rows: Range<usize>, cols: Range<usize>) -> Result<Vec<T>, Failure> {
        let n = self.shape()[1];
        let s = self.shared.borrow();
        let bytes = s.read_rows(self.id(), &rows, &cols)?;
        let size = T::TYPE.bytes() as usize;
        let row = |r: usize| bytes[(r * n + cols.start) * size..(r * n + cols.end) * size].chunks_exact(size);
        Ok(rows.flat_map(row).map(T::read).collect())
    }

    fn array(&self, [m, n]: [usize; 2], values: Vec<T>) -> Result<Array2<T>, Failure> {
        Array2::from_shape_vec((m, n), values)
            .map_err(|e| Diagnostic::error("KB0605", format!("tensor `{}`: {e}", self.name)).into())
    }
}
