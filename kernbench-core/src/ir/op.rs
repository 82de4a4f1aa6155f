//! One operation, its operands and its edges.

use super::{AccessId, CompositeId, LinkId, OpId, SiteId, TileId};
use crate::ty::{Axis, ElementType, Group, Scalar};

/// An operation of one PE. Its edges end at `edge_end` in [`super::PeProgram::edges`]
/// and begin where those of the op before it end.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// Where the user wrote it.
    pub site: SiteId,
    /// One past its last edge.
    pub edge_end: u32,
}

const _: () = assert!(size_of::<Op>() <= 48);

/// What an operation does.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum OpKind {
    /// Reads a view of a tensor into a tile.
    Load { access: AccessId, dst: TileId },
    /// Writes a tile to a view of a tensor.
    Store { access: AccessId, src: TileId },
    /// Fills a tile with a constant.
    Fill { dst: TileId, value: Scalar },
    /// Fills an i32 tile with `start, start + 1, ..` along `axis`.
    Arange { dst: TileId, start: i32, axis: Axis },
    /// Evaluates an expression into a tile; it broadcasts to the tile's shape.
    Map { dst: TileId, expr: Expr },
    /// Evaluates an expression and reduces it along `axis`.
    Reduce { dst: TileId, expr: Expr, reduction: Reduction, axis: Axis },
    /// Matrix product of `a` (transposed if `a_t`) and `b`, added to `dst` if `accumulate`.
    Dot { dst: TileId, a: TileId, b: TileId, a_t: bool, b_t: bool, accumulate: bool },
    /// A composite GEMM; its parts are in [`super::PeProgram::composites`].
    Composite { composite: CompositeId },
    /// Completes a `Composite`; later ops of the PE start after it.
    Join { composite: OpId },
    /// Hands a tile over as message number `seq` of a link.
    Send { link: LinkId, seq: u32, src: TileId },
    /// Takes message number `seq` of a link.
    Recv { link: LinkId, seq: u32, dst: TileId },
    /// Registers the receive that `Wait` completes.
    RecvAsync { link: LinkId, seq: u32, dst: TileId },
    /// Completes a `RecvAsync`; later ops of the PE start after it.
    Wait { recv: OpId },
    /// Waits for all earlier ops of the PE; later ones start after it.
    Fence,
    /// A fence at which the PEs of a group meet.
    Barrier { group: Group },
}

/// How a reduction combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reduction {
    Sum,
    Max,
    Min,
}

impl Reduction {
    /// The name in listings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Max => "max",
            Reduction::Min => "min",
        }
    }
}

/// A vector program: a contiguous run of steps in post order, or a bare operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expr {
    /// The first step in [`super::PeProgram::steps`].
    pub first: u32,
    /// How many steps; 0 if the expression is a bare operand.
    pub len: u32,
    /// The value: the last step, or the bare operand.
    pub root: Operand,
}

/// One element-wise step over its broadcast arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What it computes.
    pub fun: Fun,
    /// The type of its result; f16 and bf16 are held in f32 until a cast or the destination rounds.
    pub ty: ElementType,
    /// Its own broadcast shape.
    pub shape: [u32; 2],
    /// Its arguments, [`Operand::None`] past the last.
    pub args: [Operand; 3],
}

/// An argument of a step.
#[derive(Clone, Copy, Debug)]
pub enum Operand {
    /// No argument.
    None,
    /// A tile.
    Tile(TileId),
    /// An earlier step of the same expression, by its index in [`super::PeProgram::steps`].
    Step(u32),
    /// A constant beside floating-point tiles.
    F32(f32),
    /// A constant beside i32 tiles.
    I32(i32),
}

impl PartialEq for Operand {
    /// Constants by bits, so that a program with a NaN constant equals itself.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Operand::None, Operand::None) => true,
            (Operand::Tile(a), Operand::Tile(b)) => a == b,
            (Operand::Step(a), Operand::Step(b)) => a == b,
            (Operand::F32(a), Operand::F32(b)) => a.to_bits() == b.to_bits(),
            (Operand::I32(a), Operand::I32(b)) => a == b,
            _ => false,
        }
    }
}

/// The function of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Fun {
    /// Copies a bare operand.
    Copy,
    Add,
    Sub,
    Mul,
    Div,
    Neg,
    Abs,
    /// NaN if either argument is.
    Max,
    /// NaN if either argument is.
    Min,
    /// `a * b + c`, rounded once.
    Fma,
    Exp,
    Log,
    Sqrt,
    Rsqrt,
    Recip,
    Tanh,
    /// Converts to the step's type, rounding to nearest even; to an integer as Rust's `as`.
    Cast,
    Ge,
    Gt,
    Le,
    Lt,
    Eq,
    Ne,
    And,
    Or,
    Not,
    /// The second argument where the first holds, else the third.
    Select,
}

