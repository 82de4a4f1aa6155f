//! Launches that share a machine: when each begins, and which one keeps the others from going on (rule 5 of
//! the machine).
//!
//! A launch takes its stamp as soon as the host knows that those before it have completed; what its PEs do comes
//! later than that, so it is set going at once.

use super::sim::Simulation;
use super::state::{PENDING, Pe};
use super::wires::Wires;
use super::{Options, Submitted};
use crate::ir::Program;
use crate::units::Ps;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// A launch of a simulation.
pub(super) struct Launch<'a> {
    pub program: &'a Program,
    pub options: &'a Options<'a>,
    /// The positions of its PEs.
    pub pes: Range<usize>,
    /// The position of its first link.
    pub first_link: usize,
    /// What it takes from the host to the PEs, and back.
    overhead_ps: Ps,
    /// The launches before it that have not completed.
    before: Vec<usize>,
    /// When the host may let it start, as far as is known.
    due_ps: Ps,
    pub completed: usize,
    pub total: usize,
    /// Its stamp.
    pub start_ps: Ps,
    /// The last completion of an op or arrival of a message so far.
    pub end_ps: Ps,
}

impl<'a> Launch<'a> {
    fn is_under_way(&self) -> bool {
        self.start_ps != PENDING && self.completed < self.total
    }

    fn limit(&self) -> Ps {
        self.start_ps.saturating_add(self.options.max_ps.unwrap_or(Ps::MAX))
    }
}

impl<'a, W: Wires> Simulation<'a, W> {
    /// Adds a launch that has not begun.
    pub fn add(&mut self, submitted: &'a Submitted<'a>) {
        let Submitted { program, options, submitted_ps, overhead_ps, after } = submitted;
        let (launch, first) = (self.launches.len(), self.pes.len());
        self.pes.extend(program.pes.iter().map(|pe| Pe::new(pe, launch as u32, options.issue)));
        self.programs.extend(&program.pes);
        self.groups.add(self.fabric, program);
        let from = (*program, first);
        let first_link = self.links.add(self.fabric, from, &self.ids, &options.slots, &mut self.paths);
        self.launches.push(Launch {
            program,
            options,
            pes: first..self.pes.len(),
            first_link,
            overhead_ps: *overhead_ps,
            before: after.clone(),
            due_ps: *submitted_ps,
            completed: 0,
            total: program.op_count(),
            start_ps: PENDING,
            end_ps: 0,
        });
    }

    /// The launch of a PE.
    pub fn launch(&self, p: usize) -> &Launch<'a> {
        &self.launches[self.pes[p].launch as usize]
    }

    /// Begins the launches that wait for none.
    pub fn begin_first(&mut self) {
        for l in 0..self.launches.len() {
            if self.launches[l].before.is_empty() && self.launches[l].start_ps == PENDING {
                self.begin_launch(l);
            }
        }
    }

    fn begin_launch(&mut self, l: usize) {
        self.take_stamp(l);
        for p in self.launches[l].pes.clone() {
            self.begin(p);
        }
        if self.launches[l].total == 0 {
            self.complete_launch(l);
        }
    }

    /// Takes the stamp at which all PEs of a launch start.
    pub fn take_stamp(&mut self, l: usize) {
        let launch = &mut self.launches[l];
        launch.start_ps = launch.due_ps + launch.overhead_ps;
        launch.end_ps = launch.start_ps;
        self.limit = self.limit.min(launch.limit());
        let cpu = &self.machine.pe_cpu;
        let first_reach = launch.start_ps + cpu.start_ps + cpu.issue_ps + cpu.dispatch_ps;
        self.pes[launch.pes.clone()].iter_mut().for_each(|pe| pe.reach = first_reach);
    }

    /// All ops of a launch are complete: those that waited for it last begin.
    pub fn complete_launch(&mut self, done: usize) {
        let known_ps = self.launches[done].end_ps + self.launches[done].overhead_ps;
        let under_way = self.launches.iter().filter(|launch| launch.is_under_way());
        self.limit = under_way.map(Launch::limit).min().unwrap_or(Ps::MAX);
        for l in done + 1..self.launches.len() {
            let launch = &mut self.launches[l];
            let before = launch.before.len();
            launch.before.retain(|b| *b != done);
            if launch.before.len() == before {
                continue;
            }
            launch.due_ps = launch.due_ps.max(known_ps);
            if launch.before.is_empty() {
                self.begin_launch(l);
            }
        }
    }

    /// A launch that somebody has cancelled.
    pub fn cancelled(&self) -> Option<usize> {
        let is_set = |launch: &Launch| launch.options.cancel.is_some_and(|c| c.load(Ordering::Relaxed));
        self.launches.iter().position(|launch| launch.completed < launch.total && is_set(launch))
    }

    /// The launch that has reached its time limit first, and the limit.
    pub fn over_limit(&self) -> (usize, Ps) {
        let over = |launch: &Launch| launch.is_under_way() && launch.limit() == self.limit;
        let l = self.launches.iter().position(over).unwrap_or(0);
        (l, self.launches[l].options.max_ps.unwrap_or(Ps::MAX))
    }

    /// The first launch that has not come to its end.
    pub fn unfinished(&self) -> Option<usize> {
        self.launches.iter().position(|launch| launch.completed < launch.total)
    }
}
