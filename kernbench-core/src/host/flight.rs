//! Launches under way: submitted, and not yet known to the host to have completed.
//!
//! They are simulated together, from the moment the first was submitted while nothing was under way. A launch
//! that is submitted later changes nothing of what happened before, so that simulating them all again is
//! the same as going on (rule 5 of the machine).

use super::launch::LaunchId;
use super::state::State;
use crate::diag::{Diagnostic, Failure, Place};
use crate::engine::{self, Fidelity, Options, SlotConfig, Submitted};
use crate::ir::{PeId, Program, TensorId};
use crate::log::LaunchLog;
use crate::topology::IssueMode;
use crate::units::Ps;
use rangemap::RangeSet;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A launch under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub id: LaunchId,
    pub program: Arc<Program>,
    pub issue: IssueMode,
    pub slots: SlotConfig,
    pub max_ps: Option<Ps>,
    pub cancel: Option<Arc<AtomicBool>>,
    pub submitted_ps: Ps,
    /// Earlier launches under way that it waits for.
    pub after: Vec<LaunchId>,
    /// Where it was submitted.
    pub place: Place,
    /// Whether it is a collective of a process group.
    pub collective: bool,
    /// When the host knows that it has completed; `None` until it is simulated.
    pub known_ps: Option<Ps>,
    /// Which launch of the store it is, once it is computed.
    pub version: Option<u32>,
    pub touched: OnceCell<Touched>,
}

/// What became of a launch.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    UnderWay,
    /// Its position in the op log, and when the host knew.
    Completed {
        index: usize,
        known_ps: Ps,
    },
    Failed(Failure),
}

/// The launches under way.
#[derive(Debug, Default)]
pub(super) struct Flights {
    pub list: Vec<Flight>,
    /// Those of another fidelity, which come to their ends before the first of `list` starts.
    ended: Vec<Flight>,
    fidelity: Fidelity,
    /// Launches in the op log before the first of them.
    logged: usize,
    /// Nothing starts before this: launches of another fidelity were under way until then.
    floor: Ps,
    /// By launch.
    pub fates: Vec<Fate>,
    /// Tensors that were dropped while a launch used them.
    doomed: Vec<TensorId>,
}

/// The PEs and the elements a program uses.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pes: Vec<PeId>,
    reads: BTreeMap<TensorId, RangeSet<u64>>,
    writes: BTreeMap<TensorId, RangeSet<u64>>,
}

impl Touched {
    fn of(program: &Program) -> Touched {
        let mut touched = Touched { pes: program.pes.iter().map(|pe| pe.pe).collect(), ..Touched::default() };
        for pe in &program.pes {
            for op in &pe.ops {
                let read = pe.read_accesses(&op.kind).map(|a| (a, false));
                for (access, write) in read.chain(pe.written_access(&op.kind).map(|a| (a, true))) {
                    let access = pe.access(access);
                    let side = if write { &mut touched.writes } else { &mut touched.reads };
                    let ranges = side.entry(access.tensor).or_default();
                    access.runs().filter(|run| !run.is_empty()).for_each(|run| ranges.insert(run));
                }
            }
        }
        touched
    }

    fn overlaps(side: &BTreeMap<TensorId, RangeSet<u64>>, tensor: TensorId, range: &Range<u64>) -> bool {
        side.get(&tensor).is_some_and(|ranges| ranges.overlaps(range))
    }

    /// Whether a read of a range, or a write, meets what the program does.
    fn conflicts_at(&self, tensor: TensorId, range: &Range<u64>, write: bool) -> bool {
        Self::overlaps(&self.writes, tensor, range) || write && Self::overlaps(&self.reads, tensor, range)
    }

    fn shares_pe(&self, other: &Touched) -> bool {
        // Both are in order.
        let mut theirs = other.pes.iter().peekable();
        self.pes.iter().any(|pe| {
            while theirs.next_if(|t| *t < pe).is_some() {}
            theirs.peek() == Some(&pe)
        })
    }

    /// A tensor whose bytes one of the two writes and the other uses.
    fn conflict(&self, other: &Touched) -> Option<TensorId> {
        let meets = |mine: &BTreeMap<TensorId, RangeSet<u64>>, write| {
            mine.iter().find_map(|(tensor, ranges)| {
                ranges.iter().any(|r| other.conflicts_at(*tensor, r, write)).then_some(*tensor)
            })
        };
        meets(&self.writes, true).or_else(|| meets(&self.reads, false))
    }
}

