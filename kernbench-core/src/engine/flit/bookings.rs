//! What is booked on edges and nodes, and how it is taken back.

use super::super::fabric::{End, Hop, Paths};
use super::train::Train;
use super::{FlitWires, NONE, Step};
use crate::units::Ps;

/// How many flits an edge stays busy after somebody had to give way on it: trains that meet there
/// again soon are not booked and cut each time.
const BUSY_FLITS: Ps = 16;
/// Lists of legs are looked through for past ones when they get this long.
const LONG: usize = 8;

/// A reference to a leg that may be gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct LegRef {
    leg: u32,
    stamp: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Edge {
    pub free_ps: Ps,
    /// What a full flit holds it.
    pub flit_ps: Ps,
    pub propagation_ps: Ps,
    /// The node it leaves, and whether that has something to decode.
    pub node: u32,
    pub decodes: bool,
    /// The train booked last, if it may have to give way.
    pub booked: Option<LegRef>,
    /// Trains that are at its node but for their turn.
    pub held: u32,
    pub busy_until: Ps,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// What its worker takes for the first flit of a transfer.
    pub decode_ps: Ps,
    /// When its worker has decoded what it has begun.
    pub open_ps: Ps,
    /// Trains booked on its edges that may have to give way.
    pub booked: Vec<LegRef>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Unused,
    /// On its way to the node before its hop; `held` if it has been there and waits for its turn.
    Coming {
        held: bool,
    },
    /// Booked on the edges of its step, which were free at `before`, by a node that lets go from `open` on.
    Booked {
        open: Ps,
        before: [Ps; 2],
    },
}

/// Flits of a transfer at one hop.
#[derive(Debug)]
pub(super) struct Leg {
    pub id: u32,
    pub hop: u32,
    /// When its flits arrive at the node before the hop.
    pub train: Train,
    /// When something happens to it.
    pub due: Ps,
    pub state: State,
    /// How often its place has been used.
    pub stamp: u32,
}

#[derive(Debug, Default)]
pub(super) struct Bookings {
    pub edges: Vec<Edge>,
    pub nodes: Vec<Node>,
    pub legs: Vec<Leg>,
    unused: Vec<u32>,
}

impl Bookings {
    /// Makes room for the edge and the node of a hop.
    pub fn grow(&mut self, hop: &Hop) {
        let (edge, node) = (hop.edge as usize, hop.node as usize);
        if node >= self.nodes.len() {
            self.nodes.resize(node + 1, Node::default());
        }
        self.nodes[node].decode_ps = hop.decode_ps;
        if edge >= self.edges.len() {
            self.edges.resize(edge + 1, Edge::default());
        }
        let state = &mut self.edges[edge];
        (state.flit_ps, state.propagation_ps) = (hop.flit_ps, hop.propagation_ps);
        (state.node, state.decodes) = (hop.node, hop.decode_ps > 0);
    }

    pub fn add(&mut self, leg: Leg) -> u32 {
        match self.unused.pop() {
            Some(at) => {
                let place = &mut self.legs[at as usize];
                *place = Leg { stamp: place.stamp, ..leg };
                at
            }
            None => {
                self.legs.push(leg);
                self.legs.len() as u32 - 1
            }
        }
    }

    pub fn free(&mut self, at: u32) {
        let leg = &mut self.legs[at as usize];
        leg.state = State::Unused;
        leg.stamp = leg.stamp.wrapping_add(1);
        self.unused.push(at);
    }

    fn get(&self, leg: LegRef) -> Option<&Leg> {
        let found = &self.legs[leg.leg as usize];
        (found.stamp == leg.stamp).then_some(found)
    }

    /// Remembers that a leg may have to give way.
    pub fn note(&mut self, at: u32, edge: u32) {
        let leg = LegRef { leg: at, stamp: self.legs[at as usize].stamp };
        let edge = &mut self.edges[edge as usize];
        edge.booked = Some(leg);
        if !edge.decodes {
            return;
        }
        let node = edge.node as usize;
        let mut booked = std::mem::take(&mut self.nodes[node].booked);
        if booked.len() >= LONG {
            let now = self.legs[at as usize].train.head();
            booked.retain(|l| self.get(*l).is_some_and(|l| l.train.last() >= now));
        }
        booked.push(leg);
        self.nodes[node].booked = booked;
    }
}

impl FlitWires {
    /// A transfer `id` comes to the node before a hop at `now`: the train booked on the edge lets it in.
    #[cold]
    pub(super) fn give_way(&mut self, paths: &Paths, step: Step, id: u32, now: Ps) {
        let Some(booked) = self.bookings.edges[step.edge as usize].booked.take() else { return };
        let Some(leg) = self.bookings.get(booked) else { return };
        match leg.train.first_from(now, leg.id > id) {
            Some((number, _)) => {
                let edge = &mut self.bookings.edges[step.edge as usize];
                edge.busy_until = now + BUSY_FLITS * edge.flit_ps;
                self.cut(paths, booked.leg, number);
            }
            // It lost its last flits to a cut further back.
            None if step.end != End::Node => {
                let arrival = self.settle(paths, booked.leg);
                debug_assert!(arrival.is_none());
            }
            None => {}
        }
    }

