//! Evaluates the expression of a `Map` or `Reduce`, and reduces.
//!
//! A row segment at a time, all steps over it: a step's argument is then a slice or one value. What
//! broadcasts along the columns is one value per row; what broadcasts along the rows is computed once.

use super::round::is_float;
use super::steps;
use super::tiles::{Scratch, Values};
use crate::ir::{Expr, Fun, Operand, PeProgram, Reduction};
use crate::ty::{Axis, ElementType};
use pulp::Arch;

/// The longest row segment: the registers of a common expression stay in the second-level cache.
const SEGMENT: usize = 2048;

/// Where results go, row-major, by kind.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub f: Vec<f32>,
    pub i: Vec<i32>,
}

/// An argument, with the distance between its rows (0 if it broadcasts along them).
#[derive(Clone, Copy)]
enum Arg<'a> {
    None,
    F { data: &'a [f32], row: usize, one: bool },
    I { data: &'a [i32], row: usize, one: bool },
    Step { index: usize, one: bool, float: bool },
}

impl Arg<'_> {
    const fn is_float(&self) -> bool {
        matches!(self, Arg::F { .. } | Arg::Step { float: true, .. })
    }
}

struct Planned<'a> {
    fun: Fun,
    ty: ElementType,
    args: [Arg<'a>; 3],
    /// One value per row.
    one: bool,
    /// The same in every row.
    once: bool,
}

/// Evaluates expressions; owns the registers, so that nothing is allocated per element.
#[derive(Debug)]
pub(super) struct Evaluator {
    pub arch: Arch,
    regs: Vec<Buffer>,
    fill: [Buffer; 3],
    /// The value of the last expression.
    pub out: Buffer,
}

impl Default for Evaluator {
    fn default() -> Self {
        Evaluator { arch: Arch::new(), regs: vec![], fill: Default::default(), out: Buffer::default() }
    }
}

/// The shape of an expression before it broadcasts.
pub(super) fn shape(p: &PeProgram, expr: &Expr) -> [usize; 2] {
    let shape = match expr.root {
        Operand::Tile(t) => p.tile(t).shape,
        Operand::Step(s) => p.steps[s as usize].shape,
        _ => [1, 1],
    };
    shape.map(|n| n as usize)
}

impl Evaluator {
    /// Evaluates an expression, broadcast to `rows` by `cols`, into `self.out`, not yet rounded;
    /// whether it is floating-point.
    pub fn eval(&mut self, p: &PeProgram, scratch: &Scratch, expr: &Expr, [rows, cols]: [usize; 2]) -> bool {
        let constants = constants(p, expr);
        let flat = is_flat(p, scratch, expr, [rows, cols]);
        let [rows, cols] = if flat { [1, rows * cols] } else { [rows, cols] };
        let plan: Vec<Planned> = p
            .steps_of(expr)
            .iter()
            .enumerate()
            .map(|(i, s)| {
                let args = std::array::from_fn(|k| {
                    arg(p, scratch, expr.first, s.args[k], &constants[3 * i + k], flat)
                });
                let one = if flat { s.shape == [1, 1] } else { s.shape[1] == 1 };
                Planned { fun: s.fun, ty: s.ty, args, one: one && cols != 1, once: s.shape[0] == 1 }
            })
            .collect();
        let root = arg(p, scratch, expr.first, expr.root, constants.last().unwrap_or(&Constant::None), flat);
        let float = root.is_float();
        let n = rows * cols;
        self.out.f.resize(if float { n } else { 0 }, 0.0);
        self.out.i.resize(if float { 0 } else { n }, 0);
        if self.regs.len() < plan.len() {
            self.regs.resize_with(plan.len(), Buffer::default);
        }
        for row in 0..rows {
            for at in (0..cols).step_by(SEGMENT) {
                let w = SEGMENT.min(cols - at);
                for (i, step) in plan.iter().enumerate() {
                    if !(step.once && row > 0 && cols <= SEGMENT) {
                        self.step(i, step, row, at, if step.one { 1 } else { w });
                    }
                }
                let (start, [fill, ..]) = (row * cols + at, &mut self.fill);
                if float {
                    self.out.f[start..start + w].copy_from_slice(floats(
                        &root,
                        &self.regs,
                        row,
                        at,
                        w,
                        &mut fill.f,
                    ));
                } else {
                    self.out.i[start..start + w].copy_from_slice(ints(
                        &root,
                        &self.regs,
                        row,
                        at,
                        w,
                        &mut fill.i,
                    ));
                }
            }
        }
        float
    }