impl Flight {
    fn touched(&self) -> &Touched {
        self.touched.get_or_init(|| Touched::of(&self.program))
    }

    /// Whether the host does not know yet, at `now`, that it has completed.
    pub fn is_under_way(&self, now: Ps) -> bool {
        self.known_ps.is_none_or(|known| known > now)
    }

    /// Whether the host may not read, or write, a range before it has completed.
    pub fn uses(&self, tensor: TensorId, range: &Range<u64>, write: bool) -> bool {
        self.touched().conflicts_at(tensor, range, write)
    }

    fn uses_at_all(&self, tensor: TensorId) -> bool {
        self.uses(tensor, &(0..u64::MAX), true)
    }
}

impl State {
    /// Adds a launch to those under way; it follows `after`, or all it must follow.
    ///
    /// # Errors
    /// An explicit list that leaves out a launch which uses the same bytes.
    pub(super) fn enlist(
        &mut self,
        mut flight: Flight,
        after: Option<&[LaunchId]>,
        fidelity: Fidelity,
    ) -> Result<(), Failure> {
        self.land();
        let flights = &mut self.flights;
        if flights.list.is_empty() {
            (flights.fidelity, flights.logged) = (fidelity, self.log.launches.len());
        } else if flights.fidelity != fidelity {
            // Wires of two fidelities cannot be shared: this launch follows all others.
            self.fly();
            let flights = &mut self.flights;
            let known = flights.list.iter().filter_map(|f| f.known_ps).max();
            flights.floor = flights.floor.max(known.unwrap_or(0));
            flights.ended.append(&mut flights.list);
            (flights.fidelity, flights.logged) = (fidelity, self.log.launches.len());
        }
        flight.submitted_ps = flight.submitted_ps.max(self.flights.floor);
        flight.after = self.predecessors(&flight, after)?;
        self.flights.list.push(flight);
        Ok(())
    }

    /// The launches under way that a new one follows.
    fn predecessors(&self, new: &Flight, after: Option<&[LaunchId]>) -> Result<Vec<LaunchId>, Failure> {
        if after.is_some_and(|after| after.iter().any(|id| id.context != self.number)) {
            let text =
                format!("the `after` of launch `{}` names a launch of another context", new.program.name);
            return Err(Diagnostic::error("KB0648", text)
                .at(new.place.clone(), "launched here")
                .help("name launches of the context that launches")
                .into());
        }
        let list = &self.flights.list;
        if list.is_empty() {
            return Ok(vec![]);
        }
        let mine = new.touched();
        let Some(after) = after else {
            let orders = |f: &&Flight| mine.shares_pe(f.touched()) || mine.conflict(f.touched()).is_some();
            return Ok(list.iter().filter(orders).map(|f| f.id).collect());
        };
        let before = self.flights.before(after);
        let left_out = list.iter().filter(|f| !before.contains(&f.id));
        match left_out.filter_map(|f| Some((f, mine.conflict(f.touched())?))).next() {
            None => {
                // A PE runs one launch at a time, whatever the list says.
                let shares = list.iter().filter(|f| mine.shares_pe(f.touched())).map(|f| f.id);
                Ok(after.iter().copied().chain(shares).collect())
            }
            Some((f, tensor)) => {
                let name = self.info(tensor).map_or("?", |info| &info.name);
                let text = format!(
                    "launch `{}` uses bytes of `{name}` that launch `{}` uses, too, and its `after` leaves that one out",
                    new.program.name, f.program.name
                );
                Err(Diagnostic::error("KB0648", text)
                    .at(new.place.clone(), "launched here")
                    .at(f.place.clone(), "under way since here")
                    .help("add that launch to `after`, or leave `after` out")
                    .into())
            }
        }
    }

    /// Takes back the launch enlisted last.
    pub(super) fn withdraw(&mut self, id: LaunchId) {
        self.flights.list.retain(|f| f.id != id);
        self.log.launches.truncate(self.flights.logged + self.flights.list.len());
    }