    /// The worker of a node is busy with the head of transfer `id`, which came at `now`, until `open`:
    /// flits booked to pass meanwhile have to wait.
    pub(super) fn delay(&mut self, paths: &Paths, node: u32, id: u32, now: Ps, open: Ps) {
        let mut booked = std::mem::take(&mut self.bookings.nodes[node as usize].booked);
        booked.retain(|l| {
            let Some(leg) = self.bookings.get(*l) else { return false };
            match leg.train.first_from(now, leg.id > id) {
                None => false,
                Some((_, arrival)) if arrival >= open => true,
                Some((number, _)) => {
                    self.cut(paths, l.leg, number);
                    false
                }
            }
        });
        self.bookings.nodes[node as usize].booked = booked;
    }

    /// Takes back what is booked of a leg from flit `number` on, which arrives again.
    fn cut(&mut self, paths: &Paths, at: u32, number: u32) {
        let leg = &mut self.bookings.legs[at as usize];
        let (id, hop_at) = (leg.id, leg.hop);
        let tail = leg.train.split_off(number);
        self.unbook(paths, at);
        let flight = self.place[id as usize] as usize;
        let mut legs = std::mem::take(&mut self.flights[flight].legs);
        legs.retain(|&other| {
            let leg = &mut self.bookings.legs[other as usize];
            if leg.hop <= hop_at || leg.train.end() <= number {
                return true;
            }
            if leg.train.first < number {
                leg.train.split_off(number);
                self.unbook(paths, other);
                return true;
            }
            if leg.state == (State::Coming { held: true }) {
                self.bookings.edges[self.steps[leg.hop as usize].edge as usize].held -= 1;
            }
            self.bookings.free(other);
            false
        });
        self.flights[flight].legs = legs;
        let step = self.steps[hop_at as usize];
        if step.end == End::Node {
            self.drop_leg(at);
        } else {
            let arrival = self.settle(paths, at);
            debug_assert!(arrival.is_none());
        }
        self.bookings.edges[step.edge as usize].held += 1;
        self.arrive(id, hop_at, tail, true);
    }

    /// Frees the edges of a leg, if it is booked, from the end of its last flit on.
    fn unbook(&mut self, paths: &Paths, at: u32) {
        let State::Booked { open, before } = self.bookings.legs[at as usize].state else { return };
        let (_, free) = self.over(paths, at, open, before);
        let step = self.steps[self.bookings.legs[at as usize].hop as usize];
        self.set_free(step, free);
    }

    /// The step of a leg, and when its edges are free.
    pub(super) fn before(&self, at: u32) -> (Step, [Ps; 2]) {
        let step = self.steps[self.bookings.legs[at as usize].hop as usize];
        let edges = &self.bookings.edges;
        let second = if step.second == NONE { 0 } else { edges[step.second as usize].free_ps };
        (step, [edges[step.edge as usize].free_ps, second])
    }

    pub(super) fn set_free(&mut self, step: Step, free: [Ps; 2]) {
        self.bookings.edges[step.edge as usize].free_ps = free[0];
        if step.second != NONE {
            self.bookings.edges[step.second as usize].free_ps = free[1];
        }
    }

    /// The train of a leg behind its step, and when the edges are free again.
    pub(super) fn over(&self, paths: &Paths, at: u32, open: Ps, before: [Ps; 2]) -> (Train, [Ps; 2]) {
        let leg = &self.bookings.legs[at as usize];
        let flight = &self.flights[self.place[leg.id as usize] as usize];
        let hops = &paths.hops[leg.hop as usize..];
        let (train, first) = leg.train.over(&flight.times(&hops[0], self.flit_bytes), open, before[0]);
        if self.steps[leg.hop as usize].second == NONE {
            return (train, [first, 0]);
        }
        let (train, second) = train.over(&flight.times(&hops[1], self.flit_bytes), 0, before[1]);
        (train, [first, second])
    }

    /// Forgets a leg.
    pub(super) fn drop_leg(&mut self, at: u32) {
        let id = self.bookings.legs[at as usize].id;
        let legs = &mut self.flights[self.place[id as usize] as usize].legs;
        if let Some(i) = legs.iter().position(|l| *l == at) {
            legs.swap_remove(i);
        }
        self.bookings.free(at);
    }

    /// Forgets legs of a transfer that are past: all their flits have passed their node before `now`.
    pub(super) fn prune(&mut self, id: u32, now: Ps) {
        let flight = &mut self.flights[self.place[id as usize] as usize];
        if flight.legs.len() < LONG {
            return;
        }
        flight.legs.retain(|&at| {
            let leg = &self.bookings.legs[at as usize];
            let booked = matches!(leg.state, State::Booked { .. });
            let past = booked && leg.train.last() < now && self.steps[leg.hop as usize].end == End::Node;
            if past {
                self.bookings.free(at);
            }
            !past
        });
    }
}
