//! Process groups: the ranks that take part in collectives, and the collectives they have entered.

use super::collective::{Algorithm, Call, Operation, ReduceOp};
use super::crew::Wait;
use super::flight::Flight;
use super::launch::{LaunchId, LaunchOptions, Launched, Queues, Submission};
use super::state::{State, ring_bytes};
use super::{Shared, Tensor, Worker, here};
use crate::ccl;
use crate::diag::{Diagnostic, Failure, Place};
use crate::ir::{PeId, TensorId};
use crate::tl::{InOut, Raw};
use crate::topology::{BufferKind, Family, Links, PeAt, RankTopology};
use crate::ty::{Dtype, ElementType, Num};
use std::cell::RefCell;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll};

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
    options: LaunchOptions,
    all_reduce: Choice,
    /// For payloads above one slot.
    large: Choice,
    /// By operation; `None` where no algorithm is registered, and why not where the one that is does not fit the machine
    /// and nobody has asked for it by name.
    others: Vec<Option<Result<Choice, Failure>>>,
    meetings: Vec<Meeting>,
}

/// An algorithm as it is configured.
#[derive(Clone, Debug)]
struct Choice {
    algorithm: Algorithm,
    queues: Queues,
    topology: RankTopology,
    grid: [u32; 2],
    root_cube: u32,
}

/// The k-th collective of all ranks.
#[derive(Debug)]
struct Meeting {
    entered: Vec<Option<Entered>>,
    launched: Option<Submission>,
}

/// What a rank wants of a collective; all ranks must want the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    operation: Operation,
    reduce: Option<ReduceOp>,
    root: Option<usize>,
    ty: ElementType,
    elements: u64,
}

