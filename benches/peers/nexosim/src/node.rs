//! The model of a node and the edges that leave it, and the bench of all nodes.
//!
//! nexosim gives no order to messages of one instant. So a picosecond is two ticks: flits arrive at the
//! even one and are served at the odd one, when all that arrive are there.

use crate::machine::{Done, Flit, Machine, Service};
use nexosim::model::{Context, Model, schedulable};
use nexosim::ports::{EventQueueReader, Output, SinkState, event_queue};
use nexosim::simulation::{Mailbox, SimInit, Simulation, SimulationError};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

/// Ticks of a picosecond; nexosim counts them in nanoseconds.
const TICKS: u64 = 2;

const AHEAD: &str = "events are scheduled ahead of now";

/// An edge that leaves a node.
#[derive(Serialize, Deserialize)]
struct Edge {
    out: Output<Flit>,
    bytes_per_us: u64,
    propagation_ps: u64,
    free_ps: u64,
}

#[derive(Serialize, Deserialize)]
struct Node {
    service: Service,
    overhead_ps: u64,
    burst_ps: u64,
    edges: Vec<Edge>,
    /// The edge on which a transfer goes on; one past the last where it does not.
    next: Vec<u32>,
    /// What starts here, by time.
    starts: Vec<(u64, Vec<Flit>)>,
    /// By arrival and rule 9.
    waiting: BinaryHeap<Reverse<(u64, Flit)>>,
    /// It decodes, or it will serve at this instant.
    busy: bool,
    gathered: BTreeMap<u32, Vec<Flit>>,
    /// When each channel is free, and how many flits of a transfer are in memory.
    channels: Vec<u64>,
    committed: BTreeMap<u32, (u32, u64)>,
    done: Output<Done>,
}

#[Model]
impl Node {
    #[nexosim(init)]
    async fn init(&mut self, cx: &Context<Self>) {
        for (start_ps, flits) in std::mem::take(&mut self.starts) {
            match start_ps {
                0 => self.queue(flits, cx),
                _ => {
                    cx.schedule_event(ticks(start_ps * TICKS), schedulable!(Self::queue), flits).expect(AHEAD)
                }
            }
        }
    }

    /// A flit is whole at this node -- input port.
    async fn arrive(&mut self, flit: Flit, cx: &Context<Self>) {
        match self.service {
            Service::Worker => self.wait(flit, cx),
            Service::Gather => self.gather(flit, cx),
            Service::End => self.commit(flit, cx).await,
        }
    }

    fn wait(&mut self, flit: Flit, cx: &Context<Self>) {
        self.waiting.push(Reverse((now_ps(cx), flit)));
        if !self.busy {
            self.busy = true;
            cx.schedule_event(ticks(1), schedulable!(Self::serve), ()).expect(AHEAD);
        }
    }

    fn gather(&mut self, flit: Flit, cx: &Context<Self>) {
        let flits = self.gathered.entry(flit.number).or_default();
        flits.push(flit);
        if flits.len() == flit.count as usize {
            let flits = self.gathered.remove(&flit.number).unwrap_or_default();
            match self.overhead_ps {
                0 => self.queue(flits, cx),
                overhead => {
                    cx.schedule_event(ticks(overhead * TICKS), schedulable!(Self::queue), flits).expect(AHEAD)
                }
            }
        }
    }

    /// Only one edge leads to a memory, so no two flits arrive at once.
    async fn commit(&mut self, flit: Flit, cx: &Context<Self>) {
        let free = &mut self.channels[flit.channel as usize];
        *free = now_ps(cx).max(*free) + self.burst_ps;
        let (count, commit_ps) = self.committed.entry(flit.number).or_default();
        (*count, *commit_ps) = (*count + 1, (*commit_ps).max(*free));
        if *count == flit.count {
            self.done.send(Done { number: flit.number, commit_ps: *commit_ps }).await;
        }
    }

    /// Flits that start here, or were gathered, want to go on.
    #[nexosim(schedulable)]
    fn queue(&mut self, flits: Vec<Flit>, cx: &Context<Self>) {
        for flit in flits {
            self.wait(flit, cx);
        }
    }

