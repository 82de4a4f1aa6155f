//! Fidelity `flit`: exactly the result of moving every flit on its own (rules 1 to 4, 8 and 9).
//!
//! Flits travel in trains: runs of a transfer's flits whose arrivals at a node are a few equally
//! spaced sequences. When the first flit of a train arrives, all of it is booked on the edge as if
//! nobody else came, in closed form, and the train that results goes on to the next node. If somebody
//! does come before the last flit has arrived, and is in the way, the train is *cut* at the first flit
//! that comes after the newcomer: what was booked for the flits from there on, here and further along
//! the path, has not happened yet and is taken back, and they arrive again as a train of their own.
//! Where several trains want an edge at once, each lets one flit go at a time, which then travels
//! alone; so traffic that never meets costs an event for each train and hop, and traffic that always
//! does, one for each flit and hop.
//!
//! **Invariant:** everything is handled in the order (time, transfer, flit), and what is booked later
//! than now can be taken back. A flit that travels alone has no future: it is only ever booked when it
//! arrives. So the result is that of the plain engine in `tests/flits.rs`, to the picosecond.

mod bookings;
mod flight;
mod memory;
mod train;
mod wheel;

use super::fabric::{End, Path, Paths};
use super::hbm::Channels;
use super::wires::{Arrival, Load, Notice, Progress, STRIDE, Sink, Wires};
use crate::topology::{Hbm, Machine};
use crate::units::Ps;
use bookings::{Bookings, Leg, State};
use flight::Flight;
use rustc_hash::FxHashMap;
use train::Train;
use wheel::{Entry, Wheel};

/// What happens to a leg; else to a flit.
const LEG: u32 = 1 << 31;
/// The flit is a short one.
const SHORT: u32 = 1 << 30;

/// What the time of a transfer alone depends on: path, address in a row of channels, and load.
type Shape = ([u32; 2], u64, u64, u64, u64);

/// A hop, with the one after it if nobody can come between.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The node it leaves.
    from: u32,
    /// The same, if its worker has something to decode, or [`NONE`].
    node: u32,
    edge: u32,
    /// The edge of the hop after it, or [`NONE`].
    second: u32,
    hops: u16,
    end: End,
}

/// No node, no edge.
const NONE: u32 = u32::MAX;

/// The state of all edges and nodes in use and of the transfers on them.
#[derive(Debug)]
pub(super) struct FlitWires {
    flit_bytes: u64,
    hbm: Hbm,
    channels: Channels,
    idle_channels: Vec<Ps>,
    flights: Vec<Flight>,
    unused: Vec<u32>,
    /// The place in `flights` by transfer id.
    place: Vec<u32>,
    bookings: Bookings,
    /// The step that begins with each hop of the paths.
    steps: Vec<Step>,
    wheel: Wheel,
    /// Times of transfers alone; only ever looked up.
    alone: FxHashMap<Shape, Ps>,
    events: u64,
}

impl FlitWires {
    /// Idle wires for transfer ids below `ids`.
    pub fn new(machine: &Machine, ids: usize) -> Self {
        FlitWires {
            flit_bytes: machine.flit_bytes,
            hbm: machine.hbm,
            channels: Channels::new(machine),
            idle_channels: vec![0; machine.hbm.channels as usize],
            flights: vec![],
            unused: vec![],
            place: vec![0; ids],
            bookings: Bookings::default(),
            steps: vec![],
            wheel: Wheel::new(machine.hbm.burst_ps / 16),
            alone: FxHashMap::default(),
            events: 0,
        }
    }

    fn flight(&mut self, id: u32) -> &mut Flight {
        &mut self.flights[self.place[id as usize] as usize]
    }
}

