//! The loop of a simulation: PEs issue, engines serve, completions wake what waits for them.

use super::Submitted;
use super::barrier::Groups;
use super::composite::Stage;
use super::cost::compute_ps;
use super::fabric::{Fabric, Paths};
use super::ids::{Ids, Owner};
use super::ipcq::Links;
use super::launches::Launch;
use super::queue::{Event, EventKind, Queue};
use super::stall::{Reason, Stall};
use super::state::{FETCH, PENDING, Pe, QUEUES, Wait, for_each_queue};
use super::timing::{Cause, OpRef, PeTiming, Timing};
use super::wires::{Notice, Progress, Wires};
use crate::ir::{Engine, OpId, OpKind, PeProgram};
use crate::topology::{IssueMode, Machine};
use crate::units::Ps;

/// How many events go by between two looks at the cancel flag.
const CANCEL_STRIDE: u64 = 1024;

pub(super) struct Simulation<'a, W> {
    pub fabric: &'a dyn Fabric,
    pub machine: &'a Machine,
    pub launches: Vec<Launch<'a>>,
    /// By position of the PE in the simulation: those of the first launch, then those of the next.
    pub programs: Vec<&'a PeProgram>,
    pub queue: Queue,
    pub paths: Paths,
    pub wires: W,
    pub pes: Vec<Pe>,
    pub ids: Ids,
    pub links: Links,
    pub groups: Groups,
    /// The first time at which a launch under way is given up.
    pub limit: Ps,
    events: u64,
}

impl<'a, W: Wires> Simulation<'a, W> {
    pub fn new(fabric: &'a dyn Fabric, submitted: &'a [Submitted<'a>], ids: Ids, wires: W) -> Self {
        let mut sim = Simulation {
            fabric,
            machine: fabric.machine(),
            launches: vec![],
            programs: vec![],
            queue: Queue::default(),
            paths: Paths::default(),
            wires,
            pes: vec![],
            ids,
            links: Links::default(),
            groups: Groups::default(),
            limit: Ps::MAX,
            events: 0,
        };
        for launch in submitted {
            sim.add(launch);
        }
        sim
    }

    /// The times of each launch, or the position of one that cannot go on.
    pub fn run(mut self) -> Result<Vec<Timing>, (usize, Box<Stall>)> {
        self.begin_first();
        self.drain()
    }

    /// Handles events until there are none.
    pub fn drain(mut self) -> Result<Vec<Timing>, (usize, Box<Stall>)> {
        loop {
            if self.events.is_multiple_of(CANCEL_STRIDE)
                && let Some(l) = self.cancelled()
            {
                return Err(self.stall(l, Reason::Cancelled, self.launches[l].end_ps));
            }
            self.events += 1;
            // What PEs do at an instant comes before what happens on the wires at it.
            let next = self.queue.next_ps();
            match self.wires.run(&self.paths, next.min(self.limit.saturating_add(1))) {
                Progress::Told(id, notice) => {
                    self.told(id, notice);
                    continue;
                }
                Progress::Paused => continue,
                Progress::Idle => {}
            }
            if next > self.limit && !(next == Ps::MAX && self.wires.is_idle()) {
                let (l, most) = self.over_limit();
                return Err(self.stall(l, Reason::TimeLimit(most), self.limit));
            }
            let Some(event) = self.queue.pop() else { break };
            self.handle(event);
        }
        if let Some(l) = self.unfinished() {
            return Err(self.stall(l, Reason::Deadlock, self.launches[l].end_ps));
        }
        for l in 0..self.launches.len() {
            if let Some(stall) = self.broken_law(l) {
                return Err((l, stall));
            }
        }
        Ok(self.timings())
    }

    fn stall(&self, launch: usize, reason: Reason, at: Ps) -> (usize, Box<Stall>) {
        (launch, Stall::of(self, launch, reason, at))
    }

    /// Lets the engines of a PE look at their first ops.
    pub fn begin(&mut self, p: usize) {
        for q in 0..QUEUES {
            self.advance(p, q);
        }
    }

    pub fn handle(&mut self, event: Event) {
        let (Owner { pe: p, op, stage }, composite) = self.owner(event.id);
        match event.kind {
            EventKind::Done if composite => self.stage_done(p, op, Stage::of(stage), event.time),
            EventKind::Ready if composite && stage == 0 => self.pump(p, op, event.time),
            EventKind::Ready if composite => self.ask_slot(p, op, Stage::of(stage), event.time),
            EventKind::Done => self.done(p, op, event.time),
            EventKind::Left => self.left(p, op, event.time),
            EventKind::Visible => self.visible(p, op, event.time),
            EventKind::Poll => self.take_channel(p, op, event.time),
            EventKind::Ready => self.ready(p, op, event.time),
            // Heads travel in a queue of their own.
            EventKind::Head => {}
        }
    }

    /// The op of an id, and whether that is a composite.
    fn owner(&self, id: u32) -> (Owner, bool) {
        let owner = self.ids.owner(id);
        let composite = !self.programs[owner.pe].composites.is_empty()
            && matches!(self.kind(owner.pe, owner.op), OpKind::Composite { .. });
        (owner, composite)
    }

    fn told(&mut self, id: u32, notice: Notice) {
        let (Owner { pe: p, op, stage }, composite) = self.owner(id);
        if let Some(left) = notice.left_ps
            && matches!(self.kind(p, op), OpKind::Send { .. })
        {
            self.queue.push(left, EventKind::Left, id);
        }
        if let Some(arrival) = notice.arrival {
            self.pes[p].ops[op.at()].contention_ps += arrival.contention_ps;
            if composite {
                self.part_arrived(p, op, Stage::of(stage), arrival.done_ps);
            } else {
                self.arrived(p, op, arrival.done_ps);
            }
        }
    }

    fn timings(self) -> Vec<Timing> {
        let events = self.events + self.wires.events();
        let mut pes = self.pes.into_iter().zip(self.programs);
        let timing = |launch: Launch| {
            let first = launch.pes.start as u32;
            let pe = |(mut pe, program): (Pe, &PeProgram)| {
                let peers = pe.ops.iter_mut().filter_map(|t| t.peer.as_mut());
                peers.for_each(|peer| peer.pe -= first);
                PeTiming {
                    pe: program.pe,
                    ops: pe.ops,
                    busy_ps: pe.busy,
                    credit_wait_ps: pe.credit_wait,
                    message_wait_ps: pe.message_wait,
                }
            };
            let pes = pes.by_ref().take(launch.pes.len()).map(pe).collect();
            Timing { start_ps: launch.start_ps, end_ps: launch.end_ps, pes, events }
        };
        self.launches.into_iter().map(timing).collect()
    }

    pub fn locate(&self, id: u32) -> (usize, OpId) {
        let Owner { pe, op, .. } = self.ids.owner(id);
        (pe, op)
    }

    pub fn id(&self, p: usize, op: OpId) -> u32 {
        self.ids.id(p, op, 0)
    }

    pub fn op_ref(&self, id: u32) -> OpRef {
        let (p, op) = self.locate(id);
        OpRef { pe: p as u32, op }
    }

    pub fn pe_program(&self, p: usize) -> &'a PeProgram {
        self.programs[p]
    }