    fn step(&mut self, i: usize, step: &Planned, row: usize, at: usize, w: usize) {
        let (arch, fun, [a, b, c]) = (self.arch, step.fun, &step.args);
        let (done, rest) = self.regs.split_at_mut(i);
        let reg = &mut rest[0];
        let [fa, fb, fc] = &mut self.fill;
        let to_float = is_float(step.ty);
        if to_float {
            reg.f.resize(w, 0.0);
        } else {
            reg.i.resize(w, 0);
        }
        macro_rules! f {
            ($arg:expr, $fill:expr) => {
                floats($arg, done, row, at, w, &mut $fill.f)
            };
        }
        macro_rules! i {
            ($arg:expr, $fill:expr) => {
                ints($arg, done, row, at, w, &mut $fill.i)
            };
        }
        match fun {
            Fun::Select if to_float => {
                steps::select(arch, &mut reg.f, i!(a, fa), [f!(b, fb), f!(c, fc)]);
            }
            Fun::Select => steps::select(arch, &mut reg.i, i!(a, fa), [i!(b, fb), i!(c, fc)]),
            Fun::Cast => match (a.is_float(), to_float) {
                (true, true) => steps::float_to_float(arch, step.ty, &mut reg.f, f!(a, fa)),
                (true, false) => steps::floats_to_ints(arch, step.ty, &mut reg.i, f!(a, fa)),
                (false, true) => steps::ints_to_floats(arch, step.ty, &mut reg.f, i!(a, fa)),
                (false, false) => steps::int_to_int(step.ty, &mut reg.i, i!(a, fa)),
            },
            _ if steps::is_comparison(fun) => {
                if a.is_float() || b.is_float() {
                    steps::compare(arch, fun, &mut reg.i, [f!(a, fa), f!(b, fb)]);
                } else {
                    steps::compare(arch, fun, &mut reg.i, [i!(a, fa), i!(b, fb)]);
                }
            }
            _ if to_float => steps::float(arch, fun, &mut reg.f, [f!(a, fa), f!(b, fb), f!(c, fc)]),
            _ => steps::int(arch, fun, &mut reg.i, [i!(a, fa), i!(b, fb), i!(c, fc)]),
        }
    }

    /// Evaluates an expression and reduces it along `axis` into `self.out`; whether it is
    /// floating-point. Sums add in index order from 0, in f32 or wrapping i32; the maximum of nothing
    /// is -inf or `i32::MIN`, the minimum +inf or `i32::MAX`.
    pub fn reduce(
        &mut self,
        p: &PeProgram,
        scratch: &Scratch,
        expr: &Expr,
        (how, axis): (Reduction, Axis),
        float: bool,
    ) -> bool {
        let [rows, cols] = shape(p, expr);
        let float = if rows * cols == 0 { float } else { self.eval(p, scratch, expr, [rows, cols]) };
        let arch = self.arch;
        if float {
            let out = &mut self.out.f;
            match how {
                Reduction::Sum => fold(arch, out, [rows, cols], axis, 0.0, |a, b| a + b),
                Reduction::Max => fold(arch, out, [rows, cols], axis, f32::NEG_INFINITY, steps::max),
                Reduction::Min => fold(arch, out, [rows, cols], axis, f32::INFINITY, steps::min),
            }
        } else {
            let out = &mut self.out.i;
            match how {
                Reduction::Sum => fold(arch, out, [rows, cols], axis, 0, i32::wrapping_add),
                Reduction::Max => fold(arch, out, [rows, cols], axis, i32::MIN, i32::max),
                Reduction::Min => fold(arch, out, [rows, cols], axis, i32::MAX, i32::min),
            }
        }
        float
    }
}

/// Rows folded together, so that their chains of additions overlap.
const LINES: usize = 8;

/// Folds a row-major matrix along an axis, in place.
fn fold<T: Copy>(
    arch: Arch,
    v: &mut Vec<T>,
    [rows, cols]: [usize; 2],
    axis: Axis,
    from: T,
    f: impl Fn(T, T) -> T + Copy,
) {
    if axis == Axis::Rows {
        let mut acc = vec![from; cols];
        for line in v.chunks_exact(cols.max(1)).take(rows) {
            steps::accumulate(arch, &mut acc, line, f);
        }
        *v = acc;
        return;
    }
    if cols == 0 {
        *v = vec![from; rows];
        return;
    }
    let mut row = 0;
    // Indexed, so that the compiler sees eight independent chains.
    #[allow(clippy::needless_range_loop)]
    while row + LINES <= rows {
        let block = &v[row * cols..][..LINES * cols];
        let lines: [&[T]; LINES] = std::array::from_fn(|i| &block[i * cols..][..cols]);
        let mut acc = [from; LINES];
        for j in 0..cols {
            for i in 0..LINES {
                acc[i] = f(acc[i], lines[i][j]);
            }
        }
        v[row..row + LINES].copy_from_slice(&acc);
        row += LINES;
    }
    for row in row..rows {
        v[row] = v[row * cols..][..cols].iter().fold(from, |a, x| f(a, *x));
    }
    v.truncate(rows);
}

