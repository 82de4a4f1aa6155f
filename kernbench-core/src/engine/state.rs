//! What one PE is doing while a simulation runs.

use super::timing::{Cause, OpTiming};
use crate::ir::{Engine, OpId, PeProgram};
use crate::units::Ps;

/// The end of an op that has not completed.
pub(super) const PENDING: Ps = Ps::MAX;
pub(super) const ENGINES: usize = Engine::ALL.len();

/// What the op at the head of an engine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// There is no op left.
    Nothing,
    /// The op before it, in blocking mode.
    Issue,
    /// An op of its PE.
    Edge(OpId),
    /// Nothing: an event is under way that goes on with it.
    Due,
    /// The accelerator slot.
    Slot,
    /// A free slot of a link.
    Credit,
    /// The send before it, whose flits are still leaving.
    Channel,
    /// A message, by its index in the message table.
    Message(u32),
    /// The members of a barrier group.
    Barrier(u32),
}

#[derive(Debug)]
pub(super) struct Pe {
    /// The id of its op 0; ids go through all PEs in order.
    pub base: u32,
    pub ops: Vec<OpTiming>,
    /// Its ops, grouped by engine in program order.
    pub order: Vec<u32>,
    /// Where each engine is in `order`, and where its ops end.
    pub next: [u32; ENGINES],
    pub stop: [u32; ENGINES],
    pub wait: [Wait; ENGINES],
    /// How many edges of each engine's head are known to be satisfied.
    pub satisfied: [u32; ENGINES],
    /// When each engine completed its last op, and which.
    pub free: [Ps; ENGINES],
    pub last: [OpId; ENGINES],
    /// The op in the accelerator slot, and the one before.
    pub slot: Option<OpId>,
    pub slot_last: OpId,
    /// In blocking mode: ops issued, and when the last of them reaches its engine.
    pub issued: u32,
    pub reach: Ps,
    /// The flits of a send are leaving.
    pub channel_busy: bool,
    /// The next transfer of the load and of the store under way.
    pub transfer: [u32; 2],
    pub busy: [Ps; ENGINES],
    pub credit_wait: Ps,
    pub message_wait: Ps,
}

impl Pe {
    pub fn new(program: &PeProgram, base: u32, first_reach: Ps) -> Self {
        let mut stop = [0; ENGINES];
        for op in &program.ops {
            stop[op.kind.engine() as usize] += 1;
        }
        let mut next = [0; ENGINES];
        for e in 1..ENGINES {
            next[e] = next[e - 1] + stop[e - 1];
        }
        let mut order = vec![0; program.ops.len()];
        let mut fill = next;
        for (i, op) in program.ops.iter().enumerate() {
            let at = &mut fill[op.kind.engine() as usize];
            order[*at as usize] = i as u32;
            *at += 1;
        }
        let unknown = OpTiming {
            start_ps: PENDING,
            end_ps: PENDING,
            ready_ps: PENDING,
            data_ps: PENDING,
            contention_ps: 0,
            cause: Cause::Issue,
            peer: None,
        };
        Pe {
            base,
            ops: vec![unknown; program.ops.len()],
            order,
            next,
            stop: fill,
            wait: [Wait::Nothing; ENGINES],
            satisfied: [0; ENGINES],
            free: [0; ENGINES],
            last: [OpId(0); ENGINES],
            slot: None,
            slot_last: OpId(0),
            issued: 1,
            reach: first_reach,
            channel_busy: false,
            transfer: [0; 2],
            busy: [0; ENGINES],
            credit_wait: 0,
            message_wait: 0,
        }
    }

    /// The op at the head of an engine.
    pub fn head(&self, engine: usize) -> Option<OpId> {
        (self.next[engine] < self.stop[engine]).then(|| OpId(self.order[self.next[engine] as usize]))
    }
}
