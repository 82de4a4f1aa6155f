//! The composite GEMM: operands, epilogue, and the plan of tiles that both its time and its values follow.
//!
//! `out = epilogue(a * b)` is one op. Its plan cuts the product into M x K x N tiles of the matrix
//! engine: output tiles row by row, and for each of them its K tiles, whose products add up in k order
//! in an accumulator that stays in the engine. One K tile of one output tile is a *step*.

use super::{AccessId, Operand, TileId};
use crate::ty::ElementType;

/// Where an operand or the output of a composite is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In HBM: the access of all of it, and that of its first tile. The accesses of its tiles follow
    /// each other row by row; each is moved on its own.
    Hbm {
        /// All of it.
        access: AccessId,
        /// Its first tile.
        tiles: AccessId,
    },
    /// In the scratch of the PE already, as it is or transposed; it needs no DMA.
    Tcm {
        /// The tile.
        tile: TileId,
        /// Whether the operand is the tile transposed.
        transposed: bool,
    },
}

impl Place {
    /// The access of all of it, if it is in HBM.
    #[must_use]
    pub const fn access(self) -> Option<AccessId> {
        match self {
            Place::Hbm { access, .. } => Some(access),
            Place::Tcm { .. } => None,
        }
    }
}

/// What an epilogue step works on, in the order in which the levels come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The product of each K tile, before it is added to the accumulator.
    KTile,
    /// Each output tile, once all its K tiles are added up.
    OutputTile,
    /// The whole output, once all its tiles are there.
    Kernel,
}

impl Level {
    /// The name in listings and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Level::KTile => "k tile",
            Level::OutputTile => "output tile",
            Level::Kernel => "whole output",
        }
    }
}

/// What an epilogue step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EpilogueFun {
    /// Adds its operand.
    Bias,
    /// Multiplies by its operand.
    Scale,
    /// The larger of the element and 0; NaN stays NaN.
    Relu,
    /// Converts i32 to f32, to nearest even, and multiplies by its operand.
    Dequant,
}

impl EpilogueFun {
    /// The name in listings and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            EpilogueFun::Bias => "bias",
            EpilogueFun::Scale => "scale",
            EpilogueFun::Relu => "relu",
            EpilogueFun::Dequant => "dequant",
        }
    }

    /// Steps of the vector engine.
    #[must_use]
    pub const fn steps(self) -> u64 {
        match self {
            EpilogueFun::Bias | EpilogueFun::Scale | EpilogueFun::Relu => 1,
            EpilogueFun::Dequant => 2,
        }
    }
}

/// One step of an epilogue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpilogueStep {
    /// What it does.
    pub fun: EpilogueFun,
    /// What it works on.
    pub level: Level,
    /// A tile, a constant, or [`Operand::None`] for a relu. A tile broadcasts over the output `[m, n]`;
    /// at [`Level::KTile`] its row is that of the K tile.
    pub operand: Operand,
}

/// A composite GEMM.
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    /// The left operand, `[m, k]`.
    pub a: Place,
    /// The right operand, `[k, n]`.
    pub b: Place,
    /// The output, `[m, n]`.
    pub out: Place,
    /// The element type of both operands.
    pub ty: ElementType,
    /// The element type of the output; values round to it once.
    pub out_ty: ElementType,
    /// M, K and N.
    pub mkn: [u32; 3],
    /// M, K and N of a tile of the matrix engine.
    pub tile: [u32; 3],
    /// In the order of the levels.
    pub epilogue: Vec<EpilogueStep>,
    /// Its buffers in scratch, as a row of bytes: see [`Composite::workspace_bytes`].
    pub workspace: TileId,
}

/// Tiles of each operand, and of an output on its way to HBM, that are in scratch at once.
pub const TILE_BUFFERS: u32 = 2;

impl Composite {
    /// Tiles along M, K and N. An empty K counts as one empty tile: the output is written all the same.
    #[must_use]
    pub fn tiles(&self) -> [u32; 3] {
        let [m, k, n] = [0, 1, 2].map(|i| self.mkn[i].div_ceil(self.tile[i].max(1)));
        [m, k.max(1), n]
    }

    /// Output tiles.
    #[must_use]
    pub fn output_tiles(&self) -> u32 {
        let [m, _, n] = self.tiles();
        m * n
    }

