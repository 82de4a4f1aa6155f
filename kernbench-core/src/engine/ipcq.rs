//! Sends and receives: credits, slots, and the queue in which a PE serves them (rule 7 of the machine).

use super::SlotConfig;
use super::fabric::{Fabric, PathId, Paths, Purpose};
use super::ids::Ids;
use super::queue::EventKind;
use super::sim::Simulation;
use super::state::{PENDING, Wait};
use super::timing::OpRef;
use super::wires::{Load, Sink, Wires};
use crate::ir::{Engine, LinkId, OpId, OpKind, PeProgram, Program};
use crate::units::Ps;

const IPCQ: usize = Engine::Ipcq as usize;
pub(super) const NO_OP: u32 = u32::MAX;

/// A link in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkState {
    /// Free slots.
    pub credits: u32,
    /// The send that waits for one, by op id.
    waiting: u32,
    /// Its first message in [`Links::messages`].
    first: u32,
    path: PathId,
    /// What a credit takes from the receiver back to the sender.
    credit_ps: Ps,
}

/// One message of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub visible: Ps,
    /// Op ids of its send and of the receive or wait that takes it.
    pub send: u32,
    pub recv: u32,
}

/// All links and all their messages, launch by launch.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub links: Vec<LinkState>,
    pub messages: Vec<Message>,
}

/// The link and message number of an IPCQ op; those of its receive for a wait.
pub(super) fn message_of(program: &PeProgram, kind: &OpKind) -> Option<(LinkId, u32)> {
    match kind {
        OpKind::Send { link, seq, .. }
        | OpKind::Recv { link, seq, .. }
        | OpKind::RecvAsync { link, seq, .. } => Some((*link, *seq)),
        OpKind::Wait { recv } => match program.ops[recv.at()].kind {
            OpKind::RecvAsync { link, seq, .. } => Some((link, seq)),
            _ => None,
        },
        _ => None,
    }
}

impl Links {
    /// Adds those of a program whose PEs are in the simulation from `first_pe` on; returns its first link.
    pub fn add(
        &mut self,
        fabric: &dyn Fabric,
        (program, first_pe): (&Program, usize),
        ids: &Ids,
        slots: &SlotConfig,
        paths: &mut Paths,
    ) -> usize {
        let mut count = vec![0; program.links.len()];
        let count_up = |link: LinkId, seq, _, _: &_| count[link.at()] = count[link.at()].max(seq + 1);
        for_each_message(program, first_pe, ids, count_up);
        let first_link = self.links.len();
        let mut total = self.messages.len() as u32;
        let links = count.iter().zip(&program.links).map(|(&count, link)| {
            let first = total;
            total += count;
            let (mut path, mut credit_ps) = (PathId(0), 0);
            if count > 0 {
                path = paths.get(fabric, Purpose::Message, link.from, link.to);
                credit_ps = fabric.credit_ps(link.to, link.from, slots.credit_bytes);
            }
            LinkState { credits: slots.n_slots, waiting: NO_OP, first, path, credit_ps }
        });
        self.links.extend(links);
        let unsent = Message { visible: PENDING, send: NO_OP, recv: NO_OP };
        self.messages.resize(total as usize, unsent);
        for_each_message(program, first_pe, ids, |link, seq, id, kind| {
            let message = &mut self.messages[(self.links[first_link + link.at()].first + seq) as usize];
            match kind {
                OpKind::Send { .. } => message.send = id,
                OpKind::RecvAsync { .. } => {}
                _ => message.recv = id,
            }
        });
        first_link
    }

    /// The message of a link by its number.
    pub fn index(&self, (link, seq): (usize, u32)) -> u32 {
        self.links[link].first + seq
    }
}

/// Calls `f` with link, number, op id and kind of every IPCQ op.
fn for_each_message(
    program: &Program,
    first_pe: usize,
    ids: &Ids,
    mut f: impl FnMut(LinkId, u32, u32, &OpKind),
) {
    for (p, pe) in program.pes.iter().enumerate() {
        for (i, op) in pe.ops.iter().enumerate() {
            if let Some((link, seq)) = message_of(pe, &op.kind) {
                f(link, seq, ids.id(first_pe + p, OpId(i as u32), 0), &op.kind);
            }
        }
    }
}