impl Wires for FlitWires {
    fn start(&mut self, paths: &Paths, id: u32, path: Path, load: Load, sink: Sink, at: Ps) {
        let known = self.steps.len();
        for (i, hop) in paths.hops.iter().enumerate().skip(known) {
            let second = paths.hops.get(i + 1).filter(|next| hop.end == End::Node && next.follows);
            self.steps.push(Step {
                from: hop.node,
                node: if hop.decode_ps > 0 { hop.node } else { NONE },
                edge: hop.edge,
                second: second.map_or(NONE, |next| next.edge),
                hops: 1 + u16::from(second.is_some()),
                end: second.map_or(hop.end, |next| next.end),
            });
            self.bookings.grow(hop);
        }
        let mut flight = Flight::new(path, load, sink, at, self.flit_bytes);
        let row = self.flit_bytes * u64::from(self.hbm.channels);
        let shape = ([path.first, path.len], load.addr % row, load.run_bytes, load.runs, load.stride_bytes);
        flight.alone_ps = *self
            .alone
            .entry(shape)
            .or_insert_with(|| flight.alone(paths, &self.hbm, self.flit_bytes, &mut self.idle_channels));
        let train = flight.train(at);
        let place = match self.unused.pop() {
            Some(place) => {
                flight.legs = std::mem::take(&mut self.flights[place as usize].legs);
                self.flights[place as usize] = flight;
                place
            }
            None => {
                self.flights.push(flight);
                self.flights.len() as u32 - 1
            }
        };
        self.place[id as usize] = place;
        self.arrive(id, path.first, train, false);
    }

    fn run(&mut self, paths: &Paths, until: Ps) -> Progress {
        for _ in 0..STRIDE {
            let (steps, legs) = (&self.steps, &self.bookings.legs);
            let place = |what: u32| {
                let hop = if what & LEG == 0 { what & !SHORT } else { legs[(what & !LEG) as usize].hop };
                steps.get(hop as usize).map_or(0, |step| step.from)
            };
            let Some(entry) = self.wheel.pop(until, place) else { return Progress::Idle };
            self.events += 1;
            let notice = if entry.what & LEG != 0 {
                self.leg(paths, entry)
            } else {
                let step = self.steps[(entry.what & !SHORT) as usize];
                let open = self.enter(paths, step, entry.id, entry.number, entry.time);
                let arrival = self.pass(paths, entry, step, open);
                arrival.map(|arrival| Notice { left_ps: None, arrival: Some(arrival) })
            };
            if let Some(notice) = notice {
                return Progress::Told(entry.id, notice);
            }
        }
        Progress::Paused
    }

    fn is_idle(&self) -> bool {
        self.wheel.is_empty()
    }

    fn events(&self) -> u64 {
        self.events
    }
}

impl FlitWires {
    /// A train is on its way to a node, to take hop `hop` from there.
    fn arrive(&mut self, id: u32, hop: u32, train: Train, held: bool) {
        let due = train.head();
        let number = train.first;
        let leg = self.bookings.add(Leg { id, hop, train, due, state: State::Coming { held }, stamp: 0 });
        self.flight(id).legs.push(leg);
        self.wheel.push(Entry { time: due, id, number, what: LEG | leg });
    }

    /// The first of some flits comes to the node before a hop, and everybody booked there gives way
    /// to it; when the node lets flits go.
    #[inline(always)]
    fn enter(&mut self, paths: &Paths, step: Step, id: u32, number: u32, now: Ps) -> Ps {
        let mut open = now;
        if step.node != NONE {
            let node = &mut self.bookings.nodes[step.node as usize];
            open = open.max(node.open_ps);
            if number == 0 {
                open += node.decode_ps;
                node.open_ps = open;
                if !node.booked.is_empty() {
                    self.delay(paths, step.node, id, now, open);
                }
            }
        }
        if self.bookings.edges[step.edge as usize].booked.is_some() {
            self.give_way(paths, step, id, now);
        }
        open
    }

    /// A flit passes a node that lets it go at `open`.
    #[inline(always)]
    fn pass(&mut self, paths: &Paths, flit: Entry, step: Step, open: Ps) -> Option<Arrival> {
        let edge = &mut self.bookings.edges[step.edge as usize];
        let takes = if flit.what & SHORT == 0 { edge.flit_ps } else { self.short_ps(paths, flit, 0) };
        let edge = &mut self.bookings.edges[step.edge as usize];
        edge.free_ps = open.max(edge.free_ps) + takes;
        let mut arrival = edge.free_ps + edge.propagation_ps;
        if step.second != NONE {
            let edge = &mut self.bookings.edges[step.second as usize];
            let takes = if flit.what & SHORT == 0 { edge.flit_ps } else { self.short_ps(paths, flit, 1) };
            let edge = &mut self.bookings.edges[step.second as usize];
            edge.free_ps = arrival.max(edge.free_ps) + takes;
            arrival = edge.free_ps + edge.propagation_ps;
        }
        if step.end == End::Node {
            self.wheel.push(Entry { time: arrival, what: flit.what + u32::from(step.hops), ..flit });
            return None;
        }
        self.end_flit(paths, flit, step, arrival)
    }

