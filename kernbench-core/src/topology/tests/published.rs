//! The published results of single transfers, by a formula of their own.

use super::*;
use crate::ir::PeId;

/// The latency of one transfer of `n` bytes on an idle machine. The first flit pays every overhead;
/// the last one leaves edge i no earlier than all flits back to back after the first one began there;
/// a gathering node begins when it has all.
pub(super) fn latency_ps(t: &Topology, route: &Route, n: u64, response: bool) -> u64 {
    let flits = n / t.machine().flit_bytes;
    let (mut first, mut last) = (0, 0);
    for (i, edge) in route.edges.iter().enumerate() {
        let wire = t.wire(*edge);
        if i > 0 {
            if t.node_kind(wire.from).role() == NodeRole::Gather {
                first = last;
            }
            first += t.overhead_ps(wire.from);
        }
        last = last.max(first + (flits - 1) * wire.flit_ps) + wire.flit_ps + wire.propagation_ps;
        first += wire.flit_ps + wire.propagation_ps;
    }
    // Eight channels at an eighth of the rate of the last edge never queue on these routes.
    let back = if response { route.overhead_ps + route.propagation_ps } else { 0 };
    last + t.machine().hbm.burst_ps + back
}

#[test]
fn rows_without_contention() {
    let t = Topology::default_machine();
    let read = |from: PeId, home: PeId, kib: u64| latency_ps(&t, &t.dma_route(from, home), kib << 10, true);
    let (p0, p1) = (pe(&t, 0, 0, 0), pe(&t, 0, 0, 1));
    assert_eq!(read(p0, p0, 16), 77_000, "row 1");
    assert_eq!(read(p0, p0, 32), 141_000, "row 2");
    assert_eq!(read(p1, p0, 16), 82_000, "row 3");
    assert_eq!(read(p0, pe(&t, 0, 15, 7), 16), 573_000, "row 6");
    assert_eq!(read(p0, pe(&t, 1, 0, 0), 16), 412_000, "row 7");
    assert_eq!(latency_ps(&t, &t.host_route(p0), 64 << 10, false), 542_500, "row 8");
}
