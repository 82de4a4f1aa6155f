//! Everybody hears of everybody.

use kernbench_core::host::{Algorithm, Operation, Ranks};
use kernbench_core::launch_by_type;
use kernbench_core::prelude::*;
use kernbench_core::topology::RankTopology;
use kernbench_macros::kernel;

/// Its entry in the table.
pub const DISSEMINATION_BARRIER: Algorithm = Algorithm {
    name: "dissemination_barrier",
    operation: Operation::Barrier,
    topologies: &[RankTopology::Full],
    every_cube: false,
    launch: launch_by_type!(dissemination_barrier),
};

/// Barrier of empty messages: in round k each rank tells the one 2^k further, so that after ceil(lg p) rounds it has
/// heard of all (Hensgen, Finkel and Manber, Two algorithms for barrier synchronization, 1988).
#[kernel]
pub fn dissemination_barrier<T: Num>(c: Ranks<T>) {
    let (rank, world) = (tl::program_id(2), c.to.len());
    let nothing = tl::zeros::<T>([1, 0]);
    let mut distance = 1;
    while distance < world {
        tl::send(Dir::peer((rank + distance) % world), nothing);
        let _ = tl::recv::<T>(Dir::peer((rank + world - distance) % world), [1, 0]);
        distance *= 2;
    }
}
