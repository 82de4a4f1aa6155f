//! A launch: record, check, execute, and have it simulated.

use super::flight::{Fate, Flight};
use super::state::{State, no_sip, ring_bytes};
use crate::ccl::Backpressure;
use crate::diag::{Diagnostic, Failure, Place};
use crate::engine::{Fidelity, SlotConfig};
use crate::exec;
use crate::ir::{Draft, PeId, Program, TensorId};
use crate::tl::{self, Grid, Kernel, Launch};
use crate::topology::{BufferKind, IssueMode, Links};
use crate::units::Ps;
use crate::verify::{Facts, verify};
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a launch may say besides its kernel.
#[derive(Clone, Debug, Default)]
pub struct LaunchOptions {
    /// Cubes and PEs per cube; default: those that hold the kernel's tensors.
    pub grid: Option<[usize; 2]>,
    /// The SIPs; default: those that hold the kernel's tensors.
    pub sips: Option<Vec<usize>>,
    /// What a launch of a worker waits for; default: all earlier launches that share a PE with it or use the same
    /// bytes. A list must hold those that use the same bytes, or launches that follow them; those that share a PE are
    /// waited for in any case.
    pub after: Option<Vec<LaunchId>>,
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
    /// Only record and check: nothing is simulated, computed or logged. Without data, what it stores counts as written.
    pub dry_run: bool,
    /// Ends in a stall when this much simulated time has passed since the launch.
    pub max_ps: Option<Ps>,
    /// Ends in a stall when somebody sets it.
    pub cancel: Option<Arc<AtomicBool>>,
}

/// A launch of a context, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchId {
    pub(super) context: u32,
    pub(super) number: u32,
}

impl LaunchId {
    pub(super) const fn at(self) -> usize {
        self.number as usize
    }
}

/// A launch that was submitted and computed; its times come later.
#[derive(Clone, Debug)]
pub(super) struct Submission {
    /// `None` for one that is only recorded.
    pub id: Option<LaunchId>,
    pub program: Arc<Program>,
    pub computed: bool,
    pub warnings: Vec<Diagnostic>,
}

/// The queues between the PEs of a launch.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    pub links: Rc<Links>,
    pub kind: BufferKind,
    /// Whether they are those of a process group.
    pub collective: bool,
}

