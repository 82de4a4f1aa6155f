//! Why one or more launches took as long as they did: totals, rates against peaks, and where the time went.
//!
//! Everything is an integer: picoseconds, bytes, operations, and units per microsecond for rates.

mod path;
#[cfg(test)]
mod tests;

pub use path::{Row, Segment, What, critical_path};

use crate::engine::Fidelity;
use crate::ir::{Engine, PeId};
use crate::log::{LaunchLog, OpLog};
use crate::topology::{IssueMode, Machine};
use crate::ty::Dir;
use crate::units::Ps;
use serde::Serialize;
use std::collections::BTreeMap;

/// A launch of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaunchTime {
    /// The launch's name.
    pub name: String,
    /// The kernel's name.
    pub kernel: &'static str,
    /// PEs that took part.
    pub pes: u64,
    /// Its stamp, since the first one.
    pub start_ps: Ps,
    /// From its stamp to its end.
    pub makespan_ps: Ps,
}

/// The report of some launches that follow or overlap each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The launches, in order of submission.
    pub launches: Vec<LaunchTime>,
    /// How exactly bytes were moved.
    pub fidelity: Fidelity,
    /// `dataflow` or `blocking`.
    pub issue: &'static str,
    /// PEs that took part, in order.
    pub pes: Vec<PeId>,
    /// From the first stamp to the last end.
    pub makespan_ps: Ps,
    /// Ops by name.
    pub ops: BTreeMap<&'static str, u64>,
    /// Messages by the sender's direction.
    pub messages: BTreeMap<&'static str, u64>,
    /// Bytes moved.
    pub bytes: Bytes,
    /// HBM bytes per microsecond (MB/s), against all slices of the PEs that took part.
    pub hbm: Achieved,
    /// Operations of matrix products: 2 m k n of each.
    pub flop: u64,
    /// Operations per microsecond (MFLOPS) of matrix products, against the peak of all PEs for the
    /// fastest element type in use.
    pub gemm: Achieved,
    /// By engine, in the order of [`Engine::ALL`].
    pub engines: Vec<EngineUse>,
    /// Sums over all ops of what they waited.
    pub waits: Waits,
    /// Where the makespan went, largest part first; the parts sum to it exactly.
    pub time: Vec<Row>,
}

/// Bytes moved by a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bytes {
    /// Read from HBM.
    pub hbm_read: u64,
    /// Written to HBM.
    pub hbm_write: u64,
    /// Sent from PE to PE.
    pub ipcq: u64,
    /// Of the HBM bytes, those in another PE's slice.
    pub remote: u64,
}

/// A rate and its peak, per microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Achieved {
    /// What was achieved over the makespan, rounded down.
    pub per_us: u64,
    /// What the machine could do.
    pub peak_per_us: u64,
}

impl Achieved {
    fn new(units: u64, makespan_ps: Ps, peak_per_us: u64) -> Self {
        let per_us = u128::from(units) * 1_000_000 / u128::from(makespan_ps.max(1));
        Achieved { per_us: per_us as u64, peak_per_us }
    }

    /// Achieved over peak, in millionths.
    #[must_use]
    pub fn share_ppm(&self) -> u64 {
        (u128::from(self.per_us) * 1_000_000 / u128::from(self.peak_per_us.max(1))) as u64
    }
}

/// How much an engine worked, over all PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EngineUse {
    /// The engine's name.
    pub engine: &'static str,
    /// Time it worked, summed over the PEs; waiting is no work.
    pub busy_ps: Ps,
    /// That over makespan times PEs, in millionths.
    pub share_ppm: u64,
}

/// What ops waited for, summed; parts may overlap in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waits {
    /// Sends, for a free slot.
    pub credit_ps: Ps,
    /// Receives and waits, for their messages.
    pub message_ps: Ps,
    /// Transfers, for edges and channels that others held.
    pub contention_ps: Ps,
    /// Issued ops with their edges satisfied, for their engine or the accelerator slot.
    pub engine_ps: Ps,
}