enum Constant {
    None,
    F([f32; 1]),
    I([i32; 1]),
}

/// The constants of an expression: three for each step, then the root.
fn constants(p: &PeProgram, expr: &Expr) -> Vec<Constant> {
    let constant = |o: &Operand| match o {
        Operand::F32(x) => Constant::F([*x]),
        Operand::I32(x) => Constant::I([*x]),
        _ => Constant::None,
    };
    p.steps_of(expr).iter().flat_map(|s| &s.args).chain([&expr.root]).map(constant).collect()
}

fn arg<'a>(
    p: &PeProgram,
    scratch: &'a Scratch,
    first: u32,
    operand: Operand,
    constant: &'a Constant,
    flat: bool,
) -> Arg<'a> {
    let row = |rows: usize, row: usize| if rows == 1 { 0 } else { row };
    match (operand, constant) {
        (Operand::Tile(t), _) => match scratch.values(p, t) {
            Values::F(v) => {
                let one = v.cols == 1 && (!flat || v.rows == 1);
                Arg::F { data: v.data, row: row(v.rows, v.row), one }
            }
            Values::I(v) => {
                let one = v.cols == 1 && (!flat || v.rows == 1);
                Arg::I { data: v.data, row: row(v.rows, v.row), one }
            }
        },
        (Operand::Step(s), _) => {
            let step = &p.steps[s as usize];
            let one = if flat { step.shape == [1, 1] } else { step.shape[1] == 1 };
            Arg::Step { index: (s - first) as usize, one, float: is_float(step.ty) }
        }
        (_, Constant::F(x)) => Arg::F { data: x, row: 0, one: true },
        (_, Constant::I(x)) => Arg::I { data: x, row: 0, one: true },
        (_, Constant::None) => Arg::None,
    }
}

/// Whether everything in the expression is either dense and of the full shape or a single value, so
/// that it can run as one long row. A single column does otherwise not fill a vector.
fn is_flat(p: &PeProgram, scratch: &Scratch, expr: &Expr, full: [usize; 2]) -> bool {
    let shape_ok = |shape: [usize; 2]| shape == full || shape == [1, 1];
    let operand_ok = |o: &Operand| match o {
        Operand::Tile(t) => match scratch.values(p, *t) {
            Values::F(v) => shape_ok([v.rows, v.cols]) && v.is_dense(),
            Values::I(v) => shape_ok([v.rows, v.cols]) && v.is_dense(),
        },
        _ => true,
    };
    full[0] > 1
        && operand_ok(&expr.root)
        && p.steps_of(expr)
            .iter()
            .all(|s| shape_ok(s.shape.map(|n| n as usize)) && s.args.iter().all(operand_ok))
}

fn floats<'b>(
    arg: &Arg<'b>,
    regs: &'b [Buffer],
    row: usize,
    at: usize,
    w: usize,
    fill: &'b mut Vec<f32>,
) -> &'b [f32] {
    let (data, one): (&[f32], bool) = match *arg {
        Arg::F { data, row: stride, one } => (&data[row * stride..], one),
        Arg::Step { index, one, float: true } => (&regs[index].f, one),
        _ => return &[],
    };
    spread(data, one, matches!(arg, Arg::Step { .. }), at, w, fill)
}

fn ints<'b>(
    arg: &Arg<'b>,
    regs: &'b [Buffer],
    row: usize,
    at: usize,
    w: usize,
    fill: &'b mut Vec<i32>,
) -> &'b [i32] {
    let (data, one): (&[i32], bool) = match *arg {
        Arg::I { data, row: stride, one } => (&data[row * stride..], one),
        Arg::Step { index, one, float: false } => (&regs[index].i, one),
        _ => return &[],
    };
    spread(data, one, matches!(arg, Arg::Step { .. }), at, w, fill)
}

/// The `w` values from column `at` on; a single value is repeated. Registers begin at the segment.
fn spread<'b, T: Copy>(
    data: &'b [T],
    one: bool,
    is_register: bool,
    at: usize,
    w: usize,
    fill: &'b mut Vec<T>,
) -> &'b [T] {
    if !one {
        return if is_register { &data[..w] } else { &data[at..][..w] };
    }
    if w == 1 {
        return &data[..1];
    }
    fill.resize(w, data[0]);
    fill.fill(data[0]);
    fill
}
