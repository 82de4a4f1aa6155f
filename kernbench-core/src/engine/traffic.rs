//! Raw transfers without a program: what `probe` measures and what laws are tested on.

use super::Fidelity;
use super::fabric::{Fabric, Paths, Purpose};
use super::flit::FlitWires;
use super::message::MessageWires;
use super::wires::{Load, Progress, Sink, Wires};
use crate::ir::{PeId, Transfer};
use crate::topology::Topology;
use crate::units::Ps;

/// Who moves the bytes of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issuer {
    /// The DMA of a PE, reading or writing a slice: done when its response is back.
    Dma(PeId),
    /// A PE that sends a message to the transfer's home: done at the last byte.
    Message(PeId),
    /// The host, writing: done at the last commit.
    HostWrite,
    /// The host, reading: the response comes after it.
    HostRead,
}

/// A raw transfer; its position among the flows is its id (rule 9 of the machine).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Who moves it.
    pub issuer: Issuer,
    /// The bytes and the slice, or PE, they are in or go to.
    pub transfer: Transfer,
    /// When it leaves its source.
    pub start_ps: Ps,
}

/// What became of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it was done.
    pub end_ps: Ps,
    /// How much longer than alone on the machine.
    pub contention_ps: Ps,
}

/// Moves all flows at once over an idle machine and says when each is done.
///
/// ```
/// use kernbench_core::engine::{Fidelity, Flow, Issuer, traffic};
/// use kernbench_core::ir::{PeId, Transfer};
/// let topology = kernbench_core::topology::Topology::default_machine();
/// let transfer = Transfer { addr: 0, home: PeId(0), run_bytes: 16 << 10, runs: 1, stride_bytes: 0, ..Transfer::default() };
/// let own = Flow { issuer: Issuer::Dma(PeId(0)), transfer, start_ps: 0 };
/// assert_eq!(traffic(&topology, &[own], Fidelity::Message)[0].end_ps, 77_000);
/// ```
#[must_use]
pub fn traffic(topology: &Topology, flows: &[Flow], fidelity: Fidelity) -> Vec<Passage> {
    traffic_on(topology, flows, fidelity)
}

pub(crate) fn traffic_on(fabric: &dyn Fabric, flows: &[Flow], fidelity: Fidelity) -> Vec<Passage> {
    match fidelity {
        Fidelity::Flit => run(fabric, flows, FlitWires::new(fabric.machine(), flows.len())),
        Fidelity::Message => run(fabric, flows, MessageWires::new(fabric.machine(), flows.len())),
    }
}

pub(super) fn run(fabric: &dyn Fabric, flows: &[Flow], mut wires: impl Wires) -> Vec<Passage> {
    let mut paths = Paths::default();
    let mut passages = Vec::with_capacity(flows.len());
    let mut responses = Vec::with_capacity(flows.len());
    for (id, flow) in flows.iter().enumerate() {
        let home = flow.transfer.home;
        let (purpose, from, sink) = match flow.issuer {
            Issuer::Dma(pe) => (Purpose::Dma, pe, Sink::Hbm(home)),
            Issuer::Message(pe) => (Purpose::Message, pe, Sink::Pe),
            Issuer::HostWrite | Issuer::HostRead => (Purpose::Host, home, Sink::Hbm(home)),
        };
        let path = paths.get(fabric, purpose, from, home);
        let path = paths.path(path);
        responses.push(match flow.issuer {
            Issuer::Dma(_) | Issuer::HostRead => path.empty_ps,
            Issuer::Message(_) | Issuer::HostWrite => 0,
        });
        passages.push(Passage { end_ps: flow.start_ps, contention_ps: 0 });
        if flow.transfer.bytes() > 0 {
            let load = Load::from(&flow.transfer);
            wires.start(&paths, id as u32, path, load, sink, flow.start_ps);
        }
    }
    loop {
        match wires.run(&paths, Ps::MAX) {
            Progress::Idle => return passages,
            Progress::Paused => {}
            Progress::Told(id, notice) => {
                if let Some(arrival) = notice.arrival {
                    let end_ps = arrival.done_ps + responses[id as usize];
                    passages[id as usize] = Passage { end_ps, contention_ps: arrival.contention_ps };
                }
            }
        }
    }
}
