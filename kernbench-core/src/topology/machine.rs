//! The numbers of a machine, typed and in integers.

use crate::ty::{Dir, ElementType};
use crate::units::{Ps, Rate};

/// Everything a simulation needs to know of a machine besides its graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// SIPs in the system.
    pub sips: u32,
    /// How SIPs are neighbours of each other.
    pub sip_topology: SipTopology,
    /// Width and height of the grid of SIPs.
    pub sip_grid: [u32; 2],
    /// Width and height of the mesh of cubes in a SIP.
    pub cube_mesh: [u32; 2],
    /// Width and height of the logical grid of PEs in a cube.
    pub pe_grid: [u32; 2],
    /// Bytes of a flit and of an HBM burst.
    pub flit_bytes: u64,
    /// How a transfer picks its UCIe connection.
    pub ucie_policy: UciePolicy,
    /// The memory of one PE's slice.
    pub hbm: Hbm,
    /// The scratch memory of one PE.
    pub tcm: Tcm,
    /// What translates the addresses of DMA transfers.
    pub mmu: Mmu,
    /// SRAM bytes of a cube.
    pub sram_bytes: u64,
    /// The matrix engine.
    pub gemm: Gemm,
    /// The vector engine.
    pub math: Math,
    /// GEMM and MATH of a PE never run at once.
    pub accel_slot: bool,
    /// The issuing processor of a PE.
    pub pe_cpu: PeCpu,
    /// What a slot access costs, by where the slots are.
    pub slots: [SlotCost; 3],
    /// When a PE issues its next op, unless a launch says otherwise.
    pub issue: IssueMode,
    /// Scratch bytes of a launch, unless it says otherwise.
    pub scratch_bytes: u32,
}

/// One HBM slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hbm {
    /// Bytes of the slice.
    pub slice_bytes: u64,
    /// Pseudo-channels; a power of two.
    pub channels: u32,
    /// What one burst occupies its channel, and so the delay of a commit.
    pub burst_ps: Ps,
}

impl Hbm {
    /// The channel of a byte address in the slice, for bursts of `flit_bytes`.
    #[must_use]
    pub const fn channel(&self, addr: u64, flit_bytes: u64) -> u32 {
        ((addr / flit_bytes) % self.channels as u64) as u32
    }
}

/// The scratch memory of one PE; its two ports are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Tcm {
    pub bytes: u64,
    pub read: Rate,
    pub write: Rate,
}

/// The address translation of a PE: a DMA transfer waits for each page it touches, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmu {
    /// Time for one page.
    pub overhead_ps: Ps,
    /// Bytes of a page.
    pub page_bytes: u64,
}

/// The matrix engine of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// M, K and N of a tile; a partial tile costs a whole one.
    pub tile: [u32; 3],
    /// Operations per time for f16 and bf16; a multiply and an add are two.
    pub half: Rate,
    /// For i8, u8 (and fp8).
    pub byte: Rate,
    /// For f32 and i32.
    pub word: Rate,
}

impl Gemm {
    /// The peak rate for operands of a type.
    #[must_use]
    pub const fn rate(&self, ty: ElementType) -> Rate {
        match ty {
            ElementType::F16 | ElementType::Bf16 => self.half,
            ElementType::I8 | ElementType::U8 | ElementType::Mask => self.byte,
            ElementType::F32 | ElementType::I32 => self.word,
        }
    }

    /// Time of all tiles of an `m x k` by `k x n` product.
    #[must_use]
    pub fn time(&self, ty: ElementType, [m, k, n]: [u32; 3]) -> Ps {
        let [tm, tk, tn] = self.tile;
        let tiles = u64::from(m.div_ceil(tm)) * u64::from(k.div_ceil(tk)) * u64::from(n.div_ceil(tn));
        let flop = 2 * u64::from(tm) * u64::from(tk) * u64::from(tn);
        tiles * self.rate(ty).time(flop)
    }
}

/// The vector engine of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Math {
    /// Elements a step handles at once.
    pub lanes: u32,
    /// Time of one step over up to `lanes` elements.
    pub step_ps: Ps,
    /// How many steps a slow function costs (div, recip, exp, log, sqrt, rsqrt, tanh).
    pub slow_steps: u32,
    /// The least time of an op.
    pub overhead_ps: Ps,
}

/// The issuing processor of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeCpu {
    /// Once per kernel start.
    pub start_ps: Ps,
    /// Per op, one after another.
    pub issue_ps: Ps,
    /// From issue to the engine, pipelined.
    pub dispatch_ps: Ps,
}

/// A slot access: `setup + n / intrinsic + n / bank`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotCost {
    /// Fixed part.
    pub setup_ps: Ps,
    /// The memory's own rate.
    pub intrinsic: Rate,
    /// The link to the memory, if there is one.
    pub bank: Option<Rate>,
}

impl SlotCost {
    /// Time of one access of `n` bytes.
    #[must_use]
    pub fn time(&self, n: u64) -> Ps {
        self.setup_ps + self.intrinsic.time(n) + self.bank.map_or(0, |b| b.time(n))
    }
}

/// Where the slots of a link are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BufferKind {
    Tcm,
    Sram,
    Hbm,
}

/// Logical neighbours among SIPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum SipTopology {
    Ring1d,
    Torus2d,
    Mesh2dNoWrap,
}

/// How a transfer picks its UCIe connection; the same index at every crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UciePolicy {
    /// Always connection 0.
    First,
    /// Half the issuing PE's index; host traffic, half the target's.
    Striped,
}

/// When a PE issues its next op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IssueMode {
    /// At once; an op starts when its edges are satisfied and its engine is free.
    Dataflow,
    /// When the op before it has completed.
    Blocking,
}

impl Machine {
    /// Cubes of a SIP.
    #[must_use]
    pub const fn cubes(&self) -> u32 {
        self.cube_mesh[0] * self.cube_mesh[1]
    }

    /// PEs of a cube.
    #[must_use]
    pub const fn pes(&self) -> u32 {
        self.pe_grid[0] * self.pe_grid[1]
    }

    /// PEs of the system.
    #[must_use]
    pub const fn pe_count(&self) -> u32 {
        self.sips * self.cubes() * self.pes()
    }

    /// The cost of a slot access.
    #[must_use]
    pub const fn slot_cost(&self, kind: BufferKind) -> &SlotCost {
        &self.slots[kind as usize]
    }

    /// The directions PEs name their neighbours by, in families.
    #[must_use]
    pub const fn families() -> [[Dir; 4]; 3] {
        use Dir::*;
        [[N, S, E, W], [IntraN, IntraS, IntraE, IntraW], [GlobalN, GlobalS, GlobalE, GlobalW]]
    }
}
