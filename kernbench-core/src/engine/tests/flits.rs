//! The plain engine: one event for each flit and hop, straight from rules 0 to 4 and 9 of the machine.
//!
//! It is the oracle of what ships, so it is simple rather than fast and shares no more with it than
//! the paths. All that happens at an instant is collected before anything is served.

use crate::engine::fabric::{Fabric, Path, Paths};
use crate::engine::wires::{Arrival, Load, Notice, Progress, Sink, Wires};
use crate::topology::{EdgeId, NodeId};
use crate::units::Ps;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// A flit, ordered by transfer id and position; `hop` edges of its path are behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flit {
    id: u32,
    index: usize,
    hop: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A flit is whole at a node.
    Arrives(Flit),
    /// A flit of a source, or one that was gathered, queues on its next edge.
    Released(Flit),
    /// A node has decoded the first flit of a transfer.
    Decoded(NodeId),
}

/// One serial worker and what waits for it, in the order of rule 9.
#[derive(Clone, Debug, Default)]
struct Worker {
    free: Ps,
    waiting: BTreeSet<(Ps, Flit)>,
}

#[derive(Clone, Debug)]
struct Flight {
    path: Path,
    sink: Sink,
    start: Ps,
    /// Bytes and HBM channel of each flit.
    flits: Vec<(u64, u32)>,
    gathered: usize,
    arrived: usize,
    done: Ps,
}

/// A flit on an edge, for laws about edges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub edge: EdgeId,
    pub id: u32,
    pub bytes: u64,
    /// It was served at the node before the edge.
    pub queued: Ps,
    pub start: Ps,
    pub end: Ps,
}

/// The state of the whole machine.
pub(crate) struct FlitWires<'a> {
    fabric: &'a dyn Fabric,
    agenda: BinaryHeap<Reverse<(Ps, What)>>,
    flights: BTreeMap<u32, Flight>,
    workers: BTreeMap<NodeId, Worker>,
    edge_free: BTreeMap<EdgeId, Ps>,
    channel_free: BTreeMap<(u32, u32), Ps>,
    notices: BTreeMap<u32, Notice>,
    instants: u64,
    /// Every flit on every edge, if wanted.
    pub log: Option<Vec<Crossing>>,
}

impl<'a> FlitWires<'a> {
    pub fn new(fabric: &'a dyn Fabric) -> Self {
        FlitWires {
            fabric,
            agenda: BinaryHeap::new(),
            flights: BTreeMap::new(),
            workers: BTreeMap::new(),
            edge_free: BTreeMap::new(),
            channel_free: BTreeMap::new(),
            notices: BTreeMap::new(),
            instants: 0,
            log: None,
        }
    }

    fn at(&mut self, time: Ps, what: What) {
        self.agenda.push(Reverse((time, what)));
    }

    /// Each run is cut on its own; a flit's channel is that of its first byte.
    fn cut(&self, load: &Load) -> Vec<(u64, u32)> {
        let machine = self.fabric.machine();
        let mut flits = vec![];
        for run in 0..load.runs {
            let mut offset = 0;
            while offset < load.run_bytes {
                let addr = load.addr + run * load.stride_bytes + offset;
                let bytes = machine.flit_bytes.min(load.run_bytes - offset);
                flits.push((bytes, machine.hbm.channel(addr, machine.flit_bytes)));
                offset += bytes;
            }
        }
        flits
    }

    /// Everything that happens at `now`.
    fn instant(&mut self, paths: &Paths, now: Ps) {
        let (mut released, mut sunk) = (BTreeSet::new(), BTreeSet::new());
        let mut nodes = BTreeSet::new();
        while let Some(&Reverse((time, what))) = self.agenda.peek()
            && time == now
        {
            self.agenda.pop();
            match what {
                What::Released(flit) => _ = released.insert(flit),
                What::Decoded(node) => _ = nodes.insert(node),
                What::Arrives(flit) => match self.node_ahead(paths, flit) {
                    None => _ = sunk.insert(flit),
                    Some(node) if self.fabric.gathers(node) => self.gather(flit, node, now),
                    Some(node) => {
                        self.workers.entry(node).or_default().waiting.insert((now, flit));
                        nodes.insert(node);
                    }
                },
            }
        }
        for flit in released {
            self.enter(paths, flit, now);
        }
        for node in nodes {
            self.serve(paths, node, now);
        }
        for flit in sunk {
            self.sink(paths, flit, now);
        }
    }

    /// The node where a flit is; none if that is the end of its path.
    fn node_ahead(&self, paths: &Paths, flit: Flit) -> Option<NodeId> {
        let path = self.flights[&flit.id].path;
        let hop = (flit.hop < path.len).then(|| &paths.hops[(path.first + flit.hop) as usize])?;
        Some(self.fabric.wire(paths.edges[hop.edge as usize]).from)
    }

    fn gather(&mut self, flit: Flit, node: NodeId, now: Ps) {
        let flight = self.flights.get_mut(&flit.id).unwrap();
        flight.gathered += 1;
        let count = flight.flits.len();
        if flight.gathered == count {
            flight.gathered = 0;
            let time = now + self.fabric.overhead_ps(node);
            for index in 0..count {
                self.at(time, What::Released(Flit { index, ..flit }));
            }
        }
    }

    /// Lets a node serve until it is busy or nothing waits.
    fn serve(&mut self, paths: &Paths, node: NodeId, now: Ps) {
        loop {
            let worker = self.workers.entry(node).or_default();
            if worker.free > now {
                return;
            }
            let Some((_, flit)) = worker.waiting.pop_first() else { return };
            let overhead = if flit.index == 0 { self.fabric.overhead_ps(node) } else { 0 };
            worker.free = now + overhead;
            self.enter(paths, flit, now + overhead);
            if overhead > 0 {
                self.at(now + overhead, What::Decoded(node));
            }
        }
    }

