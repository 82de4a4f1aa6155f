//! The op graph of one launch over all its PEs.

use super::{
    Access, AccessId, Composite, CompositeId, Edge, Engine, Expr, LinkId, Op, OpId, OpKind, Operand, PeId,
    SiteId, Sites, Step, TileId, Transfer,
};
use crate::ty::{Dir, ElementType};

/// The checked op graph of one launch. `record` makes drafts of it, `verify` makes it.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name the launch was given.
    pub name: String,
    /// The kernel's name.
    pub kernel: &'static str,
    /// The tensors the context holds, by [`super::TensorId`]; one that was freed has no elements.
    pub tensors: Vec<TensorInfo>,
    /// One program for each PE of the launch, in order of [`PeId`].
    pub pes: Vec<PeProgram>,
    /// All links of the machine, by [`LinkId`].
    pub links: Vec<Link>,
    /// Source places, interned.
    pub sites: Sites,
    /// Scratch bytes each PE has.
    pub scratch_bytes: u32,
}

/// A recorded program that nobody has checked yet; [`crate::verify::verify`] makes it a [`Program`].
#[derive(Clone, Debug)]
pub struct Draft(pub Program);

/// What one PE does, in flat arenas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeProgram {
    /// The PE.
    pub pe: PeId,
    /// Its ops in program order.
    pub ops: Vec<Op>,
    /// Edges between its ops, those of each op contiguous and in order of the ops.
    pub edges: Vec<Edge>,
    /// Tiles and slices of tiles.
    pub tiles: Vec<Tile>,
    /// Steps of all expressions.
    pub steps: Vec<Step>,
    /// One for each load and store, and for each operand and output of a composite in HBM and each
    /// of its tiles.
    pub accesses: Vec<Access>,
    /// The parts of the accesses.
    pub transfers: Vec<Transfer>,
    /// The composite GEMMs.
    pub composites: Vec<Composite>,
    /// The loads whose values the kernel has looked at while it was recorded.
    pub reads: Vec<OpId>,
    /// The most scratch bytes in use at once.
    pub peak_bytes: u32,
}

/// A matrix in the scratch of a PE, or a slice of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tile {
    /// Byte address in the PE's scratch. While recording: offset in the turn of its scope.
    pub addr: u32,
    /// Rows and columns.
    pub shape: [u32; 2],
    /// Elements from one row to the next.
    pub stride: u32,
    /// The whole tile this is a slice of; itself if it is whole.
    pub base: TileId,
    /// The op that first writes the whole tile.
    pub def: OpId,
    /// The turn of the scratch scope that holds it, while recording and in memory maps.
    pub turn: u32,
    /// Its element type.
    pub ty: ElementType,
}

impl Tile {
    /// Elements.
    #[must_use]
    pub const fn elements(&self) -> u64 {
        self.shape[0] as u64 * self.shape[1] as u64
    }

    /// Bytes of the elements, without gaps between the rows of a slice.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.elements() * self.ty.bytes() as u64
    }

    /// Bytes from the first to one past the last element.
    #[must_use]
    pub const fn span(&self) -> u32 {
        if self.shape[0] == 0 || self.shape[1] == 0 {
            return 0;
        }
        ((self.shape[0] - 1) * self.stride + self.shape[1]) * self.ty.bytes()
    }
}

/// What a program says of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// The name the host gave it.
    pub name: String,
    /// Its element type.
    pub ty: ElementType,
    /// Rows and columns.
    pub shape: [usize; 2],
}

/// A directed IPCQ link. The k-th send and the k-th receive of a link belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The sender.
    pub from: PeId,
    /// The receiver.
    pub to: PeId,
    /// The direction as the sender names it.
    pub dir: Dir,
    /// The direction as the receiver names it.
    pub recv_dir: Dir,
}

impl PeProgram {
    /// The edges of an op: the earlier ops of this PE it waits for.
    #[must_use]
    pub fn edges_of(&self, op: OpId) -> &[Edge] {
        let start = if op.0 == 0 { 0 } else { self.ops[op.at() - 1].edge_end };
        &self.edges[start as usize..self.ops[op.at()].edge_end as usize]
    }

    /// The steps of an expression.
    #[must_use]
    pub fn steps_of(&self, expr: &Expr) -> &[Step] {
        &self.steps[expr.first as usize..(expr.first + expr.len) as usize]
    }

    /// A tile by its id.
    #[must_use]
    pub fn tile(&self, tile: TileId) -> &Tile {
        &self.tiles[tile.at()]
    }

    /// An access by its id.
    #[must_use]
    pub fn access(&self, access: AccessId) -> &Access {
        &self.accesses[access.at()]
    }

    /// The transfers of an access.
    #[must_use]
    pub fn transfers_of(&self, access: AccessId) -> &[Transfer] {
        let a = self.access(access);
        &self.transfers[a.first as usize..(a.first + a.len) as usize]
    }

    /// A composite by its id.
    #[must_use]
    pub fn composite(&self, composite: CompositeId) -> &Composite {
        &self.composites[composite.at()]
    }

    /// The engines that serve an op, by discriminant. Several serve a composite, each in program order.
    #[must_use]
    pub fn engines(&self, kind: &OpKind) -> [bool; Engine::ALL.len()] {
        let mut engines = [false; Engine::ALL.len()];
        engines[kind.engine() as usize] = true;
        if let OpKind::Composite { composite } = kind {
            let c = self.composite(*composite);
            engines[Engine::DmaRead as usize] = c.a.access().or(c.b.access()).is_some();
            engines[Engine::DmaWrite as usize] = c.out.access().is_some();
            engines[Engine::Math as usize] = !c.epilogue.is_empty();
        }
        engines
    }

