//! The published results of raw traffic, simulated again.

use super::{Measure, flow, measure};
use crate::engine::{Fidelity, Flow, Issuer};
use crate::ir::PeId;
use crate::topology::{Machine, PeAt, Topology, UciePolicy};
use crate::units::Ps;

/// A published result and what is simulated now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number among the published results.
    pub id: &'static str,
    /// What moves.
    pub title: &'static str,
    /// What is simulated now; `None` if the machine lacks an end of the traffic.
    pub measure: Option<Measure>,
    /// What the rules of the machine give when every flit is moved on its own.
    pub rules_ps: Ps,
    /// What the reference system published.
    pub reference_ps: Ps,
}

impl Row {
    /// By how much the latency simulated now is above that of the rules.
    #[must_use]
    pub fn over_rules_ps(&self) -> Option<i64> {
        self.measure.map(|m| m.latency_ps.cast_signed() - self.rules_ps.cast_signed())
    }

    /// By how much the latency simulated now is above the reference.
    #[must_use]
    pub fn over_reference_ps(&self) -> Option<i64> {
        self.measure.map(|m| m.latency_ps.cast_signed() - self.reference_ps.cast_signed())
    }
}

/// Whether the published results are of this machine: the default one.
#[must_use]
pub fn is_reference(topology: &Topology) -> bool {
    let default = Topology::default_machine();
    let nodes = |t: &Topology| -> Vec<_> {
        let wires = t.wires().iter();
        wires.map(|w| (*w, t.node_name(w.from).to_owned(), t.overhead_ps(w.to))).collect()
    };
    topology.machine() == default.machine() && nodes(topology) == nodes(&default)
}

/// Who reads or writes how much of whose slice; `None` for the host.
type Ends = (Option<PeAt>, PeAt, u32);

struct Published {
    id: &'static str,
    title: &'static str,
    policy: Option<UciePolicy>,
    ends: fn() -> Vec<Ends>,
    rules_ps: Ps,
    reference_ps: Ps,
}

const fn at(sip: u32, cube: u32, pe: u32) -> PeAt {
    PeAt { sip, cube, pe }
}

const KIB: u32 = 1 << 10;

/// All PEs of cube 0 read the slices of the same index in cube 1.
fn next_cube() -> Vec<Ends> {
    (0..8).map(|pe| (Some(at(0, 0, pe)), at(0, 1, pe), 16 * KIB)).collect()
}

const PUBLISHED: [Published; 9] = [
    Published {
        id: "1",
        title: "a PE reads 16 KiB of its own slice",
        policy: None,
        ends: || vec![(Some(at(0, 0, 0)), at(0, 0, 0), 16 * KIB)],
        rules_ps: 77_000,
        reference_ps: 77_000,
    },
    Published {
        id: "2",
        title: "a PE reads 32 KiB of its own slice",
        policy: None,
        ends: || vec![(Some(at(0, 0, 0)), at(0, 0, 0), 32 * KIB)],
        rules_ps: 141_000,
        reference_ps: 141_000,
    },
    Published {
        id: "3",
        title: "pe1 reads 16 KiB of pe0's slice",
        policy: None,
        ends: || vec![(Some(at(0, 0, 1)), at(0, 0, 0), 16 * KIB)],
        rules_ps: 82_000,
        reference_ps: 82_000,
    },
    Published {
        id: "4",
        title: "8 PEs of a cube read 16 KiB of pe0's slice",
        policy: None,
        ends: || (0..8).map(|pe| (Some(at(0, 0, pe)), at(0, 0, 0), 16 * KIB)).collect(),
        rules_ps: 556_000,
        reference_ps: 558_000,
    },
    Published {
        id: "5-first",
        title: "8 PEs read 16 KiB each of cube 1, policy first",
        policy: Some(UciePolicy::First),
        ends: next_cube,
        rules_ps: 1_111_500,
        reference_ps: 963_000,
    },
    Published {
        id: "5-striped",
        title: "the same, policy striped",
        policy: Some(UciePolicy::Striped),
        ends: next_cube,
        rules_ps: 368_500,
        reference_ps: 963_000,
    },
    Published {
        id: "6",
        title: "cube 0, pe0 reads 16 KiB of cube 15, pe7",
        policy: None,
        ends: || vec![(Some(at(0, 0, 0)), at(0, 15, 7), 16 * KIB)],
        rules_ps: 573_000,
        reference_ps: 573_000,
    },
    Published {
        id: "7",
        title: "a PE reads 16 KiB of its like in the other SIP",
        policy: None,
        ends: || vec![(Some(at(0, 0, 0)), at(1, 0, 0), 16 * KIB)],
        rules_ps: 412_000,
        reference_ps: 409_000,
    },
    Published {
        id: "8",
        title: "the host writes 64 KiB to cube 0, pe0",
        policy: None,
        ends: || vec![(None, at(0, 0, 0), 64 * KIB)],
        rules_ps: 542_500,
        reference_ps: 545_000,
    },
];

/// The published results of raw traffic, each simulated on a machine. All transfers of a row start
/// at 0; transfer `i` starts at HBM channel `i`.
#[must_use]
pub fn rows(topology: &Topology, fidelity: Fidelity) -> Vec<Row> {
    let row = |published: &Published| {
        let Published { id, title, policy, ends, rules_ps, reference_ps } = *published;
        let flows = flows(topology.machine(), &ends());
        let measure = flows.map(|flows| match policy {
            Some(policy) => measure(&topology.with_ucie_policy(policy), &flows, fidelity),
            None => measure(topology, &flows, fidelity),
        });
        Row { id, title, measure, rules_ps, reference_ps }
    };
    PUBLISHED.iter().map(row).collect()
}

/// The transfers between some ends; `None` if the machine lacks one.
fn flows(machine: &Machine, ends: &[Ends]) -> Option<Vec<Flow>> {
    let flow = |(i, &(issuer, home, bytes)): (usize, &Ends)| {
        let issuer = match issuer {
            Some(at) => Issuer::Dma(find(machine, at)?),
            None => Issuer::HostWrite,
        };
        Some(flow(machine, issuer, find(machine, home)?, bytes, i as u32))
    };
    ends.iter().enumerate().map(flow).collect()
}

fn find(machine: &Machine, at: PeAt) -> Option<PeId> {
    let there = at.sip < machine.sips && at.cube < machine.cubes() && at.pe < machine.pes();
    there.then(|| machine.pe(at))
}
