//! Finds what each op at the head of an engine waits for when a run ends early.

use super::ipcq::{NO_OP, message_of};
use super::laws;
use super::sim::Simulation;
use super::stall::{Blocked, Reason, Stall, WaitsFor, intrinsic, named, pe_name};
use super::state::{ENGINES, PENDING, Wait};
use super::timing::OpRef;
use super::wires::Wires;
use crate::ir::{Engine, OpId, OpKind, Source};
use crate::topology::IssueMode;
use crate::ty::Group;
use crate::units::Ps;

impl Stall {
    /// Why launch `l` cannot go on.
    pub(super) fn of<W: Wires>(sim: &Simulation<W>, l: usize, reason: Reason, at_ps: Ps) -> Box<Stall> {
        let launch = &sim.launches[l];
        let mut stall = Stall {
            reason,
            at_ps,
            completed: launch.completed,
            total: launch.total,
            blocked: vec![],
            cycle: vec![],
        };
        let mut successors = vec![];
        for p in launch.pes.clone() {
            let first = stall.blocked.len();
            for e in 0..ENGINES {
                let Some(op) = sim.pes[p].head(e) else { continue };
                // A composite may be at the head of several.
                let known = stall.blocked[first..].iter().any(|b| b.op.op == op);
                if sim.pes[p].wait[e] == Wait::Issue || known {
                    continue;
                }
                stall.blocked.push(sim.blocked(p, op, e));
                successors.push(sim.waits_for(p, op, e));
            }
        }
        // Ops that are not heads stand behind the head of their engine; go on to that.
        let blocked = &stall.blocked;
        let heads = |to: &OpRef| {
            let p = to.pe as usize;
            let engine = sim.kind(p, to.op).engine() as usize;
            let head = match sim.pes[p].wait[engine] {
                Wait::Issue => OpId(sim.pes[p].issued - 1),
                _ => sim.pes[p].head(engine)?,
            };
            let head = OpRef { pe: to.pe, op: head };
            let from = blocked.partition_point(|b| b.op.pe < head.pe);
            blocked[from..].iter().take(ENGINES).position(|b| b.op == head).map(|at| from + at)
        };
        if reason == Reason::Deadlock {
            let graph: Vec<Vec<usize>> =
                successors.iter().map(|s| s.iter().filter_map(heads).collect()).collect();
            stall.cycle = first_cycle(&graph);
        }
        // Users know a PE by its position in its launch.
        stall.blocked.iter_mut().for_each(|b| b.op.pe -= launch.pes.start as u32);
        Box::new(stall)
    }
}

