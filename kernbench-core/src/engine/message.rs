//! Fidelity `message`: one event for each hop of a transfer's head (rule 8 of the machine).
//!
//! A head starts on an edge when it has arrived and the edge is free, and holds it for all bytes.
//! The tail follows: it leaves an edge one flit after it arrived or when the edge has carried
//! everything, whichever is later. For a contiguous transfer alone on the machine this is exact to
//! the picosecond: arrivals of equal flits are convex in their number, so that only the first and
//! the last full flit bind, and a short one behind them. (A short last burst may wait for its channel,
//! by less than a burst, since bursts are taken to come evenly.) Against others it is an
//! approximation: they never mix on an edge, and nodes serve any number of transfers at once.

use super::fabric::{End, Hop, Path, Paths};
use super::hbm::Channels;
use super::queue::{EventKind, Queue};
use super::wires::{Arrival, Load, Notice, Progress, STRIDE, Sink, Wires};
use crate::topology::Machine;
use crate::units::Ps;

/// The flits that bind, at the same node: the first, the last full one (if a short one comes behind
/// full ones) and the last.
#[derive(Clone, Copy, Debug)]
struct Train {
    head: Ps,
    body: Ps,
    tail: Ps,
}

/// What the flits of a transfer take on one edge.
#[derive(Clone, Copy)]
struct Drain {
    first: Ps,
    /// The last full flit, if a short one follows it.
    body: Option<Ps>,
    last: Ps,
    all: Ps,
    propagation: Ps,
    overhead: Ps,
    gathers: bool,
}

impl Train {
    fn at(time: Ps) -> Train {
        Train { head: time, body: time, tail: time }
    }

    /// Over an edge whose first flit starts at `start`, and through the node behind it.
    fn over(self, start: Ps, drain: &Drain) -> Train {
        let before_last = (start + drain.all - drain.last).max(drain.body.map_or(0, |b| self.body + b));
        let tail = self.tail.max(before_last) + drain.last + drain.propagation;
        if drain.gathers {
            return Train::at(tail + drain.overhead);
        }
        let head = start + drain.first + drain.propagation + drain.overhead;
        Train { head, body: (before_last + drain.propagation).max(head), tail: tail.max(head) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    train: Train,
    /// Where it would be alone on the machine.
    alone: Train,
    /// The next hop, and one past the last.
    hop: u32,
    stop: u32,
    /// Nothing has left yet.
    at_source: bool,
    /// The first flit is short, too.
    all_short: bool,
    /// Full flits, short flits, and the bytes of one of those.
    full: u64,
    short: u64,
    short_bytes: u64,
    load: Load,
    sink: Sink,
}

impl Flight {
    fn new(path: Path, load: Load, sink: Sink, at: Ps, flit: u64) -> Self {
        let train = Train::at(at);
        let short_bytes = load.run_bytes % flit;
        Flight {
            train,
            alone: train,
            hop: path.first,
            stop: path.first + path.len,
            at_source: true,
            all_short: load.run_bytes < flit,
            full: load.runs * (load.run_bytes / flit),
            short: if short_bytes == 0 { 0 } else { load.runs },
            short_bytes,
            load,
            sink,
        }
    }

    fn drain(&self, hop: &Hop, flit: u64) -> Drain {
        let short = if self.short == 0 { hop.flit_ps } else { hop.flit_time(self.short_bytes, flit) };
        Drain {
            first: if self.all_short { short } else { hop.flit_ps },
            body: (self.short > 0 && !self.all_short).then_some(hop.flit_ps),
            last: short,
            all: self.full * hop.flit_ps + self.short * short,
            propagation: hop.propagation_ps,
            overhead: hop.overhead_ps,
            gathers: hop.end == End::Gather,
        }
    }
}

/// The state of all edges and of the transfers on them.
#[derive(Debug)]
pub(super) struct MessageWires {
    flit_bytes: u64,
    /// The heads under way.
    queue: Queue,
    events: u64,
    edge_free: Vec<Ps>,
    channels: Channels,
    flights: Vec<Flight>,
    unused: Vec<u32>,
    /// The place in `flights` by transfer id.
    place: Vec<u32>,
}

impl MessageWires {
    /// Idle wires for transfer ids below `ids`.
    pub fn new(machine: &Machine, ids: usize) -> Self {
        MessageWires {
            flit_bytes: machine.flit_bytes,
            queue: Queue::default(),
            events: 0,
            edge_free: vec![],
            channels: Channels::new(machine),
            flights: vec![],
            unused: vec![],
            place: vec![0; ids],
        }
    }

    fn arrive(&mut self, flight: &Flight) -> Arrival {
        let (t, alone) = (flight.train, flight.alone);
        let (done, done_alone) = match flight.sink {
            Sink::Pe => (t.tail, alone.tail),
            Sink::Hbm(home) => (
                self.channels.commit(home, &flight.load, t.head, t.tail),
                self.channels.commit_alone(&flight.load, alone.head, alone.tail),
            ),
        };
        Arrival { done_ps: done, contention_ps: done.saturating_sub(done_alone) }
    }
}

impl Wires for MessageWires {
    fn start(&mut self, paths: &Paths, id: u32, path: Path, load: Load, sink: Sink, at: Ps) {
        self.edge_free.resize(paths.edges.len(), 0);
        let flight = Flight::new(path, load, sink, at, self.flit_bytes);
        let place = match self.unused.pop() {
            Some(place) => {
                self.flights[place as usize] = flight;
                place
            }
            None => {
                self.flights.push(flight);
                self.flights.len() as u32 - 1
            }
        };
        self.place[id as usize] = place;
        self.queue.push(at, EventKind::Head, id);
    }

    fn run(&mut self, paths: &Paths, until: Ps) -> Progress {
        for _ in 0..STRIDE {
            if self.queue.next_ps() >= until {
                return Progress::Idle;
            }
            let Some(event) = self.queue.pop() else { return Progress::Idle };
            self.events += 1;
            let notice = self.head(paths, event.id, event.time);
            if notice.left_ps.is_some() || notice.arrival.is_some() {
                return Progress::Told(event.id, notice);
            }
        }
        Progress::Paused
    }

    fn is_idle(&self) -> bool {
        self.queue.next_ps() == Ps::MAX
    }

    fn events(&self) -> u64 {
        self.events
    }
}

impl MessageWires {
    /// The head of a transfer arrives at a node.
    fn head(&mut self, paths: &Paths, id: u32, now: Ps) -> Notice {
        let place = self.place[id as usize];
        let flight = &mut self.flights[place as usize];
        if flight.hop == flight.stop {
            let flight = *flight;
            self.unused.push(place);
            let left_ps = flight.at_source.then_some(now);
            return Notice { left_ps, arrival: Some(self.arrive(&flight)) };
        }
        let hop = &paths.hops[flight.hop as usize];
        let drain = flight.drain(hop, self.flit_bytes);
        let mut start = flight.train.head;
        if hop.per_us > 0 {
            let free = &mut self.edge_free[hop.edge as usize];
            start = start.max(*free);
            *free = start + drain.all;
        }
        let left_ps = flight.at_source.then_some(start + drain.all);
        flight.train = flight.train.over(start, &drain);
        flight.alone = flight.alone.over(flight.alone.head, &drain);
        flight.at_source = false;
        flight.hop += 1;
        self.queue.push(flight.train.head, EventKind::Head, id);
        Notice { left_ps, arrival: None }
    }
}
