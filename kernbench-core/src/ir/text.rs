//! Ops, tiles, expressions and ranges as text, for listings, logs and messages.

use super::{
    Access, AccessId, Composite, Edge, EdgeKind, Expr, Level, OpId, OpKind, Operand, PeProgram, Place,
    Program, TileId,
};
use crate::ty::{Axis, Group};
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

impl PeProgram {
    /// `dtype[rows, cols]` of the tile an op writes, stores or sends; empty if it has none.
    #[must_use]
    pub fn type_text(&self, kind: &OpKind) -> String {
        let tile = match kind {
            OpKind::Store { src, .. } | OpKind::Send { src, .. } => Some(*src),
            OpKind::RecvAsync { dst, .. } => Some(*dst),
            OpKind::Composite { composite } => {
                let c = self.composite(*composite);
                return format!("{}[{}, {}]", c.out_ty, c.mkn[0], c.mkn[2]);
            }
            other => self.written(other),
        };
        tile.map_or_else(String::new, |t| {
            let t = self.tile(t);
            format!("{}[{}, {}]", t.ty, t.shape[0], t.shape[1])
        })
    }
}

/// `composite %0, w[0:64, 0:128] -> y[0:8, 0:128], bias %1 of each output tile`.
fn composite_text(pe: &PeProgram, c: &Composite, range: impl Fn(AccessId) -> String) -> String {
    let place = |place| match place {
        Place::Hbm { access, .. } => range(access),
        Place::Tcm { tile, transposed } => pe.tile_text(tile) + if transposed { ".t" } else { "" },
    };
    let mut text = format!("composite {}, {} -> {}", place(c.a), place(c.b), place(c.out));
    for step in &c.epilogue {
        let operand = match step.operand {
            Operand::Tile(t) => format!(" {}", pe.tile_text(t)),
            Operand::F32(x) => format!(" {x:?}"),
            Operand::I32(x) => format!(" {x}"),
            Operand::None | Operand::Step(_) => String::new(),
        };
        let of = if step.level == Level::Kernel { "the" } else { "each" };
        let _ = write!(text, ", {}{operand} of {of} {}", step.fun.name(), step.level.name());
    }
    text
}

impl Program {
    /// What an op does with which operands, such as `dot %3, %5.t` or `load k[0:64, 0:128]`.
    #[must_use]
    pub fn op_text(&self, pe: &PeProgram, op: OpId) -> String {
        self.op_text_with(pe, op, |access| self.access_text(pe.access(access)))
    }

    /// The same, with accesses printed by `range`.
    pub(super) fn op_text_with(
        &self,
        pe: &PeProgram,
        op: OpId,
        range: impl Fn(super::AccessId) -> String,
    ) -> String {
        let along = |axis: &Axis| if *axis == Axis::Rows { "rows" } else { "cols" };
        let matrix = |tile: TileId, t: bool| pe.tile_text(tile) + if t { ".t" } else { "" };
        // `copy_to` and `dot_add` write a tile that an earlier op made.
        let into = |dst: TileId| {
            let tile = pe.tile(dst);
            let own = tile.base == dst && tile.def == op;
            if own { String::new() } else { format!(" -> {}", pe.tile_text(dst)) }
        };
        match &pe.ops[op.at()].kind {
            OpKind::Load { access, .. } => format!("load {}", range(*access)),
            OpKind::Store { access, src } => format!("store {}, {}", range(*access), pe.tile_text(*src)),
            OpKind::Fill { value, .. } => format!("fill {value}"),
            OpKind::Arange { start, axis, .. } => format!("arange.{} {start}", along(axis)),
            OpKind::Map { dst, expr } => pe.expr_text(expr) + &into(*dst),
            OpKind::Reduce { expr, reduction, axis, .. } => {
                format!("{}.{} {}", reduction.name(), along(axis), pe.expr_text(expr))
            }
            OpKind::Dot { dst, a, b, a_t, b_t, accumulate } => format!(
                "{} {}, {}{}",
                if *accumulate { "dot_add" } else { "dot" },
                matrix(*a, *a_t),
                matrix(*b, *b_t),
                into(*dst)
            ),
            OpKind::Composite { composite } => composite_text(pe, pe.composite(*composite), range),
            OpKind::Join { composite } => format!("wait {composite}"),
            OpKind::Send { link, seq, src } => {
                format!("send {} #{seq}, {}", self.link(*link).dir, pe.tile_text(*src))
            }
            OpKind::Recv { link, seq, .. } => format!("recv {} #{seq}", self.link(*link).recv_dir),
            OpKind::RecvAsync { link, seq, .. } => {
                format!("recv_async {} #{seq}", self.link(*link).recv_dir)
            }
            OpKind::Wait { recv } => format!("wait {recv}"),
            OpKind::Fence => "fence".to_owned(),
            OpKind::Barrier { group: Group::Cube } => "barrier cube".to_owned(),
            OpKind::Barrier { group: Group::Sip } => "barrier sip".to_owned(),
        }
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
