//! A launch: record, check, simulate, execute.

use super::state::{State, ring_bytes};
use crate::ccl::Backpressure;
use crate::diag::{Diagnostic, Failure};
use crate::engine::{self, Fidelity, SlotConfig};
use crate::exec;
use crate::ir::{Draft, PeId, Program, TensorId};
use crate::log::LaunchLog;
use crate::tl::{self, Grid, Kernel, Launch};
use crate::topology::{BufferKind, IssueMode};
use crate::units::Ps;
use crate::verify::{Facts, verify};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a launch may say besides its kernel.
#[derive(Clone, Debug, Default)]
pub struct LaunchOptions {
    /// Cubes and PEs per cube; default: those that hold the kernel's tensors.
    pub grid: Option<[usize; 2]>,
    /// When a PE issues its next op; default: the machine's.
    pub issue: Option<IssueMode>,
    /// How exactly bytes are moved; default: [`Fidelity::default`].
    pub fidelity: Option<Fidelity>,
    /// Scratch bytes of each PE; default: the machine's, 1 MiB.
    pub scratch_bytes: Option<u32>,
    /// Whether values are computed; default: as the context. Without, what it stores becomes unreadable.
    pub data: Option<bool>,
    /// The most ops of all PEs together, of which a composite GEMM counts for each of its tiles; default: 67108864, which take about 10 GiB of the host's memory.
    pub max_ops: Option<u64>,
    /// Only record and check: nothing is simulated, computed or logged.
    pub dry_run: bool,
    /// Ends in a stall when this much simulated time has passed since the launch.
    pub max_ps: Option<Ps>,
    /// Ends in a stall when somebody sets it.
    pub cancel: Option<Arc<AtomicBool>>,
}

/// A launch that has completed.
#[derive(Clone, Debug)]
pub struct Launched {
    /// Its position in the op log.
    pub index: usize,
    /// Simulated time from the moment the PEs start to the end of the last op.
    pub simulated_ps: Ps,
    /// Simulated time from the host's submission until the PEs start.
    pub overhead_ps: Ps,
    /// The checked program.
    pub program: Arc<Program>,
    /// Whether values were computed.
    pub computed: bool,
    /// What is worth knowing but wrong for nobody.
    pub warnings: Vec<Diagnostic>,
}

impl State {
    fn grid<K: Kernel>(&self, kernel: &K, options: &LaunchOptions) -> Result<Grid, Failure> {
        let machine = self.topology.machine();
        let shards: Vec<_> = kernel.tensors().into_iter().filter_map(|id| self.shards(id)).collect();
        let mut sips: Vec<u32> = shards.iter().map(|s| s.sip).collect();
        sips.sort_unstable();
        sips.dedup();
        if shards.is_empty() && !kernel.tensors().is_empty() {
            return Err(Diagnostic::error(
                "KB0110",
                format!("the tensors of kernel `{}` were freed, or belong to another context", K::NAME),
            )
            .help("keep the tensors until the launch, and launch on the context that made them")
            .into());
        }
        if sips.is_empty() {
            sips.push(self.device);
        }
        let [cubes, pes] = match options.grid {
            Some(grid) => grid,
            None if shards.is_empty() => {
                return Err(Diagnostic::error(
                    "KB0601",
                    format!("kernel `{}` has no tensor argument that says where it runs", K::NAME),
                )
                .help("launch it with a `grid` of cubes and PEs")
                .into());
            }
            None => [0, 1].map(|i| shards.iter().map(|s| s.grid[i]).max().unwrap_or(0) as usize),
        };
        let (have_cubes, have_pes) = (machine.cubes() as usize, machine.pes() as usize);
        if cubes == 0 || pes == 0 || cubes > have_cubes || pes > have_pes {
            return Err(Diagnostic::error(
                "KB0606",
                format!(
                    "a grid of {cubes} cubes x {pes} PEs, but a SIP has {have_cubes} cubes x {have_pes} PEs"
                ),
            )
            .help(format!("use 1 to {have_cubes} cubes and 1 to {have_pes} PEs"))
            .into());
        }
        Ok(Grid { sips, cubes: cubes as u32, pes: pes as u32 })
    }

    fn scratch(&self, options: &LaunchOptions) -> Result<u32, Failure> {
        let machine = self.topology.machine();
        let wanted = options.scratch_bytes.unwrap_or(machine.scratch_bytes);
        let rings = match self.ccl.defaults.buffer_kind {
            BufferKind::Tcm => {
                let pes = (0..machine.pe_count()).map(PeId);
                pes.map(|pe| ring_bytes(&self.links, &self.ccl, pe)).max().unwrap_or(0)
            }
            BufferKind::Sram | BufferKind::Hbm => 0,
        };
        let room = machine.tcm.bytes.saturating_sub(rings);
        if u64::from(wanted) > room {
            return Err(Diagnostic::error(
                "KB0607",
                format!(
                    "{wanted} bytes of scratch do not fit: a PE has {} bytes of TCM, of which IPCQ rings take {rings} bytes",
                    machine.tcm.bytes
                ),
            )
            .help(format!("launch with at most {room} bytes of scratch"))
            .into());
        }
        Ok(wanted)
    }

