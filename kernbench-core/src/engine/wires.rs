//! The interface between what PEs do and how bytes move: the only place where fidelities differ.

use super::fabric::{Path, Paths};
use crate::ir::{PeId, Transfer};
use crate::units::Ps;

/// The bytes of a transfer: `runs` runs of `run_bytes`, each cut into flits on its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub addr: u64,
    pub run_bytes: u64,
    pub runs: u64,
    pub stride_bytes: u64,
}

impl Load {
    /// A message: one run at no address.
    pub fn message(bytes: u64) -> Self {
        Load { addr: 0, run_bytes: bytes, runs: 1, stride_bytes: 0 }
    }

    pub fn bytes(&self) -> u64 {
        self.run_bytes * self.runs
    }
}

impl From<&Transfer> for Load {
    fn from(t: &Transfer) -> Self {
        Load {
            addr: t.addr,
            run_bytes: t.run_bytes.into(),
            runs: t.runs.into(),
            stride_bytes: t.stride_bytes.into(),
        }
    }
}

/// Where a transfer ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sink {
    /// The HBM slice of a PE, where each burst commits.
    Hbm(PeId),
    /// The DMA of a PE, which takes what arrives.
    Pe,
}

/// What PEs must know of a transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notice {
    /// A message's last flit leaves its source then.
    pub left_ps: Option<Ps>,
    pub arrival: Option<Arrival>,
}

/// The end of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// The last commit in a memory, or the last byte in a PE; now or later.
    pub done_ps: Ps,
    /// How much later than alone on the machine.
    pub contention_ps: Ps,
}

/// How far the wires have come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Progress {
    /// To something PEs must know of a transfer, by its id.
    Told(u32, Notice),
    /// Not to the end, but far enough to look around.
    Paused,
    /// To the end: nothing happens before the time given.
    Idle,
}

/// How many things happen on the wires between two looks around.
pub(super) const STRIDE: u32 = 4096;

/// A model of how bytes move. Ids are those of rule 9: they order transfers that arrive together.
/// A transfer has at least one byte, and an id at most one transfer in flight.
pub(super) trait Wires {
    /// Lets transfer `id` leave its source at `at`, which is not before anything that has happened.
    fn start(&mut self, paths: &Paths, id: u32, path: Path, load: Load, sink: Sink, at: Ps);

    /// Lets happen what happens before `until`.
    fn run(&mut self, paths: &Paths, until: Ps) -> Progress;

    /// Whether nothing will happen.
    fn is_idle(&self) -> bool;

    /// How many things have happened.
    fn events(&self) -> u64;
}
