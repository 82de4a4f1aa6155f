//! The op log: what happened in a context, one record for each op of each launch.
//!
//! Invariant: records are views made on the fly of a program and its timing; the log holds no string
//! and nothing twice.

mod record;
#[cfg(test)]
mod tests;
mod text;

pub use record::{Kind, Record};

use crate::engine::{Fidelity, Timing};
use crate::ir::{OpId, Program};
use crate::topology::{BufferKind, IssueMode, Machine};
use crate::units::Ps;
use std::sync::Arc;

/// All launches of a context, in order of submission.
#[derive(Clone, Debug)]
pub struct OpLog {
    /// The machine they ran on.
    pub machine: Arc<Machine>,
    /// The launches.
    pub launches: Vec<Arc<LaunchLog>>,
}

/// One launch: what was to be done and when it was.
#[derive(Clone, Debug)]
pub struct LaunchLog {
    /// The op graph.
    pub program: Arc<Program>,
    /// When each op ran.
    pub timing: Timing,
    /// When the launch was submitted; its PEs start at [`Timing::start_ps`].
    pub submitted_ps: Ps,
    /// How its PEs issued.
    pub issue: IssueMode,
    /// Where its queues had their slots.
    pub slots: BufferKind,
    /// How exactly its bytes were moved.
    pub fidelity: Fidelity,
}

impl OpLog {
    /// An empty log.
    #[must_use]
    pub fn new(machine: Arc<Machine>) -> Self {
        OpLog { machine, launches: vec![] }
    }

    /// Every record in logical order: by launch, PE and op.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        (0..self.launches.len()).flat_map(|launch| self.launch(launch))
    }

    /// The records of one launch in logical order.
    pub fn launch(&self, launch: usize) -> impl Iterator<Item = Record<'_>> {
        let log = &self.launches[launch];
        let machine = &*self.machine;
        log.program.pes.iter().enumerate().flat_map(move |(position, program)| {
            (0..program.ops.len() as u32).map(move |op| Record {
                machine,
                launch,
                log,
                program,
                position,
                op: OpId(op),
            })
        })
    }

    /// Every record in order of start, then launch, PE and op.
    #[must_use]
    pub fn timed(&self) -> Vec<Record<'_>> {
        let mut records: Vec<Record<'_>> = self.records().collect();
        // Stable, so that equal starts keep the logical order.
        records.sort_by_key(Record::start_ps);
        records
    }

    /// How many records have a name: `log.count("dma_write")`.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        self.records().filter(|r| r.name() == name).count()
    }

    /// The records that satisfy a predicate, in logical order.
    pub fn filter<'a>(
        &'a self,
        predicate: impl Fn(&Record<'a>) -> bool + 'a,
    ) -> impl Iterator<Item = Record<'a>> {
        self.records().filter(move |r| predicate(r))
    }
}
