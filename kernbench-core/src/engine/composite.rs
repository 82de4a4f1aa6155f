//! Composite GEMMs: a pipeline of stages over the tiles of one op (rule 6 of the machine).
//!
//! A step is one K tile of one output tile; steps go through the output row by row, K innermost.
//!
//! | stage | item | takes | begins when its engine is free and |
//! |---|---|---|---|
//! | read | step | its tiles of operands in HBM, one transfer after another, each until its response | a buffer of each is free: the step two tiles back is fetched |
//! | fetch | step | both operand tiles out of TCM | they are read; the product two steps back is done |
//! | gemm | step | one tile of the matrix engine, in the accelerator slot | they are fetched; a result buffer is free |
//! | math | step (with a step at a K tile) or output tile | the steps of the epilogue, and one that adds a K tile up, in the slot | the product is done |
//! | store | output tile | the tile into TCM | its last math, or product, is done; a buffer on the way to HBM is free |
//! | write | output tile | one transfer after another, each until its response | it is stored |
//!
//! Everything that waits between two stages is double-buffered: operand tiles and output tiles in scratch
//! ([`crate::ir::Composite::workspace_bytes`]), fetched operands and results in the engine. A step at
//! `Level::Kernel` is one more math item when all output tiles are stored; writing begins after it.
//!
//! **Program order.** A composite stands in the queue of every engine it needs and is served there, whole,
//! in its turn: a load behind it waits for its last read, not for its end. FETCH and STORE have queues of
//! their own. A `dot` keeps FETCH from composites behind it until it is done; its own store is part of its
//! formula and does not meet the stores of composites.

use super::cost::stage_ps;
use super::fabric::{Path, Purpose};
use super::queue::EventKind;
use super::sim::Simulation;
use super::state::{ENGINES, FETCH, PENDING, QUEUES, STORE, Wait};
use super::timing::Cause;
use super::wires::{Load, Sink, Wires};
use crate::ir::{AccessId, Composite, Engine, Level, OpId, OpKind, PeId, TILE_BUFFERS};
use crate::units::Ps;

/// A stage; its number is that of its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Read = 0,
    Fetch = 1,
    Gemm = 2,
    Math = 3,
    Store = 4,
    Write = 5,
}

impl Stage {
    const ALL: [Stage; 6] = [Stage::Read, Stage::Fetch, Stage::Gemm, Stage::Math, Stage::Store, Stage::Write];

    pub const fn of(number: u32) -> Stage {
        Stage::ALL[number as usize]
    }

    /// The queue in which composites wait for it.
    pub const fn queue(self) -> usize {
        match self {
            Stage::Read => Engine::DmaRead as usize,
            Stage::Fetch => FETCH,
            Stage::Gemm => Engine::Gemm as usize,
            Stage::Math => Engine::Math as usize,
            Stage::Store => STORE,
            Stage::Write => Engine::DmaWrite as usize,
        }
    }
}

/// How far a composite is.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// Items of each stage: how many there are, are done, and whether one is under way, since when.
    total: [u32; 6],
    done: [u32; 6],
    busy: [bool; 6],
    since: [Ps; 6],
    /// Whether it is at the head of a stage's queue, and whether it has left it.
    open: [bool; 6],
    left: [bool; 6],
    /// What it waited for last before it could start.
    cause: Cause,
    /// The next transfer of the item of each DMA channel.
    transfer: [u32; 2],
    /// K tiles of an output tile, and of the math items those that are no step at `Level::Kernel`.
    k_tiles: u32,
    tile_math: u32,
    by_k: bool,
    kernel: bool,
}

impl Run {
    pub fn new(c: &Composite, engines: [bool; ENGINES]) -> Self {
        let (steps, outputs) = (c.steps(), c.output_tiles());
        let by_k = c.has(Level::KTile);
        let kernel = c.has(Level::Kernel) && outputs > 0;
        let tile_math = match (by_k, c.has(Level::OutputTile)) {
            (true, _) => steps,
            (false, true) => outputs,
            (false, false) => 0,
        };
        let reads = c.a.access().or(c.b.access()).map_or(0, |_| steps);
        let writes = c.out.access().map_or(0, |_| outputs);
        let total = [reads, steps, steps, tile_math + u32::from(kernel), outputs, writes];
        // Queues it does not stand in count as left.
        let mut left = [true; 6];
        for stage in Stage::ALL {
            left[stage as usize] = engines.get(stage.queue()).is_some_and(|serves| !serves);
        }
        Run {
            total,
            done: [0; 6],
            busy: [false; 6],
            since: [0; 6],
            open: [false; 6],
            left,
            cause: Cause::Issue,
            transfer: [0; 2],
            k_tiles: c.tiles()[1],
            tile_math,
            by_k,
            kernel,
        }
    }

