//! Process groups: who the ranks are, their neighbours, and the algorithm of each collective.

use super::collective::{Algorithm, Operation};
use super::launch::{LaunchOptions, Queues};
use super::meeting::{Meeting, Wanted};
use super::state::{State, ring_bytes};
use crate::ccl;
use crate::diag::{Diagnostic, Failure};
use crate::ir::PeId;
use crate::topology::{BufferKind, Family, Links, PeAt, RankTopology};
use std::rc::Rc;

/// What moves the data of a process group.
#[derive(Clone, Copy, Debug)]
pub enum Backend<'a> {
    /// Kernels over IPCQ: the algorithms of some tables, of which `ccl.yaml` chooses.
    Ahbm(&'a [&'a [Algorithm]]),
}

/// A process group.
#[derive(Debug)]
pub(super) struct Group {
    pub world: u32,
    /// How collectives are launched.
    pub options: LaunchOptions,
    pub all_reduce: Choice,
    /// For payloads above one slot.
    pub large: Choice,
    /// By operation; `None` where no algorithm is registered, and why not where the one that is does not fit the machine
    /// and nobody has asked for it by name.
    pub others: Vec<Option<Result<Choice, Failure>>>,
    pub meetings: Vec<Meeting>,
    /// The first of them that is not launched. Ranks enter one after another, so that all before it are.
    pub open: usize,
}

/// An algorithm as it is configured.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub algorithm: Algorithm,
    pub queues: Queues,
    pub topology: RankTopology,
    pub grid: [u32; 2],
    pub root_cube: u32,
}

impl Group {
    /// Forgets the collectives of workers that are gone.
    pub fn begin(&mut self) {
        self.meetings.clear();
        self.open = 0;
    }
}

impl State {
    /// Reads the configuration in the order algorithm, world size, neighbours.
    pub(super) fn init_process_group(
        &mut self,
        Backend::Ahbm(tables): Backend,
        options: &LaunchOptions,
    ) -> Result<(), Failure> {
        let table: Vec<Algorithm> = tables.iter().copied().flatten().copied().collect();
        let ccl = self.ccl.clone();
        let entry = |name: &str| {
            ccl.algorithm(name).ok_or_else(|| {
                let text = format!("the collectives configuration has no algorithm `{name}`");
                Diagnostic::error("KB0308", text).help("add it to `algorithms`, or name one that is there")
            })
        };
        let small = entry(&ccl.defaults.algorithm)?;
        let large = entry(ccl.defaults.large_algorithm.as_ref().unwrap_or(&ccl.defaults.algorithm))?;
        let reducing = |entry: &ccl::Algorithm| self.registered(&table, entry, Some(Operation::AllReduce));
        let (small_algorithm, large_algorithm) = (reducing(small)?, reducing(large)?);
        let world = small.check_world(self.topology.machine().sips)?;
        large.check_same_world(small, world)?;
        let all_reduce = self.choice(small_algorithm, Some(small), world)?;
        let large = self.choice(large_algorithm, Some(large), world)?;
        let mut others = vec![];
        for operation in Operation::ALL {
            // An entry of the configuration, else the first that is registered.
            let configured = ccl.algorithms.iter().find_map(|entry| {
                let a = table.iter().find(|a| a.name == entry.module && a.operation == operation)?;
                Some((*a, Some(entry)))
            });
            if let Some((_, Some(entry))) = configured.filter(|_| operation != Operation::AllReduce) {
                entry.check_same_world(small, world)?;
            }
            let first = || table.iter().find(|a| a.operation == operation).map(|a| (*a, None));
            let chosen = match operation {
                Operation::AllReduce => None,
                _ => configured.or_else(first),
            };
            if let Some((a, Some(entry))) = chosen {
                entry.check_topology(a.topologies)?;
            }
            others.push(match chosen.map(|(a, entry)| (self.choice(a, entry, world), entry)) {
                Some((Err(failure), Some(_))) => return Err(failure),
                chosen => chosen.map(|(choice, _)| choice),
            });
        }
        let options = LaunchOptions { after: None, ..options.clone() };
        self.group = Some(Group { world, options, all_reduce, large, others, meetings: vec![], open: 0 });
        Ok(())
    }

    /// The algorithm an entry of the configuration names.
    fn registered(
        &self,
        table: &[Algorithm],
        entry: &ccl::Algorithm,
        operation: Option<Operation>,
    ) -> Result<Algorithm, Failure> {
        let fits = |a: &&Algorithm| operation.is_none_or(|operation| a.operation == operation);
        let names: Vec<&str> = table.iter().filter(fits).map(|a| a.name).collect();
        entry.check_module(&names)?;
        let algorithm = table.iter().filter(fits).find(|a| a.name == entry.module);
        let algorithm = *algorithm.ok_or_else(|| Failure(vec![]))?;
        entry.check_topology(algorithm.topologies)?;
        Ok(algorithm)
    }

