//! Indices, shapes and initialisation inside each PE: a recorded draft always passes; one built by
//! hand may not.

use super::{Facts, pe_text};
use crate::diag::Diagnostic;
use crate::ir::{
    AccessId, Composite, Expr, Op, OpId, OpKind, Operand, PeProgram, Place, Program, Reduction, TileId,
};
use crate::ty::{Axis, ElementType};

pub(super) fn check(program: &Program, facts: &Facts<'_>) -> Vec<Diagnostic> {
    let mut found = vec![];
    for pe in &program.pes {
        let mut edge = 0;
        for (i, op) in pe.ops.iter().enumerate() {
            let id = OpId(i as u32);
            let mut wrong = check_op(program, pe, id, op);
            let edges_in_order = op.edge_end >= edge && op.edge_end as usize <= pe.edges.len();
            if wrong.is_none() && (!edges_in_order || pe.edges_of(id).iter().any(|e| e.op() >= id)) {
                wrong = Some(("KB0207", "an edge does not come from an earlier op".to_owned()));
            }
            edge = op.edge_end.max(edge);
            if let Some((code, message)) = wrong {
                let help = match code {
                    "KB0204" => "put the op that writes the tile before this one",
                    "KB0208" => "give the op tiles of shapes and types that fit each other",
                    _ => "edit the draft so that its indices name what exists, or record it again",
                };
                let d = Diagnostic::error(code, format!("op {i} of {}: {message}", pe_text(facts, pe.pe)))
                    .help(help);
                found.push(if op.site.at() < program.sites.len() {
                    program.sites.label(d, op.site)
                } else {
                    d
                });
                // What follows in this PE would only repeat it.
                break;
            }
        }
    }
    found
}

type Wrong = Option<(&'static str, String)>;

fn check_op(program: &Program, pe: &PeProgram, id: OpId, op: &Op) -> Wrong {
    let malformed = |what: &str| Some(("KB0207", what.to_owned()));
    if op.site.at() >= program.sites.len() {
        return malformed("its site does not exist");
    }
    if let Some(wrong) = check_indices(program, pe, &op.kind) {
        return malformed(wrong);
    }
    let mut early = None;
    pe.for_each_read(&op.kind, |t| {
        let def = pe.tile(pe.tile(t).base).def;
        if def >= id && early.is_none() {
            early = Some(t);
        }
    });
    if let Some(t) = early {
        return Some((
            "KB0204",
            format!("tile {} is read before anything was written to it", pe.tile_text(t)),
        ));
    }
    check_shapes(pe, &op.kind)
}

fn check_indices(program: &Program, pe: &PeProgram, kind: &OpKind) -> Option<&'static str> {
    let tile = |t: &TileId| {
        let exists = t.at() < pe.tiles.len() && pe.tile(*t).base.at() < pe.tiles.len();
        (!exists).then_some("a tile does not exist")
    };
    let expr = |e: &Expr| {
        if e.first as usize + e.len as usize > pe.steps.len() {
            return Some("its expression does not exist");
        }
        let operand = |limit: u32, o: &Operand| match o {
            Operand::Tile(t) => tile(t),
            Operand::Step(i) if *i < e.first || *i >= limit => Some("a step comes before its operand"),
            _ => None,
        };
        let steps = pe.steps_of(e).iter().enumerate();
        steps
            .flat_map(|(i, s)| s.args.iter().map(move |a| (e.first + i as u32, a)))
            .find_map(|(i, a)| operand(i, a))
            .or_else(|| operand(e.first + e.len, &e.root))
    };
    let access = |a: &crate::ir::AccessId| {
        let exists = pe.accesses.get(a.at()).is_some_and(|a| {
            (a.first as usize + a.len as usize) <= pe.transfers.len() && a.tensor.at() < program.tensors.len()
        });
        (!exists).then_some("its access does not exist")
    };
    let link = |l: &crate::ir::LinkId| (l.at() >= program.links.len()).then_some("its link does not exist");
    match kind {
        OpKind::Load { access: a, dst: t } | OpKind::Store { access: a, src: t } => access(a).or(tile(t)),
        OpKind::Fill { dst, .. } | OpKind::Arange { dst, .. } => tile(dst),
        OpKind::Map { dst, expr: e } | OpKind::Reduce { dst, expr: e, .. } => tile(dst).or_else(|| expr(e)),
        OpKind::Dot { dst, a, b, .. } => tile(dst).or(tile(a)).or(tile(b)),
        OpKind::Composite { composite } => {
            let Some(c) = pe.composites.get(composite.at()) else {
                return Some("its composite does not exist");
            };
            let (tiles, last) = (c.tiles(), |counts: [u32; 2]| counts[0] * counts[1]);
            let sides = [
                (c.a, last([tiles[0], tiles[1]])),
                (c.b, last([tiles[1], tiles[2]])),
                (c.out, last([tiles[0], tiles[2]])),
            ];
            let place = |(place, count)| match place {
                Place::Hbm { access: all, tiles } => {
                    access(&all).or_else(|| (0..count).find_map(|i| access(&AccessId(tiles.0 + i))))
                }
                Place::Tcm { tile: t, .. } => tile(&t),
            };
            let steps = c.epilogue.iter().find_map(|s| match s.operand {
                Operand::Tile(t) => tile(&t),
                _ => None,
            });
            sides.into_iter().find_map(place).or(steps).or_else(|| tile(&c.workspace))
        }
        OpKind::Join { composite } => {
            let begun = matches!(pe.ops.get(composite.at()).map(|o| &o.kind), Some(OpKind::Composite { .. }));
            (!begun).then_some("it waits for no composite")
        }
        OpKind::Send { link: l, src: t, .. }
        | OpKind::Recv { link: l, dst: t, .. }
        | OpKind::RecvAsync { link: l, dst: t, .. } => link(l).or(tile(t)),
        OpKind::Wait { recv } => {
            let posted = matches!(pe.ops.get(recv.at()).map(|o| &o.kind), Some(OpKind::RecvAsync { .. }));
            (!posted).then_some("it waits for no receive")
        }
        OpKind::Fence | OpKind::Barrier { .. } => None,
    }
}