    /// Whether what the next item of a stage needs is there, its engine apart.
    fn may_start(&self, c: &Composite, stage: Stage) -> bool {
        let [read, fetched, multiplied, math, stored, written] = self.done;
        match stage {
            Stage::Read => (0..2).all(|x| c.read(x, read).is_none() || fetched + c.run(x) >= read),
            Stage::Fetch => (self.total[0] == 0 || read > fetched) && fetched < multiplied + TILE_BUFFERS,
            Stage::Gemm if self.by_k => fetched > multiplied && multiplied < math + TILE_BUFFERS,
            Stage::Gemm => fetched > multiplied && multiplied / self.k_tiles < stored + TILE_BUFFERS,
            Stage::Math if math == self.tile_math => stored == self.total[4],
            Stage::Math if self.by_k => multiplied > math && math / self.k_tiles < stored + TILE_BUFFERS,
            Stage::Math => multiplied / self.k_tiles > math,
            Stage::Store => {
                let ready = match (self.by_k, self.tile_math) {
                    (true, _) => math / self.k_tiles,
                    (false, 0) => multiplied / self.k_tiles,
                    (false, _) => math,
                };
                ready > stored && (self.kernel || self.total[5] == 0 || stored < written + TILE_BUFFERS)
            }
            Stage::Write if self.kernel => math == self.total[3],
            Stage::Write => stored > written,
        }
    }

    /// Whether all items of a stage are done. STORE is kept until the whole output is final, so that
    /// composites read and write scratch in order.
    fn is_over(&self, stage: Stage) -> bool {
        let over = |s: Stage| self.done[s as usize] == self.total[s as usize];
        over(stage) && (stage != Stage::Store || over(Stage::Math))
    }
}

impl<'a, W: Wires> Simulation<'a, W> {
    /// A composite, and which of its PE it is.
    fn composite(&self, p: usize, op: OpId) -> (usize, &'a Composite) {
        let program = self.pe_program(p);
        match self.kind(p, op) {
            OpKind::Composite { composite } => {
                (self.ids.composites_before(p, op), program.composite(*composite))
            }
            // Only called for composites.
            _ => (0, &program.composites[0]),
        }
    }

    /// A composite with its edges satisfied is at the head of a queue from `start` on.
    pub fn enter(&mut self, p: usize, op: OpId, queue: usize, cause: Cause, start: Ps) {
        let run = self.composite(p, op).0;
        let pe = &mut self.pes[p];
        let run = &mut pe.runs[run];
        if pe.ops[op.at()].start_ps == PENDING {
            run.cause = cause;
        }
        for stage in Stage::ALL {
            if stage.queue() == queue {
                run.open[stage as usize] = true;
            }
        }
        self.at(p, op, start, EventKind::Ready);
    }

    /// Starts what can start, and leaves the queues of stages that are over.
    pub fn pump(&mut self, p: usize, op: OpId, now: Ps) {
        let (r, _) = self.composite(p, op);
        for stage in Stage::ALL {
            let s = stage as usize;
            let run = &self.pes[p].runs[r];
            if !run.open[s] || run.busy[s] || run.left[s] {
                continue;
            }
            if run.is_over(stage) {
                self.pes[p].runs[r].left[s] = true;
                self.leave(p, op, stage.queue(), now);
            } else if run.done[s] < run.total[s] && run.may_start(self.composite(p, op).1, stage) {
                self.start(p, op, stage, now);
            }
        }
        let pe = &mut self.pes[p];
        if pe.runs[r].left == [true; 6] && pe.ops[op.at()].end_ps == PENDING {
            let t = &mut pe.ops[op.at()];
            if t.start_ps == PENDING {
                (t.start_ps, t.cause) = (t.ready_ps, pe.runs[r].cause);
            }
            t.data_ps = now;
            self.complete(p, op, now);
        }
    }

    fn start(&mut self, p: usize, op: OpId, stage: Stage, now: Ps) {
        let r = self.composite(p, op).0;
        let pe = &mut self.pes[p];
        let run = &mut pe.runs[r];
        (run.busy[stage as usize], run.since[stage as usize]) = (true, now);
        let t = &mut pe.ops[op.at()];
        if t.start_ps == PENDING {
            let engine = Cause::Engine(pe.last[stage.queue()]);
            (t.start_ps, t.cause) = (now, if now > t.ready_ps { engine } else { run.cause });
        }
        match stage {
            Stage::Read | Stage::Write => {
                run.transfer[usize::from(stage == Stage::Write)] = 0;
                self.next_part(p, op, stage, now);
            }
            Stage::Gemm | Stage::Math if self.machine.accel_slot => {
                self.at_stage(p, op, stage, now, EventKind::Ready);
            }
            _ => self.work(p, op, stage, now),
        }
    }

