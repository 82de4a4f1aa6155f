//! The critical path: from the end of a launch back to its start through what each op waited for.

use crate::engine::{Cause, OpRef, OpTiming, Timing, intrinsic};
use crate::ir::{OpId, OpKind, Program};
use crate::log::LaunchLog;
use crate::topology::{IssueMode, Machine};
use crate::units::Ps;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a part of the critical path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// Between launches: the completion of one to the host, and the next to its PEs.
    Host,
    /// The start of the kernel on its PE.
    Launch,
    /// The issuing processor.
    Issue,
    /// The op at work; for a receive, the slot read and the credit's way back; for a barrier, the way
    /// to the meeting point and back.
    Work,
    /// A message on its way into its slot.
    Message,
    /// Bytes of a load, store or message behind those of others.
    Contention,
    /// A free slot that the sender has not seen yet.
    Credit,
    /// The send before, whose flits are leaving.
    Channel,
}

/// A part of the critical path; each begins where the one before ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What it is.
    pub what: What,
    /// The op, unless it is launch or issue.
    pub op: Option<OpRef>,
    /// Its start, absolute.
    pub start_ps: Ps,
    /// Its end.
    pub end_ps: Ps,
}

/// The parts of the critical path of one kind and one source line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Their sum.
    pub ps: Ps,
    /// That over the makespan, in millionths.
    pub share_ppm: u64,
    /// How many.
    pub count: u64,
    /// What they are.
    pub what: What,
    /// The op's name in the log, such as `dma_read`; empty for launch and issue.
    pub name: &'static str,
    /// The op as it is written, such as `load`; empty for launch and issue.
    pub intrinsic: &'static str,
    /// The binding its value gets, or `_`.
    pub binding: &'static str,
    /// The source file.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
}

/// A point on the way back.
#[derive(Clone, Copy)]
enum At {
    End(OpRef),
    Start(OpRef),
    Visible(OpRef),
}

/// From the launch stamp to the end of the last op, without gaps. Of ops that end together the first
/// by PE and op counts as the last.
#[must_use]
pub fn critical_path(
    machine: &Machine,
    program: &Program,
    timing: &Timing,
    issue: IssueMode,
) -> Vec<Segment> {
    let mut walk = Walk { segments: vec![], now: timing.end_ps };
    let mut at = last(timing);
    while let Some(point) = at {
        at = match point {
            At::End(op) => walk.end(program, timing, op),
            At::Visible(send) => {
                let t = timing.op(send);
                walk.bytes(What::Message, send, t.end_ps, t);
                Some(At::End(send))
            }
            At::Start(op) => match (timing.op(op).cause, issue) {
                (Cause::Edge(x) | Cause::Engine(x) | Cause::Slot(x), _) => {
                    Some(At::End(OpRef { pe: op.pe, op: x }))
                }
                (Cause::Issue, IssueMode::Blocking) if op.op.0 > 0 => {
                    let before = OpRef { pe: op.pe, op: OpId(op.op.0 - 1) };
                    walk.to(What::Issue, None, timing.op(before).end_ps);
                    Some(At::End(before))
                }
                (Cause::Issue, _) => {
                    walk.to(What::Issue, None, timing.start_ps + machine.pe_cpu.start_ps);
                    walk.to(What::Launch, None, timing.start_ps);
                    None
                }
            },
        };
    }
    walk.segments.reverse();
    walk.segments
}

/// The op, or the arrival of a message, with which a launch ends.
fn last(timing: &Timing) -> Option<At> {
    let find = |wanted: fn(&OpTiming) -> Ps| {
        timing.pes.iter().enumerate().find_map(|(pe, times)| {
            let op = times.ops.iter().position(|t| wanted(t) == timing.end_ps)?;
            Some(OpRef { pe: pe as u32, op: OpId(op as u32) })
        })
    };
    find(|t| t.end_ps).map(At::End).or_else(|| find(|t| t.data_ps).map(At::Visible))
}

struct Walk {
    segments: Vec<Segment>,
    now: Ps,
}