    /// The worker has decoded the first flit of a transfer.
    #[nexosim(schedulable)]
    fn decoded(&mut self, flit: Flit, cx: &Context<Self>) {
        self.depart(flit, cx);
        self.serve((), cx);
    }

    /// Lets the worker go on until it decodes or nothing waits.
    #[nexosim(schedulable)]
    fn serve(&mut self, _: (), cx: &Context<Self>) {
        while let Some(Reverse((_, flit))) = self.waiting.pop() {
            if flit.index == 0 && self.overhead_ps > 0 && self.service == Service::Worker {
                let decode = ticks(self.overhead_ps * TICKS);
                return cx.schedule_event(decode, schedulable!(Self::decoded), flit).expect(AHEAD);
            }
            self.depart(flit, cx);
        }
        self.busy = false;
    }

    /// Queues a flit on its edge, which is busy with those before.
    fn depart(&mut self, flit: Flit, cx: &Context<Self>) {
        let number = self.next[flit.number as usize];
        let (edge, now) = (&mut self.edges[number as usize], now_ps(cx));
        edge.free_ps =
            now.max(edge.free_ps) + (u64::from(flit.bytes) * 1_000_000).div_ceil(edge.bytes_per_us);
        // From an odd tick to an even one.
        let delay = ticks((edge.free_ps + edge.propagation_ps - now) * TICKS - 1);
        cx.schedule_event(delay, schedulable!(Self::deliver), (number, flit)).expect(AHEAD);
    }

    /// A flit has left its edge.
    #[nexosim(schedulable)]
    async fn deliver(&mut self, (edge, flit): (u32, Flit)) {
        self.edges[edge as usize].out.send(flit).await;
    }
}

fn now_ps(cx: &Context<Node>) -> u64 {
    let time = cx.time();
    (time.as_secs() as u64 * 1_000_000_000 + u64::from(time.subsec_nanos())) / TICKS
}

fn ticks(count: u64) -> Duration {
    Duration::from_nanos(count)
}

/// Builds the bench; the reader gives the commits.
pub fn assemble(
    machine: &Machine,
    threads: usize,
) -> Result<(Simulation, EventQueueReader<Done>), SimulationError> {
    let (sink, reader) = event_queue(SinkState::Enabled);
    let mailboxes: Vec<Mailbox<Node>> = machine.nodes.iter().map(|_| Mailbox::new()).collect();
    let mut nodes: Vec<Node> = machine
        .nodes
        .iter()
        .map(|node| Node {
            service: node.service,
            overhead_ps: node.overhead_ps,
            burst_ps: machine.burst_ps,
            edges: vec![],
            next: vec![0; machine.moves.len()],
            starts: vec![],
            waiting: BinaryHeap::new(),
            busy: false,
            gathered: BTreeMap::new(),
            channels: vec![0; machine.channels as usize],
            committed: BTreeMap::new(),
            done: Output::new(),
        })
        .collect();
    let mut position = vec![];
    for edge in &machine.edges {
        let mut out = Output::new();
        out.connect(Node::arrive, &mailboxes[edge.to]);
        let edges = &mut nodes[edge.from].edges;
        position.push(edges.len() as u32);
        let (bytes_per_us, propagation_ps) = (edge.bytes_per_us, edge.propagation_ps);
        edges.push(Edge { out, bytes_per_us, propagation_ps, free_ps: 0 });
    }
    for (number, a) in machine.moves.iter().enumerate() {
        for &edge in &a.route {
            nodes[machine.edges[edge].from].next[number] = position[edge];
        }
        let flits = (0..machine.flits(a)).map(|index| machine.flit(number, index)).collect();
        nodes[machine.edges[a.route[0]].from].starts.push((a.start_ps, flits));
    }
    let mut bench = SimInit::with_num_threads(threads);
    for ((mut node, mailbox), spec) in nodes.into_iter().zip(mailboxes).zip(&machine.nodes) {
        node.done.connect_sink(sink.clone());
        bench = bench.add_model(node, mailbox, &spec.name);
    }
    Ok((bench.init(MonotonicTime::EPOCH)?, reader))
}
