//! The values of a composite GEMM: those of a `dot` and of the epilogue's steps one by one in f32 or i32,
//! rounded once to the output's type.
//!
//! Without a step at a K tile each element is one chain over k, as `dot` does it. With one, each K tile's
//! chain begins at 0, its steps apply, and the results add up in k order from 0.

use super::Pe;
use crate::exec::dot::{Output, dot_floats, dot_ints};
use crate::exec::packing::Packing;
use crate::exec::round::{self, is_float};
use crate::exec::steps;
use crate::exec::tiles::{Lanes, Values, View};
use crate::ir::{Composite, EpilogueFun, EpilogueStep, Level, Operand, Place};
use crate::store::Store;
use crate::ty::ElementType;
use std::ops::Range;

/// Columns of the output computed at a time: so much of a right operand is widened at once.
const COLUMNS: usize = 512;

impl Pe<'_> {
    /// Computes a composite and leaves its output in its tile, or among the stores of the round.
    pub(super) fn composite(&mut self, c: &Composite, store: &Store) {
        let [m, k, n] = c.mkn.map(|x| x as usize);
        let float = is_float(c.out_ty);
        let (mut floats, mut ints) = (vec![0.0; if float { m * n } else { 0 }], vec![]);
        ints.resize(m * n - floats.len(), 0);
        let left = self.matrix(&c.a, c.ty, store, 0..k);
        for first in (0..n).step_by(COLUMNS) {
            let columns = first..n.min(first + COLUMNS);
            let right = self.matrix(&c.b, c.ty, store, columns.clone());
            let width = columns.len();
            match self.block(c, &left, &right, columns) {
                Lanes::F(from) => paste(&from, width, floats.get_mut(first..).unwrap_or(&mut []), n),
                Lanes::I(from) => paste(&from, width, ints.get_mut(first..).unwrap_or(&mut []), n),
            }
        }
        let out = &mut self.evaluator.out;
        (out.f, out.i) = (floats, ints);
        if let Some(dst) = c.dst() {
            return self.write(dst, float);
        }
        let (Some(access), mut bytes) = (c.out.access(), vec![]) else { return };
        if float {
            bytes.resize(m * n * c.out_ty.bytes() as usize, 0);
            c.out_ty.narrow(&out.f, &mut bytes);
        } else {
            round::write_ints(c.out_ty, &out.i, &mut bytes);
        }
        self.pending_bytes += bytes.len();
        self.stores.push(super::Pending { op: self.next, access, bytes });
    }

    /// Columns of an operand, widened and without gaps.
    fn matrix(&self, place: &Place, ty: ElementType, store: &Store, columns: Range<usize>) -> Lanes {
        let p = self.program;
        match *place {
            Place::Hbm { access, .. } => {
                let (access, size) = (p.access(access), ty.bytes() as usize);
                let (rows, bytes) = (access.shape[0] as usize, store.bytes(access.tensor));
                let line = |i: usize| {
                    let row = access.offset as usize + i * access.stride as usize;
                    bytes.get((row + columns.start) * size..(row + columns.end) * size).unwrap_or(&[])
                };
                if is_float(ty) {
                    let mut v = vec![f32::NAN; rows * columns.len()];
                    let lines = v.chunks_exact_mut(columns.len().max(1)).enumerate();
                    lines.for_each(|(i, to)| ty.widen(line(i), to));
                    Lanes::F(v)
                } else {
                    let mut v = vec![0; rows * columns.len()];
                    let lines = v.chunks_exact_mut(columns.len().max(1)).enumerate();
                    lines.for_each(|(i, to)| round::read_ints(ty, line(i), to));
                    Lanes::I(v)
                }
            }
            Place::Tcm { tile, transposed } => match self.scratch.values(p, tile) {
                Values::F(v) => Lanes::F(copy(if transposed { v.t() } else { v }, columns)),
                Values::I(v) => Lanes::I(copy(if transposed { v.t() } else { v }, columns)),
            },
        }
    }

    /// The output's values in some columns, not yet rounded, from all of `a` and those columns of `b`.
    fn block(&mut self, c: &Composite, a: &Lanes, b: &Lanes, columns: Range<usize>) -> Lanes {
        let [m, k, _] = c.mkn.map(|x| x as usize);
        let by_tile = c.has(Level::KTile);
        let depth = if by_tile { c.tile[1] as usize } else { k };
        let mut sum: Option<Lanes> = None;
        for (tile, at) in (0..k.max(1)).step_by(depth.max(1)).enumerate() {
            let mut part = self.product(a, b, [m, k, columns.len()], at..k.min(at + depth));
            for step in c.at(Level::KTile) {
                part = self.apply(step, part, columns.clone(), |_| tile);
            }
            sum = Some(match (sum, part) {
                (Some(Lanes::F(s)), Lanes::F(p)) => Lanes::F(s.iter().zip(p).map(|(s, p)| s + p).collect()),
                (Some(Lanes::I(s)), Lanes::I(p)) => {
                    Lanes::I(s.iter().zip(p).map(|(s, p)| s.wrapping_add(p)).collect())
                }
                // As if added to 0, which makes -0 of a step 0.
                (_, Lanes::F(p)) if by_tile => Lanes::F(p.iter().map(|p| 0.0 + p).collect()),
                (_, part) => part,
            });
        }
        let mut values = sum.unwrap_or(Lanes::I(vec![]));
        for step in [Level::OutputTile, Level::Kernel].into_iter().flat_map(|level| c.at(level)) {
            values = self.apply(step, values, columns.clone(), |row| row);
        }
        values
    }

    /// The product of columns `ks` of `a` and rows `ks` of `b`.
    fn product(&mut self, a: &Lanes, b: &Lanes, [m, k, n]: [usize; 3], ks: Range<usize>) -> Lanes {
        fn operands<'v, T>(
            [a, b]: [&'v [T]; 2],
            [m, k, n]: [usize; 3],
            ks: &Range<usize>,
        ) -> [View<'v, T>; 2] {
            [
                View { data: a.get(ks.start..).unwrap_or(&[]), rows: m, cols: ks.len(), row: k, col: 1 },
                View { data: b.get(ks.start * n..).unwrap_or(&[]), rows: ks.len(), cols: n, row: n, col: 1 },
            ]
        }
        match (a, b) {
            (Lanes::F(a), Lanes::F(b)) => {
                let (mut out, [a, b]) = (vec![0.0; m * n], operands([a, b], [m, k, n], &ks));
                let output = Output { data: &mut out, row: n, accumulate: false };
                // What is packed of one part serves no other.
                dot_floats(self.evaluator.arch, &mut Packing::default(), a, (b, 0), output);
                Lanes::F(out)
            }
            (Lanes::I(a), Lanes::I(b)) => {
                let (mut out, [a, b]) = (vec![0; m * n], operands([a, b], [m, k, n], &ks));
                dot_ints(self.evaluator.arch, a, b, &mut out);
                Lanes::I(out)
            }
            // A product of mixed kinds does not pass verification.
            _ => Lanes::F(vec![0.0; m * n]),
        }
    }

    /// One epilogue step on values of some columns; `row_of` gives the row of its tile for one of theirs.
    fn apply(
        &self,
        step: &EpilogueStep,
        values: Lanes,
        columns: Range<usize>,
        row_of: impl Fn(usize) -> usize,
    ) -> Lanes {
        let tile = match step.operand {
            Operand::Tile(t) => Some(self.scratch.values(self.program, t)),
            _ => None,
        };
        let (width, first) = (columns.len().max(1), columns.start);
        let float = |at: usize| match (&tile, step.operand) {
            (Some(Values::F(v)), _) => element(v, row_of(at / width), first + at % width),
            (_, Operand::F32(x)) => x,
            _ => 0.0,
        };
        let int = |at: usize| match (&tile, step.operand) {
            (Some(Values::I(v)), _) => element(v, row_of(at / width), first + at % width),
            (_, Operand::I32(x)) => x,
            _ => 0,
        };
        let floats = |v: Vec<f32>, f: &dyn Fn(usize, f32) -> f32| {
            Lanes::F(v.into_iter().enumerate().map(|(at, x)| f(at, x)).collect())
        };
        let ints = |v: Vec<i32>, f: &dyn Fn(usize, i32) -> i32| {
            Lanes::I(v.into_iter().enumerate().map(|(at, x)| f(at, x)).collect())
        };
        match (step.fun, values) {
            (EpilogueFun::Bias, Lanes::F(v)) => floats(v, &|at, x| x + float(at)),
            (EpilogueFun::Bias, Lanes::I(v)) => ints(v, &|at, x| x.wrapping_add(int(at))),
            (EpilogueFun::Scale | EpilogueFun::Dequant, Lanes::F(v)) => floats(v, &|at, x| x * float(at)),
            (EpilogueFun::Scale, Lanes::I(v)) => ints(v, &|at, x| x.wrapping_mul(int(at))),
            (EpilogueFun::Relu, Lanes::F(v)) => floats(v, &|_, x| steps::max(x, 0.0)),
            (EpilogueFun::Relu, Lanes::I(v)) => ints(v, &|_, x| x.max(0)),
            (EpilogueFun::Dequant, Lanes::I(v)) => {
                Lanes::F(v.into_iter().enumerate().map(|(at, x)| x as f32 * float(at)).collect())
            }
        }
    }
}

/// An element of a matrix that broadcasts.
fn element<T: Copy>(v: &View<T>, row: usize, col: usize) -> T {
    let row = if v.rows == 1 { 0 } else { row };
    let col = if v.cols == 1 { 0 } else { col };
    v.data[row * v.row + col * v.col]
}

fn copy<T: Copy>(v: View<T>, columns: Range<usize>) -> Vec<T> {
    let at = |i: usize, j: usize| v.data[i * v.row + j * v.col];
    (0..v.rows).flat_map(|i| columns.clone().map(move |j| at(i, j))).collect()
}

/// Copies rows of `width` to where rows of `n` begin.
fn paste<T: Copy>(from: &[T], width: usize, to: &mut [T], n: usize) {
    for (from, to) in from.chunks_exact(width.max(1)).zip(to.chunks_mut(n.max(1))) {
        if let Some(to) = to.get_mut(..width) {
            to.copy_from_slice(from);
        }
    }
}
