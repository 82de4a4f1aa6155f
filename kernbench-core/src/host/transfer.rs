//! What a host transfer costs: it has the machine to itself, so no events are needed.

use crate::ir::PeId;
use crate::topology::Topology;
use crate::units::Ps;

/// Time of a host write of `bytes` bytes to a PE's slice, to its last commit
/// (machine.md, rule 3: a host write is complete at its last commit).
pub(super) fn write_ps(topology: &Topology, home: PeId, bytes: u64) -> Ps {
    if bytes == 0 {
        return 0;
    }
    let route = topology.host_route(home);
    let flit = topology.machine().flit_bytes;
    let head: Ps = route
        .edges
        .iter()
        .map(|&e| topology.wire(e))
        .map(|w| w.rate.map_or(0, |r| r.time(bytes.min(flit))) + w.propagation_ps)
        .sum();
    let drain = route.bottleneck.map_or(0, |r| r.time(bytes.saturating_sub(flit)));
    head + route.overhead_ps + drain + topology.machine().hbm.burst_ps
}

/// Time of a host read: a write's, then the response.
pub(super) fn read_ps(topology: &Topology, home: PeId, bytes: u64) -> Ps {
    if bytes == 0 {
        return 0;
    }
    let route = topology.host_route(home);
    write_ps(topology, home, bytes) + route.overhead_ps + route.propagation_ps
}