    /// Simulates the launches under way, if there are new ones, and logs them. One that stalls has failed and
    /// is taken out.
    pub(super) fn fly(&mut self) {
        while self.flights.list.iter().any(|f| f.known_ps.is_none()) {
            let overhead_ps = self.topology.launch_ps();
            let flights = &mut self.flights;
            let machine = self.topology.machine();
            let position = |id: &LaunchId| flights.list.iter().position(|f| f.id == *id);
            let launches: Vec<Submitted> = flights
                .list
                .iter()
                .map(|f| Submitted {
                    program: &f.program,
                    options: Options {
                        issue: f.issue,
                        max_ps: f.max_ps,
                        slots: f.slots,
                        // Nobody cancels what has come to its end.
                        cancel: f.cancel.as_deref().filter(|_| f.known_ps.is_none()),
                        ..Options::new(machine)
                    },
                    submitted_ps: f.submitted_ps,
                    overhead_ps,
                    after: f.after.iter().filter_map(position).collect(),
                })
                .collect();
            let result = engine::simulate_all(&self.topology, &launches, flights.fidelity);
            drop(launches);
            match result {
                Ok(timings) => {
                    self.log.launches.truncate(flights.logged);
                    for (f, timing) in flights.list.iter_mut().zip(timings) {
                        // Completion goes back the way the launch came.
                        let known_ps = timing.end_ps + overhead_ps;
                        f.known_ps = Some(known_ps);
                        flights.fates[f.id.at()] =
                            Fate::Completed { index: self.log.launches.len(), known_ps };
                        self.log.launches.push(Arc::new(LaunchLog {
                            program: f.program.clone(),
                            submitted_ps: f.submitted_ps,
                            timing,
                            issue: f.issue,
                            slots: f.slots.kind,
                            fidelity: flights.fidelity,
                        }));
                    }
                }
                Err((at, stall)) => {
                    let failed = flights.list.remove(at);
                    self.fail(&failed, Failure::from(*stall));
                    self.fail_followers(failed);
                }
            }
        }
    }

    /// Notes that a launch, which is taken out, does not complete. What it stored is nobody's: later reads must not see it.
    fn fail(&mut self, flight: &Flight, why: Failure) {
        self.flights.fates[flight.id.at()] = Fate::Failed(why);
        if let Some(version) = flight.version {
            self.store.forget_launch(&flight.program, version);
        }
    }

    /// Takes out the launches that would follow one that does not complete.
    fn fail_followers(&mut self, failed: Flight) {
        let mut gone = vec![failed];
        while let Some((at, before)) = self
            .flights
            .list
            .iter()
            .enumerate()
            .find_map(|(at, f)| Some((at, gone.iter().find(|gone| f.after.contains(&gone.id))?)))
        {
            let (name, place) = (before.program.name.clone(), before.place.clone());
            let flight = self.flights.list.remove(at);
            let text = format!(
                "launch `{}` cannot start: launch `{name}`, which comes before it, does not complete",
                flight.program.name
            );
            let why = Diagnostic::error("KB0660", text)
                .at(flight.place.clone(), "launched here")
                .at(place, "this one does not complete")
                .help("see why that one fails; it says so where it is awaited");
            self.fail(&flight, why.into());
            gone.push(flight);
        }
    }

    /// Forgets the launches under way once the host knows that all have completed.
    pub(super) fn land(&mut self) {
        let now = self.round_ps.unwrap_or(self.now);
        if self.flights.all().any(|f| f.is_under_way(now)) {
            return;
        }
        self.flights.list.clear();
        self.flights.ended.clear();
        for tensor in std::mem::take(&mut self.flights.doomed) {
            self.free(tensor);
        }
    }

    /// Whether a tensor must outlive a launch under way; then it is freed when that has completed.
    pub(super) fn outlives_its_owner(&mut self, tensor: TensorId) -> bool {
        let now = self.round_ps.unwrap_or(self.now);
        let used = self.flights.all().any(|f| f.is_under_way(now) && f.uses_at_all(tensor));
        if used {
            self.flights.doomed.push(tensor);
        }
        used
    }

    /// The plain launches under way that the host must wait for before it reads, or writes, a range.
    pub(super) fn users(&self, tensor: TensorId, range: &Range<u64>, write: bool) -> Vec<LaunchId> {
        let blocks = |f: &&Flight| !f.collective && f.is_under_way(self.now) && f.uses(tensor, range, write);
        self.flights.all().filter(blocks).map(|f| f.id).collect()
    }
}

impl Flights {
    /// Also those of another fidelity.
    fn all(&self) -> impl Iterator<Item = &Flight> {
        self.ended.iter().chain(&self.list)
    }

    /// These launches and all that come before them.
    fn before(&self, after: &[LaunchId]) -> Vec<LaunchId> {
        let mut before = after.to_vec();
        for f in self.list.iter().rev() {
            if before.contains(&f.id) {
                before.extend(&f.after);
            }
        }
        before
    }

    /// A number for a new launch.
    pub(super) fn number(&mut self) -> u32 {
        self.fates.push(Fate::UnderWay);
        self.fates.len() as u32 - 1
    }
}
