//! The intrinsics, as methods of a scope at a source place: `tl::name(args)` becomes `tl.at(SITE).name(args)`.
//!
//! Their documentation for users is on the functions of [`crate::tl`] of the same names.

use super::expr::{Node, Operand};
use super::recorder::{Recorder, State, broadcast, text};
use super::scope::At;
use super::tile::{Matrix, POISON, Pending, Tile};
use super::view::{Readable, Writable};
use crate::diag::Diagnostic;
use crate::ir::{OpKind, Reduction, SiteId, TileId};
use crate::ty::{Axis, Block, Dir, Dtype, ElementType, Group, Num};
use std::marker::PhantomData;

impl<'s> At<'s> {
    #[inline]
    pub(super) fn rec(self) -> &'s Recorder {
        &self.scope.rec
    }

    /// Records an op that writes a new tile of this scope.
    #[inline]
    fn produce<T: Dtype>(
        self,
        shape: [u32; 2],
        op: impl FnOnce(&mut State, SiteId, TileId) -> Option<OpKind>,
    ) -> Tile<'s, T> {
        let rec = self.rec();
        let id = rec.with(self.source, |s, site| {
            let def = s.next_op();
            let id = s.alloc(rec.pe, self.scope.turn, site, T::TYPE, shape, def);
            if id == POISON {
                return POISON;
            }
            match op(s, site, id) {
                Some(kind) => {
                    s.push(kind, site);
                    id
                }
                None => {
                    // No op writes the tile: a memory map must not show it.
                    s.program.tiles.pop();
                    POISON
                }
            }
        });
        Tile::new(rec, id, shape)
    }

    fn shape(self, [m, n]: [usize; 2]) -> [u32; 2] {
        // A dimension past u32 cannot be held anyway: the allocation reports it.
        [m, n].map(|d| u32::try_from(d).unwrap_or(u32::MAX))
    }

    #[inline]
    pub fn load<T: Dtype>(self, view: impl Readable<T>) -> Tile<'s, T> {
        let raw = view.raw();
        let rec = self.rec();
        self.produce(raw.shape, |s, site, dst| {
            let access = rec.access(s, site, raw, false)?;
            Some(OpKind::Load { access, dst })
        })
    }

    #[inline]
    pub fn store<'e, T: Dtype>(self, view: impl Writable<T>, x: impl Operand<'e, T>) {
        let (raw, x) = (view.raw(), x.node());
        let rec = self.rec();
        if x.is_poison() {
            return;
        }
        let bare = match x.root {
            crate::ir::Operand::Tile(t) if x.len == 0 && x.shape == raw.shape => Some(t),
            _ => None,
        };
        let src = match bare {
            Some(tile) => tile,
            None => {
                if raw.mistake.is_none() && !self.fits(x.shape, raw.shape, "store") {
                    return;
                }
                let tile: Tile<'_, T> = self.produce(raw.shape, |s, _, dst| {
                    Some(OpKind::Map { dst, expr: s.expr(x, T::TYPE, true) })
                });
                tile.id
            }
        };
        rec.with(self.source, |s, site| {
            if let Some(access) = rec.access(s, site, raw, true)
                && src != POISON
            {
                s.push(OpKind::Store { access, src }, site);
            }
        });
    }

    /// Whether an expression broadcasts to its destination; a mistake if not.
    fn fits(self, from: [u32; 2], to: [u32; 2], what: &str) -> bool {
        let fits = broadcast(from, to) == Some(to);
        if !fits {
            self.mistake("KB0101", || {
                Diagnostic::error(
                    "KB0101",
                    format!(
                        "`{what}` of shape {} into shape {}: it does not broadcast",
                        text(from),
                        text(to)
                    ),
                )
                .help("each dimension must be equal to the destination's or 1")
            });
        }
        fits
    }

    pub(super) fn mistake(self, code: crate::diag::Code, make: impl FnOnce() -> Diagnostic) {
        let rec = self.rec();
        rec.with(self.source, |s, site| s.mistake(rec.pe, site, code, make));
    }

    #[inline]
    pub fn zeros<T: Num>(self, shape: [usize; 2]) -> Tile<'s, T> {
        let value = match T::TYPE {
            ElementType::I32 => crate::ty::Scalar::I32(0),
            _ => crate::ty::Scalar::F32(0.0),
        };
        self.produce(self.shape(shape), |_, _, dst| Some(OpKind::Fill { dst, value }))
    }

    #[inline]
    pub fn full<T: Num>(self, shape: [usize; 2], value: T) -> Tile<'s, T> {
        let value = value.scalar();
        self.produce(self.shape(shape), |_, _, dst| Some(OpKind::Fill { dst, value }))
    }

    pub fn arange(self, range: impl Into<Block>, axis: Axis) -> Tile<'s, i32> {
        let range = range.into();
        let shape = self.shape(match axis {
            Axis::Rows => [range.len, 1],
            Axis::Cols => [1, range.len],
        });
        // The last position must fit as well.
        let last = range.end().saturating_sub(usize::from(range.len > 0));
        let Some((start, _)) = i32::try_from(range.start).ok().zip(i32::try_from(last).ok()) else {
            self.mistake("KB0117", || {
                Diagnostic::error("KB0117", format!("positions {} to {last} do not fit i32", range.start))
                    .help(format!("count from the start of a block; positions end at {}", i32::MAX))
            });
            return Tile::new(self.rec(), POISON, shape);
        };
        self.produce(shape, |_, _, dst| Some(OpKind::Arange { dst, start, axis }))
    }

    #[inline]
    pub fn eval<'e, T: Dtype>(self, x: impl Operand<'e, T>) -> Tile<'s, T> {
        let x = x.node();
        if x.is_poison() {
            return Tile::new(self.rec(), POISON, x.shape);
        }
        self.produce(x.shape, |s, _, dst| Some(OpKind::Map { dst, expr: s.expr(x, T::TYPE, true) }))
    }

    #[inline]
    pub fn copy_to<'e, T: Dtype>(self, dst: Tile<'_, T>, x: impl Operand<'e, T>) {
        let x = x.node();
        if x.is_poison() || dst.id == POISON || !self.fits(x.shape, dst.shape, "copy_to") {
            return;
        }
        self.rec().with(self.source, |s, site| {
            let expr = s.expr(x, T::TYPE, true);
            s.push(OpKind::Map { dst: dst.id, expr }, site);
        });
    }

    #[inline]
    fn reduce<T: Dtype>(self, x: Node<'_>, reduction: Reduction, axis: Axis) -> Tile<'s, T> {
        let shape = match axis {
            Axis::Cols => [x.shape[0], 1],
            Axis::Rows => [1, x.shape[1]],
        };
        if x.is_poison() {
            return Tile::new(self.rec(), POISON, shape);
        }
        self.produce(shape, |s, _, dst| {
            Some(OpKind::Reduce { dst, expr: s.expr(x, T::TYPE, false), reduction, axis })
        })
    }

    #[inline]
    pub fn sum<'e, T: Num>(self, x: impl Operand<'e, T>, axis: Axis) -> Tile<'s, T> {
        self.reduce(x.node(), Reduction::Sum, axis)
    }

    #[inline]
    pub fn max<'e, T: Num>(self, x: impl Operand<'e, T>, axis: Axis) -> Tile<'s, T> {
        self.reduce(x.node(), Reduction::Max, axis)
    }

    #[inline]
    pub fn min<'e, T: Num>(self, x: impl Operand<'e, T>, axis: Axis) -> Tile<'s, T> {
        self.reduce(x.node(), Reduction::Min, axis)
    }

    /// Shape of a product; a mistake if the inner dimensions differ.
    fn product(self, [m, k]: [u32; 2], [l, n]: [u32; 2]) -> Option<[u32; 2]> {
        if k == l {
            return Some([m, n]);
        }
        self.mistake("KB0102", || {
            Diagnostic::error(
                "KB0102",
                format!("`dot` of shapes [{m}, {k}] and [{l}, {n}]: the inner dimensions {k} and {l} differ"),
            )
            .help("transpose an operand with `x.t()`, or slice it")
        });
        None
    }

    #[inline]
    pub fn dot<'a, 'b, T: Dtype>(self, a: impl Matrix<'a, T>, b: impl Matrix<'b, T>) -> Tile<'s, T::Acc> {
        let ((a, a_shape, a_t), (b, b_shape, b_t)) = (a.parts(), b.parts());
        if a == POISON || b == POISON {
            return Tile::new(self.rec(), POISON, [a_shape[0], b_shape[1]]);
        }
        let Some(shape) = self.product(a_shape, b_shape) else {
            return Tile::new(self.rec(), POISON, [a_shape[0], b_shape[1]]);
        };
        self.produce(shape, |_, _, dst| Some(OpKind::Dot { dst, a, b, a_t, b_t, accumulate: false }))
    }

    #[inline]
    pub fn dot_add<'a, 'b, T: Dtype>(
        self,
        acc: Tile<'_, T::Acc>,
        a: impl Matrix<'a, T>,
        b: impl Matrix<'b, T>,
    ) {
        let ((a, a_shape, a_t), (b, b_shape, b_t)) = (a.parts(), b.parts());
        if a == POISON || b == POISON || acc.id == POISON {
            return;
        }
        let Some(shape) = self.product(a_shape, b_shape) else { return };
        if shape != acc.shape {
            self.mistake("KB0102", || {
                Diagnostic::error(
                    "KB0102",
                    format!(
                        "`dot_add` of shape {} into an accumulator of shape {}",
                        text(shape),
                        text(acc.shape)
                    ),
                )
                .help("make the accumulator of the product's shape")
            });
            return;
        }
        self.rec().with(self.source, |s, site| {
            s.push(OpKind::Dot { dst: acc.id, a, b, a_t, b_t, accumulate: true }, site);
        });
    }

    pub fn send<T: Dtype>(self, to: Dir, x: Tile<'_, T>) {
        let rec = self.rec();
        if x.id == POISON {
            return;
        }
        rec.with(self.source, |s, site| {
            let fits = rec.fits_slot(s, site, T::TYPE, x.shape);
            if let Some(link) = rec.link(s, site, to, true)
                && fits
            {
                let seq = s.next_message(to, true);
                s.push(OpKind::Send { link, seq, src: x.id }, site);
            }
        });
    }

    pub fn recv<T: Dtype>(self, from: Dir, shape: [usize; 2]) -> Tile<'s, T> {
        let rec = self.rec();
        let shape = self.shape(shape);
        self.produce(shape, |s, site, dst| {
            let fits = rec.fits_slot(s, site, T::TYPE, shape);
            let link = rec.link(s, site, from, false)?;
            fits.then(|| OpKind::Recv { link, seq: s.next_message(from, false), dst })
        })
    }

    pub fn recv_async<T: Dtype>(self, from: Dir, shape: [usize; 2]) -> Pending<'s, Tile<'s, T>> {
        let rec = self.rec();
        let shape = self.shape(shape);
        let op = rec.with(self.source, |s, _| s.next_op());
        let result: Tile<'s, T> = self.produce(shape, |s, site, dst| {
            let fits = rec.fits_slot(s, site, T::TYPE, shape);
            let link = rec.link(s, site, from, false)?;
            fits.then(|| OpKind::RecvAsync { link, seq: s.next_message(from, false), dst })
        });
        Pending { op: (result.id != POISON).then_some(op), result, scope: PhantomData }
    }

    pub fn wait<R>(self, pending: Pending<'_, R>) -> R {
        if let Some(begun) = pending.op {
            self.rec().with(self.source, |s, site| {
                match s.program.ops[begun.at()].kind {
                    OpKind::RecvAsync { dst, .. } => {
                        let wait = s.push(OpKind::Wait { recv: begun }, site);
                        // The tile is first written here, not where the receive was registered.
                        s.program.tiles[dst.at()].def = wait;
                    }
                    _ => _ = s.push(OpKind::Join { composite: begun }, site),
                }
            });
        }
        pending.result
    }

    pub fn fence(self) {
        self.rec().with(self.source, |s, site| s.push(OpKind::Fence, site));
    }

    pub fn barrier(self, group: Group) {
        self.rec().with(self.source, |s, site| s.push(OpKind::Barrier { group }, site));
    }

    #[must_use]
    pub fn sip(self) -> usize {
        self.rec().at.sip as usize
    }

    #[must_use]
    pub fn cube(self) -> usize {
        self.rec().at.cube as usize
    }

    #[must_use]
    pub fn pe(self) -> usize {
        self.rec().at.pe as usize
    }

    #[must_use]
    pub fn slot_size(self) -> usize {
        self.rec().launch.slot_bytes as usize
    }

    #[must_use]
    pub fn scratch_size(self) -> usize {
        self.rec().launch.scratch_bytes as usize
    }

    #[must_use]
    pub fn program_id(self, axis: usize) -> usize {
        let rec = self.rec();
        match axis {
            0 => self.pe(),
            1 => self.cube(),
            2 => rec.launch.grid.sips.iter().position(|&s| s == rec.at.sip).unwrap_or(0),
            _ => self.no_axis(axis, 0),
        }
    }

    #[must_use]
    pub fn num_programs(self, axis: usize) -> usize {
        let grid = &self.rec().launch.grid;
        match axis {
            0 => grid.pes as usize,
            1 => grid.cubes as usize,
            2 => grid.sips.len(),
            _ => self.no_axis(axis, 1),
        }
    }

    fn no_axis(self, axis: usize, instead: usize) -> usize {
        self.mistake("KB0114", || {
            Diagnostic::error("KB0114", format!("a launch has no axis {axis}"))
                .help("axis 0 is the PE, 1 the cube, 2 the SIP")
        });
        instead
    }
}