impl<W: Wires> Simulation<'_, W> {
    /// A law that does not hold at the end of a launch, if there is one.
    pub fn broken_law(&self, l: usize) -> Option<Box<Stall>> {
        let launch = &self.launches[l];
        let (start, end) = (launch.start_ps, launch.end_ps);
        let (p, broken) = launch.pes.clone().find_map(|p| {
            let broken = laws::broken(self.machine, self.pe_program(p), &self.pes[p], start, end)?;
            Some((p, broken))
        })?;
        let mut stall = Stall::of(self, l, Reason::BrokenLaw, end);
        let engine = self.kind(p, broken.op).engine() as usize;
        let mut blocked =
            Blocked { waits_for: WaitsFor::Law(broken.law), ..self.blocked(p, broken.op, engine) };
        blocked.op.pe -= launch.pes.start as u32;
        stall.blocked = vec![blocked];
        Some(stall)
    }

    fn blocked(&self, p: usize, op: OpId, e: usize) -> Blocked {
        let (program, launch) = (self.programs[p], self.launch(p).program);
        let o = &program.ops[op.at()];
        Blocked {
            op: OpRef { pe: p as u32, op },
            pe: program.pe,
            pe_name: pe_name(self.machine, program.pe),
            intrinsic: intrinsic(&o.kind),
            binding: launch.binding(o.site),
            places: launch.sites.chain(o.site).map(Source::place).collect(),
            waits_for: self.reason_of(p, op, e),
        }
    }

    /// What an op at the head of engine `e` waits for.
    fn reason_of(&self, p: usize, op: OpId, e: usize) -> WaitsFor {
        let link = || {
            let at = message_of(self.programs[p], self.kind(p, op))?;
            Some((self.launch(p).program.link(at.0), at))
        };
        match self.pes[p].wait[e] {
            Wait::Edge(pred) => WaitsFor::Op(self.name(OpRef { pe: p as u32, op: pred })),
            Wait::Slot => {
                let holder = self.pes[p].slot.map(|op| self.name(OpRef { pe: p as u32, op }));
                holder.map_or(WaitsFor::Time, WaitsFor::Op)
            }
            Wait::Credit => link().map_or(WaitsFor::Time, |(link, _)| WaitsFor::Credit {
                to: link.dir,
                receiver: pe_name(self.machine, link.to),
                slots: self.launch(p).options.slots.n_slots,
                held_by: self.waits_for(p, op, e).first().map(|&r| self.name_and_keeper(r)),
            }),
            Wait::Message(_) => link().map_or(WaitsFor::Time, |(link, (_, number))| WaitsFor::Message {
                number,
                from: link.recv_dir,
                sender: pe_name(self.machine, link.from),
                sent_by: self.waits_for(p, op, e).first().map(|&s| self.name_and_keeper(s)),
            }),
            Wait::Barrier(meeting) => {
                let group = match self.kind(p, op) {
                    OpKind::Barrier { group: Group::Sip } => "sip",
                    _ => "cube",
                };
                let missing = self.missing(meeting);
                let missing = missing.map(|m| pe_name(self.machine, self.programs[m].pe)).collect();
                WaitsFor::Barrier { group, missing }
            }
            _ => WaitsFor::Time,
        }
    }

    /// Positions of the members that have not come to a meeting.
    fn missing(&self, meeting: u32) -> impl Iterator<Item = usize> + '_ {
        let members = self.groups.meetings[meeting as usize].members.clone();
        let waits = move |m: &usize| self.pes[*m].wait[Engine::Sync as usize] != Wait::Barrier(meeting);
        members.map(|m| m as usize).filter(waits)
    }

    /// The ops that have to complete first.
    fn waits_for(&self, p: usize, op: OpId, e: usize) -> Vec<OpRef> {
        let kind = self.kind(p, op);
        let here = |op| vec![OpRef { pe: p as u32, op }];
        let by_id = |id: u32| if id == NO_OP { vec![] } else { vec![self.op_ref(id)] };
        match self.pes[p].wait[e] {
            Wait::Edge(pred) => here(pred),
            Wait::Slot => self.pes[p].slot.map_or(vec![], here),
            Wait::Message(m) => by_id(self.links.messages[m as usize].send),
            Wait::Credit => {
                let (link, seq) = self.message_at(p, op);
                let slots = self.launch(p).options.slots.n_slots;
                // Receives of a link come in order, so the slot is freed by this one.
                let freed_by = seq.checked_sub(slots);
                freed_by.filter(|_| slots > 0).map_or(vec![], |seq| {
                    by_id(self.links.messages[self.links.index((link, seq)) as usize].recv)
                })
            }
            Wait::Barrier(meeting) => {
                let of_group = |m: usize| {
                    let ops = &self.programs[m].ops;
                    let op = (0..ops.len())
                        .find(|&i| ops[i].kind == *kind && self.pes[m].ops[i].end_ps == PENDING)?;
                    Some(OpRef { pe: m as u32, op: OpId(op as u32) })
                };
                self.missing(meeting).filter_map(of_group).collect()
            }
            _ => vec![],
        }
    }

    /// "`x = recv` at kernel.rs:12".
    fn name(&self, at: OpRef) -> String {
        let op = &self.programs[at.pe as usize].ops[at.op.at()];
        let source = self.launch(at.pe as usize).program.sites.get(op.site).source;
        format!("{} at {}:{}", named(source.name, intrinsic(&op.kind)), source.file, source.line)
    }

    /// The name, and the op it cannot pass.
    fn name_and_keeper(&self, at: OpRef) -> String {
        let pe = &self.pes[at.pe as usize];
        let e = self.kind(at.pe as usize, at.op).engine() as usize;
        let blocking = pe.issue == IssueMode::Blocking;
        let keeper = match pe.head(e) {
            _ if blocking && pe.wait[e] == Wait::Issue => Some(OpId(pe.issued - 1)),
            Some(head) if head == at.op => None,
            head => head,
        };
        let name = self.name(at);
        keeper.map_or(name.clone(), |op| format!("{name}, behind its {}", self.name(OpRef { pe: at.pe, op })))
    }
}

/// The first cycle that a search in order of nodes and edges finds.
fn first_cycle(graph: &[Vec<usize>]) -> Vec<usize> {
    let (mut finished, mut on_path) = (vec![false; graph.len()], vec![false; graph.len()]);
    for start in 0..graph.len() {
        let mut path = vec![(start, 0)];
        on_path[start] = true;
        while let Some((node, edge)) = path.last_mut() {
            let node = *node;
            let Some(&next) = graph[node].get(*edge).filter(|_| !finished[node]) else {
                (finished[node], on_path[node]) = (true, false);
                path.pop();
                continue;
            };
            *edge += 1;
            if on_path[next] {
                let from = path.iter().position(|(n, _)| *n == next).unwrap_or(0);
                return path[from..].iter().map(|(n, _)| *n).collect();
            }
            if !finished[next] {
                on_path[next] = true;
                path.push((next, 0));
            }
        }
    }
    vec![]
}
