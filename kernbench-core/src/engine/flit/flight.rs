//! A transfer on its way: how it is cut into flits, and how far it has come.

use super::super::fabric::{End, Hop, Path, Paths};
use super::super::wires::{Load, Sink};
use super::memory;
use super::train::{FlitTimes, Segment, Train};
use crate::topology::Hbm;
use crate::units::Ps;
use smallvec::SmallVec;

#[derive(Debug)]
pub(super) struct Flight {
    pub load: Load,
    pub sink: Sink,
    /// Its first hop, and one past its last.
    pub first_hop: u32,
    pub stop: u32,
    pub start_ps: Ps,
    /// The bytes of its short flits; 0 if it has none.
    short_bytes: u64,
    /// How many flits a run has.
    pub flits_per_run: u32,
    pub flits: u32,
    /// Flits at the sink, and the last of their ends.
    pub ended: u32,
    pub done_ps: Ps,
    /// How long it takes alone on the machine.
    pub alone_ps: Ps,
    /// Its legs.
    pub legs: Vec<u32>,
}

impl Flight {
    pub fn new(path: Path, load: Load, sink: Sink, at: Ps, flit_bytes: u64) -> Self {
        let flits_per_run = load.run_bytes.div_ceil(flit_bytes) as u32;
        Flight {
            load,
            sink,
            first_hop: path.first,
            stop: path.first + path.len,
            start_ps: at,
            short_bytes: load.run_bytes % flit_bytes,
            flits_per_run,
            flits: flits_per_run * load.runs as u32,
            ended: 0,
            done_ps: 0,
            alone_ps: 0,
            legs: vec![],
        }
    }

    /// What flits hold an edge.
    pub fn times(&self, hop: &Hop, flit_bytes: u64) -> FlitTimes {
        let short = if self.short_bytes == 0 { 0 } else { hop.flit_time(self.short_bytes, flit_bytes) };
        FlitTimes { full: hop.flit_ps, short, propagation: hop.propagation_ps }
    }

    /// All flits at one instant.
    pub fn train(&self, time: Ps) -> Train {
        let mut train = Train { first: 0, segments: SmallVec::new() };
        let short = u32::from(self.short_bytes > 0);
        let (full, runs) = (self.flits_per_run - short, self.load.runs as u32);
        let mut push = |count, short| {
            if count > 0 {
                train.push(Segment { time, step: 0, count, short });
            }
        };
        match (full, short) {
            (0, _) => push(runs, true),
            (_, 0) => push(full * runs, false),
            _ => (0..runs).for_each(|_| {
                push(full, false);
                push(1, true);
            }),
        }
        train
    }

    /// How long it takes alone on the machine.
    pub fn alone(&self, paths: &Paths, hbm: &Hbm, flit_bytes: u64, idle: &mut [Ps]) -> Ps {
        let mut train = self.train(0);
        for hop in &paths.hops[self.first_hop as usize..self.stop as usize] {
            let open = train.head() + hop.decode_ps;
            (train, _) = train.over(&self.times(hop, flit_bytes), open, 0);
            if hop.end == End::Gather {
                train = self.train(train.last() + hop.overhead_ps);
            }
        }
        match self.sink {
            Sink::Pe => train.last(),
            Sink::Hbm(_) => {
                idle.fill(0);
                memory::commit(hbm, flit_bytes, idle, self, &train)
            }
        }
    }
}