    pub fn kind(&self, p: usize, op: OpId) -> &'a OpKind {
        &self.programs[p].ops[op.at()].kind
    }

    pub fn at(&mut self, p: usize, op: OpId, time: Ps, kind: EventKind) {
        let id = self.id(p, op);
        self.queue.push(time, kind, id);
    }

    /// When an issued op reaches its engine.
    fn reach(&self, p: usize, op: OpId) -> Ps {
        let pe = &self.pes[p];
        match pe.issue {
            IssueMode::Blocking => pe.reach,
            IssueMode::Dataflow => pe.reach + u64::from(op.0) * self.machine.pe_cpu.issue_ps,
        }
    }

    /// Looks at the head of an engine that serves nothing: notes what it waits for, or lets it go on.
    pub fn advance(&mut self, p: usize, e: usize) {
        let pe = &mut self.pes[p];
        let Some(op) = pe.head(e) else {
            pe.wait[e] = Wait::Nothing;
            return;
        };
        if pe.issue == IssueMode::Blocking && op.0 >= pe.issued {
            pe.wait[e] = Wait::Issue;
            return;
        }
        let edges = self.programs[p].edges_of(op);
        for edge in &edges[pe.satisfied[e] as usize..] {
            if pe.ops[edge.op().at()].end_ps == PENDING {
                pe.wait[e] = Wait::Edge(edge.op());
                return;
            }
            pe.satisfied[e] += 1;
        }
        pe.wait[e] = Wait::Due;
        let (mut ready, mut cause) = (self.reach(p, op), Cause::Issue);
        let pe = &mut self.pes[p];
        for edge in edges {
            let end = pe.ops[edge.op().at()].end_ps;
            if end > ready || (end == ready && cause == Cause::Issue) {
                (ready, cause) = (end, Cause::Edge(edge.op()));
            }
        }
        if let OpKind::Composite { .. } = &self.programs[p].ops[op.at()].kind {
            let start = ready.max(pe.free[e]);
            pe.ops[op.at()].ready_ps = ready;
            return self.enter(p, op, e, cause, start);
        }
        if e == FETCH {
            // A dot: it takes its turn there when it takes its engine.
            return;
        }
        let mut start = ready;
        if pe.free[e] > ready {
            (start, cause) = (pe.free[e], Cause::Engine(pe.last[e]));
        }
        let t = &mut pe.ops[op.at()];
        (t.ready_ps, t.start_ps, t.cause) = (ready, start, cause);
        match self.kind(p, op) {
            OpKind::Load { .. } | OpKind::Store { .. } => {
                self.pes[p].transfer[e] = 0;
                self.next_transfer(p, op, start);
            }
            OpKind::Fence | OpKind::Join { .. } | OpKind::RecvAsync { .. } => {
                self.at(p, op, start, EventKind::Done)
            }
            kind if kind.engine() == Engine::Ipcq || kind.engine() == Engine::Sync => {
                self.at(p, op, start, EventKind::Ready);
            }
            _ if self.machine.accel_slot => self.at(p, op, start, EventKind::Ready),
            _ => self.compute(p, op, start),
        }
    }

    fn ready(&mut self, p: usize, op: OpId, now: Ps) {
        match self.kind(p, op) {
            OpKind::Send { .. } => self.take_credit(p, op, now),
            OpKind::Recv { .. } | OpKind::Wait { .. } => self.receive(p, op, now),
            OpKind::Barrier { group } => self.meet(p, op, *group, now),
            kind => {
                let (pe, e) = (&mut self.pes[p], kind.engine() as usize);
                if pe.slot.is_some() {
                    (pe.wait[e], pe.asked[e]) = (Wait::Slot, now);
                } else {
                    self.pes[p].slot = Some(op);
                    self.compute(p, op, now);
                }
            }
        }
    }

    fn compute(&mut self, p: usize, op: OpId, now: Ps) {
        let takes = compute_ps(self.machine, self.pe_program(p), self.kind(p, op));
        self.at(p, op, now + takes, EventKind::Done);
    }

    /// Gives the accelerator slot to the one that was ready first, ties to the lower op.
    pub fn release_slot(&mut self, p: usize, op: OpId, now: Ps) {
        let pe = &mut self.pes[p];
        (pe.slot, pe.slot_last) = (None, op);
        let waiting = [Engine::Math as usize, Engine::Gemm as usize]
            .into_iter()
            .filter(|&e| pe.wait[e] == Wait::Slot)
            .filter_map(|e| pe.head(e).map(|op| (pe.asked[e], op, e)));
        let Some((_, next, e)) = waiting.min() else { return };
        pe.wait[e] = Wait::Due;
        pe.slot = Some(next);
        if matches!(self.programs[p].ops[next.at()].kind, OpKind::Composite { .. }) {
            let stage = if e == Engine::Math as usize { Stage::Math } else { Stage::Gemm };
            return self.work(p, next, stage, now);
        }
        let t = &mut pe.ops[next.at()];
        if now > t.start_ps {
            (t.start_ps, t.cause) = (now, Cause::Slot(op));
        }
        self.compute(p, next, now);
    }

    fn done(&mut self, p: usize, op: OpId, now: Ps) {
        let kind = self.kind(p, op);
        let engine = kind.engine();
        let e = engine as usize;
        let pe = &mut self.pes[p];
        let t = &mut pe.ops[op.at()];
        t.end_ps = now;
        match engine {
            Engine::Ipcq | Engine::Sync => {}
            _ => pe.busy[e] += now - t.start_ps,
        }
        match kind {
            OpKind::Recv { .. } | OpKind::Wait { .. } => {
                pe.busy[e] += now - t.data_ps;
                pe.message_wait += t.data_ps - t.start_ps;
            }
            OpKind::Send { .. } | OpKind::Barrier { .. } => {}
            _ => t.data_ps = now,
        }
        pe.pop(e, op, now);
        match kind {
            OpKind::Recv { .. } | OpKind::Wait { .. } => self.return_credit(p, op, now),
            _ if self.pes[p].slot == Some(op) => self.release_slot(p, op, now),
            _ => {}
        }
        self.advance(p, e);
        if self.pes[p].head(FETCH) == Some(op) {
            self.leave(p, op, FETCH, now);
        }
        self.complete(p, op, now);
    }

    /// Takes an op out of a queue and lets the next one look.
    pub fn leave(&mut self, p: usize, op: OpId, queue: usize, now: Ps) {
        self.pes[p].pop(queue, op, now);
        self.advance(p, queue);
    }

    /// An op is complete: those that wait for it look again.
    pub fn complete(&mut self, p: usize, op: OpId, now: Ps) {
        self.pes[p].ops[op.at()].end_ps = now;
        for queue in 0..QUEUES {
            if self.pes[p].wait[queue] == Wait::Edge(op) {
                self.advance(p, queue);
            }
        }
        if self.pes[p].issue == IssueMode::Blocking {
            self.issue_next(p, op, now);
        }
        let l = self.pes[p].launch as usize;
        let launch = &mut self.launches[l];
        launch.completed += 1;
        launch.end_ps = launch.end_ps.max(now);
        if launch.completed == launch.total {
            self.complete_launch(l);
        }
    }

    fn issue_next(&mut self, p: usize, op: OpId, now: Ps) {
        let Some(next) = self.programs[p].ops.get(op.at() + 1) else { return };
        let cpu = &self.machine.pe_cpu;
        self.pes[p].issued = op.0 + 2;
        self.pes[p].reach = now + cpu.issue_ps + cpu.dispatch_ps;
        for_each_queue(self.pe_program(p), &next.kind, |q| self.advance(p, q));
    }
}
