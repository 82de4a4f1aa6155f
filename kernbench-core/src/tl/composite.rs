//! Describing and recording a composite GEMM: `tl::composite(Gemm::new(a, b, out).relu(Level::OutputTile))`.
//!
//! The types follow the values: a product of tiles of `T` is of `T::Acc`, `dequant` makes f32 of i32,
//! and [`StoredAs`] says which outputs take the result. Shapes are checked while recording, at the place
//! of `tl::composite`. How the op is cut into tiles is in [`crate::ir::Composite`].

use super::recorder::{Recorder, State, text};
use super::scope::At;
use super::tile::{Matrix, POISON, Pending, Tile, Transposed};
use super::view::{In, InOut, Out, Raw, Readable, Writable};
use crate::diag::Diagnostic;
use crate::ir::{self, AccessId, Composite, EpilogueFun, EpilogueStep, Level, OpKind, Place, SiteId, TileId};
use crate::ty::{Dtype, ElementType, Float};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// A composite GEMM that has not been recorded: `out = epilogue(a * b)`.
///
/// `V` is the type its values have so far, f32 or i32, and `O` the element type of its output. Steps
/// apply in the order in which they are written; their levels may not go back.
#[must_use = "a composite GEMM computes nothing by itself: give it to `tl::composite`"]
pub struct Gemm<'g, V, O> {
    a: Side,
    b: Side,
    out: Side,
    ty: ElementType,
    epilogue: Vec<EpilogueStep>,
    of: PhantomData<(&'g (), V, O)>,
}

impl<V, O> fmt::Debug for Gemm<'_, V, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [[m, k], [_, n]] = [self.a.shape(), self.b.shape()];
        write!(f, "a composite GEMM of [{m}, {k}] and [{k}, {n}]")
    }
}

impl<'g, V: Dtype, O: Dtype> Gemm<'g, V, O> {
    /// `out = a * b`, of shapes `[m, k]`, `[k, n]` and `[m, n]`. Operands and output are views in HBM,
    /// moved tile by tile, or tiles; an operand may be a transposed tile.
    pub fn new<T: Dtype<Acc = V>>(
        a: impl GemmInput<'g, T>,
        b: impl GemmInput<'g, T>,
        out: impl GemmOutput<'g, O>,
    ) -> Self {
        let (a, b, out) = (a.side(), b.side(), out.side());
        Gemm { a, b, out, ty: T::TYPE, epilogue: vec![], of: PhantomData }
    }

    /// Adds `x`, which broadcasts to `[m, n]`; at [`Level::KTile`] to `[k tiles, n]`, a row for each.
    pub fn bias(self, x: impl Factor<'g, V>, level: Level) -> Self {
        self.with(EpilogueFun::Bias, level, x.operand())
    }

    /// Multiplies by `x`, which broadcasts as that of [`Gemm::bias`].
    pub fn scale(self, x: impl Factor<'g, V>, level: Level) -> Self {
        self.with(EpilogueFun::Scale, level, x.operand())
    }

    /// The larger of each element and 0.
    pub fn relu(self, level: Level) -> Self {
        self.with(EpilogueFun::Relu, level, ir::Operand::None)
    }

    fn with<W>(self, fun: EpilogueFun, level: Level, operand: ir::Operand) -> Gemm<'g, W, O> {
        let Gemm { a, b, out, ty, mut epilogue, .. } = self;
        epilogue.push(EpilogueStep { fun, level, operand });
        Gemm { a, b, out, ty, epilogue, of: PhantomData }
    }
}

impl<'g, O: Dtype> Gemm<'g, i32, O> {
    /// Makes f32 of i32 and multiplies by `scale`, which broadcasts as the operand of [`Gemm::bias`]; at
    /// [`Level::KTile`] the tiles' products are added up in f32.
    pub fn dequant(self, scale: impl Factor<'g, f32>, level: Level) -> Gemm<'g, f32, O> {
        self.with(EpilogueFun::Dequant, level, scale.operand())
    }
}

/// An operand or the output of a composite as the recorder sees it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// In HBM.
    View(Raw),
    /// In scratch: the tile, its shape as the operand, whether it is transposed.
    Tile(TileId, [u32; 2], bool),
}