    /// What a short flit holds the edge of its hop, or one further along the path.
    #[cold]
    fn short_ps(&self, paths: &Paths, flit: Entry, further: u32) -> Ps {
        let flight = &self.flights[self.place[flit.id as usize] as usize];
        let hop = (flit.what & !SHORT) + further;
        flight.times(&paths.hops[hop as usize], self.flit_bytes).short
    }

    /// Something happens to a leg: its first flit arrives, or the last one that ends the path is due.
    fn leg(&mut self, paths: &Paths, entry: Entry) -> Option<Notice> {
        let (at, now, id) = (entry.what & !LEG, entry.time, entry.id);
        let leg = &mut self.bookings.legs[at as usize];
        let held = match leg.state {
            _ if leg.due != now || leg.id != id => return None,
            State::Unused => return None,
            State::Booked { .. } => {
                let arrival = self.settle(paths, at)?;
                return Some(Notice { left_ps: None, arrival: Some(arrival) });
            }
            State::Coming { .. } if leg.train.first != entry.number => return None,
            State::Coming { held } => held,
        };
        let hop_at = leg.hop;
        let (first_hop, stop) = (self.flight(id).first_hop, self.flight(id).stop);
        if hop_at == stop {
            let arrival = self.end(paths, id, at);
            return Some(Notice { left_ps: Some(now), arrival });
        }
        let step = self.steps[hop_at as usize];
        self.bookings.edges[step.edge as usize].held -= u32::from(held);
        let open = self.enter(paths, step, id, entry.number, now);
        let leg = &mut self.bookings.legs[at as usize];
        let edge = &self.bookings.edges[step.edge as usize];
        let more = leg.train.last() > now;
        if (more && (edge.held > 0 || now < edge.busy_until)) || leg.train.is_one() {
            return self.let_one_go(paths, at, open);
        }
        let arrival = self.book(paths, at, open, more);
        let left_ps = (hop_at == first_hop).then(|| self.bookings.edges[step.edge as usize].free_ps);
        (left_ps.is_some() || arrival.is_some()).then_some(Notice { left_ps, arrival })
    }

    /// The first flit of a train goes on alone; the others wait for their turns.
    fn let_one_go(&mut self, paths: &Paths, at: u32, open: Ps) -> Option<Notice> {
        let leg = &mut self.bookings.legs[at as usize];
        let (id, hop, number) = (leg.id, leg.hop, leg.train.first);
        let last = leg.train.is_one();
        let short = leg.train.pop();
        if last {
            self.drop_leg(at);
        } else {
            leg.due = leg.train.head();
            leg.state = State::Coming { held: true };
            self.wheel.push(Entry { time: leg.due, id, number: leg.train.first, what: LEG | at });
            self.bookings.edges[self.steps[hop as usize].edge as usize].held += 1;
        }
        let step = self.steps[hop as usize];
        let what = hop | if short { SHORT } else { 0 };
        let arrival = self.pass(paths, Entry { time: 0, id, number, what }, step, open);
        let source = self.flight(id).first_hop == hop;
        let left_ps = (source && last).then(|| self.bookings.edges[step.edge as usize].free_ps);
        (left_ps.is_some() || arrival.is_some()).then_some(Notice { left_ps, arrival })
    }