impl<W: Wires> Simulation<'_, W> {
    /// The link in the simulation and the message number of an IPCQ op.
    pub fn message_at(&self, p: usize, op: OpId) -> (usize, u32) {
        // Only called for IPCQ ops; a wait for what is no receive would be a recorder's mistake.
        let (link, seq) = message_of(self.pe_program(p), self.kind(p, op)).unwrap_or((LinkId(0), 0));
        (self.launch(p).first_link + link.at(), seq)
    }

    /// A send at the head of its queue takes a free slot or waits for one.
    pub fn take_credit(&mut self, p: usize, op: OpId, now: Ps) {
        let (link, _) = self.message_at(p, op);
        let id = self.id(p, op);
        let state = &mut self.links.links[link];
        if state.credits == 0 {
            state.waiting = id;
            self.pes[p].wait[IPCQ] = Wait::Credit;
            return;
        }
        state.credits -= 1;
        self.take_channel(p, op, now);
    }

    /// A send with a slot waits until the flits of the send before it have left.
    pub fn take_channel(&mut self, p: usize, op: OpId, now: Ps) {
        if self.pes[p].channel_busy {
            self.pes[p].wait[IPCQ] = Wait::Channel;
        } else {
            self.hand_over(p, op, now);
        }
    }

    fn hand_over(&mut self, p: usize, op: OpId, now: Ps) {
        let program = self.pe_program(p);
        let (link, _) = self.message_at(p, op);
        let path = self.links.links[link].path;
        let bytes = program.bytes_of(self.kind(p, op));
        self.pes[p].wait[IPCQ] = Wait::Due;
        self.at(p, op, now, EventKind::Done);
        if bytes == 0 {
            // No flit: like a command, it occupies nothing.
            let arrival = now + self.paths.path(path).empty_ps;
            return self.delivered(p, op, arrival);
        }
        self.pes[p].channel_busy = true;
        let id = self.id(p, op);
        let path = self.paths.path(path);
        self.wires.start(&self.paths, id, path, Load::message(bytes), Sink::Pe, now);
    }

    /// The last flit of a send has left its PE.
    pub fn left(&mut self, p: usize, before: OpId, now: Ps) {
        self.pes[p].channel_busy = false;
        if self.pes[p].wait[IPCQ] == Wait::Channel
            && let Some(op) = self.pes[p].head(IPCQ)
        {
            let before = OpRef { pe: p as u32, op: before };
            self.pes[p].ops[op.at()].peer = Some(before);
            self.hand_over(p, op, now);
        }
    }

    /// The last byte of a send's message is at the receiver: it goes into its slot.
    pub fn delivered(&mut self, p: usize, op: OpId, arrival: Ps) {
        let visible = arrival + self.slot_ps(p, op);
        self.pes[p].ops[op.at()].data_ps = visible;
        self.at(p, op, visible, EventKind::Visible);
    }

    fn slot_ps(&self, p: usize, op: OpId) -> Ps {
        let bytes = self.pe_program(p).bytes_of(self.kind(p, op));
        self.machine.slot_cost(self.launch(p).options.slots.kind).time(bytes)
    }

    pub fn visible(&mut self, p: usize, op: OpId, now: Ps) {
        let message = self.links.index(self.message_at(p, op));
        let launch = &mut self.launches[self.pes[p].launch as usize];
        launch.end_ps = launch.end_ps.max(now);
        self.links.messages[message as usize].visible = now;
        let recv = self.links.messages[message as usize].recv;
        if recv != NO_OP {
            let (p, op) = self.locate(recv);
            if self.pes[p].wait[IPCQ] == Wait::Message(message) {
                self.serve(p, op, now);
            }
        }
    }

    /// A receive or wait at the head of its queue.
    pub fn receive(&mut self, p: usize, op: OpId, now: Ps) {
        let message = self.links.index(self.message_at(p, op));
        if self.links.messages[message as usize].visible <= now {
            self.serve(p, op, now);
        } else {
            self.pes[p].wait[IPCQ] = Wait::Message(message);
        }
    }

    /// Reads the slot and sends the credit back.
    fn serve(&mut self, p: usize, op: OpId, now: Ps) {
        let at = self.message_at(p, op);
        let send = self.links.messages[self.links.index(at) as usize].send;
        let peer = Some(self.op_ref(send));
        let end = now + self.slot_ps(p, op) + self.links.links[at.0].credit_ps;
        let t = &mut self.pes[p].ops[op.at()];
        (t.data_ps, t.peer) = (now, peer);
        self.pes[p].wait[IPCQ] = Wait::Due;
        self.at(p, op, end, EventKind::Done);
    }

    /// A credit is back at the sender: a send that waits for it goes on, now or at its next poll.
    pub fn return_credit(&mut self, p: usize, op: OpId, now: Ps) {
        let (link, _) = self.message_at(p, op);
        let freed_by = self.op_ref(self.id(p, op));
        let state = &mut self.links.links[link];
        if state.waiting == NO_OP {
            state.credits += 1;
            return;
        }
        let waiting = std::mem::replace(&mut state.waiting, NO_OP);
        let (p, op) = self.locate(waiting);
        let poll_ps = self.launch(p).options.slots.poll_ps;
        let pe = &mut self.pes[p];
        let began = pe.ops[op.at()].start_ps;
        let seen = match poll_ps {
            Some(poll) if poll > 0 => began + (now - began).div_ceil(poll) * poll,
            _ => now,
        };
        pe.ops[op.at()].peer = Some(freed_by);
        pe.credit_wait += seen - began;
        pe.wait[IPCQ] = Wait::Due;
        if seen > now {
            self.at(p, op, seen, EventKind::Poll);
        } else {
            self.take_channel(p, op, now);
        }
    }
}