    /// Steps: K tiles of all output tiles.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.output_tiles() * self.tiles()[1]
    }

    /// The tile of a step along M, K and N.
    #[must_use]
    pub fn step(&self, step: u32) -> [u32; 3] {
        let [_, k, n] = self.tiles();
        [step / k / n, step % k, step / k % n]
    }

    /// Rows or columns of a tile: `axis` is 0, 1, 2 for M, K, N.
    #[must_use]
    pub fn extent(&self, axis: usize, tile: u32) -> u32 {
        self.tile[axis].min(self.mkn[axis] - (tile * self.tile[axis]).min(self.mkn[axis]))
    }

    /// How many steps in a row use one tile of `a` (0) or `b` (1): it stays in its buffer for them.
    #[must_use]
    pub fn run(&self, operand: usize) -> u32 {
        match (operand, self.tiles()) {
            (0, [_, 1, n]) => n.max(1),
            (1, [m, 1, 1]) => m.max(1),
            _ => 1,
        }
    }

    /// The tile of `a` (0) or `b` (1) that has to be read from HBM for a step, if one has to.
    #[must_use]
    pub fn read(&self, operand: usize, step: u32) -> Option<AccessId> {
        let Place::Hbm { tiles, .. } = (if operand == 0 { self.a } else { self.b }) else { return None };
        if !step.is_multiple_of(self.run(operand)) {
            return None;
        }
        let ([i, k, j], [_, count_k, count_n]) = (self.step(step), self.tiles());
        Some(AccessId(tiles.0 + if operand == 0 { i * count_k + k } else { k * count_n + j }))
    }

    /// The tile of the output that has to be written to HBM, if it is there.
    #[must_use]
    pub fn write(&self, output: u32) -> Option<AccessId> {
        match self.out {
            Place::Hbm { tiles, .. } => Some(AccessId(tiles.0 + output)),
            Place::Tcm { .. } => None,
        }
    }

    /// Bytes read from HBM: a tile that is used again later is read again, unless it is still there.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        let ([m, k, n], size) = (self.mkn.map(u64::from), u64::from(self.ty.bytes()));
        let [count_m, _, count_n] = self.tiles();
        let times = |place, again: u32, operand| match place {
            Place::Hbm { .. } if m * n > 0 => u64::from(again / self.run(operand)),
            _ => 0,
        };
        (m * k * times(self.a, count_n, 0) + k * n * times(self.b, count_m, 1)) * size
    }

    /// Bytes written to HBM.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        match self.out {
            Place::Hbm { .. } => {
                u64::from(self.mkn[0]) * u64::from(self.mkn[2]) * u64::from(self.out_ty.bytes())
            }
            Place::Tcm { .. } => 0,
        }
    }

    /// The steps of the epilogue at a level, in order.
    pub fn at(&self, level: Level) -> impl Iterator<Item = &EpilogueStep> {
        self.epilogue.iter().filter(move |s| s.level == level)
    }

    /// Whether the epilogue has a step at a level.
    #[must_use]
    pub fn has(&self, level: Level) -> bool {
        self.at(level).next().is_some()
    }

    /// What a tile that an epilogue step takes at a level broadcasts to.
    #[must_use]
    pub fn operand_shape(&self, level: Level) -> [u32; 2] {
        let [m, _, n] = self.mkn;
        if level == Level::KTile { [self.tiles()[1], n] } else { [m, n] }
    }

    /// Bytes of its buffers in scratch: two tiles of each operand in HBM; two tiles of an output in
    /// HBM; and with a step at [`Level::Kernel`], instead of these, the whole output at 4 bytes an
    /// element. Accumulators are in the engine.
    #[must_use]
    pub fn workspace_bytes(&self) -> u64 {
        let [m, k, n] = [0, 1, 2].map(|i| u64::from(self.tile[i].min(self.mkn[i])));
        let in_hbm = |place| u64::from(matches!(place, Place::Hbm { .. }));
        let (size, buffers) = (u64::from(self.ty.bytes()), u64::from(TILE_BUFFERS));
        let operands = buffers * size * (in_hbm(self.a) * m * k + in_hbm(self.b) * k * n);
        operands
            + if self.has(Level::Kernel) {
                4 * u64::from(self.mkn[0]) * u64::from(self.mkn[2])
            } else {
                in_hbm(self.out) * buffers * m * n * u64::from(self.out_ty.bytes())
            }
    }

    /// Calls `f` with each tile it reads.
    pub fn for_each_read(&self, mut f: impl FnMut(TileId)) {
        for place in [self.a, self.b] {
            if let Place::Tcm { tile, .. } = place {
                f(tile);
            }
        }
        for step in &self.epilogue {
            if let Operand::Tile(tile) = step.operand {
                f(tile);
            }
        }
    }

    /// The tile it leaves its output in, if that is not in HBM.
    #[must_use]
    pub const fn dst(&self) -> Option<TileId> {
        match self.out {
            Place::Tcm { tile, .. } => Some(tile),
            Place::Hbm { .. } => None,
        }
    }
}
