//! Why a launch took as long as it did: totals, rates against peaks, and where the time went.
//!
//! Everything is an integer: picoseconds, bytes, operations, and units per microsecond for rates.

mod path;
#[cfg(test)]
mod tests;

pub use path::{Row, Segment, What, critical_path};

use crate::engine::Fidelity;
use crate::ir::Engine;
use crate::log::{LaunchLog, OpLog};
use crate::topology::{IssueMode, Machine};
use crate::ty::Dir;
use crate::units::Ps;
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of one launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The launch's name.
    pub name: String,
    /// The kernel's name.
    pub kernel: &'static str,
    /// How exactly bytes were moved.
    pub fidelity: Fidelity,
    /// `dataflow` or `blocking`.
    pub issue: &'static str,
    /// PEs that took part.
    pub pes: u64,
    /// From the launch stamp to the end.
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
        let LaunchLog { program, timing, issue, fidelity, .. } = &log.launches[launch];
        let machine = &*log.machine;
        let (mut ops, mut messages) = (BTreeMap::new(), BTreeMap::new());
        let (mut bytes, mut waits, mut flop, mut peak) = (Bytes::default(), Waits::default(), 0, None);
        for record in log.launch(launch) {
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
        let (pes, makespan_ps) = (program.pes.len() as u64, timing.makespan_ps());
        for pe in &timing.pes {
            waits.credit_ps += pe.credit_wait_ps;
            waits.message_ps += pe.message_wait_ps;
        }
        let engines = Engine::ALL.map(|engine| {
            let busy_ps = timing.pes.iter().map(|pe| pe.busy_ps[engine as usize]).sum();
            let whole = u128::from(makespan_ps) * u128::from(pes);
            let share_ppm = (u128::from(busy_ps) * 1_000_000 / whole.max(1)) as u64;
            EngineUse { engine: engine.name(), busy_ps, share_ppm }
        });
        let peak = peak.unwrap_or(machine.gemm.half.per_us);
        Report {
            name: program.name.clone(),
            kernel: program.kernel,
            fidelity: *fidelity,
            issue: if *issue == IssueMode::Dataflow { "dataflow" } else { "blocking" },
            pes,
            makespan_ps,
            ops,
            messages,
            hbm: Achieved::new(bytes.hbm_read + bytes.hbm_write, makespan_ps, pes * slice_per_us(machine)),
            bytes,
            flop,
            gemm: Achieved::new(flop, makespan_ps, pes * peak),
            engines: engines.to_vec(),
            waits,
            time: path::rows(program, &critical_path(machine, program, timing, *issue)),
        }
    }
}

/// Bytes per microsecond of all channels of a slice.
fn slice_per_us(machine: &Machine) -> u64 {
    u64::from(machine.hbm.channels) * machine.flit_bytes * 1_000_000 / machine.hbm.burst_ps.max(1)
}
