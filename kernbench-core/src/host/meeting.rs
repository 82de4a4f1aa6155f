//! Collectives that ranks have entered: whether they agree, when they are launched, what they keep from others.

use super::collective::{Call, Operation, ReduceOp};
use super::crew::Wait;
use super::flight::Flight;
use super::group::{Choice, no_group};
use super::launch::{LaunchId, LaunchOptions, Submission};
use super::state::{State, ring_bytes};
use crate::diag::{Diagnostic, Failure, Place};
use crate::ir::{PeId, TensorId};
use crate::tl::{InOut, Raw};
use crate::topology::BufferKind;
use crate::ty::ElementType;
use std::cell::RefCell;
use std::ops::Range;

/// The k-th collective of all ranks.
#[derive(Debug)]
pub(super) struct Meeting {
    pub entered: Vec<Option<Entered>>,
    pub launched: Option<Submission>,
}

/// What a rank wants of a collective; all ranks must want the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub operation: Operation,
    pub reduce: Option<ReduceOp>,
    pub root: Option<usize>,
    pub ty: ElementType,
    pub elements: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Entered {
    pub wanted: Wanted,
    /// `None` for a barrier.
    pub views: Option<[Raw; 2]>,
    pub place: Place,
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

impl State {
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
        let open = self.group.iter().flat_map(|group| &group.meetings[group.open..]);
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
    pub(super) fn enter(&mut self, rank: usize, new: Entered) -> Result<usize, Failure> {
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
        hand.open.push((number, new.place.clone()));
        meeting.entered[rank] = Some(new);
        Ok(number)
    }

    /// Notes that a collective which a rank has entered is awaited, or never will be.
    pub(super) fn settle(&mut self, rank: usize, number: usize) {
        if let Some(hand) = self.crew.as_mut().and_then(|crew| crew.hands.get_mut(rank)) {
            hand.open.retain(|(open, _)| *open != number);
        }
    }

    /// Launches the collectives that every rank has entered.
    pub(super) fn launch_collectives(&mut self) -> Result<Vec<LaunchId>, Failure> {
        let mut launched = vec![];
        while let Some(group) = &self.group
            && let Some(meeting) = group.meetings.get(group.open)
            && let Some(all) = meeting.entered.iter().cloned().collect::<Option<Vec<Entered>>>()
        {
            let submission = self.launch_collective(&all)?;
            launched.extend(submission.id);
            if let Some(group) = &mut self.group {
                group.meetings[group.open].launched = Some(submission);
                group.open += 1;
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
        let nothing = Raw::whole(0, TensorId(u32::MAX), [1, 0], [1, 0]);
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
    pub(super) fn check_views(&self, rank: usize, entered: &Entered) -> Result<(), Failure> {
        let wanted = &entered.wanted;
        let wrong = |text: String, help: String| {
            let d = Diagnostic::error("KB0654", text).at(entered.place.clone(), "entered here").help(help);
            Err(d.into())
        };
        let world = self.group.as_ref().map_or(0, |group| group.world as usize);
        if rank >= world {
            // Told on entering.
            return Ok(());
        }
        if let Some(root) = wanted.root.filter(|root| *root >= world) {
            return wrong(
                format!("there is no rank {root} to broadcast from: the group has {world} ranks"),
                format!("use a root from 0 to {}", world.saturating_sub(1)),
            );
        }
        let Some([from, to]) = entered.views else { return Ok(()) };
        if [from, to].iter().any(|raw| raw.serial != self.serial(raw.tensor)) {
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