impl Side {
    const fn shape(&self) -> [u32; 2] {
        match self {
            Side::View(raw) => raw.shape,
            Side::Tile(_, shape, _) => *shape,
        }
    }
}

/// An operand of a composite GEMM: a view, a tile or a transposed tile of `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand of a composite GEMM of `{T}`",
    label = "expected a view that can be read, a tile or a transposed tile of `{T}`",
    note = "both operands have one element type; finish an expression first: `tl::eval(..)`"
)]
pub trait GemmInput<'g, T> {
    #[doc(hidden)]
    fn side(self) -> Side;
}

/// The output of a composite GEMM: a view that can be written, or a tile, of `O`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an output of a composite GEMM",
    label = "expected a view that can be written, or a tile",
    note = "declare the argument `Out<T>` or `InOut<T>`, or make a tile: `tl::zeros([m, n])`"
)]
pub trait GemmOutput<'g, O> {
    #[doc(hidden)]
    fn side(self) -> Side;
}

macro_rules! sides {
    ($($direction:ident $bound:ident $view:ident;)*) => { $(
        impl<T: Dtype> $direction<'_, T> for $view<T> {
            fn side(self) -> Side { Side::View($bound::raw(self)) }
        }
    )* };
}
sides! {
    GemmInput Readable In;
    GemmInput Readable InOut;
    GemmOutput Writable Out;
    GemmOutput Writable InOut;
}

impl<'g, T: Dtype> GemmInput<'g, T> for Tile<'g, T> {
    fn side(self) -> Side {
        let (id, shape, transposed) = self.parts();
        Side::Tile(id, shape, transposed)
    }
}
impl<'g, T: Dtype> GemmInput<'g, T> for Transposed<'g, T> {
    fn side(self) -> Side {
        let (id, shape, transposed) = self.parts();
        Side::Tile(id, shape, transposed)
    }
}
impl<'g, T: Dtype> GemmOutput<'g, T> for Tile<'g, T> {
    fn side(self) -> Side {
        Side::Tile(self.id, self.shape, false)
    }
}

/// What an epilogue step takes beside values of `V`: a tile or a constant.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand of an epilogue step on values of `{V}`",
    label = "expected a tile or a constant",
    note = "beside f32 values it is a floating-point tile or `f32`, beside i32 values an `i32` tile or `i32`; load a view first: `tl::load(..)`"
)]
pub trait Factor<'g, V> {
    #[doc(hidden)]
    fn operand(self) -> ir::Operand;
}

impl<'g, T: Float> Factor<'g, f32> for Tile<'g, T> {
    fn operand(self) -> ir::Operand {
        ir::Operand::Tile(self.id)
    }
}
impl<'g> Factor<'g, i32> for Tile<'g, i32> {
    fn operand(self) -> ir::Operand {
        ir::Operand::Tile(self.id)
    }
}
impl Factor<'_, f32> for f32 {
    fn operand(self) -> ir::Operand {
        ir::Operand::F32(self)
    }
}
impl Factor<'_, i32> for i32 {
    fn operand(self) -> ir::Operand {
        ir::Operand::I32(self)
    }
}

/// Values of a composite that an output of `O` takes: f32 rounds to a floating-point type, i32 stays.
#[diagnostic::on_unimplemented(
    message = "a composite GEMM with values of `{Self}` has no output of `{O}`",
    label = "the output has another type",
    note = "f32 values go to f16, bf16 or f32; i32 values, the products of i8, u8 and i32, go to i32 or through `.dequant(..)`"
)]
pub trait StoredAs<O>: Dtype {}
impl<O: Float> StoredAs<O> for f32 {}
impl StoredAs<i32> for i32 {}