#[derive(Clone, Debug)]
struct Entered {
    wanted: Wanted,
    /// `None` for a barrier.
    views: Option<[Raw; 2]>,
    place: Place,
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`", self.operation.name())?;
        if self.operation == Operation::Barrier {
            return Ok(());
        }
        let plural = if self.elements == 1 { "" } else { "s" };
        write!(f, " of {} {} element{plural}", self.elements, self.ty)?;
        if let Some(reduce) = self.reduce {
            write!(f, " by {}", reduce.name())?;
        }
        if let Some(root) = self.root {
            write!(f, " from rank {root}")?;
        }
        Ok(())
    }
}

impl Group {
    /// Forgets the collectives of workers that are gone.
    pub fn begin(&mut self) {
        self.meetings.clear();
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
        let all_reduce = self.choice(small_algorithm, Some(small), world)?;
        let large = self.choice(large_algorithm, Some(large), world)?;
        let mut others = vec![];
        for operation in Operation::ALL {
            // An entry of the configuration, else the first that is registered.
            let configured = ccl.algorithms.iter().find_map(|entry| {
                let a = table.iter().find(|a| a.name == entry.module && a.operation == operation)?;
                Some((*a, Some(entry)))
            });
            let first = || table.iter().find(|a| a.operation == operation).map(|a| (*a, None));
            let chosen = match operation {
                Operation::AllReduce => None,
                _ => configured.or_else(first),
            };
            others.push(match chosen.map(|(a, entry)| (self.choice(a, entry, world), entry)) {
                Some((Err(failure), Some(_))) => return Err(failure),
                chosen => chosen.map(|(choice, _)| choice),
            });
        }
        let options = LaunchOptions { after: None, ..options.clone() };
        self.group = Some(Group { world, options, all_reduce, large, others, meetings: vec![] });
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

    /// Whether every rank has entered a collective and the host knows that it has completed, or failed; one that is only
    /// recorded has.
    pub(super) fn is_collective_known(&self, number: usize) -> bool {
        let meeting = self.group.as_ref().and_then(|group| group.meetings.get(number));
        let launched = meeting.and_then(|meeting| meeting.launched.as_ref());
        launched.is_some_and(|submission| submission.id.is_none_or(|id| self.is_known(id)))
    }

    /// Refuses a use of elements that a pending collective uses.
    pub(super) fn no_collective(
        &self,
        tensor: TensorId,
        range: &Range<u64>,
        write: bool,
        place: &Place,
    ) -> Result<(), Failure> {
        let pending = self.pending_views();
        let meets = |view: &Raw, writes: bool| {
            view.tensor == tensor && (write || writes) && overlaps(&view.elements(), range)
        };
        for (rank, entered, [from, to]) in pending {
            if !meets(&from, false) && !meets(&to, true) {
                continue;
            }
            return Err(self.in_use(tensor, rank, entered, place));
        }
        Ok(())
    }

    fn in_use(&self, tensor: TensorId, rank: usize, entered: &Entered, place: &Place) -> Failure {
        let name = self.info(tensor).map_or("?", |info| &info.name);
        let text = format!(
            "`{name}` is in use by {} of rank {rank}, for which nobody may wait here",
            entered.wanted
        );
        Diagnostic::error("KB0655", text)
            .at(place.clone(), "used here")
            .at(entered.place.clone(), format!("rank {rank} is in this collective"))
            .help("await the collective first, or use another tensor")
            .into()
    }

    fn pending_views(&self) -> impl Iterator<Item = (usize, &Entered, [Raw; 2])> {
        let meetings = self.group.iter().flat_map(|group| &group.meetings);
        let open = meetings.filter(|meeting| meeting.launched.is_none());
        open.flat_map(|meeting| meeting.entered.iter().enumerate())
            .filter_map(|(rank, entered)| Some((rank, entered.as_ref()?, entered.as_ref()?.views?)))
    }

    /// Refuses a launch that uses elements which a pending collective uses.
    pub(super) fn no_collective_of(&self, flight: &Flight) -> Result<(), Failure> {
        for (rank, entered, views) in self.pending_views() {
            for (view, writes) in views.iter().zip([false, true]) {
                if flight.uses(view.tensor, &view.elements(), writes) {
                    return Err(self.in_use(view.tensor, rank, entered, &flight.place));
                }
            }
        }
        Ok(())
    }

    /// Lets a rank enter its next collective; the number of that.
    fn enter(&mut self, rank: usize, new: Entered) -> Result<usize, Failure> {
        let Some(group) = &mut self.group else {
            return Err(no_group().at(new.place, "entered here").into());
        };
        let world = group.world as usize;
        if rank >= world {
            let text = format!("rank {rank} is not in the process group, which has {world} ranks");
            return Err(Diagnostic::error("KB0654", text)
                .at(new.place, "entered here")
                .help("spawn as many workers as `world_size()`, or leave the others out with an `if`")
                .into());
        }
        let Some(hand) = self.crew.as_mut().and_then(|crew| crew.hands.get_mut(rank)) else {
            return Err(no_group().into());
        };
        let number = hand.entered;
        hand.entered += 1;
        if group.meetings.len() <= number {
            group.meetings.push(Meeting { entered: vec![None; world], launched: None });
        }
        let meeting = &mut group.meetings[number];
        let first = meeting.entered.iter().enumerate().find_map(|(rank, e)| Some((rank, e.clone()?)));
        if let Some((other, first)) = first.filter(|(_, first)| first.wanted != new.wanted) {
            let text = format!("ranks {other} and {rank} differ in collective {number}");
            return Err(Diagnostic::error("KB0651", text)
                .at(new.place, format!("rank {rank} enters {}", new.wanted))
                .at(first.place, format!("rank {other} has entered {}", first.wanted))
                .help("let all ranks enter the same collectives in the same order, with equal sizes")
                .into());
        }
        meeting.entered[rank] = Some(new);
        Ok(number)
    }

    /// Launches the collectives that every rank has entered.
    pub(super) fn launch_collectives(&mut self) -> Result<Vec<LaunchId>, Failure> {
        let mut launched = vec![];
        for number in 0..self.group.as_ref().map_or(0, |group| group.meetings.len()) {
            let Some(group) = &self.group else { break };
            let meeting = &group.meetings[number];
            let all: Option<Vec<Entered>> = meeting.entered.iter().cloned().collect();
            let (None, Some(all)) = (&meeting.launched, all) else { continue };
            let submission = self.launch_collective(&all)?;
            launched.extend(submission.id);
            if let Some(group) = &mut self.group {
                group.meetings[number].launched = Some(submission);
            }
        }
        Ok(launched)
    }

    fn launch_collective(&mut self, all: &[Entered]) -> Result<Submission, Failure> {
        let wanted = all[0].wanted;
        let choice = self.chosen(&wanted).transpose()?.cloned();
        let Some(Choice { algorithm, queues, topology, grid, root_cube }) = choice else {
            let text = format!("no algorithm is registered for `{}`", wanted.operation.name());
            return Err(Diagnostic::error("KB0653", text)
                .at(all[0].place.clone(), "entered here")
                .help("add one to the tables given to `init_process_group`")
                .into());
        };
        let machine = self.topology.machine();
        let rings = (0..machine.pe_count()).map(|pe| match queues.kind {
            BufferKind::Tcm => ring_bytes(&queues.links, &self.ccl, PeId(pe)),
            _ => 0,
        });
        let base = self.group.as_ref().map(|group| group.options.clone()).unwrap_or_default();
        // It has its PEs for itself.
        let scratch = machine.tcm.bytes - rings.max().unwrap_or(0).min(machine.tcm.bytes);
        let cubes = if algorithm.every_cube { machine.cubes() as usize } else { 1 };
        let options = LaunchOptions {
            grid: Some([cubes, 1]),
            sips: Some((0..all.len()).collect()),
            scratch_bytes: base.scratch_bytes.or(Some(u32::try_from(scratch).unwrap_or(u32::MAX))),
            ..base
        };
        let nothing = Raw::whole(self.number, TensorId(u32::MAX), [1, 0], [1, 0]);
        let flat = |raw: Raw| match algorithm.every_cube {
            true => raw,
            false => {
                let [m, n] = raw.shape;
                InOut::<f32>::of(raw).reshape([1, m as usize * n as usize]).raw
            }
        };
        let side = |i: usize| all.iter().map(|e| flat(e.views.map_or(nothing, |views| views[i]))).collect();
        let call = Call {
            name: wanted.operation.name().to_owned(),
            ty: wanted.ty,
            from: side(0),
            to: side(1),
            reduce: wanted.reduce.unwrap_or_default(),
            root: wanted.root.unwrap_or(0),
            topology,
            grid,
            cubes: machine.cube_mesh,
            root_cube,
            queues,
            options,
            place: all[0].place.clone(),
            state: RefCell::new(self),
            submission: RefCell::new(None),
        };
        (algorithm.launch)(&call)?;
        call.submission.take().ok_or_else(|| {
            let text = format!("algorithm `{}` has launched nothing", algorithm.name);
            Diagnostic::error("KB0653", text).help("let its `launch` call `Call::launch`").into()
        })
    }

    /// The algorithm of a collective.
    fn chosen(&self, wanted: &Wanted) -> Option<Result<&Choice, Failure>> {
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

    /// What keeps each rank from going on.
    pub(super) fn stall(&self) -> Failure {
        let mut d = Diagnostic::error("KB0406", "the workers wait for what never comes")
            .help("let every rank enter the same collectives in the same order");
        let Some(crew) = &self.crew else { return d.into() };
        let missing = |number: usize| -> String {
            let Some(meeting) = self.group.as_ref().and_then(|g| g.meetings.get(number)) else {
                return String::new();
            };
            let absent = meeting.entered.iter().enumerate().filter(|(_, e)| e.is_none());
            let name = |(rank, _): (usize, &Option<Entered>)| match crew.hands.get(rank) {
                None => format!("rank {rank}, which was not spawned"),
                Some(hand) if hand.returned => format!("rank {rank}, which has returned"),
                Some(hand) => match hand.waits.first() {
                    Some(Wait::Collective(at, _)) => format!("rank {rank}, which is in collective {at}"),
                    _ => format!("rank {rank}"),
                },
            };
            absent.map(name).collect::<Vec<_>>().join(", ")
        };
        for (rank, hand) in crew.hands.iter().enumerate().filter(|(_, hand)| !hand.returned) {
            match hand.waits.first() {
                Some(Wait::Collective(number, place)) => {
                    let text = format!("rank {rank} waits in collective {number} for {}", missing(*number));
                    d = d.at(place.clone(), text);
                }
                Some(Wait::Launch(_, place)) => {
                    d = d.at(place.clone(), format!("rank {rank} waits for a launch"))
                }
                None => {
                    d.message += &format!("; rank {rank} awaits what is not of its context");
                    d.help = Some("await only handles, reads and collectives of the worker".to_owned());
                }
            }
        }
        d.into()
    }

    /// Whether the tensors of a rank fit a collective.
    fn check_views(&self, rank: usize, entered: &Entered) -> Result<(), Failure> {
        let wanted = &entered.wanted;
        let wrong = |text: String, help: String| {
            let d = Diagnostic::error("KB0654", text).at(entered.place.clone(), "entered here").help(help);
            Err(d.into())
        };
        let world = self.group.as_ref().map_or(0, |group| group.world as usize);
        if let Some(root) = wanted.root.filter(|root| *root >= world) {
            return wrong(
                format!("there is no rank {root} to broadcast from: the group has {world} ranks"),
                format!("use a root from 0 to {}", world.saturating_sub(1)),
            );
        }
        let Some([from, to]) = entered.views else { return Ok(()) };
        if [from, to].iter().any(|raw| raw.context != self.number) {
            return wrong(
                format!("a tensor of another context is given to `{}`", wanted.operation.name()),
                "use tensors that the worker has made".to_owned(),
            );
        }
        let name = |raw: &Raw| self.info(raw.tensor).map_or("?", |info| &info.name).to_owned();
        let count = |raw: &Raw| u64::from(raw.shape[0]) * u64::from(raw.shape[1]);
        let p = world as u64;
        let (parts_from, parts_to) = match wanted.operation {
            Operation::AllGather => (1, p),
            Operation::ReduceScatter => (p, 1),
            _ => (1, 1),
        };
        // In place, one of the two is a part of the other.
        let whole = if parts_from > 1 { &from } else { &to };
        if from.tensor == to.tensor && parts_from * parts_to > 1 && !count(whole).is_multiple_of(p) {
            return wrong(
                format!("`{}` has {} elements, which {world} ranks cannot share", name(whole), count(whole)),
                format!("use a multiple of {world} elements"),
            );
        }
        if count(&from) * parts_to != count(&to) * parts_from {
            return wrong(
                format!(
                    "`{}` of {world} ranks takes {} elements of `{}` and gives {} of `{}`",
                    wanted.operation.name(),
                    count(&from),
                    name(&from),
                    count(&to),
                    name(&to)
                ),
                match wanted.operation {
                    Operation::AllGather => {
                        format!("make `{}` {world} times as large as `{}`", name(&to), name(&from))
                    }
                    Operation::ReduceScatter => {
                        format!("make `{}` {world} times as large as `{}`", name(&from), name(&to))
                    }
                    _ => "use two tensors of one size".to_owned(),
                },
            );
        }
        if wanted.operation == Operation::AllToAll && !count(&to).is_multiple_of(p) {
            return wrong(
                format!("`{}` has {} elements, which {world} ranks cannot share", name(&to), count(&to)),
                format!("use a multiple of {world} elements"),
            );
        }
        for raw in [&from, &to] {
            let Some(shards) = self.shards(raw.tensor) else { continue };
            if shards.sip as usize != rank {
                return wrong(
                    format!("`{}` of rank {rank} is on SIP {}", name(raw), shards.sip),
                    format!("call `set_device({rank})` before it is made"),
                );
            }
            let every =
                self.chosen(wanted).is_some_and(|choice| choice.is_ok_and(|c| c.algorithm.every_cube));
            let cubes = self.topology.machine().cubes();
            if every && (shards.grid != [cubes, 1] || shards.is_replicated()) {
                return wrong(
                    format!("`{}` does not have a tile on PE 0 of every cube", name(raw)),
                    format!("place it with `Placement::row_wise().on({cubes}, 1)`"),
                );
            }
        }
        Ok(())
    }
}

fn overlaps(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

pub(super) fn no_group() -> Diagnostic {
    Diagnostic::error("KB0653", "there is no process group")
        .help("call `ctx.init_process_group(..)` before `spawn`")
}

/// A collective that a rank has entered. `.await` gives way until all ranks have, and it has completed.
#[derive(Debug)]
#[must_use = "a collective that is not awaited is a mistake"]
pub struct Collective<'a> {
    shared: Shared,
    number: Result<usize, Failure>,
    rank: usize,
    place: Place,
    done: bool,
    /// Its tensors stay borrowed until it has completed.
    tensors: PhantomData<&'a mut ()>,
}

impl Future for Collective<'_> {
    type Output = Result<Launched, Failure>;

    fn poll(mut self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<Self::Output> {
        let number = match &self.number {
            Ok(number) => *number,
            Err(failure) => {
                let failure = failure.clone();
                self.done = true;
                return Poll::Ready(Err(failure));
            }
        };
        let shared = self.shared.clone();
        let mut s = shared.borrow_mut();
        if s.is_collective_known(number) {
            self.done = true;
            let submission = s.group.as_ref().and_then(|group| group.meetings[number].launched.clone());
            let submission = submission.ok_or_else(|| Failure(vec![]));
            return Poll::Ready(submission.and_then(|submission| s.outcome(&submission)).map(|(_, l)| l));
        }
        if let Some(hand) = s.hand() {
            hand.waits.push(Wait::Collective(number, self.place.clone()));
        }
        Poll::Pending
    }
}

impl Drop for Collective<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let Ok(mut s) = self.shared.try_borrow_mut() else { return };
        let Some(crew) = s.crew.as_mut().filter(|crew| !crew.ending) else { return };
        let found = match &self.number {
            Err(failure) => failure.0.clone(),
            Ok(number) => vec![
                Diagnostic::error("KB0652", format!("collective {number} was entered and not awaited"))
                    .at(self.place.clone(), "entered here")
                    .help("write `.await` behind it: the other ranks count on this one"),
            ],
        };
        if let Some(hand) = crew.hands.get_mut(self.rank) {
            hand.findings.extend(found);
        }
    }
}

/// The collectives. Each is entered when it is called; `.await` it. All ranks must enter the same ones in the same
/// order, with equal sizes and element types. The errors come with the `.await`: ranks that differ, tensors that do
/// not fit or lie on another SIP than their rank, no process group, and those of a launch.
impl Worker {
    #[track_caller]
    fn enter<'a>(
        &self,
        operation: Operation,
        (ty, elements): (ElementType, u64),
        views: Option<[Raw; 2]>,
        reduce: Option<ReduceOp>,
        root: Option<usize>,
    ) -> Collective<'a> {
        let place = here();
        let wanted = Wanted { operation, reduce, root, ty, elements };
        let entered = Entered { wanted, views, place: place.clone() };
        let mut s = self.ctx.shared.borrow_mut();
        let fits = s.is_turn_of(self.rank, &place).and_then(|()| s.check_views(self.rank, &entered));
        let number = fits.and_then(|()| s.enter(self.rank, entered));
        Collective {
            shared: self.ctx.shared.clone(),
            number,
            rank: self.rank,
            place,
            done: false,
            tensors: PhantomData,
        }
    }

    /// Reduces a tensor of every rank, element by element; every rank's tensor becomes the result.
    #[track_caller]
    pub fn all_reduce<'a, T: Num>(&self, t: &'a mut Tensor<T>, op: ReduceOp) -> Collective<'a> {
        self.enter(Operation::AllReduce, size(t), Some([t.raw; 2]), Some(op), None)
    }

    /// Reduces the tensors `x` of all ranks into the tensors `y`.
    #[track_caller]
    pub fn all_reduce_into<'a, T: Num>(
        &self,
        x: &'a Tensor<T>,
        y: &'a mut Tensor<T>,
        op: ReduceOp,
    ) -> Collective<'a> {
        self.enter(Operation::AllReduce, size(x), Some([x.raw, y.raw]), Some(op), None)
    }

    /// Copies the root's tensor to those of all ranks.
    #[track_caller]
    pub fn broadcast<'a, T: Num>(&self, t: &'a mut Tensor<T>, root: usize) -> Collective<'a> {
        self.enter(Operation::Broadcast, size(t), Some([t.raw; 2]), None, Some(root))
    }

    /// Copies the root's `x` to the tensors `y` of all ranks.
    #[track_caller]
    pub fn broadcast_into<'a, T: Num>(
        &self,
        x: &'a Tensor<T>,
        y: &'a mut Tensor<T>,
        root: usize,
    ) -> Collective<'a> {
        self.enter(Operation::Broadcast, size(x), Some([x.raw, y.raw]), None, Some(root))
    }

    /// Puts the tensors `x` of all ranks, in order of rank, behind each other into the tensors `y`.
    #[track_caller]
    pub fn all_gather<'a, T: Num>(&self, x: &'a Tensor<T>, y: &'a mut Tensor<T>) -> Collective<'a> {
        self.enter(Operation::AllGather, size(x), Some([x.raw, y.raw]), None, None)
    }

    /// As [`Worker::all_gather`], where each rank's part is already in its place in `t`.
    #[track_caller]
    pub fn all_gather_in_place<'a, T: Num>(&self, t: &'a mut Tensor<T>) -> Collective<'a> {
        let (part, elements) = self.part(t);
        self.enter(Operation::AllGather, (T::TYPE, elements), Some([part, t.raw]), None, None)
    }

    /// Reduces the tensors `x` of all ranks; rank r gets part r of the result in `y`.
    #[track_caller]
    pub fn reduce_scatter<'a, T: Num>(
        &self,
        x: &'a Tensor<T>,
        y: &'a mut Tensor<T>,
        op: ReduceOp,
    ) -> Collective<'a> {
        self.enter(Operation::ReduceScatter, size(y), Some([x.raw, y.raw]), Some(op), None)
    }

    /// As [`Worker::reduce_scatter`], where each rank's part of the result goes to its place in `t`.
    #[track_caller]
    pub fn reduce_scatter_in_place<'a, T: Num>(&self, t: &'a mut Tensor<T>, op: ReduceOp) -> Collective<'a> {
        let (part, elements) = self.part(t);
        self.enter(Operation::ReduceScatter, (T::TYPE, elements), Some([t.raw, part]), Some(op), None)
    }

    /// Gives part r of `x` to rank r, which puts the parts it gets in order of rank into `y`.
    #[track_caller]
    pub fn all_to_all<'a, T: Num>(&self, x: &'a Tensor<T>, y: &'a mut Tensor<T>) -> Collective<'a> {
        self.enter(Operation::AllToAll, size(x), Some([x.raw, y.raw]), None, None)
    }

    /// As [`Worker::all_to_all`], in place.
    #[track_caller]
    pub fn all_to_all_in_place<'a, T: Num>(&self, t: &'a mut Tensor<T>) -> Collective<'a> {
        self.enter(Operation::AllToAll, size(t), Some([t.raw; 2]), None, None)
    }

    /// Waits until all ranks have come.
    #[track_caller]
    pub fn barrier(&self) -> Collective<'static> {
        self.enter(Operation::Barrier, (ElementType::F32, 0), None, None, None)
    }

    /// This rank's part of a tensor, as one row, and its elements. A tensor that does not divide gives a part of a
    /// size that does not fit, which is told on entering.
    fn part<T: Dtype>(&self, t: &Tensor<T>) -> (Raw, u64) {
        let world = self.world_size().unwrap_or(1).max(1);
        let [m, n] = t.shape();
        let part = m * n / world;
        let row = InOut::<T>::of(t.raw).reshape([1, m * n]);
        let start = part * self.rank.min(world - 1);
        (row.cols(start..start + part).raw, part as u64)
    }
}

fn size<T: Dtype>(t: &Tensor<T>) -> (ElementType, u64) {
    (T::TYPE, t.elements().end)
}
