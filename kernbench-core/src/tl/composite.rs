//! Recording a composite GEMM: shapes are checked, its tiles get their transfers and its buffers their bytes.
//!
//! How the op is cut into tiles is in [`crate::ir::Composite`].

use super::gemm::{Gemm, Side, StoredAs};
use super::recorder::{Recorder, State, text};
use super::scope::At;
use super::tile::{POISON, Pending};
use crate::diag::Diagnostic;
use crate::ir::{self, AccessId, Composite, EpilogueStep, Level, OpKind, Place, SiteId, TileId};
use crate::ty::{Dtype, ElementType};
use std::marker::PhantomData;
use std::ops::Range;

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
        // Each of its steps takes as much of the host's memory and time as an op.
        let counts = c.tiles();
        let steps = counts.iter().fold(1, |n: u64, &x| n.saturating_mul(x.into()));
        if !s.afford(steps, site) {
            return None;
        }
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
