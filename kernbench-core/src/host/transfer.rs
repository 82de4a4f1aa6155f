//! What a host transfer costs: it has the machine to itself (machine.md, rules 3 and 4).

use crate::engine::{Fidelity, Flow, Issuer, traffic};
use crate::ir::{PeId, Transfer};
use crate::topology::Topology;
use crate::units::Ps;

/// Time of a host write of `bytes` bytes to address `addr` of a PE's slice, to its last commit.
pub(super) fn write_ps(topology: &Topology, home: PeId, addr: u64, bytes: u64) -> Ps {
    alone(topology, Issuer::HostWrite, home, addr, bytes)
}

/// Time of a host read, with its response.
pub(super) fn read_ps(topology: &Topology, home: PeId, addr: u64, bytes: u64) -> Ps {
    alone(topology, Issuer::HostRead, home, addr, bytes)
}

fn alone(topology: &Topology, issuer: Issuer, home: PeId, mut addr: u64, bytes: u64) -> Ps {
    // A transfer counts its bytes in 32 bits; a longer one is cut at a burst.
    const MOST: u64 = 1 << 31;
    let mut left = bytes;
    let mut time = 0;
    while left > 0 {
        let run_bytes = left.min(MOST) as u32;
        let transfer =
            Transfer { addr, home, run_bytes, runs: 1, stride_bytes: run_bytes, ..Transfer::default() };
        let flow = Flow { issuer, transfer, start_ps: 0 };
        time += traffic(topology, &[flow], Fidelity::default())[0].end_ps;
        addr += u64::from(run_bytes);
        left -= u64::from(run_bytes);
    }
    time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_write_costs_what_the_reference_publishes() {
        let topology = Topology::default_machine();
        assert_eq!(write_ps(&topology, PeId(0), 0, 64 << 10), 542_500, "row 8 of machine.md, section 4");
        assert!(read_ps(&topology, PeId(0), 0, 64 << 10) >= 542_500);
        assert_eq!(write_ps(&topology, PeId(0), 0, 0), 0);
    }
}
