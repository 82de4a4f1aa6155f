//! The compact text of what an op computes or touches.

use crate::ir::{Access, AccessId, Expr, OpId, OpKind, Operand, PeProgram, Program, TileId};
use crate::ty::{Axis, Group, Scalar};
use std::fmt::Write;

/// `exp(sub(%3, %5))` for an expression, `x[0..16, 0..64]` for an access, `%1 . %2.t` for a product.
pub(super) fn text(program: &Program, pe: &PeProgram, op: OpId) -> String {
    let kind = &pe.ops[op.at()].kind;
    let axis = |a: &Axis| if *a == Axis::Rows { "rows" } else { "cols" };
    match kind {
        OpKind::Load { access, .. } => access_text(program, pe, *access),
        OpKind::Store { access, src } => {
            format!("{} = {}", access_text(program, pe, *access), tile_text(pe, *src))
        }
        OpKind::Fill { value, .. } => format!("full({value})"),
        OpKind::Arange { start, axis: a, .. } => format!("arange({start}, {})", axis(a)),
        OpKind::Map { dst, expr } => {
            let value = expr_text(pe, expr);
            // `copy_to` writes a tile that an earlier op made.
            let new = pe.tile(*dst).base == *dst && pe.tile(*dst).def == op;
            if new { value } else { format!("{} = {value}", tile_text(pe, *dst)) }
        }
        OpKind::Reduce { expr, reduction, axis: a, .. } => {
            format!("{}({}, {})", reduction.name(), expr_text(pe, expr), axis(a))
        }
        OpKind::Dot { dst, a, b, a_t, b_t, accumulate } => {
            let t = |tile: TileId, transposed: bool| tile_text(pe, tile) + if transposed { ".t" } else { "" };
            let product = format!("dot({}, {})", t(*a, *a_t), t(*b, *b_t));
            if *accumulate { format!("{} += {product}", tile_text(pe, *dst)) } else { product }
        }
        OpKind::Send { link, seq, src } => {
            format!("{} to {} #{seq}", tile_text(pe, *src), program.link(*link).dir)
        }
        OpKind::Recv { link, seq, .. } | OpKind::RecvAsync { link, seq, .. } => {
            format!("from {} #{seq}", program.link(*link).recv_dir)
        }
        OpKind::Wait { recv } => format!("%{recv}"),
        OpKind::Fence => String::new(),
        OpKind::Barrier { group: Group::Cube } => "cube".into(),
        OpKind::Barrier { group: Group::Sip } => "sip".into(),
    }
}

/// `x[0..16, 64..128]`: the rows and columns of a tensor; flat positions if it is no rectangle of it.
fn access_text(program: &Program, pe: &PeProgram, access: AccessId) -> String {
    let Access { offset, tensor, shape: [rows, cols], stride, .. } = *pe.access(access);
    let tensor = &program.tensors[tensor.at()];
    let width = tensor.shape[1] as u64;
    let (rows, cols, name) = (u64::from(rows), u64::from(cols), &tensor.name);
    if width > 0 && (u64::from(stride) == width || rows <= 1) && offset % width + cols <= width {
        let (row, col) = (offset / width, offset % width);
        return format!("{name}[{row}..{}, {col}..{}]", row + rows, col + cols);
    }
    format!("{name}[{offset}.. {rows}x{cols} by {stride}]")
}

/// `%3`: the tile that op 3 made; `%3[0..2, 8..16]` a slice of it.
fn tile_text(pe: &PeProgram, tile: TileId) -> String {
    let t = pe.tile(tile);
    let base = pe.tile(t.base);
    if t.base == tile || (t.shape == base.shape && t.addr == base.addr) {
        return format!("%{}", t.def);
    }
    let elements = t.addr.saturating_sub(base.addr) / t.ty.bytes();
    if base.stride == 0 || t.stride != base.stride && t.shape[0] > 1 {
        return format!("%{}[{elements}.. {}x{}]", t.def, t.shape[0], t.shape[1]);
    }
    let (row, col) = (elements / base.stride, elements % base.stride);
    format!("%{}[{row}..{}, {col}..{}]", t.def, row + t.shape[0], col + t.shape[1])
}

fn expr_text(pe: &PeProgram, expr: &Expr) -> String {
    let mut out = String::new();
    operand(pe, expr.root, &mut out);
    out
}

fn operand(pe: &PeProgram, value: Operand, out: &mut String) {
    match value {
        Operand::None => {}
        Operand::Tile(t) => out.push_str(&tile_text(pe, t)),
        Operand::F32(x) => _ = write!(out, "{}", Scalar::F32(x)),
        Operand::I32(x) => _ = write!(out, "{x}"),
        Operand::Step(s) => {
            let step = &pe.steps[s as usize];
            let _ = write!(out, "{}(", step.fun.name());
            for (i, arg) in step.args.iter().filter(|a| **a != Operand::None).enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                operand(pe, *arg, out);
            }
            if step.fun == crate::ir::Fun::Cast {
                let _ = write!(out, ", {}", step.ty);
            }
            out.push(')');
        }
    }
}
