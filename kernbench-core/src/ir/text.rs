//! Ops, tiles, expressions and ranges as text, for listings, logs and messages.

use super::{Access, Edge, EdgeKind, Expr, OpId, OpKind, Operand, PeProgram, Program, TileId};
use crate::ty::Axis;
use std::fmt::Write;

/// Expressions with more steps print their first function and the number of steps only.
const MAX_STEPS: u32 = 24;

impl PeProgram {
    /// A tile as `%5`, a slice of it as `%5[0:4, 8:16]`, a reshaped one as `%5 as [4, 8]`;
    /// the number is that of the op that first writes it.
    #[must_use]
    pub fn tile_text(&self, id: TileId) -> String {
        let (tile, base) = (self.tile(id), self.tile(self.tile(id).base));
        let mut text = format!("%{}", base.def);
        if tile.shape == base.shape {
            return text;
        }
        let (bytes, width) = (tile.ty.bytes(), base.shape[1].max(1));
        let at = (tile.addr - base.addr) / bytes;
        let ([m, n], row, col) = (tile.shape, at / width, at % width);
        let _ = if tile.stride == base.stride && col + n <= width {
            write!(text, "[{}, {}]", span(row, m), span(col, n))
        } else {
            write!(text, " as [{m}, {n}] at {at}")
        };
        text
    }

    /// An expression as nested functions, such as `exp(sub(%3, %5))`.
    #[must_use]
    pub fn expr_text(&self, expr: &Expr) -> String {
        if expr.len > MAX_STEPS {
            let last = self.steps_of(expr).last().map_or("", |s| s.fun.name());
            return format!("{last}(..) of {} steps", expr.len);
        }
        let mut texts: Vec<String> = Vec::with_capacity(expr.len as usize);
        let operand = |texts: &[String], o: Operand| match o {
            Operand::None => String::new(),
            Operand::Tile(t) => self.tile_text(t),
            Operand::Step(i) => texts[(i - expr.first) as usize].clone(),
            Operand::F32(x) => format!("{x:?}"),
            Operand::I32(x) => x.to_string(),
        };
        for step in self.steps_of(expr) {
            let args: Vec<String> = step
                .args
                .iter()
                .filter(|a| !matches!(a, Operand::None))
                .map(|&a| operand(&texts, a))
                .collect();
            let fun = match step.fun {
                super::Fun::Cast => format!("cast.{}", step.ty),
                other => other.name().to_owned(),
            };
            texts.push(format!("{fun}({})", args.join(", ")));
        }
        operand(&texts, expr.root)
    }

    /// The edges of an op, as `<- 3 5 ~2 |1`: data, `~` anti, `|` fence; empty if it has none.
    #[must_use]
    pub fn edges_text(&self, op: OpId) -> String {
        let mut text = String::new();
        let mut edges: Vec<&Edge> = self.edges_of(op).iter().collect();
        edges.sort_by_key(|e| (e.kind(), e.op()));
        for e in edges {
            let mark = match e.kind() {
                EdgeKind::Data => "",
                EdgeKind::Anti => "~",
                EdgeKind::Fence => "|",
            };
            let _ = write!(text, "{}{mark}{}", if text.is_empty() { "<- " } else { " " }, e.op());
        }
        text
    }
}

fn span(start: u32, len: u32) -> String {
    format!("{start}:{}", start + len)
}

/// `dtype[rows, cols]` of a tile.
fn type_text(pe: &PeProgram, tile: TileId) -> String {
    let t = pe.tile(tile);
    format!("{}[{}, {}]", t.ty, t.shape[0], t.shape[1])
}

