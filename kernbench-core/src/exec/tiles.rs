//! The scratch of one PE while it executes: one buffer of widened values for each live base tile.
//!
//! A slice indexes into the buffer of its base. A base tile is dropped when another is first written
//! at bytes that overlap it, so a long loop keeps no more than the scratch holds.

use super::round::is_float;
use crate::ir::{PeProgram, Tile, TileId};
use crate::store::poison_byte;
use std::collections::BTreeMap;

/// Widened values: floats already rounded to the tile's type, or integers that fit it.
#[derive(Clone, Debug)]
pub(super) enum Lanes {
    F(Vec<f32>),
    I(Vec<i32>),
}

/// A matrix of widened values: element `(i, j)` at `i * row + j * col`.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a, T> {
    pub data: &'a [T],
    pub rows: usize,
    pub cols: usize,
    pub row: usize,
    pub col: usize,
}

impl<'a, T> View<'a, T> {
    /// The transposed matrix.
    pub fn t(self) -> Self {
        View { rows: self.cols, cols: self.rows, row: self.col, col: self.row, ..self }
    }

    /// A row of a matrix whose columns are neighbours.
    pub fn line(&self, i: usize) -> &'a [T] {
        &self.data[i * self.row..][..self.cols]
    }

    /// Whether the rows follow each other without gaps.
    pub fn is_dense(&self) -> bool {
        self.row == self.cols || self.rows <= 1
    }
}

/// A tile's values, by kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Values<'a> {
    F(View<'a, f32>),
    I(View<'a, i32>),
}

#[derive(Debug)]
struct Live {
    base: TileId,
    end: u32,
    lanes: Lanes,
    /// Differs from every version of every buffer before the last write.
    version: u64,
}

/// How many freed buffers of each kind are kept for later tiles.
const SPARE: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// By first byte; no two overlap.
    live: BTreeMap<u32, Live>,
    writes: u64,
    spare_f: Vec<Vec<f32>>,
    spare_i: Vec<Vec<i32>>,
}

impl Scratch {
    /// Makes the buffer of a tile's base if it is not there, poisoned unless `whole` says that the
    /// tile covers its base and is about to be written.
    pub fn ensure(&mut self, p: &PeProgram, tile: TileId, whole: bool) {
        let base_id = p.tile(tile).base;
        let base = p.tile(base_id);
        if base.span() == 0 || self.live.get(&base.addr).is_some_and(|l| l.base == base_id) {
            return;
        }
        let end = base.addr + base.span();
        while let Some((&start, old)) = self.live.range(..end).next_back()
            && old.end > base.addr
        {
            match self.live.remove(&start).map(|l| l.lanes) {
                Some(Lanes::F(v)) if self.spare_f.len() < SPARE => self.spare_f.push(v),
                Some(Lanes::I(v)) if self.spare_i.len() < SPARE => self.spare_i.push(v),
                _ => {}
            }
        }
        let n = (base.span() / base.ty.bytes()) as usize;
        let whole = whole && p.tile(tile).elements() == base.elements();
        let poison = i32::from_le_bytes([poison_byte(base.ty); 4]);
        let lanes = if is_float(base.ty) {
            Lanes::F(renew(self.spare_f.pop(), n, f32::from_bits(poison as u32), whole))
        } else {
            let mut one = [0];
            super::round::read_ints(base.ty, &poison.to_le_bytes(), &mut one);
            Lanes::I(renew(self.spare_i.pop(), n, one[0], whole))
        };
        self.writes += 1;
        self.live.insert(base.addr, Live { base: base_id, end, lanes, version: self.writes });
    }

    /// The values of a tile whose base is there; an empty matrix otherwise.
    pub fn values(&self, p: &PeProgram, id: TileId) -> Values<'_> {
        let tile = p.tile(id);
        let [rows, cols] = tile.shape.map(|n| n as usize);
        let (at, row) = (offset(p, tile), tile.stride as usize);
        match self.live.get(&p.tile(tile.base).addr).filter(|_| tile.elements() > 0).map(|l| &l.lanes) {
            Some(Lanes::F(v)) => Values::F(View { data: &v[at..], rows, cols, row, col: 1 }),
            Some(Lanes::I(v)) => Values::I(View { data: &v[at..], rows, cols, row, col: 1 }),
            None if is_float(tile.ty) => Values::F(View { data: &[], rows, cols, row, col: 1 }),
            None => Values::I(View { data: &[], rows, cols, row, col: 1 }),
        }
    }

    /// The lanes of a tile's base, made if needed, and the tile's first element in them.
    pub fn lanes_mut(&mut self, p: &PeProgram, id: TileId) -> Option<(&mut Lanes, usize)> {
        self.ensure(p, id, true);
        let tile = p.tile(id);
        let live = self.live.get_mut(&p.tile(tile.base).addr)?;
        self.writes += 1;
        live.version = self.writes;
        Some((&mut live.lanes, offset(p, tile)))
    }

    /// A number that tells the values of a tile's base from all others this scratch has held; 0 if it is
    /// not there.
    pub fn version(&self, p: &PeProgram, id: TileId) -> u64 {
        self.live.get(&p.tile(p.tile(id).base).addr).map_or(0, |l| l.version)
    }

    /// Takes the floats of a tile's base out for writing, made if needed, and the tile's first element in
    /// them; [`Scratch::put`] brings them back.
    pub fn take(&mut self, p: &PeProgram, id: TileId) -> Option<(Vec<f32>, usize)> {
        match self.lanes_mut(p, id)? {
            (Lanes::F(v), at) => Some((std::mem::take(v), at)),
            (Lanes::I(_), _) => None,
        }
    }

    /// Brings back what [`Scratch::take`] gave.
    pub fn put(&mut self, p: &PeProgram, id: TileId, values: Vec<f32>) {
        if let Some(live) = self.live.get_mut(&p.tile(p.tile(id).base).addr) {
            live.lanes = Lanes::F(values);
        }
    }

    /// Whether the bases of two tiles share bytes.
    pub fn overlap(p: &PeProgram, a: TileId, b: TileId) -> bool {
        let [a, b] = [a, b].map(|t| p.tile(p.tile(t).base));
        a.addr < b.addr + b.span() && b.addr < a.addr + a.span()
    }

    /// Live base tiles.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.live.len()
    }
}

fn offset(p: &PeProgram, tile: &Tile) -> usize {
    (tile.addr.saturating_sub(p.tile(tile.base).addr) / tile.ty.bytes()) as usize
}

fn renew<T: Copy>(spare: Option<Vec<T>>, n: usize, poison: T, whole: bool) -> Vec<T> {
    let mut v = spare.unwrap_or_default();
    if !whole {
        v.clear();
    }
    v.resize(n, poison);
    v
}