impl Fun {
    /// The name in listings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Fun::Copy => "copy",
            Fun::Add => "add",
            Fun::Sub => "sub",
            Fun::Mul => "mul",
            Fun::Div => "div",
            Fun::Neg => "neg",
            Fun::Abs => "abs",
            Fun::Max => "maximum",
            Fun::Min => "minimum",
            Fun::Fma => "fma",
            Fun::Exp => "exp",
            Fun::Log => "log",
            Fun::Sqrt => "sqrt",
            Fun::Rsqrt => "rsqrt",
            Fun::Recip => "recip",
            Fun::Tanh => "tanh",
            Fun::Cast => "cast",
            Fun::Ge => "ge",
            Fun::Gt => "gt",
            Fun::Le => "le",
            Fun::Lt => "lt",
            Fun::Eq => "eq",
            Fun::Ne => "ne",
            Fun::And => "and",
            Fun::Or => "or",
            Fun::Not => "not",
            Fun::Select => "select",
        }
    }

    /// Whether it costs the machine's `slow_step` instead of one step.
    #[must_use]
    pub const fn is_slow(self) -> bool {
        matches!(self, Fun::Div | Fun::Recip | Fun::Exp | Fun::Log | Fun::Sqrt | Fun::Rsqrt | Fun::Tanh)
    }
}

/// Why an op waits for an earlier op of its PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EdgeKind {
    /// It reads what that op wrote.
    Data = 0,
    /// It overwrites bytes that op reads or wrote.
    Anti = 1,
    /// A fence, wait or barrier lies between them.
    Fence = 2,
}

/// An edge from an earlier op of the same PE, packed into 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge(u32);

impl Edge {
    /// The largest op an edge can name.
    pub const MAX_OP: u32 = (1 << 30) - 1;

    /// An edge from `op`.
    #[must_use]
    pub const fn new(kind: EdgeKind, op: OpId) -> Self {
        Edge(((kind as u32) << 30) | (op.0 & Self::MAX_OP))
    }

    /// Why.
    #[must_use]
    pub const fn kind(self) -> EdgeKind {
        match self.0 >> 30 {
            0 => EdgeKind::Data,
            1 => EdgeKind::Anti,
            _ => EdgeKind::Fence,
        }
    }

    /// The op that has to come first.
    #[must_use]
    pub const fn op(self) -> OpId {
        OpId(self.0 & Self::MAX_OP)
    }
}

/// What serves an op. Each engine of a PE serves its ops in program order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Engine {
    DmaRead = 0,
    DmaWrite = 1,
    Math = 2,
    Gemm = 3,
    Ipcq = 4,
    /// Fences and barriers.
    Sync = 5,
}

impl Engine {
    /// Every engine, in order of its discriminant.
    pub const ALL: [Engine; 6] =
        [Engine::DmaRead, Engine::DmaWrite, Engine::Math, Engine::Gemm, Engine::Ipcq, Engine::Sync];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Engine::DmaRead => "dma_read",
            Engine::DmaWrite => "dma_write",
            Engine::Math => "math",
            Engine::Gemm => "gemm",
            Engine::Ipcq => "ipcq",
            Engine::Sync => "sync",
        }
    }
}

impl OpKind {
    /// What serves the op; a composite is served by others too: see [`super::PeProgram::engines`].
    #[must_use]
    pub const fn engine(&self) -> Engine {
        match self {
            OpKind::Load { .. } => Engine::DmaRead,
            OpKind::Store { .. } => Engine::DmaWrite,
            OpKind::Fill { .. } | OpKind::Arange { .. } | OpKind::Map { .. } | OpKind::Reduce { .. } => {
                Engine::Math
            }
            OpKind::Dot { .. } | OpKind::Composite { .. } => Engine::Gemm,
            OpKind::Send { .. } | OpKind::Recv { .. } | OpKind::RecvAsync { .. } | OpKind::Wait { .. } => {
                Engine::Ipcq
            }
            OpKind::Join { .. } | OpKind::Fence | OpKind::Barrier { .. } => Engine::Sync,
        }
    }

    /// The tile the op writes, if its kind says so. A `RecvAsync` writes nothing yet: its `Wait` does.
    #[must_use]
    pub const fn dst(&self) -> Option<TileId> {
        match self {
            OpKind::Load { dst, .. }
            | OpKind::Fill { dst, .. }
            | OpKind::Arange { dst, .. }
            | OpKind::Map { dst, .. }
            | OpKind::Reduce { dst, .. }
            | OpKind::Dot { dst, .. }
            | OpKind::Recv { dst, .. } => Some(*dst),
            _ => None,
        }
    }
}
