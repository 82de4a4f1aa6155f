//! Barriers: the PEs of a cube or of a SIP that take part in the launch meet and leave together.

use super::fabric::Fabric;
use super::queue::EventKind;
use super::sim::Simulation;
use super::state::Wait;
use super::wires::Wires;
use crate::ir::{Engine, OpId, Program};
use crate::ty::Group;
use crate::units::Ps;
use std::ops::Range;

const SYNC: usize = Engine::Sync as usize;

/// The members of one cube or SIP.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    /// Positions in the simulation; the PEs of a program are in order, so those of a group are a run.
    pub members: Range<u32>,
    pub arrived: u32,
    /// The longest path from the meeting point back to a member.
    back_ps: Ps,
    /// The latest arrival at the meeting point, the arrival of that member, and its op id.
    latest: (Ps, Ps, u32),
}

/// The meetings of each launch: those of cubes, then those of SIPs.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub meetings: Vec<Meeting>,
    /// The meetings of each PE, by position: that of its cube and that of its SIP.
    pub of_pe: Vec<[u32; 2]>,
}

impl Groups {
    /// Adds those of a program.
    pub fn add(&mut self, fabric: &dyn Fabric, program: &Program) {
        let machine = fabric.machine();
        let first = self.of_pe.len();
        self.of_pe.resize(first + program.pes.len(), [0; 2]);
        let sizes = [(Group::Cube, machine.pes()), (Group::Sip, machine.pes() * machine.cubes())];
        for (which, size) in sizes {
            let group = |p: usize| program.pes[p].pe.0 / size;
            for p in 0..program.pes.len() {
                if p == 0 || group(p - 1) != group(p) {
                    let at = (first + p) as u32;
                    self.meetings.push(Meeting {
                        members: at..at,
                        arrived: 0,
                        back_ps: 0,
                        latest: (0, 0, 0),
                    });
                }
                let meeting = self.meetings.len() - 1;
                self.of_pe[first + p][which as usize] = meeting as u32;
                let meeting = &mut self.meetings[meeting];
                meeting.members.end = (first + p) as u32 + 1;
                meeting.back_ps = meeting.back_ps.max(fabric.release_ps(which, program.pes[p].pe));
            }
        }
    }
}

impl<W: Wires> Simulation<'_, W> {
    /// A PE arrives at a barrier; the last one lets all leave at the latest arrival at the meeting
    /// point plus the longest path back.
    pub fn meet(&mut self, p: usize, op: OpId, group: Group, now: Ps) {
        let id = self.id(p, op);
        let path = self.fabric.barrier_ps(group, self.pe_program(p).pe);
        let index = self.groups.of_pe[p][group as usize];
        self.pes[p].wait[SYNC] = Wait::Barrier(index);
        let meeting = &mut self.groups.meetings[index as usize];
        // Of equal arrivals the lowest id, whatever the order in which they are handled.
        if meeting.arrived == 0
            || (now + path, u32::MAX - id) > (meeting.latest.0, u32::MAX - meeting.latest.2)
        {
            meeting.latest = (now + path, now, id);
        }
        meeting.arrived += 1;
        if meeting.arrived < meeting.members.len() as u32 {
            return;
        }
        meeting.arrived = 0;
        let ((at, arrival, last), members) = (meeting.latest, meeting.members.clone());
        let leave = at + meeting.back_ps;
        let peer = Some(self.op_ref(last));
        for member in members {
            let m = member as usize;
            let Some(op) = self.pes[m].head(SYNC) else { continue };
            let t = &mut self.pes[m].ops[op.at()];
            (t.data_ps, t.peer) = (arrival, peer);
            self.pes[m].wait[SYNC] = Wait::Due;
            self.at(m, op, leave, EventKind::Done);
        }
    }
}