impl Walk {
    /// Goes back to `start`.
    fn to(&mut self, what: What, op: Option<OpRef>, start: Ps) {
        if start < self.now {
            self.segments.push(Segment { what, op, start_ps: start, end_ps: self.now });
            self.now = start;
        }
    }

    /// Goes back to `start` over a transfer, of which the last part counts as contention.
    fn bytes(&mut self, what: What, op: OpRef, start: Ps, t: &OpTiming) {
        let alone = self.now.saturating_sub(t.contention_ps).max(start);
        self.to(What::Contention, Some(op), alone);
        self.to(what, Some(op), start);
    }

    /// From the end of an op to what comes before it.
    fn end(&mut self, program: &Program, timing: &Timing, at: OpRef) -> Option<At> {
        let t = timing.op(at);
        match (&program.pes[at.pe as usize].ops[at.op.at()].kind, t.peer) {
            (OpKind::Send { .. }, Some(peer)) => {
                let what = if peer.pe == at.pe { What::Channel } else { What::Credit };
                self.to(what, Some(at), timing.op(peer).end_ps);
                return Some(At::End(peer));
            }
            (OpKind::Recv { .. } | OpKind::Wait { .. }, Some(send)) => {
                self.to(What::Work, Some(at), t.data_ps);
                if t.data_ps > t.start_ps {
                    return Some(At::Visible(send));
                }
            }
            (OpKind::Barrier { .. }, Some(last)) => {
                self.to(What::Work, Some(at), t.data_ps);
                return Some(At::Start(last));
            }
            (OpKind::Load { .. } | OpKind::Store { .. }, _) => {
                self.bytes(What::Work, at, t.start_ps, t);
            }
            _ => self.to(What::Work, Some(at), t.start_ps),
        }
        Some(At::Start(at))
    }
}

/// The launches that decide when the last one ends, last first: before each the one that ended last before it began.
fn chain<'a>(launches: &[&'a LaunchLog]) -> Vec<&'a LaunchLog> {
    let last = |until: Ps| {
        let ended = launches.iter().filter(|l| l.timing.end_ps <= until && l.timing.start_ps < until);
        // Of launches that end together the first.
        ended.rev().max_by_key(|l| l.timing.end_ps).copied()
    };
    std::iter::successors(last(Ps::MAX), |l| last(l.timing.start_ps)).collect()
}

/// Sums the critical paths of the launches that decide when the last one ends, by kind and source line, largest first,
/// then in order of source. Together they are the time from the first stamp to the last end.
pub(super) fn rows(machine: &Machine, launches: &[&LaunchLog]) -> Vec<Row> {
    let mut sums: BTreeMap<_, (Ps, u64)> = BTreeMap::new();
    let chain = chain(launches);
    let first = launches.iter().map(|l| l.timing.start_ps).min().unwrap_or(0);
    for (i, LaunchLog { program, timing, issue, .. }) in chain.iter().enumerate() {
        for segment in critical_path(machine, program, timing, *issue) {
            let place = segment.op.map_or(("", 0, "", "", ""), |at| {
                let pe = &program.pes[at.pe as usize];
                let op = &pe.ops[at.op.at()];
                let source = program.sites.get(op.site).source;
                let names = (pe.op_name(&op.kind), intrinsic(&op.kind), program.binding(op.site));
                (source.file, source.line, names.0, names.1, names.2)
            });
            let sum = sums.entry((place, segment.what)).or_default();
            sum.0 += segment.end_ps - segment.start_ps;
            sum.1 += 1;
        }
        let before = chain.get(i + 1).map_or(first, |before| before.timing.end_ps);
        if before < timing.start_ps {
            let sum = sums.entry((("", 0, "", "", ""), What::Host)).or_default();
            sum.0 += timing.start_ps - before;
            sum.1 += 1;
        }
    }
    let whole: Ps = sums.values().map(|(ps, _)| ps).sum();
    let row = |(((file, line, name, intrinsic, binding), what), (ps, count))| Row {
        ps,
        share_ppm: (u128::from(ps) * 1_000_000 / u128::from(whole.max(1))) as u64,
        count,
        what,
        name,
        intrinsic,
        binding,
        file,
        line,
    };
    let mut rows: Vec<Row> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|r| std::cmp::Reverse(r.ps));
    rows
}