impl<'s> At<'s> {
    #[allow(missing_docs)] // On the twin in `tl`.
    pub fn composite<V: StoredAs<O>, O: Dtype>(self, g: Gemm<'_, V, O>) -> Pending<'s, ()> {
        let rec = self.rec();
        let op = rec.with(self.source, |s, site| g.record(rec, s, site, self.scope.turn));
        Pending { op, result: (), scope: PhantomData }
    }
}

impl At<'_> {
    #[allow(missing_docs)] // As `composite`.
    #[must_use]
    pub fn gemm_tile(self) -> [usize; 3] {
        self.rec().launch.topology.machine().gemm.tile.map(|n| n as usize)
    }
}

impl<V: Dtype, O: Dtype> Gemm<'_, V, O> {
    /// Records the op; files a mistake and gives `None` if it is not one.
    fn record(self, rec: &Recorder, s: &mut State, site: SiteId, turn: u32) -> Option<ir::OpId> {
        let sides = [self.a, self.b, self.out];
        let poisoned = |side: &Side| matches!(side, Side::Tile(POISON, ..));
        let lost = |step: &EpilogueStep| matches!(step.operand, ir::Operand::Tile(POISON));
        if sides.iter().any(poisoned) || self.epilogue.iter().any(lost) {
            return None;
        }
        let accesses = [0, 1, 2].map(|i| match sides[i] {
            Side::View(raw) => rec.access(s, site, raw, i == 2).map(Some),
            Side::Tile(..) => Some(None),
        });
        let [Some(a), Some(b), Some(out)] = accesses else { return None };
        let [[m, k], [l, n], shape] = sides.map(|side| side.shape());
        let mut c = Composite {
            a: place(a, &self.a),
            b: place(b, &self.b),
            out: place(out, &self.out),
            ty: self.ty,
            out_ty: O::TYPE,
            mkn: [m, k, n],
            tile: rec.launch.topology.machine().gemm.tile,
            epilogue: self.epilogue,
            workspace: TileId(0),
        };
        let wrong = if k == l { None } else { Some(inner([m, k], [l, n])) };
        let wrong = wrong.or_else(|| (shape != [m, n]).then(|| output([m, n], shape)));
        let wrong = wrong.or_else(|| epilogue(s, &c)).or_else(|| overlap(s, &c));
        if let Some(d) = wrong {
            s.mistake(rec.pe, site, d.code, || d);
            return None;
        }
        let counts = c.tiles();
        for (place, side, [rows, cols]) in
            [(&mut c.a, self.a, [0, 1]), (&mut c.b, self.b, [1, 2]), (&mut c.out, self.out, [0, 2])]
        {
            let (Place::Hbm { tiles, .. }, Side::View(raw)) = (place, side) else { continue };
            *tiles = AccessId(s.program.accesses.len() as u32);
            let [height, width] = [rows, cols].map(|axis| c.tile[axis]);
            for (i, j) in (0..counts[rows]).flat_map(|i| (0..counts[cols]).map(move |j| (i, j))) {
                let (at, [m, n]) = ([i * height, j * width], raw.shape);
                let part = raw.part(at, [height.min(m - at[0]), width.min(n - at[1])]);
                rec.access(s, site, part, rows == 0 && cols == 2)?;
            }
        }
        let bytes = u32::try_from(c.workspace_bytes()).unwrap_or(u32::MAX);
        c.workspace = s.alloc(rec.pe, turn, site, ElementType::U8, [1, bytes], s.next_op());
        if c.workspace == POISON {
            return None;
        }
        s.program.composites.push(c);
        let composite = ir::CompositeId(s.program.composites.len() as u32 - 1);
        Some(s.push(OpKind::Composite { composite }, site))
    }
}

fn place(access: Option<AccessId>, side: &Side) -> Place {
    match (access, side) {
        (Some(access), _) => Place::Hbm { access, tiles: access },
        (None, Side::Tile(tile, _, transposed)) => Place::Tcm { tile: *tile, transposed: *transposed },
        (None, Side::View(_)) => Place::Tcm { tile: POISON, transposed: false },
    }
}

