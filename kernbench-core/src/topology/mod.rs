//! The simulated machine: its description, its graph, its dense tables and its routes.

mod config;
mod graph;
mod layout;
mod links;
mod machine;
mod neighbours;
mod paths;
mod routes;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub use links::Links;
pub use machine::*;
pub use neighbours::{Family, RankTopology};
pub use tables::{NodeKind, NodeRole, Topology};

use crate::ir::PeId;
use crate::units::{Ps, Rate};

/// A node of the machine's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A directed edge of the machine's graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeId(pub u32);

/// A directed edge: a wire with a bandwidth, or a command path without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Wire {
    pub from: NodeId,
    pub to: NodeId,
    /// `None` for command edges, which carry no bytes.
    pub rate: Option<Rate>,
    /// What a full flit holds the edge; 0 for command edges.
    pub flit_ps: Ps,
    /// Propagation delay.
    pub propagation_ps: Ps,
}

/// A path through the graph and what it costs without contention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The edges in order.
    pub edges: Vec<EdgeId>,
    /// The overheads of the intermediate nodes.
    pub overhead_ps: Ps,
    /// The propagation delays of the edges.
    pub propagation_ps: Ps,
    /// The smallest bandwidth on the way; `None` if no edge carries bytes.
    pub bottleneck: Option<Rate>,
}

impl Route {
    /// The delay of a response or a command: overheads and propagation, no bytes.
    #[must_use]
    pub const fn response_ps(&self) -> Ps {
        self.overhead_ps + self.propagation_ps
    }

    /// The delay of a credit of `bytes` on this route: a response, and the bytes at the bottleneck.
    #[must_use]
    pub fn credit_ps(&self, bytes: u64) -> Ps {
        self.response_ps() + self.bottleneck.map_or(0, |rate| rate.time(bytes))
    }
}

/// Position of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct PeAt {
    pub sip: u32,
    pub cube: u32,
    pub pe: u32,
}

impl Machine {
    /// The position of a PE.
    #[must_use]
    pub const fn at(&self, pe: PeId) -> PeAt {
        let (cubes, pes) = (self.cubes(), self.pes());
        PeAt { sip: pe.0 / (cubes * pes), cube: pe.0 / pes % cubes, pe: pe.0 % pes }
    }

    /// The PE at a position.
    #[must_use]
    pub const fn pe(&self, at: PeAt) -> PeId {
        PeId((at.sip * self.cubes() + at.cube) * self.pes() + at.pe)
    }
    /// The name of a PE: `sip0.cube2.pe5`.
    #[must_use]
    pub fn pe_name(&self, pe: PeId) -> String {
        let at = self.at(pe);
        format!("sip{}.cube{}.pe{}", at.sip, at.cube, at.pe)
    }

    /// The PE of a name such as `sip0.cube2.pe5`, if the machine has it.
    ///
    /// ```
    /// let topology = kernbench_core::topology::Topology::default_machine();
    /// let machine = topology.machine();
    /// assert_eq!(machine.pe_named("sip0.cube2.pe5").map(|pe| machine.pe_name(pe)).unwrap(), "sip0.cube2.pe5");
    /// assert_eq!(machine.pe_named("sip2.cube0.pe0"), None);
    /// ```
    #[must_use]
    pub fn pe_named(&self, name: &str) -> Option<PeId> {
        let mut parts = name.split('.');
        let mut level = |prefix, count| {
            let digits = parts.next()?.strip_prefix(prefix)?;
            let number: u32 = digits.parse().ok()?;
            // `+1` and `01` are numbers, but not names.
            (number < count && number.to_string() == digits).then_some(number)
        };
        let (sip, cube) = (level("sip", self.sips)?, level("cube", self.cubes())?);
        let pe = level("pe", self.pes())?;
        parts.next().is_none().then(|| self.pe(PeAt { sip, cube, pe }))
    }
}
