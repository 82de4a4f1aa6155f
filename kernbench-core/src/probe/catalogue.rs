//! The common kinds of traffic of a machine, each at several sizes.

use super::{Measure, Parts, fair_share, flow, measure, passed};
use crate::engine::{Fidelity, Flow, Issuer, SlotConfig};
use crate::ir::{Link, PeId};
use crate::topology::{Links, Machine, PeAt, Topology};
use crate::ty::Dir;

/// The sizes of the catalogue, in bytes.
pub const SIZES: [u32; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// A kind of traffic at one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The kind, such as `own-slice`.
    pub id: String,
    /// What moves.
    pub title: String,
    /// Bytes of each transfer.
    pub bytes: u32,
    /// What it takes.
    pub measure: Measure,
}

enum Traffic {
    /// Who moves bytes of whose slice.
    Transfers(Vec<(Issuer, PeId)>),
    /// From the send to the end of the receive.
    Queue(Link),
}

struct Kind {
    id: String,
    title: String,
    traffic: Traffic,
}

/// All kinds of traffic that a machine has, each at all sizes, which are of at least one byte. A read
/// is timed like a write, so reads stand for both; all transfers of an entry start at 0, transfer `i`
/// at HBM channel `i` modulo their number.
#[must_use]
pub fn catalogue(topology: &Topology, sizes: &[u32], fidelity: Fidelity) -> Vec<Entry> {
    let mut entries = vec![];
    for Kind { id, title, traffic } in kinds(topology.machine()) {
        for &bytes in sizes {
            let measure = match &traffic {
                Traffic::Transfers(ends) => {
                    let flow = |(i, &(issuer, home)): (usize, &(Issuer, PeId))| {
                        flow(topology.machine(), issuer, home, bytes, i as u32)
                    };
                    let flows: Vec<Flow> = ends.iter().enumerate().map(flow).collect();
                    measure(topology, &flows, fidelity)
                }
                Traffic::Queue(link) => queue(topology, link, bytes, fidelity),
            };
            entries.push(Entry { id: id.clone(), title: title.clone(), bytes, measure });
        }
    }
    entries
}

/// A message through an idle queue of slots in TCM: its way, a slot access on arrival and one on
/// receive, and the credit on its way back (rule 7 of the machine).
fn queue(topology: &Topology, link: &Link, bytes: u32, fidelity: Fidelity) -> Measure {
    let slots = SlotConfig::default();
    let message = [flow(topology.machine(), Issuer::Message(link.from), link.to, bytes, 0)];
    let arrived = &passed(topology, &message, fidelity)[0];
    let back = topology.credit_route(link.to, link.from);
    let access_ps = topology.machine().slot_cost(slots.kind).time(bytes.into());
    let latency_ps = arrived.end_ps + 2 * access_ps + back.credit_ps(slots.credit_bytes);
    let known = Parts {
        overhead_ps: arrived.parts.overhead_ps + back.overhead_ps,
        drain_ps: arrived.parts.drain_ps + back.bottleneck.map_or(0, |rate| rate.time(slots.credit_bytes)),
        commit_ps: 2 * access_ps,
        ..arrived.parts
    };
    Measure {
        issuers: 1,
        bytes: bytes.into(),
        latency_ps,
        parts: Parts::of(latency_ps, known),
        fair_per_us: fair_share(topology, &message)[0].round() as u64,
    }
}

fn kinds(machine: &Machine) -> Vec<Kind> {
    let pe = |sip, cube, pe| machine.pe(PeAt { sip, cube, pe });
    let name = |id| machine.pe_name(id);
    let (first, pes, cubes) = (pe(0, 0, 0), machine.pes(), machine.cubes());
    let mut kinds = vec![];
    let mut add = |id: &str, title: String, ends: Vec<(Issuer, PeId)>| {
        kinds.push(Kind { id: id.to_owned(), title, traffic: Traffic::Transfers(ends) });
    };
    let host = |how| vec![(how, first)];
    add("host-to-device", format!("the host writes to {}", name(first)), host(Issuer::HostWrite));
    add("device-to-host", format!("the host reads from {}", name(first)), host(Issuer::HostRead));

    let mut read = |id: &str, what: &str, home: PeId| {
        let title = format!("{what}: {} reads from {}", name(first), name(home));
        add(id, title, vec![(Issuer::Dma(first), home)]);
    };
    read("own-slice", "own slice", first);
    if machine.pe_grid[0] > 1 {
        read("same-half", "same half of a cube", pe(0, 0, 1));
    }
    if machine.pe_grid[1] > 1 {
        read("cross-half", "other half of a cube", pe(0, 0, pes - 1));
    }
    if cubes > 1 {
        read("adjacent-cube", "adjacent cube", pe(0, 1, 0));
    }
    if cubes > 2 {
        read("farthest-cube", "farthest cube", pe(0, cubes - 1, pes - 1));
    }
    if machine.sips > 1 {
        read("other-sip", "other SIP", pe(1, 0, 0));
    }

    let powers = std::iter::successors(Some(2), |n| Some(n * 2)).take_while(|n| *n < pes);
    let all = machine.pe_count();
    let mut crowds: Vec<u32> = powers.chain([pes, all]).filter(|n| *n > 1).collect();
    crowds.dedup();
    for n in crowds {
        let who = if n == all { format!("all {n} PEs") } else { format!("{n} PEs of a cube") };
        let title = format!("hot spot: {who} read from {}", name(first));
        add(&format!("hot-spot-{n}"), title, (0..n).map(|pe| (Issuer::Dma(PeId(pe)), first)).collect());
    }
    let own = (0..all).map(PeId).map(|pe| (Issuer::Dma(pe), pe)).collect();
    add("all-local", format!("all {all} PEs read from their own slices"), own);

    let links = Links::default_for(machine);
    let hops: [(&str, &str, &[Dir]); 4] = [
        ("queue-intra", "within a cube", &[Dir::IntraE, Dir::IntraS]),
        ("queue-east", "to the cube in the east", &[Dir::E]),
        ("queue-south", "to the cube in the south", &[Dir::S]),
        ("queue-global", "to another SIP", &[Dir::GlobalE, Dir::GlobalS]),
    ];
    for (id, what, dirs) in hops {
        if let Some(link) = dirs.iter().find_map(|dir| links.send(first, *dir)) {
            let link = links.links[link.at()];
            let title = format!("queue {what}: {} sends {} to {}", name(first), link.dir, name(link.to));
            kinds.push(Kind { id: id.to_owned(), title, traffic: Traffic::Queue(link) });
        }
    }
    kinds
}