    /// The accesses an op reads from HBM, each as a whole.
    pub fn read_accesses(&self, kind: &OpKind) -> impl Iterator<Item = AccessId> + use<> {
        let both = match kind {
            OpKind::Load { access, .. } => [Some(*access), None],
            OpKind::Composite { composite } => {
                let c = self.composite(*composite);
                [c.a, c.b].map(super::Place::access)
            }
            _ => [None, None],
        };
        both.into_iter().flatten()
    }

    /// The access an op writes to HBM, as a whole.
    #[must_use]
    pub fn written_access(&self, kind: &OpKind) -> Option<AccessId> {
        match kind {
            OpKind::Store { access, .. } => Some(*access),
            OpKind::Composite { composite } => self.composite(*composite).out.access(),
            _ => None,
        }
    }

    /// The tile an op writes; for a `Wait`, the tile of its receive.
    #[must_use]
    pub fn written(&self, kind: &OpKind) -> Option<TileId> {
        match kind {
            OpKind::Wait { recv } => match self.ops[recv.at()].kind {
                OpKind::RecvAsync { dst, .. } => Some(dst),
                _ => None,
            },
            OpKind::Composite { composite } => self.composite(*composite).dst(),
            other => other.dst(),
        }
    }

    /// Calls `f` with each tile an op reads.
    pub fn for_each_read(&self, kind: &OpKind, mut f: impl FnMut(TileId)) {
        match kind {
            OpKind::Store { src, .. } | OpKind::Send { src, .. } => f(*src),
            OpKind::Map { expr, .. } | OpKind::Reduce { expr, .. } => {
                if let Operand::Tile(t) = expr.root {
                    f(t);
                }
                for step in self.steps_of(expr) {
                    for arg in step.args {
                        if let Operand::Tile(t) = arg {
                            f(t);
                        }
                    }
                }
            }
            OpKind::Dot { dst, a, b, accumulate, .. } => {
                f(*a);
                f(*b);
                if *accumulate {
                    f(*dst);
                }
            }
            OpKind::Composite { composite } => self.composite(*composite).for_each_read(f),
            _ => {}
        }
    }

    /// M, K and N of a matrix product.
    #[must_use]
    pub fn mkn(&self, kind: &OpKind) -> Option<[u32; 3]> {
        match kind {
            OpKind::Composite { composite } => Some(self.composite(*composite).mkn),
            OpKind::Dot { a, b, a_t, b_t, .. } => {
                let ([r, c], [br, bc]) = (self.tile(*a).shape, self.tile(*b).shape);
                let [m, k] = if *a_t { [c, r] } else { [r, c] };
                Some([m, k, if *b_t { br } else { bc }])
            }
            _ => None,
        }
    }

    /// Bytes an op moves between memories or PEs; 0 for compute and sync.
    #[must_use]
    pub fn bytes_of(&self, kind: &OpKind) -> u64 {
        match kind {
            OpKind::Load { dst: t, .. }
            | OpKind::Store { src: t, .. }
            | OpKind::Send { src: t, .. }
            | OpKind::Recv { dst: t, .. } => self.tile(*t).bytes(),
            OpKind::Wait { .. } => self.written(kind).map_or(0, |t| self.tile(t).bytes()),
            OpKind::Composite { composite } => {
                let c = self.composite(*composite);
                c.read_bytes() + c.written_bytes()
            }
            _ => 0,
        }
    }

    /// The name of an op in logs and counts: `dma_read`, `dma_write`, `gemm_f16`, `math`, `ipcq_copy`, ..
    #[must_use]
    pub fn op_name(&self, kind: &OpKind) -> &'static str {
        match kind {
            OpKind::Load { .. } => "dma_read",
            OpKind::Store { .. } => "dma_write",
            OpKind::Fill { .. } | OpKind::Arange { .. } | OpKind::Map { .. } | OpKind::Reduce { .. } => {
                "math"
            }
            OpKind::Dot { a, .. } => match self.tile(*a).ty {
                ElementType::F16 => "gemm_f16",
                ElementType::Bf16 => "gemm_bf16",
                ElementType::F32 => "gemm_f32",
                ElementType::I32 => "gemm_i32",
                ElementType::I8 => "gemm_i8",
                _ => "gemm_u8",
            },
            OpKind::Composite { .. } => "composite_gemm",
            OpKind::Join { .. } => "wait",
            OpKind::Send { .. } => "ipcq_copy",
            OpKind::Recv { .. } => "ipcq_recv",
            OpKind::RecvAsync { .. } => "ipcq_post",
            OpKind::Wait { .. } => "ipcq_wait",
            OpKind::Fence => "fence",
            OpKind::Barrier { .. } => "barrier",
        }
    }
}

impl Program {
    /// The program of a PE, if it takes part.
    #[must_use]
    pub fn pe(&self, pe: PeId) -> Option<&PeProgram> {
        self.pes.binary_search_by_key(&pe, |p| p.pe).ok().map(|i| &self.pes[i])
    }

    /// A link by its id.
    #[must_use]
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.at()]
    }

    /// How many ops all PEs have.
    #[must_use]
    pub fn op_count(&self) -> usize {
        self.pes.iter().map(|p| p.ops.len()).sum()
    }

    /// The binding name of a site, such as `acc.l`; `_` if it has none.
    #[must_use]
    pub fn binding(&self, site: SiteId) -> &'static str {
        match self.sites.get(site).source.name {
            "" => "_",
            name => name,
        }
    }
}
