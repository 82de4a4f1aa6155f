//! What one PE is doing while a simulation runs.

use super::composite::Run;
use super::timing::{Cause, OpTiming};
use crate::ir::{Engine, OpId, OpKind, PeProgram};
use crate::topology::IssueMode;
use crate::units::Ps;

/// The end of an op that has not completed.
pub(super) const PENDING: Ps = Ps::MAX;
pub(super) const ENGINES: usize = Engine::ALL.len();
/// The queues of a PE: one for each engine, and for composites those of `pe_fetch_store`.
pub(super) const QUEUES: usize = ENGINES + 2;
/// What fetches operands for GEMM; nobody waits there without composites.
pub(super) const FETCH: usize = ENGINES;
/// What stores the output tiles of composites.
pub(super) const STORE: usize = ENGINES + 1;

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
    /// The position of its launch.
    pub launch: u32,
    pub ops: Vec<OpTiming>,
    /// Its ops, grouped by queue in program order; a composite is in several.
    pub order: Vec<u32>,
    /// Where each queue is in `order`, and where its ops end.
    pub next: [u32; QUEUES],
    pub stop: [u32; QUEUES],
    pub wait: [Wait; QUEUES],
    /// How many edges of each queue's head are known to be satisfied.
    pub satisfied: [u32; QUEUES],
    /// When each queue was left last, and by which op.
    pub free: [Ps; QUEUES],
    pub last: [OpId; QUEUES],
    /// Its composites.
    pub runs: Vec<Run>,
    /// Since when the head of a queue waits for the accelerator slot.
    pub asked: [Ps; QUEUES],
    /// The op in the accelerator slot, and the one before.
    pub slot: Option<OpId>,
    pub slot_last: OpId,
    pub issue: IssueMode,
    /// In blocking mode: ops issued, and when the last of them reaches its engine. Else, when the first op
    /// reaches its engine.
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
    pub fn new(program: &PeProgram, launch: u32, issue: IssueMode) -> Self {
        let mut count = [0; QUEUES];
        for op in &program.ops {
            for_each_queue(program, &op.kind, |q| count[q] += 1);
        }
        let mut next = [0; QUEUES];
        for q in 1..QUEUES {
            next[q] = next[q - 1] + count[q - 1];
        }
        let mut order = vec![0; count.iter().sum::<u32>() as usize];
        let mut fill = next;
        for (i, op) in program.ops.iter().enumerate() {
            for_each_queue(program, &op.kind, |q| {
                order[fill[q] as usize] = i as u32;
                fill[q] += 1;
            });
        }
        let runs = program.ops.iter().filter_map(|op| match op.kind {
            OpKind::Composite { composite } => Some((composite, program.engines(&op.kind))),
            _ => None,
        });
        let runs = runs.map(|(c, engines)| Run::new(program.composite(c), engines)).collect();
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
            launch,
            ops: vec![unknown; program.ops.len()],
            order,
            next,
            stop: fill,
            wait: [Wait::Nothing; QUEUES],
            satisfied: [0; QUEUES],
            free: [0; QUEUES],
            last: [OpId(0); QUEUES],
            runs,
            asked: [0; QUEUES],
            slot: None,
            slot_last: OpId(0),
            issue,
            issued: 1,
            reach: PENDING,
            channel_busy: false,
            transfer: [0; 2],
            busy: [0; ENGINES],
            credit_wait: 0,
            message_wait: 0,
        }
    }

    /// Takes the op at the head out of a queue.
    pub fn pop(&mut self, queue: usize, op: OpId, now: Ps) {
        (self.free[queue], self.last[queue], self.satisfied[queue]) = (now, op, 0);
        self.next[queue] += 1;
    }

    /// The op at the head of a queue.
    pub fn head(&self, queue: usize) -> Option<OpId> {
        (self.next[queue] < self.stop[queue]).then(|| OpId(self.order[self.next[queue] as usize]))
    }
}

/// Calls `f` with each queue an op stands in. Where there are composites, a dot stands in FETCH, too: what
/// is behind it may not fetch while it does.
pub(super) fn for_each_queue(program: &PeProgram, kind: &OpKind, mut f: impl FnMut(usize)) {
    let engine = kind.engine() as usize;
    if program.composites.is_empty() || engine != Engine::Gemm as usize {
        return f(engine);
    }
    f(FETCH);
    if !matches!(kind, OpKind::Composite { .. }) {
        return f(engine);
    }
    let engines = program.engines(kind);
    (0..ENGINES).filter(|e| engines[*e]).for_each(&mut f);
    f(STORE);
}