    /// An item of GEMM or MATH takes the accelerator slot, or waits for it.
    pub fn ask_slot(&mut self, p: usize, op: OpId, stage: Stage, now: Ps) {
        let pe = &mut self.pes[p];
        if pe.slot.is_some() {
            pe.wait[stage.queue()] = Wait::Slot;
            pe.asked[stage.queue()] = now;
        } else {
            pe.slot = Some(op);
            self.work(p, op, stage, now);
        }
    }

    /// An item begins that takes a time of its own.
    pub fn work(&mut self, p: usize, op: OpId, stage: Stage, now: Ps) {
        let (r, c) = self.composite(p, op);
        let run = &self.pes[p].runs[r];
        let item = run.done[stage as usize];
        let takes = stage_ps(self.machine, c, stage, item, item >= run.tile_math);
        self.pes[p].runs[r].since[stage as usize] = now;
        self.at_stage(p, op, stage, now + takes, EventKind::Done);
    }

    /// An item is done.
    pub fn stage_done(&mut self, p: usize, op: OpId, stage: Stage, now: Ps) {
        let r = self.composite(p, op).0;
        let pe = &mut self.pes[p];
        let run = &mut pe.runs[r];
        run.busy[stage as usize] = false;
        run.done[stage as usize] += 1;
        if let Some(busy) = pe.busy.get_mut(stage.queue()) {
            *busy += now - run.since[stage as usize];
        }
        if matches!(stage, Stage::Gemm | Stage::Math) && self.machine.accel_slot {
            self.release_slot(p, op, now);
        }
        self.pump(p, op, now);
    }

    /// The accesses of the item under way on a DMA channel.
    fn parts(&self, p: usize, op: OpId, stage: Stage) -> [Option<AccessId>; 2] {
        let (r, c) = self.composite(p, op);
        let item = self.pes[p].runs[r].done[stage as usize];
        match stage {
            Stage::Write => [c.write(item), None],
            _ => [c.read(0, item), c.read(1, item)],
        }
    }

    /// Starts the next transfer of an item at `at`, or completes the item then.
    fn next_part(&mut self, p: usize, op: OpId, stage: Stage, at: Ps) {
        let (program, r) = (self.pe_program(p), self.composite(p, op).0);
        let channel = usize::from(stage == Stage::Write);
        let parts = self.parts(p, op, stage).into_iter().flatten();
        let from = self.pes[p].runs[r].transfer[channel];
        let next = parts.flat_map(|access| program.transfers_of(access)).enumerate().skip(from as usize);
        let Some((n, transfer)) = next.into_iter().find(|(_, t)| t.bytes() > 0) else {
            return self.at_stage(p, op, stage, at, EventKind::Done);
        };
        self.pes[p].runs[r].transfer[channel] = n as u32 + 1;
        let path = self.path_to(p, transfer.home);
        let id = self.ids.id(p, op, stage as u32);
        let at = at + self.translation_ps(transfer);
        self.wires.start(&self.paths, id, path, Load::from(transfer), Sink::Hbm(transfer.home), at);
    }

    /// A transfer of a composite is done at its memory at `done`.
    pub fn part_arrived(&mut self, p: usize, op: OpId, stage: Stage, done: Ps) {
        let (program, r) = (self.pe_program(p), self.composite(p, op).0);
        let last = self.pes[p].runs[r].transfer[usize::from(stage == Stage::Write)] - 1;
        let parts = self.parts(p, op, stage).into_iter().flatten();
        let transfer = parts.flat_map(|access| program.transfers_of(access)).nth(last as usize);
        let home = transfer.map_or(program.pe, |t| t.home);
        let response = done + self.path_to(p, home).empty_ps;
        self.next_part(p, op, stage, response);
    }

    fn path_to(&mut self, p: usize, home: PeId) -> Path {
        let path = self.paths.get(self.fabric, Purpose::Dma, self.programs[p].pe, home);
        self.paths.path(path)
    }

    fn at_stage(&mut self, p: usize, op: OpId, stage: Stage, time: Ps, kind: EventKind) {
        let id = self.ids.id(p, op, stage as u32);
        self.queue.push(time, kind, id);
    }
}

const _: () = assert!(QUEUES == STORE + 1 && FETCH + 1 == STORE);