impl Report {
    /// The report of one launch of a log.
    #[must_use]
    pub fn of(log: &OpLog, launch: usize) -> Report {
        Report::of_all(log, &[launch])
    }

    /// The report of some launches of a log, one at least: sums over all of them, rates over the time from the first stamp
    /// to the last end. Issue and fidelity are those of the first.
    #[must_use]
    pub fn of_all(log: &OpLog, launches: &[usize]) -> Report {
        let logs: Vec<&LaunchLog> = launches.iter().map(|&launch| &*log.launches[launch]).collect();
        let LaunchLog { issue, fidelity, .. } = logs[0];
        let machine = &*log.machine;
        let (mut ops, mut messages) = (BTreeMap::new(), BTreeMap::new());
        let (mut bytes, mut waits, mut flop, mut peak) = (Bytes::default(), Waits::default(), 0, None);
        for record in launches.iter().flat_map(|&launch| log.launch(launch)) {
            *ops.entry(record.name()).or_default() += 1;
            let [read, written] = record.hbm_bytes();
            bytes.hbm_read += read;
            bytes.hbm_write += written;
            if record.name() == "ipcq_copy" {
                bytes.ipcq += record.bytes();
                *messages.entry(record.direction().map_or("", Dir::name)).or_default() += 1;
            }
            bytes.remote += record.remote_bytes();
            flop += record.flop();
            peak = peak.max(record.gemm_type().map(|ty| machine.gemm.rate(ty).per_us));
            let t = record.timing();
            waits.contention_ps += t.contention_ps;
            waits.engine_ps += t.start_ps - t.ready_ps;
        }
        let start_ps = logs.iter().map(|l| l.timing.start_ps).min().unwrap_or(0);
        let makespan_ps = logs.iter().map(|l| l.timing.end_ps - start_ps).max().unwrap_or(0);
        let mut pes: Vec<PeId> = logs.iter().flat_map(|l| l.program.pes.iter().map(|pe| pe.pe)).collect();
        pes.sort_unstable();
        pes.dedup();
        let times = || logs.iter().flat_map(|l| &l.timing.pes);
        for pe in times() {
            waits.credit_ps += pe.credit_wait_ps;
            waits.message_ps += pe.message_wait_ps;
        }
        let count = pes.len() as u64;
        let engines = Engine::ALL.map(|engine| {
            let busy_ps = times().map(|pe| pe.busy_ps[engine as usize]).sum();
            let whole = u128::from(makespan_ps) * u128::from(count);
            let share_ppm = (u128::from(busy_ps) * 1_000_000 / whole.max(1)) as u64;
            EngineUse { engine: engine.name(), busy_ps, share_ppm }
        });
        let peak = peak.unwrap_or(machine.gemm.half.per_us);
        let launch = |l: &&LaunchLog| LaunchTime {
            name: l.program.name.clone(),
            kernel: l.program.kernel,
            pes: l.program.pes.len() as u64,
            start_ps: l.timing.start_ps - start_ps,
            makespan_ps: l.timing.makespan_ps(),
        };
        Report {
            launches: logs.iter().map(launch).collect(),
            fidelity: *fidelity,
            issue: if *issue == IssueMode::Dataflow { "dataflow" } else { "blocking" },
            pes,
            makespan_ps,
            ops,
            messages,
            hbm: Achieved::new(bytes.hbm_read + bytes.hbm_write, makespan_ps, count * slice_per_us(machine)),
            bytes,
            flop,
            gemm: Achieved::new(flop, makespan_ps, count * peak),
            engines: engines.to_vec(),
            waits,
            time: path::rows(machine, &logs),
        }
    }
}

/// Bytes per microsecond of all channels of a slice.
fn slice_per_us(machine: &Machine) -> u64 {
    u64::from(machine.hbm.channels) * machine.flit_bytes * 1_000_000 / machine.hbm.burst_ps.max(1)
}