    /// Records.
    pub(super) fn record<K: Kernel>(
        &self,
        name: &str,
        kernel: &K,
        options: &LaunchOptions,
    ) -> Result<Draft, Failure> {
        let launch = Rc::new(Launch {
            context: self.number,
            topology: self.topology.clone(),
            links: self.links.clone(),
            tensors: self.tensor_states(),
            grid: self.grid(kernel, options)?,
            max_ops: options.max_ops.unwrap_or(1 << 26),
            slot_bytes: u64::from(self.ccl.defaults.slot_size),
            scratch_bytes: self.scratch(options)?,
        });
        tl::record(kernel, name, &launch)
    }

    /// Checks.
    pub(super) fn verify(
        &self,
        draft: Draft,
        options: &LaunchOptions,
    ) -> Result<(Program, Vec<Diagnostic>), Failure> {
        let machine = self.topology.machine();
        let facts = Facts {
            name: &|pe| {
                let at = machine.at(pe);
                [at.sip, at.cube, at.pe]
            },
            written: &|id, range| self.store.versions(id, range).all(|(_, version)| version.is_some()),
            replicated: &|id| self.is_replicated(id),
            data: self.data && options.data.unwrap_or(true),
        };
        verify(draft, &facts)
    }

    fn is_replicated(&self, id: TensorId) -> bool {
        self.shards(id).is_some_and(|s| s.is_replicated())
    }

    /// Records, checks, simulates and executes.
    pub(super) fn launch<K: Kernel>(
        &mut self,
        name: &str,
        kernel: &K,
        options: &LaunchOptions,
    ) -> Result<Launched, Failure> {
        let (program, mut warnings) = self.verify(self.record(name, kernel, options)?, options)?;
        let program = Arc::new(program);
        if options.dry_run {
            return Ok(Launched {
                index: 0,
                simulated_ps: 0,
                overhead_ps: 0,
                program,
                computed: false,
                warnings,
            });
        }
        let overhead_ps = self.topology.launch_ps();
        let start_ps = self.now + overhead_ps;
        let topology = self.topology.clone();
        let machine = topology.machine();
        let (ccl, issue) = (&self.ccl.defaults, options.issue.unwrap_or(machine.issue));
        let timing = engine::simulate(
            &self.topology,
            &program,
            &engine::Options {
                issue,
                start_ps,
                max_ps: options.max_ps,
                slots: SlotConfig {
                    kind: ccl.buffer_kind,
                    n_slots: ccl.n_slots,
                    poll_ps: (ccl.backpressure == Backpressure::Poll).then_some(self.topology.poll_ps()),
                    credit_bytes: u64::from(ccl.ipcq_credit_size_bytes),
                },
                cancel: options.cancel.as_deref(),
                ..engine::Options::new(machine)
            },
        )
        .map_err(|stall| Failure::from(*stall))?;
        self.launches += 1;
        let copies: Vec<bool> =
            (0..program.tensors.len() as u32).map(|i| self.is_replicated(TensorId(i))).collect();
        let replicated = |id: TensorId| copies[id.at()];
        let data = self.data && options.data.unwrap_or(true);
        if data {
            let facts = exec::Options {
                threads: self.threads,
                cubes: machine.cubes(),
                pes: machine.pes(),
                replicated: &replicated,
            };
            let mut store = std::mem::take(&mut self.store);
            let outcome = exec::execute(&program, &mut store, self.launches, &facts);
            self.store = store;
            if outcome.is_err() {
                // What a launch that failed has stored is nobody's: later reads must not see it.
                self.store.forget(&program);
            }
            warnings.extend(outcome?);
        } else if self.data {
            self.store.forget(&program);
        } else {
            self.store.commit(&program, self.launches);
        }
        let end_ps = timing.end_ps;
        // Completion goes back the way the launch came.
        self.now = end_ps + overhead_ps;
        let (index, program_too) = (self.log.launches.len(), program.clone());
        self.log.launches.push(LaunchLog {
            program: program_too,
            timing,
            submitted_ps: start_ps - overhead_ps,
            issue,
            slots: self.ccl.defaults.buffer_kind,
            fidelity: options.fidelity.unwrap_or_default(),
        });
        Ok(Launched {
            index,
            simulated_ps: end_ps - start_ps,
            overhead_ps,
            program,
            computed: data,
            warnings,
        })
    }
}
