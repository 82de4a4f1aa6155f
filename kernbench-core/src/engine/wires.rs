//! The interface between what PEs do and how bytes move: the only place where fidelities differ.

use super::fabric::{Path, Paths};
use super::queue::{Event, Queue};
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

/// What a wire event tells the PEs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notice {
    /// The last flit leaves its source then.
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

/// A model of how bytes move. Ids are those of rule 9: they order transfers that arrive together.
/// A transfer has at least one byte, and an id at most one transfer in flight.
pub(super) trait Wires {
    /// Lets transfer `id` leave its source at `at`, which is now or later.
    fn start(&mut self, queue: &mut Queue, id: u32, path: Path, load: Load, sink: Sink, at: Ps);

    /// Handles an event of the model's own kind.
    fn event(&mut self, queue: &mut Queue, paths: &Paths, event: Event) -> Notice;
}
