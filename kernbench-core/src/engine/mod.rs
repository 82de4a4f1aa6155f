//! The simulator of time: when each op of a program runs on a machine, and why not earlier.
//!
//! Invariant: the engine knows no bytes of tensors, no threads, no floats and no clock. The same
//! topology, program and options give the same timing, to the picosecond, on every machine.
//!
//! Its parts: `queue` orders events, `fabric` compiles routes, `wires` is the interface behind which
//! fidelities differ (`message` is one, `hbm` its memories), `cost` holds the formulas of the compute
//! engines, `sim` lets PEs issue and engines serve, `dma` moves what they load and store, `composite` pipelines the tiles of a composite GEMM,
//! `ids` numbers what happens, `ipcq` and `barrier` are what PEs do together,
//! `launches` lets several share the machine,
//! `stall` says why nothing goes on, which `blocked` finds out.

mod barrier;
mod blocked;
mod composite;
mod cost;
mod dma;
mod fabric;
mod flit;
mod hbm;
mod ids;
mod ipcq;
mod launches;
mod laws;
mod message;
mod queue;
mod sim;
mod stall;
mod state;
#[cfg(test)]
pub(crate) mod tests;
mod timing;
mod traffic;
mod wires;

pub use stall::{Blocked, Reason, Stall, WaitsFor};
pub(crate) use stall::{intrinsic, pe_name};
pub use timing::{Cause, OpRef, OpTiming, PeTiming, Timing};
pub use traffic::{Flow, Issuer, Passage, traffic};

use crate::ir::Program;
use crate::topology::{BufferKind, IssueMode, Machine, Topology};

use crate::units::Ps;
use fabric::Fabric;
use flit::FlitWires;
use ids::Ids;
use message::MessageWires;
use sim::Simulation;
use std::sync::atomic::AtomicBool;

/// How exactly bytes are moved; reports name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fidelity {
    /// Exactly the result of moving every flit on its own.
    #[default]
    Flit,
    /// A transfer holds each edge for all its bytes at once; exact without contention, for sweeps.
    Message,
}

impl Fidelity {
    /// All there are, the default first.
    pub const ALL: [Fidelity; 2] = [Fidelity::Flit, Fidelity::Message];

    /// The name in reports and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Fidelity::Flit => "flit",
            Fidelity::Message => "message",
        }
    }
}

/// The queues between PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotConfig {
    /// Where the slots of a link are.
    pub kind: BufferKind,
    /// Slots of a link: messages that may be under way or unread.
    pub n_slots: u32,
    /// How often a sender that found no free slot looks again; `None` if it is woken at once.
    pub poll_ps: Option<Ps>,
    /// Bytes of a credit on its way back.
    pub credit_bytes: u64,
}

impl Default for SlotConfig {
    /// Four slots in TCM, 16 B credits, woken at once.
    fn default() -> Self {
        SlotConfig { kind: BufferKind::Tcm, n_slots: 4, poll_ps: None, credit_bytes: 16 }
    }
}

/// How to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// When a PE issues its next op.
    pub issue: IssueMode,
    /// The launch stamp, at which every PE starts.
    pub start_ps: Ps,
    /// Gives up at the first event that comes more than this after the launch stamp.
    pub max_ps: Option<Ps>,
    /// The queues between PEs.
    pub slots: SlotConfig,
    /// How exactly bytes are moved.
    pub fidelity: Fidelity,
    /// Gives up soon after this becomes true.
    pub cancel: Option<&'a AtomicBool>,
}

impl Options<'_> {
    /// The machine's own issue mode, from time 0, with default queues and without limits.
    #[must_use]
    pub fn new(machine: &Machine) -> Self {
        Options {
            issue: machine.issue,
            start_ps: 0,
            max_ps: None,
            slots: SlotConfig::default(),
            fidelity: Fidelity::default(),
            cancel: None,
        }
    }
}

/// Runs a program on a machine.
///
/// # Errors
///
/// A [`Stall`] if ops are left that nothing can let go on, or if a limit of the options is reached.
pub fn simulate(topology: &Topology, program: &Program, options: &Options) -> Result<Timing, Box<Stall>> {
    simulate_on(topology, program, options)
}

/// A launch of several that are simulated together.
#[derive(Clone, Debug)]
pub struct Submitted<'a> {
    /// What it does.
    pub program: &'a Program,
    /// How; its `start_ps` and `fidelity` are not used.
    pub options: Options<'a>,
    /// When the host submits it.
    pub submitted_ps: Ps,
    /// What it takes from the host to its PEs, and its completion back.
    pub overhead_ps: Ps,
    /// Positions of the earlier launches that must have completed, as the host knows it; among them all that
    /// share a PE with it.
    pub after: Vec<usize>,
}

/// Runs several launches on a machine whose wires they share. [`Timing::events`] are those of all together.
///
/// # Errors
/// The position of a launch that stalls, and why.
pub fn simulate_all(
    topology: &Topology,
    launches: &[Submitted],
    fidelity: Fidelity,
) -> Result<Vec<Timing>, (usize, Box<Stall>)> {
    simulate_all_on(topology, launches, fidelity)
}

fn simulate_on(fabric: &dyn Fabric, program: &Program, options: &Options) -> Result<Timing, Box<Stall>> {
    let launches = [Submitted::alone(program, options)];
    let mut timings = simulate_all_on(fabric, &launches, options.fidelity).map_err(|(_, stall)| stall)?;
    Ok(timings.remove(0))
}

fn simulate_all_on(
    fabric: &dyn Fabric,
    launches: &[Submitted],
    fidelity: Fidelity,
) -> Result<Vec<Timing>, (usize, Box<Stall>)> {
    let ids = Ids::new(launches.iter().flat_map(|launch| &launch.program.pes));
    match fidelity {
        Fidelity::Flit => {
            let wires = FlitWires::new(fabric.machine(), ids.len());
            Simulation::new(fabric, launches, ids, wires).run()
        }
        Fidelity::Message => {
            let wires = MessageWires::new(fabric.machine(), ids.len());
            Simulation::new(fabric, launches, ids, wires).run()
        }
    }
}

impl<'a> Submitted<'a> {
    /// A launch at the stamp of its options.
    fn alone(program: &'a Program, options: &Options<'a>) -> Self {
        Submitted {
            program,
            options: *options,
            submitted_ps: options.start_ps,
            overhead_ps: 0,
            after: vec![],
        }
    }
}