    /// Queues a flit on its next edge. Only one node feeds an edge, in the order of its service, so
    /// the edge's own queue needs no more than the time at which it is free.
    fn enter(&mut self, paths: &Paths, flit: Flit, queued: Ps) {
        let flight = &self.flights[&flit.id];
        let edge = paths.edges[paths.hops[(flight.path.first + flit.hop) as usize].edge as usize];
        let (wire, (bytes, _)) = (self.fabric.wire(edge), flight.flits[flit.index]);
        let takes = wire.rate.map_or(0, |rate| rate.time(bytes));
        let free = self.edge_free.entry(edge).or_default();
        let start = queued.max(*free);
        let end = start + takes;
        *free = end;
        if flit.hop == 0 && flit.index + 1 == flight.flits.len() {
            self.notices.entry(flit.id).or_default().left_ps = Some(end);
        }
        if let Some(log) = &mut self.log {
            log.push(Crossing { edge, id: flit.id, bytes, queued, start, end });
        }
        self.at(end + wire.propagation_ps, What::Arrives(Flit { hop: flit.hop + 1, ..flit }));
    }

    fn sink(&mut self, paths: &Paths, flit: Flit, now: Ps) {
        let flight = self.flights.get_mut(&flit.id).unwrap();
        let mut done = now;
        if let Sink::Hbm(home) = flight.sink {
            let channel = (home.0, flight.flits[flit.index].1);
            let free = self.channel_free.entry(channel).or_default();
            *free = now.max(*free) + self.fabric.machine().hbm.burst_ps;
            done = *free;
        }
        flight.done = flight.done.max(done);
        flight.arrived += 1;
        if flight.arrived == flight.flits.len() {
            let flight = self.flights.remove(&flit.id).unwrap();
            let contention_ps = flight.done.checked_sub(self.alone(paths, &flight));
            let contention_ps = contention_ps.expect("nothing is faster than alone");
            let arrival = Arrival { done_ps: flight.done, contention_ps };
            self.notices.entry(flit.id).or_default().arrival = Some(arrival);
        }
    }

    /// When a transfer would be done on an idle machine: nothing overtakes, so hop by hop.
    fn alone(&self, paths: &Paths, flight: &Flight) -> Ps {
        let mut times = vec![flight.start; flight.flits.len()];
        let hops = &paths.hops[flight.path.first as usize..][..flight.path.len as usize];
        for (i, hop) in hops.iter().enumerate() {
            let wire = self.fabric.wire(paths.edges[hop.edge as usize]);
            if i > 0 && self.fabric.gathers(wire.from) {
                let last = times.last().copied().unwrap_or(0);
                times.fill(last + self.fabric.overhead_ps(wire.from));
            }
            let decodes = i > 0 && !self.fabric.gathers(wire.from);
            let decoded = if decodes { times[0] + self.fabric.overhead_ps(wire.from) } else { 0 };
            let mut free = decoded;
            for (time, (bytes, _)) in times.iter_mut().zip(&flight.flits) {
                free = free.max(*time) + wire.rate.map_or(0, |rate| rate.time(*bytes));
                *time = free + wire.propagation_ps;
            }
        }
        if matches!(flight.sink, Sink::Hbm(_)) {
            let mut free = BTreeMap::<u32, Ps>::new();
            for (time, (_, channel)) in times.iter_mut().zip(&flight.flits) {
                let free = free.entry(*channel).or_default();
                *free = (*time).max(*free) + self.fabric.machine().hbm.burst_ps;
                *time = *free;
            }
        }
        times.into_iter().max().unwrap_or(flight.start)
    }
}

impl Wires for FlitWires<'_> {
    fn start(&mut self, _: &Paths, id: u32, path: Path, load: Load, sink: Sink, at: Ps) {
        let flits = self.cut(&load);
        for index in 0..flits.len() {
            let flit = Flit { id, index, hop: 0 };
            // Without a path it is there already.
            self.at(at, if path.len == 0 { What::Arrives(flit) } else { What::Released(flit) });
        }
        if path.len == 0 {
            self.notices.entry(id).or_default().left_ps = Some(at);
        }
        let flight = Flight { path, sink, start: at, flits, gathered: 0, arrived: 0, done: at };
        assert!(self.flights.insert(id, flight).is_none(), "transfer {id} is in flight");
    }

    /// Instant after instant, until PEs must know of something.
    fn run(&mut self, paths: &Paths, until: Ps) -> Progress {
        loop {
            if let Some((id, notice)) = self.notices.pop_first() {
                return Progress::Told(id, notice);
            }
            match self.agenda.peek() {
                Some(Reverse((time, _))) if *time < until => {
                    let now = *time;
                    self.instant(paths, now);
                    self.instants += 1;
                }
                _ => return Progress::Idle,
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.agenda.is_empty() && self.notices.is_empty()
    }

    fn events(&self) -> u64 {
        self.instants
    }
}

impl<W: Wires + ?Sized> Wires for &mut W {
    fn start(&mut self, paths: &Paths, id: u32, path: Path, load: Load, sink: Sink, at: Ps) {
        (**self).start(paths, id, path, load, sink, at);
    }

    fn run(&mut self, paths: &Paths, until: Ps) -> Progress {
        (**self).run(paths, until)
    }

    fn is_idle(&self) -> bool {
        (**self).is_idle()
    }

    fn events(&self) -> u64 {
        (**self).events()
    }
}
