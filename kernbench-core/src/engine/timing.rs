//! When each op of a program ran, and what it waited for.

use crate::ir::{Engine, OpId, PeId};
use crate::units::Ps;

/// The result of a simulation; times are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The launch stamp: when every PE of the launch starts.
    pub start_ps: Ps,
    /// When the last op completed and the last message arrived; the stamp if there are none.
    pub end_ps: Ps,
    /// By position in [`crate::ir::Program::pes`].
    pub pes: Vec<PeTiming>,
    /// Events handled.
    pub events: u64,
}

impl Timing {
    /// From the launch stamp to the end.
    #[must_use]
    pub const fn makespan_ps(&self) -> Ps {
        self.end_ps - self.start_ps
    }

    /// The times of an op.
    #[must_use]
    pub fn op(&self, op: OpRef) -> &OpTiming {
        &self.pes[op.pe as usize].ops[op.op.at()]
    }
}

/// The times of one PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeTiming {
    /// The PE.
    pub pe: PeId,
    /// By [`OpId`].
    pub ops: Vec<OpTiming>,
    /// How long each engine worked, by discriminant of [`Engine`]: waiting for a message, a credit
    /// or a barrier is no work.
    pub busy_ps: [Ps; Engine::ALL.len()],
    /// How long sends waited for a free slot.
    pub credit_wait_ps: Ps,
    /// How long receives and waits waited for their messages.
    pub message_wait_ps: Ps,
}

/// The times of one op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpTiming {
    /// Its engine began to serve it; a send or receive may wait from here on.
    pub start_ps: Ps,
    /// It completed: for a send, the hand-over; for a receive, its credit is back.
    pub end_ps: Ps,
    /// It had been issued and its edges were satisfied.
    pub ready_ps: Ps,
    /// For a send, when its message can be received; for a receive or wait, when it found its
    /// message; for a barrier, the arrival that decided when all leave. Else `end_ps`.
    pub data_ps: Ps,
    /// How much longer its bytes took than alone on the machine; for a send, those of its message.
    pub contention_ps: Ps,
    /// What decided `start_ps`.
    pub cause: Cause,
    /// The op it met: for a send that waited, the receive that freed its slot or the send before,
    /// whose flits were leaving, whichever came last; for a receive or wait, the send; for a barrier,
    /// the arrival that decided.
    pub peer: Option<OpRef>,
}

impl OpTiming {
    /// From start to end.
    #[must_use]
    pub const fn duration_ps(&self) -> Ps {
        self.end_ps - self.start_ps
    }
}

/// An op of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpRef {
    /// Position in [`crate::ir::Program::pes`].
    pub pe: u32,
    /// The op.
    pub op: OpId,
}

/// What decided when an op started: what was satisfied last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It came from the issuing processor; in blocking mode that is after the op before it.
    Issue,
    /// An edge from this op.
    Edge(OpId),
    /// Its engine served this op before it.
    Engine(OpId),
    /// This op held the accelerator slot.
    Slot(OpId),
}