/// What a launch is asked to be.
#[derive(Clone, Debug)]
pub(super) struct Order<'a> {
    pub options: &'a LaunchOptions,
    pub queues: Queues,
    pub place: Place,
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
        let mut sips: Vec<u32> = match &options.sips {
            Some(sips) => sips.iter().map(|&sip| u32::try_from(sip).unwrap_or(u32::MAX)).collect(),
            None => shards.iter().map(|s| s.sip).collect(),
        };
        sips.sort_unstable();
        sips.dedup();
        if let Some(sip) = sips.last().filter(|sip| **sip >= machine.sips) {
            return Err(no_sip(*sip as usize, machine.sips).into());
        }
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

    fn scratch(&self, Order { options, queues, .. }: &Order) -> Result<u32, Failure> {
        let machine = self.topology.machine();
        let wanted = options.scratch_bytes.unwrap_or(machine.scratch_bytes);
        let rings = match queues.kind {
            BufferKind::Tcm => {
                let pes = (0..machine.pe_count()).map(PeId);
                pes.map(|pe| ring_bytes(&queues.links, &self.ccl, pe)).max().unwrap_or(0)
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

    /// A launch over the context's own links.
    pub(super) fn order<'a>(&self, options: &'a LaunchOptions, place: Place) -> Order<'a> {
        let (links, kind) = (self.links.clone(), self.ccl.defaults.buffer_kind);
        Order { options, queues: Queues { links, kind, collective: false }, place }
    }

    fn slots(&self, kind: BufferKind) -> SlotConfig {
        let ccl = &self.ccl.defaults;
        SlotConfig {
            kind,
            n_slots: ccl.n_slots,
            poll_ps: (ccl.backpressure == Backpressure::Poll).then_some(self.topology.poll_ps()),
            credit_bytes: u64::from(ccl.ipcq_credit_size_bytes),
        }
    }

    /// Records.
    pub(super) fn record<K: Kernel>(&self, name: &str, kernel: &K, order: &Order) -> Result<Draft, Failure> {
        let options = order.options;
        let launch = Rc::new(Launch {
            topology: self.topology.clone(),
            links: order.queues.links.clone(),
            tensors: self.tensor_states(&kernel.tensors()),
            grid: self.grid(kernel, options)?,
            max_ops: options.max_ops.unwrap_or(1 << 26),
            slot_bytes: u64::from(self.ccl.defaults.slot_size),
            scratch_bytes: self.scratch(order)?,
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

    /// Records, checks, simulates and executes, and waits until it has completed.
    pub(super) fn launch<K: Kernel>(
        &mut self,
        name: &str,
        kernel: &K,
        order: &Order,
    ) -> Result<Launched, Failure> {
        let options = order.options;
        let (program, warnings) = self.verify(self.record(name, kernel, order)?, options)?;
        let program = Arc::new(program);
        if options.dry_run {
            self.pretend(&program);
            return Ok(self.recorded(program, warnings));
        }
        let id = self.enlist_program(&program, order)?;
        self.fly();
        if let Fate::Failed(failure) = &self.flights.fates[id.at()] {
            return Err(failure.clone());
        }
        let submitted = self.compute(id, program, warnings, options)?;
        let (known_ps, launched) = self.outcome(&submitted)?;
        self.now = self.now.max(known_ps);
        self.land();
        Ok(launched)
    }

    /// Records, checks and executes, and has it simulated with all others under way when somebody waits.
    pub(super) fn submit<K: Kernel>(
        &mut self,
        name: &str,
        kernel: &K,
        order: &Order,
    ) -> Result<Submission, Failure> {
        let options = order.options;
        let (program, warnings) = self.verify(self.record(name, kernel, order)?, options)?;
        let program = Arc::new(program);
        if options.dry_run {
            self.pretend(&program);
            return Ok(Submission { id: None, program, computed: false, warnings });
        }
        let id = self.enlist_program(&program, order)?;
        self.compute(id, program, warnings, options)
    }

    fn enlist_program(&mut self, program: &Arc<Program>, order: &Order) -> Result<LaunchId, Failure> {
        let options = order.options;
        let id = LaunchId { context: self.number, number: self.flights.number() };
        let slots = self.slots(order.queues.kind);
        let flight = Flight {
            id,
            program: program.clone(),
            issue: options.issue.unwrap_or(self.topology.machine().issue),
            slots,
            max_ps: options.max_ps,
            cancel: options.cancel.clone(),
            submitted_ps: self.now,
            after: vec![],
            place: order.place.clone(),
            collective: order.queues.collective,
            known_ps: None,
            version: None,
            touched: OnceCell::new(),
        };
        if !order.queues.collective {
            self.no_collective_of(&flight)?;
        }
        self.enlist(flight, options.after.as_deref(), options.fidelity.unwrap_or_default())?;
        Ok(id)
    }

    /// Computes the values of the launch enlisted last. If they are wrong, the launch is taken back.
    fn compute(
        &mut self,
        id: LaunchId,
        program: Arc<Program>,
        mut warnings: Vec<Diagnostic>,
        options: &LaunchOptions,
    ) -> Result<Submission, Failure> {
        let topology = self.topology.clone();
        let machine = topology.machine();
        self.launches += 1;
        let version = Some(self.launches);
        self.flights.list.iter_mut().filter(|f| f.id == id).for_each(|f| f.version = version);
        let copies: Vec<bool> =
            (0..program.tensors.len() as u32).map(|i| self.is_replicated(TensorId(i))).collect();
        let replicated = |id: TensorId| copies[id.at()];
        let computed = self.data && options.data.unwrap_or(true);
        if computed {
            let facts = exec::Options {
                threads: self.threads,
                cubes: machine.cubes(),
                pes: machine.pes(),
                replicated: &replicated,
            };
            match exec::execute(&program, &mut self.store, self.launches, &facts) {
                Ok(found) => warnings.extend(found),
                Err(failure) => {
                    // What a launch that failed has stored is nobody's: later reads must not see it.
                    self.store.forget(&program);
                    // Why it cannot come to its end is known best by who simulates it.
                    self.fly();
                    let fate = self.flights.fates[id.at()].clone();
                    self.withdraw(id);
                    return Err(match fate {
                        Fate::Failed(stall) => stall,
                        _ => failure,
                    });
                }
            }
        } else if self.data {
            self.store.forget(&program);
        } else {
            self.store.commit(&program, self.launches);
        }
        Ok(Submission { id: Some(id), program, computed, warnings })
    }

    /// Without data, what is only recorded counts as written, so that what follows can be checked, too.
    fn pretend(&mut self, program: &Program) {
        if !self.data {
            self.launches += 1;
            self.store.commit(program, self.launches);
        }
    }

    fn recorded(&self, program: Arc<Program>, warnings: Vec<Diagnostic>) -> Launched {
        Launched { index: 0, simulated_ps: 0, overhead_ps: 0, program, computed: false, warnings }
    }

    /// A launch that has been simulated, and when the host knows that it has completed.
    pub(super) fn outcome(&self, submission: &Submission) -> Result<(Ps, Launched), Failure> {
        let Submission { id, program, computed, warnings } = submission.clone();
        let Some(id) = id else { return Ok((self.now, self.recorded(program, warnings))) };
        let (index, known_ps) = match &self.flights.fates[id.at()] {
            Fate::Completed { index, known_ps } => (*index, *known_ps),
            Fate::Failed(failure) => return Err(failure.clone()),
            Fate::UnderWay => unreachable!("the outcome of a launch that was not simulated"),
        };
        let log = &self.log.launches[index];
        let launched = Launched {
            index,
            simulated_ps: log.timing.makespan_ps(),
            overhead_ps: log.timing.start_ps - log.submitted_ps,
            program,
            computed,
            warnings,
        };
        Ok((known_ps, launched))
    }
}