    /// Books a whole train on its edge; `more` of it arrives later than now.
    fn book(&mut self, paths: &Paths, at: u32, open: Ps, more: bool) -> Option<Arrival> {
        let (step, before) = self.before(at);
        let (behind, free) = self.over(paths, at, open, before);
        self.set_free(step, free);
        let leg = &mut self.bookings.legs[at as usize];
        let (id, now) = (leg.id, leg.due);
        if !more {
            // Nobody can come between: there is nothing to take back here.
            leg.train = behind;
            if step.end != End::Node {
                return self.end(paths, id, at);
            }
            leg.hop += u32::from(step.hops);
            leg.due = leg.train.head();
            leg.state = State::Coming { held: false };
            self.wheel.push(Entry { time: leg.due, id, number: leg.train.first, what: LEG | at });
            return None;
        }
        // An entry that was for a leg here before must not be taken for one of this leg.
        leg.due = Ps::MAX;
        leg.state = State::Booked { open, before };
        let next = leg.hop + u32::from(step.hops);
        if step.end != End::Node {
            leg.due = leg.train.last();
            self.wheel.push(Entry { time: leg.due, id, number: leg.train.end() - 1, what: LEG | at });
        }
        self.bookings.note(at, step.edge);
        if step.end == End::Node {
            self.prune(id, now);
            self.arrive(id, next, behind, false);
        }
        None
    }

    /// All flits of a booked leg that ends the path have left the last node.
    fn settle(&mut self, paths: &Paths, at: u32) -> Option<Arrival> {
        let State::Booked { open, before } = self.bookings.legs[at as usize].state else { return None };
        let train = self.over(paths, at, open, before).0;
        let leg = &mut self.bookings.legs[at as usize];
        leg.train = train;
        let id = leg.id;
        self.end(paths, id, at)
    }

    /// The train of a leg is at the end of the path, or where the transfer is gathered.
    fn end(&mut self, paths: &Paths, id: u32, at: u32) -> Option<Arrival> {
        let leg = &mut self.bookings.legs[at as usize];
        let (train, hop) = (std::mem::take(&mut leg.train), leg.hop);
        self.drop_leg(at);
        let flight = &mut self.flights[self.place[id as usize] as usize];
        if hop < flight.stop && self.steps[hop as usize].end == End::Gather {
            if train.end() == flight.flits {
                self.release(paths, id, hop, train.last());
            }
            return None;
        }
        let done = match flight.sink {
            Sink::Pe => train.last(),
            Sink::Hbm(home) => {
                memory::commit(&self.hbm, self.flit_bytes, self.channels.of(home), flight, &train)
            }
        };
        flight.ended += train.end() - train.first;
        flight.done_ps = flight.done_ps.max(done);
        self.finish(id)
    }

    /// The same for a flit that travels alone.
    fn end_flit(&mut self, paths: &Paths, flit: Entry, step: Step, arrival: Ps) -> Option<Arrival> {
        let flight = &mut self.flights[self.place[flit.id as usize] as usize];
        if step.end == End::Gather {
            if flit.number + 1 == flight.flits {
                self.release(paths, flit.id, flit.what & !SHORT, arrival);
            }
            return None;
        }
        let done = match flight.sink {
            Sink::Pe => arrival,
            Sink::Hbm(home) => {
                let channels = self.channels.of(home);
                memory::commit_flit(&self.hbm, self.flit_bytes, channels, flight, flit.number, arrival)
            }
        };
        flight.ended += 1;
        flight.done_ps = flight.done_ps.max(done);
        self.finish(flit.id)
    }

    /// All flits of a transfer have been gathered behind a step, the last one at `last`.
    fn release(&mut self, paths: &Paths, id: u32, hop: u32, last: Ps) {
        let next = hop + u32::from(self.steps[hop as usize].hops);
        let train = self.flight(id).train(last + paths.hops[next as usize - 1].overhead_ps);
        self.arrive(id, next, train, false);
    }

    /// Ends a transfer all of whose flits have ended.
    fn finish(&mut self, id: u32) -> Option<Arrival> {
        let place = self.place[id as usize];
        let flight = &mut self.flights[place as usize];
        if flight.ended < flight.flits {
            return None;
        }
        for leg in flight.legs.drain(..) {
            self.bookings.free(leg);
        }
        let done_ps = flight.done_ps;
        // Nothing is faster than alone; if something were, this number would break a law.
        let contention_ps = done_ps.wrapping_sub(flight.start_ps + flight.alone_ps);
        self.unused.push(place);
        Some(Arrival { done_ps, contention_ps })
    }
}
