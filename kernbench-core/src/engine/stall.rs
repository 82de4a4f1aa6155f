//! Why a run cannot go on: every blocked op, what it waits for, and the cycle if there is one.

use super::timing::OpRef;
use crate::diag::{Diagnostic, Failure, Place};
use crate::ir::{OpKind, PeId};
use crate::topology::Machine;
use crate::ty::Dir;
use crate::units::Ps;
use std::fmt::{self, Write};

/// How many blocked ops a diagnostic shows.
const SHOWN: usize = 4;

/// A run that did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Why it ended.
    pub reason: Reason,
    /// The simulated time at which it ended, absolute.
    pub at_ps: Ps,
    /// Ops that completed.
    pub completed: usize,
    /// Ops of the program.
    pub total: usize,
    /// The op at the head of each engine, in order of PE and engine.
    pub blocked: Vec<Blocked>,
    /// Positions in `blocked` of ops that wait for each other, each for the next, the last for the
    /// first; empty if there is no cycle.
    pub cycle: Vec<usize>,
}

/// Why a run ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No op can go on.
    Deadlock,
    /// The time limit of the options, counted from the launch stamp, was reached.
    TimeLimit(Ps),
    /// It was cancelled.
    Cancelled,
    /// The run came to its end, but a law that holds for any run does not hold: the simulator is wrong.
    BrokenLaw,
}

/// An op that has not completed, at the head of its engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The op.
    pub op: OpRef,
    /// Its PE.
    pub pe: PeId,
    /// The PE as users name it: `sip0.cube1.pe2`.
    pub pe_name: String,
    /// The op as users name it: `recv`, `load`.
    pub intrinsic: &'static str,
    /// The binding its value gets; `_` if none.
    pub binding: &'static str,
    /// Where it was written, innermost call first.
    pub places: Vec<Place>,
    /// What it waits for.
    pub waits_for: WaitsFor,
}

/// What a blocked op waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// It is under way.
    Time,
    /// Nothing: what it did breaks this law.
    Law(&'static str),
    /// An op of its own PE, named as users do, with its place.
    Op(String),
    /// A free slot towards a neighbour.
    Credit {
        /// The direction as the sender names it.
        to: Dir,
        /// The receiver, as users name it.
        receiver: String,
        /// Slots of the link, all taken.
        slots: u32,
        /// The receive that would free one, and what keeps it; `None` if the receiver has none.
        held_by: Option<String>,
    },
    /// A message from a neighbour.
    Message {
        /// Its number on the link, from 0.
        number: u32,
        /// The direction as the receiver names it.
        from: Dir,
        /// The sender, as users name it.
        sender: String,
        /// The send, and what keeps it; `None` if the sender has none.
        sent_by: Option<String>,
    },
    /// Members of a barrier group.
    Barrier {
        /// `cube` or `sip`.
        group: &'static str,
        /// Who has not come, as users name them.
        missing: Vec<String>,
    },
}

/// `sip0.cube1.pe2`.
pub(crate) fn pe_name(machine: &Machine, pe: PeId) -> String {
    machine.pe_name(pe)
}

/// The name of an op as users write it.
pub(crate) const fn intrinsic(kind: &OpKind) -> &'static str {
    match kind {
        OpKind::Load { .. } => "load",
        OpKind::Store { .. } => "store",
        OpKind::Fill { .. } => "full",
        OpKind::Arange { .. } => "arange",
        OpKind::Map { .. } => "eval",
        OpKind::Reduce { reduction, .. } => reduction.name(),
        OpKind::Dot { .. } => "dot",
        OpKind::Composite { .. } => "composite",
        OpKind::Join { .. } => "wait",
        OpKind::Send { .. } => "send",
        OpKind::Recv { .. } => "recv",
        OpKind::RecvAsync { .. } => "recv_async",
        OpKind::Wait { .. } => "wait",
        OpKind::Fence => "fence",
        OpKind::Barrier { .. } => "barrier",
    }
}