fn inner(a: [u32; 2], b: [u32; 2]) -> Diagnostic {
    Diagnostic::error(
        "KB0102",
        format!(
            "`composite` of shapes {} and {}: the inner dimensions {} and {} differ",
            text(a),
            text(b),
            a[1],
            b[0]
        ),
    )
    .help("slice an operand, or load it and transpose the tile with `x.t()`")
}

fn output(product: [u32; 2], shape: [u32; 2]) -> Diagnostic {
    Diagnostic::error(
        "KB0102",
        format!("`composite` of shape {} into an output of shape {}", text(product), text(shape)),
    )
    .help("give it an output of the product's shape: slice it with `rows` and `cols`")
}

/// What is wrong with the epilogue: a level that goes back, or a tile of a shape that does not fit.
fn epilogue(s: &State, c: &Composite) -> Option<Diagnostic> {
    for pair in c.epilogue.windows(2) {
        let [before, step] = pair else { continue };
        if step.level < before.level {
            return Some(
                Diagnostic::error(
                    "KB0119",
                    format!(
                        "`{}` of each {} comes after `{}` of {} {}",
                        step.fun.name(),
                        step.level.name(),
                        before.fun.name(),
                        if before.level == Level::Kernel { "the" } else { "each" },
                        before.level.name()
                    ),
                )
                .help("write steps of `Level::KTile` first, then `Level::OutputTile`, then `Level::Kernel`"),
            );
        }
    }
    c.epilogue.iter().find_map(|step| {
        let ir::Operand::Tile(tile) = step.operand else { return None };
        let (have, want) = (s.program.tile(tile).shape, c.operand_shape(step.level));
        if have.iter().zip(want).all(|(&x, y)| x == y || x == 1) {
            return None;
        }
        let of = match step.level {
            Level::KTile => format!("[k tiles, n] = {}", text(want)),
            _ => format!("the output's shape {}", text(want)),
        };
        let d = Diagnostic::error(
            "KB0118",
            format!("`{}` of shape {} does not broadcast to {of}", step.fun.name(), text(have)),
        );
        Some(d.help(match step.level {
            Level::KTile => format!(
                "each dimension must be equal or 1; a k tile has {} of the {} k (`tl::gemm_tile()`)",
                c.tile[1], c.mkn[1]
            ),
            _ => {
                "each dimension must be equal or 1: a row `[1, n]` adds to every row of the output".to_owned()
            }
        }))
    })
}

/// Writing of the output begins before the operands are read to their end: they may not share elements.
fn overlap(s: &State, c: &Composite) -> Option<Diagnostic> {
    let p = &s.program;
    let tile = |t: TileId| {
        let (t, size) = (p.tile(t), u64::from(p.tile(t).ty.bytes()));
        let start = u64::from(t.addr);
        // Bytes of a turn of a scratch scope.
        let row = move |i: u32| {
            let from = start + u64::from(i) * u64::from(t.stride) * size;
            from..from + u64::from(t.shape[1]) * size
        };
        ((false, t.turn), (0..t.shape[0]).map(row).filter(|r| !r.is_empty()).collect::<Vec<_>>())
    };
    let ranges = |place| match place {
        Place::Hbm { access, .. } => {
            let access = p.access(access);
            ((true, access.tensor.0), access.runs().collect())
        }
        Place::Tcm { tile: t, .. } => tile(t),
    };
    let (to, written): (_, Vec<Range<u64>>) = ranges(c.out);
    let read = [("left operand", ranges(c.a)), ("right operand", ranges(c.b))];
    let steps = c.epilogue.iter().filter_map(|step| match step.operand {
        ir::Operand::Tile(t) => Some((step.fun.name(), tile(t))),
        _ => None,
    });
    let both = |from: &[Range<u64>]| {
        from.iter().any(|r| {
            let at = written.partition_point(|w| w.end <= r.start);
            written.get(at).is_some_and(|w| w.start < r.end)
        })
    };
    let (what, _) = read.into_iter().chain(steps).find(|(_, (of, from))| *of == to && both(from))?;
    Some(
        Diagnostic::error("KB0120", format!("the output of `composite` shares elements with its {what}"))
            .help("write to another tensor or tile: the output is written while operands are still read"),
    )
}
