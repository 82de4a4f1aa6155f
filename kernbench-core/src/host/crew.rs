//! The workers of a `spawn` as the context sees them: whose turn it is, what each has pending and waits for.

use super::flight::Fate;
use super::launch::LaunchId;
use super::state::State;
use crate::diag::{Diagnostic, Failure, Place};
use crate::ir::TensorId;
use crate::units::Ps;
use std::ops::Range;

/// What a worker waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// A plain launch.
    Launch(LaunchId, Place),
    /// A collective, by its number.
    Collective(usize, Place),
}

/// One worker.
#[derive(Debug, Default)]
pub(super) struct Hand {
    /// The SIP it places tensors on.
    pub device: u32,
    /// Where its host program stands in simulated time.
    pub clock: Ps,
    /// Launches it has submitted and does not know to have completed.
    pub pending: Vec<LaunchId>,
    /// What it waits for since its last turn.
    pub waits: Vec<Wait>,
    /// How often it has given way.
    pub yields: usize,
    /// Collectives it has entered.
    pub entered: usize,
    /// Those of them that are not awaited yet, each with where it was entered.
    pub open: Vec<(usize, Place)>,
    /// What is wrong with how it used collectives.
    pub findings: Vec<Diagnostic>,
    pub started: bool,
    /// It has come to its end.
    pub returned: bool,
}

/// All workers of a `spawn`.
#[derive(Debug, Default)]
pub(super) struct Crew {
    pub hands: Vec<Hand>,
    pub current: usize,
    /// The SIP on which the context placed tensors before.
    pub device: u32,
    /// The workers are being dropped: what they leave undone is no mistake of theirs.
    pub ending: bool,
}

impl State {
    /// The worker whose turn it is.
    pub(super) fn hand(&mut self) -> Option<&mut Hand> {
        self.crew.as_mut().and_then(|crew| crew.hands.get_mut(crew.current))
    }

    /// Refuses what would drive the machine from inside a worker.
    pub(super) fn no_worker(&self, what: &str, place: Place) -> Result<(), Failure> {
        if self.crew.is_none() {
            return Ok(());
        }
        let text = format!("`{what}` of the context inside a worker: it would stop all workers");
        Err(Diagnostic::error("KB0650", text)
            .at(place, "called here")
            .help("use what `spawn` gives the worker, and `.await` it")
            .into())
    }

    /// Refuses a worker that is used when it is not its turn.
    pub(super) fn is_turn_of(&self, rank: usize, place: &Place) -> Result<(), Failure> {
        let (text, help) = match &self.crew {
            Some(crew) if crew.current == rank => return Ok(()),
            Some(crew) => (
                format!("the worker of rank {rank} is used by rank {}", crew.current),
                "use the worker that `spawn` gives to each rank",
            ),
            None => (
                format!("the worker of rank {rank} is used after its `spawn` has returned"),
                "do it inside `spawn`, or use the context",
            ),
        };
        Err(Diagnostic::error("KB0650", text).at(place.clone(), "called here").help(help).into())
    }

    pub(super) fn begin_turn(&mut self, rank: usize) {
        let Some(crew) = &mut self.crew else { return };
        crew.current = rank;
        let hand = &mut crew.hands[rank];
        hand.started = true;
        hand.waits.clear();
        (self.now, self.device) = (hand.clock, hand.device);
    }

    pub(super) fn end_turn(&mut self, gave_way: bool) {
        let (now, device) = (self.now, self.device);
        if let Some(hand) = self.hand() {
            (hand.clock, hand.device) = (now, device);
            hand.yields += usize::from(gave_way);
        }
    }

    /// Whether the host knows at its own time that a launch has completed or failed.
    pub(super) fn is_known(&self, id: LaunchId) -> bool {
        match &self.flights.fates[id.at()] {
            Fate::UnderWay => false,
            Fate::Completed { known_ps, .. } => *known_ps <= self.now,
            Fate::Failed(_) => true,
        }
    }

    fn satisfied(&self, wait: &Wait) -> bool {
        match wait {
            Wait::Launch(id, _) => self.is_known(*id),
            Wait::Collective(number, _) => self.is_collective_known(*number),
        }
    }

    /// Whether a worker can go on.
    pub(super) fn can_go_on(&self, rank: usize) -> bool {
        let Some(hand) = self.crew.as_ref().and_then(|crew| crew.hands.get(rank)) else { return false };
        !hand.returned && (!hand.started || hand.waits.iter().any(|wait| self.satisfied(wait)))
    }

    /// The launches of the current worker that it does not know to have completed.
    pub(super) fn pending(&mut self) -> Vec<LaunchId> {
        let Some(hand) = self.hand() else { return vec![] };
        let mut pending = std::mem::take(&mut hand.pending);
        pending.retain(|id| !self.is_known(*id));
        if let Some(hand) = self.hand() {
            hand.pending.clone_from(&pending);
        }
        pending
    }

    /// What the current worker must wait for before the host reads, or writes, elements of a tensor.
    ///
    /// # Errors
    /// A pending collective uses them: nobody may wait for that.
    pub(super) fn barrier(
        &mut self,
        tensor: TensorId,
        range: Range<u64>,
        write: bool,
        place: &Place,
    ) -> Result<Vec<LaunchId>, Failure> {
        self.no_collective(tensor, &range, write, place)?;
        let mut all = if write { vec![] } else { self.pending() };
        all.extend(self.users(tensor, &range, write));
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// Completes what workers wait for, and the collectives that every rank has entered.
    ///
    /// # Errors
    /// A collective that cannot be launched.
    pub(super) fn end_round(&mut self) -> Result<(), Failure> {
        let Some(crew) = &self.crew else { return Ok(()) };
        self.now = crew.hands.iter().map(|hand| hand.clock).fold(self.now, Ps::max);
        let waits = crew.hands.iter().flat_map(|hand| &hand.waits);
        let mut waited: Vec<LaunchId> = waits
            .filter_map(|wait| match wait {
                Wait::Launch(id, _) => Some(*id),
                Wait::Collective(..) => None,
            })
            .collect();
        waited.extend(self.launch_collectives()?);
        if !waited.is_empty() {
            self.fly();
        }
        for id in waited {
            if let Fate::Completed { known_ps, .. } = &self.flights.fates[id.at()] {
                self.now = self.now.max(*known_ps);
            }
        }
        let now = self.now;
        self.round_ps = Some(now);
        self.crew.iter_mut().flat_map(|crew| &mut crew.hands).for_each(|hand| hand.clock = now);
        self.land();
        Ok(())
    }
}