impl Stall {
    /// The code of its diagnostic.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.reason {
            Reason::Deadlock if !self.cycle.is_empty() => "KB0401",
            Reason::Deadlock => "KB0402",
            Reason::TimeLimit(_) => "KB0403",
            Reason::Cancelled => "KB0404",
            Reason::BrokenLaw => "KB0405",
        }
    }

    /// What a kernel author is told.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        let at = ns_text(self.at_ps);
        let rest = format!("{} of {} ops are not complete", self.total - self.completed, self.total);
        let mut pes: Vec<PeId> = self.cycle.iter().map(|&i| self.blocked[i].pe).collect();
        pes.sort_unstable();
        pes.dedup();
        let (message, help) = match self.reason {
            Reason::Deadlock if pes.len() > 1 => (
                format!("deadlock at {at}: {} PEs wait for each other, {rest}", pes.len()),
                "let one PE of the cycle send before it receives, or give its link more slots",
            ),
            Reason::Deadlock if !pes.is_empty() => (
                format!("deadlock at {at}: a PE waits for itself, {rest}"),
                "let the op that is waited for come before the one that waits",
            ),
            Reason::Deadlock => (
                format!("deadlock at {at}: ops wait for what never comes, {rest}"),
                "give every `recv` its `send`, and let every PE of a group come to its barriers",
            ),
            Reason::TimeLimit(limit) => (
                format!("the time limit of {} is reached, {rest}", ns_text(limit)),
                "raise the limit, or look at the ops that hold the run up",
            ),
            Reason::Cancelled => (format!("cancelled at {at}, {rest}"), "start it again"),
            Reason::BrokenLaw => (
                "internal error: the times of this run are wrong".to_owned(),
                "report it with the command and the files it reads; another `fidelity` may do meanwhile",
            ),
        };
        let mut d = Diagnostic::error(self.code(), message).help(help);
        // The cycle first, then what waits for others, then what waits in its own PE.
        let mut order: Vec<usize> = self.cycle.clone();
        for own in [false, true] {
            let wanted = |b: &Blocked| matches!(b.waits_for, WaitsFor::Op(_) | WaitsFor::Time) == own;
            order.extend(
                (0..self.blocked.len()).filter(|i| !self.cycle.contains(i) && wanted(&self.blocked[*i])),
            );
        }
        let hidden = order.len().saturating_sub(SHOWN);
        for (n, &i) in order.iter().take(SHOWN).enumerate() {
            let blocked = &self.blocked[i];
            let mut text = blocked.to_string();
            if n + 1 == SHOWN && hidden > 0 {
                let _ = write!(text, "; and {hidden} more");
            }
            let mut places = blocked.places.iter();
            if let Some(place) = places.next() {
                d = d.at(place.clone(), text);
            }
            for place in places {
                d = d.at(place.clone(), "called here");
            }
        }
        d
    }
}

pub(super) fn named(binding: &str, intrinsic: &str) -> String {
    match binding {
        "" | "_" => format!("`{intrinsic}`"),
        binding => format!("`{binding} = {intrinsic}`"),
    }
}

/// Picoseconds as nanoseconds: `12.5 ns`.
fn ns_text(ps: Ps) -> String {
    let fraction = format!("{:03}", ps % 1000);
    match fraction.trim_end_matches('0') {
        "" => format!("{} ns", ps / 1000),
        fraction => format!("{}.{fraction} ns", ps / 1000),
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.pe_name, named(self.binding, self.intrinsic), self.waits_for)
    }
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitsFor::Time => f.write_str("is under way"),
            WaitsFor::Law(law) => f.write_str(law),
            WaitsFor::Op(op) => write!(f, "waits for {op}"),
            WaitsFor::Credit { to, receiver, slots, held_by } => {
                write!(f, "waits for one of {slots} slots towards {to} of {receiver}")?;
                match held_by {
                    Some(op) => write!(f, ", to be freed by {op}"),
                    None => write!(f, ", which receives nothing more"),
                }
            }
            WaitsFor::Message { number, from, sender, sent_by } => {
                write!(f, "waits for message {number} from {from}, {sender}")?;
                match sent_by {
                    Some(op) => write!(f, ", to be sent by {op}"),
                    None => write!(f, ", which sends nothing more"),
                }
            }
            WaitsFor::Barrier { group, missing } => {
                write!(f, "waits for the {group}'s ")?;
                for (i, pe) in missing.iter().take(SHOWN).enumerate() {
                    write!(f, "{}{pe}", if i == 0 { "" } else { ", " })?;
                }
                match missing.len().saturating_sub(SHOWN) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.diagnostic().fmt(f)
    }
}

impl std::error::Error for Stall {}

impl From<Stall> for Failure {
    fn from(stall: Stall) -> Self {
        stall.diagnostic().into()
    }
}

impl From<Box<Stall>> for Failure {
    fn from(stall: Box<Stall>) -> Self {
        (*stall).into()
    }
}