impl Program {
    /// An op's kind and operands, such as `dot %3, %5.t : f32[4, 64]`; `range` prints accesses.
    pub(super) fn op_text(
        &self,
        pe: &PeProgram,
        kind: &OpKind,
        range: impl Fn(super::AccessId) -> String,
    ) -> String {
        let reduce_axis = |axis: &Axis| match axis {
            Axis::Rows => "rows",
            Axis::Cols => "cols",
        };
        let transposed = |t: bool| if t { ".t" } else { "" };
        match kind {
            OpKind::Load { access, dst } => format!("load {} : {}", range(*access), type_text(pe, *dst)),
            OpKind::Store { access, src } => {
                format!("store {}, {} : {}", range(*access), pe.tile_text(*src), type_text(pe, *src))
            }
            OpKind::Fill { dst, value } => format!("fill {value} : {}", type_text(pe, *dst)),
            OpKind::Arange { dst, start, axis } => {
                format!("arange.{} {start} : {}", reduce_axis(axis), type_text(pe, *dst))
            }
            OpKind::Map { dst, expr } => {
                let to = self.destination(pe, kind, *dst);
                format!("math {}{to} : {}", pe.expr_text(expr), type_text(pe, *dst))
            }
            OpKind::Reduce { dst, expr, reduction, axis } => format!(
                "{}.{} {} : {}",
                reduction.name(),
                reduce_axis(axis),
                pe.expr_text(expr),
                type_text(pe, *dst)
            ),
            OpKind::Dot { dst, a, b, a_t, b_t, accumulate } => format!(
                "{} {}{}, {}{}{} : {}",
                if *accumulate { "dot_add" } else { "dot" },
                pe.tile_text(*a),
                transposed(*a_t),
                pe.tile_text(*b),
                transposed(*b_t),
                self.destination(pe, kind, *dst),
                type_text(pe, *dst)
            ),
            OpKind::Send { link, seq, src } => format!(
                "send {} #{seq}, {} : {}",
                self.link(*link).dir,
                pe.tile_text(*src),
                type_text(pe, *src)
            ),
            OpKind::Recv { link, seq, dst } => {
                format!("recv {} #{seq} : {}", self.link(*link).recv_dir, type_text(pe, *dst))
            }
            OpKind::RecvAsync { link, seq, dst } => {
                format!("recv_async {} #{seq} : {}", self.link(*link).recv_dir, type_text(pe, *dst))
            }
            OpKind::Wait { recv } => format!("wait {recv}"),
            OpKind::Fence => "fence".to_owned(),
            OpKind::Barrier { group } => {
                format!("barrier {}", if *group == crate::ty::Group::Cube { "cube" } else { "sip" })
            }
        }
    }

    /// `-> %3` if an op overwrites a tile that another op made.
    fn destination(&self, pe: &PeProgram, kind: &OpKind, dst: TileId) -> String {
        let tile = pe.tile(dst);
        let own =
            tile.base == dst && pe.ops.get(tile.def.at()).is_some_and(|op| std::ptr::eq(&op.kind, kind));
        if own { String::new() } else { format!(" -> {}", pe.tile_text(dst)) }
    }

    /// An access as `tensor[rows, cols]`, or by elements if it is no rectangle of the tensor.
    #[must_use]
    pub fn access_text(&self, access: &Access) -> String {
        let Some(tensor) = self.tensors.get(access.tensor.at()) else {
            return format!("tensor{}", access.tensor);
        };
        let width = tensor.shape[1].max(1) as u64;
        let (row, col) = (access.offset / width, access.offset % width);
        let [m, n] = access.shape.map(u64::from);
        if col + n <= width && (u64::from(access.stride) == width || m <= 1) {
            return format!("{}[{row}:{}, {col}:{}]", tensor.name, row + m, col + n);
        }
        let flat = m * n;
        if u64::from(access.stride) == n && col == 0 && flat.is_multiple_of(width) {
            let rows = flat / width;
            return format!("{}[{row}:{}, 0:{width}] as [{m}, {n}]", tensor.name, row + rows);
        }
        format!("{}.flat[{}:{}] as [{m}, {n}]", tensor.name, access.offset, access.offset + flat)
    }
}