fn check_shapes(pe: &PeProgram, kind: &OpKind) -> Wrong {
    let shape = |t: &TileId| pe.tile(*t).shape;
    let wrong = |what: String| Some(("KB0208", what));
    match kind {
        OpKind::Dot { dst, a, b, a_t, b_t, .. } => {
            let turned = |[m, n]: [u32; 2], t: bool| if t { [n, m] } else { [m, n] };
            let ([m, k], [l, n]) = (turned(shape(a), *a_t), turned(shape(b), *b_t));
            if k != l || shape(dst) != [m, n] || pe.tile(*a).ty != pe.tile(*b).ty {
                return wrong(format!(
                    "a dot of [{m}, {k}] and [{l}, {n}] into a tile of shape {:?}",
                    shape(dst)
                ));
            }
            None
        }
        OpKind::Composite { composite } => check_composite(pe, pe.composite(*composite)),
        OpKind::Load { access, dst: t } | OpKind::Store { access, src: t } => {
            let of = pe.access(*access).shape;
            (of != shape(t))
                .then(|| ("KB0208", format!("a tile of shape {:?} for a view of shape {of:?}", shape(t))))
        }
        OpKind::Map { dst, expr } => {
            let from = root_shape(pe, expr);
            let fits = from.iter().zip(shape(dst)).all(|(&x, y)| x == y || x == 1);
            (!fits).then(|| {
                ("KB0208", format!("an expression of shape {from:?} into a tile of shape {:?}", shape(dst)))
            })
        }
        OpKind::Reduce { dst, expr, axis, reduction } => {
            let [m, n] = root_shape(pe, expr);
            let want = if *axis == Axis::Cols { [m, 1] } else { [1, n] };
            let masked = pe.tile(*dst).ty == ElementType::Mask;
            let name = Reduction::name(*reduction);
            (shape(dst) != want || masked)
                .then(|| ("KB0208", format!("a {name} of [{m}, {n}] into a tile of shape {:?}", shape(dst))))
        }
        _ => None,
    }
}

/// Operands, output and the tiles of the epilogue have the shapes that M, K and N say.
fn check_composite(pe: &PeProgram, c: &Composite) -> Wrong {
    let [m, k, n] = c.mkn;
    let shape = |place| match place {
        Place::Hbm { access, .. } => pe.access(access).shape,
        Place::Tcm { tile, transposed } => match pe.tile(tile).shape {
            [rows, cols] if transposed => [cols, rows],
            shape => shape,
        },
    };
    let sides = [shape(c.a), shape(c.b), shape(c.out)];
    if sides != [[m, k], [k, n], [m, n]] {
        let [a, b, out] = sides;
        return Some(("KB0208", format!("a composite of {a:?} and {b:?} into shape {out:?}")));
    }
    let other_type = |(place, ty)| match place {
        Place::Tcm { tile, .. } => pe.tile(tile).ty != ty,
        Place::Hbm { .. } => false,
    };
    if [(c.a, c.ty), (c.b, c.ty), (c.out, c.out_ty)].into_iter().any(other_type) {
        return Some((
            "KB0208",
            format!("a composite of {} into {} with tiles of other types", c.ty, c.out_ty),
        ));
    }
    c.epilogue.iter().find_map(|s| {
        let Operand::Tile(t) = s.operand else { return None };
        let (have, want) = (pe.tile(t).shape, c.operand_shape(s.level));
        let fits = have.iter().zip(want).all(|(&x, y)| x == y || x == 1);
        let name = s.fun.name();
        (!fits)
            .then(|| ("KB0208", format!("a {name} of shape {have:?}, which does not broadcast to {want:?}")))
    })
}

fn root_shape(pe: &PeProgram, expr: &Expr) -> [u32; 2] {
    match expr.root {
        Operand::Tile(t) => pe.tile(t).shape,
        Operand::Step(i) => pe.steps[i as usize].shape,
        _ => [1, 1],
    }
}
