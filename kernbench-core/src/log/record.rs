//! One record of the op log, and how it is serialised.

use super::LaunchLog;
use crate::engine::{OpTiming, pe_name};
use crate::ir::{Engine, Op, OpId, OpKind, PeId, PeProgram, Source};
use crate::topology::Machine;
use crate::ty::{Dir, ElementType};
use crate::units::Ps;
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// What kind of work a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Memory,
    Gemm,
    Math,
    Ipcq,
    Sync,
}

impl Kind {
    /// The name in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Memory => "memory",
            Kind::Gemm => "gemm",
            Kind::Math => "math",
            Kind::Ipcq => "ipcq",
            Kind::Sync => "sync",
        }
    }
}

impl From<Engine> for Kind {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::DmaRead | Engine::DmaWrite => Kind::Memory,
            Engine::Gemm => Kind::Gemm,
            Engine::Math => Kind::Math,
            Engine::Ipcq => Kind::Ipcq,
            Engine::Sync => Kind::Sync,
        }
    }
}

/// An op of a launch and its times.
///
/// Serialises to one flat object whose fields have a fixed order and are integers, strings, lists of
/// integers or null.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub(super) machine: &'a Machine,
    pub(super) launch: usize,
    pub(super) log: &'a LaunchLog,
    pub(super) program: &'a PeProgram,
    pub(super) position: usize,
    pub(super) op: OpId,
}