    fn choice(
        &mut self,
        algorithm: Algorithm,
        entry: Option<&ccl::Algorithm>,
        world: u32,
    ) -> Result<Choice, Failure> {
        let topology = self.topology.clone();
        let machine = topology.machine();
        let first = algorithm.topologies.first().copied().unwrap_or(RankTopology::Full);
        let rank_topology = entry.map_or(first, |entry| entry.topology);
        let kind = entry.map_or(self.ccl.defaults.buffer_kind, |entry| entry.buffer_kind);
        let root_cube = entry.map_or(Ok(None), |entry| entry.check_root_cube(machine.cubes()))?;
        let root_cube = match algorithm.every_cube {
            // The centre of the mesh of cubes, unless another is named.
            true => root_cube
                .unwrap_or(machine.cube_mesh[1] / 2 * machine.cube_mesh[0] + machine.cube_mesh[0] / 2),
            false => 0,
        };
        let ranks: Vec<PeId> =
            (0..world).map(|sip| machine.pe(PeAt { sip, cube: root_cube, pe: 0 })).collect();
        let mut links = Links::of_ranks(machine, rank_topology, &ranks).map_err(|d| match entry {
            Some(entry) if d.labels.is_empty() => d.at(entry.places.topology.clone(), ""),
            _ => d,
        })?;
        if algorithm.every_cube {
            links = Links::join(machine, vec![Links::of_family(machine, &Family::CubeMesh)?, links])?;
        }
        let queues = Queues { links: Rc::new(links), kind, collective: true };
        self.reserve_rings(&queues)?;
        let grid = rank_topology.grid(machine, world)?;
        Ok(Choice { algorithm, queues, topology: rank_topology, grid, root_cube })
    }

    /// Takes another configuration; rings in slices get their room.
    pub(super) fn configure_ccl(&mut self, ccl: ccl::Ccl) -> Result<(), Failure> {
        let rings = |ccl: &ccl::Ccl| (ccl.defaults.buffer_kind, ccl.defaults.n_slots, ccl.defaults.slot_size);
        let old = std::mem::replace(&mut self.ccl, ccl);
        let kind = self.ccl.defaults.buffer_kind;
        if kind != BufferKind::Hbm || rings(&old) == rings(&self.ccl) {
            return Ok(());
        }
        let queues = Queues { links: self.links.clone(), kind, collective: false };
        self.reserve_rings(&queues).inspect_err(|_| self.ccl = old)
    }

    /// Keeps memory for the rings of a collective's links.
    fn reserve_rings(&mut self, queues: &Queues) -> Result<(), Failure> {
        let topology = self.topology.clone();
        let machine = topology.machine();
        let mut of_cube = vec![0; (machine.sips * machine.cubes()) as usize];
        for pe in (0..machine.pe_count()).map(PeId) {
            let bytes = ring_bytes(&queues.links, &self.ccl, pe);
            let (have, what) = match queues.kind {
                BufferKind::Tcm => (machine.tcm.bytes, "the TCM of a PE"),
                BufferKind::Sram => {
                    let sum = &mut of_cube[(pe.0 / machine.pes()) as usize];
                    *sum += bytes;
                    if *sum <= machine.sram_bytes {
                        continue;
                    }
                    (machine.sram_bytes, "the SRAM of a cube")
                }
                BufferKind::Hbm => match self.reserve_slice(pe, bytes) {
                    Ok(()) => continue,
                    Err(largest) => (largest, "the slice of a PE"),
                },
            };
            if bytes > have || queues.kind != BufferKind::Tcm {
                let text = format!(
                    "the rings of PE {} of cube {} of SIP {} take {bytes} bytes, but {what} has {have} bytes",
                    machine.at(pe).pe,
                    machine.at(pe).cube,
                    machine.at(pe).sip
                );
                return Err(Diagnostic::error("KB0658", text)
                    .help("lower `slot_size` or `n_slots` in ccl.yaml, or take another `buffer_kind`")
                    .into());
            }
        }
        Ok(())
    }

    /// The algorithm of a collective.
    pub(super) fn chosen(&self, wanted: &Wanted) -> Option<Result<&Choice, Failure>> {
        let group = self.group.as_ref()?;
        match wanted.operation {
            Operation::AllReduce => {
                let bytes = wanted.elements * u64::from(wanted.ty.bytes());
                let large = bytes > u64::from(self.ccl.defaults.slot_size);
                Some(Ok(if large { &group.large } else { &group.all_reduce }))
            }
            operation => {
                Some(group.others.get(operation as usize)?.as_ref()?.as_ref().map_err(Failure::clone))
            }
        }
    }
}

pub(super) fn no_group() -> Diagnostic {
    Diagnostic::error("KB0653", "there is no process group")
        .help("call `ctx.init_process_group(..)` before `spawn`")
}