impl<'a> Record<'a> {
    fn ir(&self) -> &'a Op {
        &self.program.ops[self.op.at()]
    }

    pub(super) fn op_kind(&self) -> &'a OpKind {
        &self.ir().kind
    }

    /// The launch, by position in the log.
    #[must_use]
    pub const fn launch(&self) -> usize {
        self.launch
    }

    /// `dma_read`, `dma_write`, `gemm_f16`, `composite_gemm`, `math`, `ipcq_copy`, `ipcq_recv`, `fence`, ..
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.program.op_name(self.op_kind())
    }

    /// What kind of work it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.op_kind().engine().into()
    }

    /// The engine that served it.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.op_kind().engine()
    }

    /// The PE.
    #[must_use]
    pub const fn pe(&self) -> PeId {
        self.program.pe
    }

    /// The op, by its number in its PE.
    #[must_use]
    pub const fn op(&self) -> OpId {
        self.op
    }

    /// The node that served it: `sip0.cube1.pe2.pe_dma`.
    #[must_use]
    pub fn component(&self) -> String {
        let node = match self.engine() {
            Engine::DmaRead | Engine::DmaWrite => "pe_dma",
            Engine::Math => "pe_math",
            Engine::Gemm => "pe_gemm",
            Engine::Ipcq => "pe_ipcq",
            Engine::Sync => "pe_cpu",
        };
        format!("{}.{node}", pe_name(self.machine, self.pe()))
    }

    /// Bytes moved between memories or PEs; 0 for compute on tiles and for sync.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.program.bytes_of(self.op_kind())
    }

    /// Bytes read from HBM, and bytes written to it. A composite reads a tile that it uses again later
    /// again, unless it still has it.
    #[must_use]
    pub fn hbm_bytes(&self) -> [u64; 2] {
        match self.op_kind() {
            OpKind::Load { .. } => [self.bytes(), 0],
            OpKind::Store { .. } => [0, self.bytes()],
            OpKind::Composite { composite } => {
                let c = self.program.composite(*composite);
                [c.read_bytes(), c.written_bytes()]
            }
            _ => [0, 0],
        }
    }

    /// Bytes of HBM that are in another PE's slice.
    #[must_use]
    pub fn remote_bytes(&self) -> u64 {
        let remote = |access| {
            let transfers = self.program.transfers_of(access).iter();
            transfers.filter(|t| t.home != self.pe()).map(crate::ir::Transfer::bytes).sum::<u64>()
        };
        match self.op_kind() {
            OpKind::Load { access, .. } | OpKind::Store { access, .. } => remote(*access),
            OpKind::Composite { composite } => {
                let c = self.program.composite(*composite);
                let reads = (0..c.steps()).flat_map(|s| [c.read(0, s), c.read(1, s)]);
                let writes = (0..c.output_tiles()).map(|o| c.write(o));
                reads.chain(writes).flatten().map(remote).sum()
            }
            _ => 0,
        }
    }

    /// Rows and columns of the tile it writes or sends, if it has one.
    #[must_use]
    pub fn shape(&self) -> Option<[u32; 2]> {
        let tile = match self.op_kind() {
            OpKind::Store { src, .. } | OpKind::Send { src, .. } => Some(*src),
            OpKind::RecvAsync { dst, .. } => Some(*dst),
            OpKind::Composite { composite } => {
                let [m, _, n] = self.program.composite(*composite).mkn;
                return Some([m, n]);
            }
            kind => self.program.written(kind),
        };
        tile.map(|t| self.program.tile(t).shape)
    }

    /// M, K and N of a matrix product.
    #[must_use]
    pub fn mkn(&self) -> Option<[u32; 3]> {
        self.program.mkn(self.op_kind())
    }

    /// The element type of a matrix product's operands.
    #[must_use]
    pub fn gemm_type(&self) -> Option<ElementType> {
        match self.op_kind() {
            OpKind::Dot { a, .. } => Some(self.program.tile(*a).ty),
            OpKind::Composite { composite } => Some(self.program.composite(*composite).ty),
            _ => None,
        }
    }

    /// Floating or integer operations of a matrix product: 2 m k n.
    #[must_use]
    pub fn flop(&self) -> u64 {
        self.mkn().map_or(0, |mkn| 2 * mkn.map(u64::from).iter().product::<u64>())
    }

    /// The direction of a message as its sender names it, for sends and receives alike.
    #[must_use]
    pub fn direction(&self) -> Option<Dir> {
        let link = match self.op_kind() {
            OpKind::Send { link, .. } | OpKind::Recv { link, .. } | OpKind::RecvAsync { link, .. } => *link,
            OpKind::Wait { recv } => match self.program.ops[recv.at()].kind {
                OpKind::RecvAsync { link, .. } => link,
                _ => return None,
            },
            _ => return None,
        };
        Some(self.log.program.link(link).dir)
    }

    /// The memory it works on: `hbm` for loads and stores, and composites that read or write it; that of
    /// the slots for messages; `tcm` for other compute.
    #[must_use]
    pub fn space(&self) -> Option<&'static str> {
        match self.kind() {
            Kind::Memory => Some("hbm"),
            Kind::Gemm if self.bytes() > 0 => Some("hbm"),
            Kind::Gemm | Kind::Math => Some("tcm"),
            Kind::Ipcq => Some(["tcm", "sram", "hbm"][self.log.slots as usize]),
            Kind::Sync => None,
        }
    }

    /// What it does with which operands, as in the listing: `math exp(sub(%3, %5))`, `load k[0:64, 0:128]`.
    #[must_use]
    pub fn expression(&self) -> String {
        self.log.program.op_text(self.program, self.op)
    }

    /// The binding its value gets; `_` if none.
    #[must_use]
    pub fn binding(&self) -> &'static str {
        self.log.program.binding(self.ir().site)
    }

    /// Where it was written.
    #[must_use]
    pub fn site(&self) -> &'static Source {
        self.log.program.sites.get(self.ir().site).source
    }

    /// Its times in full.
    #[must_use]
    pub fn timing(&self) -> &'a OpTiming {
        &self.log.timing.pes[self.position].ops[self.op.at()]
    }

    /// When it started; for `ipcq_copy`, the hand-over.
    #[must_use]
    pub fn start_ps(&self) -> Ps {
        match self.op_kind() {
            OpKind::Send { .. } => self.timing().end_ps,
            _ => self.timing().start_ps,
        }
    }

    /// When it ended; for `ipcq_copy`, when the message could be received.
    #[must_use]
    pub fn end_ps(&self) -> Ps {
        match self.op_kind() {
            OpKind::Send { .. } => self.timing().data_ps,
            _ => self.timing().end_ps,
        }
    }

    /// From start to end.
    #[must_use]
    pub fn duration_ps(&self) -> Ps {
        self.end_ps() - self.start_ps()
    }
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut s = serializer.serialize_struct("Record", 17)?;
        let site = self.site();
        s.serialize_field("launch", &self.launch)?;
        s.serialize_field("pe", &self.pe().0)?;
        s.serialize_field("op", &self.op.0)?;
        s.serialize_field("start_ps", &self.start_ps())?;
        s.serialize_field("end_ps", &self.end_ps())?;
        s.serialize_field("component", &self.component())?;
        s.serialize_field("kind", self.kind().name())?;
        s.serialize_field("name", self.name())?;
        s.serialize_field("bytes", &self.bytes())?;
        s.serialize_field("shape", &self.shape())?;
        s.serialize_field("mkn", &self.mkn())?;
        s.serialize_field("direction", &self.direction().map(Dir::name))?;
        s.serialize_field("space", &self.space())?;
        s.serialize_field("expression", &self.expression())?;
        s.serialize_field("binding", self.binding())?;
        s.serialize_field("file", site.file)?;
        s.serialize_field("line", &site.line)?;
        s.end()
    }
}
