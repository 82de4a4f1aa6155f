//! A reduce-scatter and an all-gather along a ring.

use super::all_gather::gather_parts;
use super::reduce_scatter::reduce_parts;
use super::{part, piece};
use kernbench_core::host::{Algorithm, Operation, Ranks};
use kernbench_core::launch_by_type;
use kernbench_core::prelude::*;
use kernbench_core::topology::RankTopology;
use kernbench_macros::kernel;

/// Its entry in the table.
pub const RING_RS_AG_ALLREDUCE: Algorithm = Algorithm {
    name: "ring_rs_ag_allreduce",
    operation: Operation::AllReduce,
    topologies: &[RankTopology::Ring1d],
    every_cube: false,
    launch: launch_by_type!(ring_rs_ag_allreduce),
};

/// All-reduce in which each rank reduces one part of the elements: 2(p-1) a + 2(p-1)/p b n + (p-1)/p c n
/// (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009).
#[kernel]
pub fn ring_rs_ag_allreduce<T: Num>(c: Ranks<T>) {
    let (rank, world) = (tl::program_id(2), c.to.len());
    let (from, to) = (c.from[rank], c.to[rank]);
    for block in Block::new(0, to.ncols()).blocks(world * piece::<T>(tl, 2 * world + 1)) {
        scratch_scope!(buffers = 2, {
            let (x, to) = (tl::load(from.cols(block)), to.cols(block));
            let order = (1..=world).map(|step| (rank + world - step) % world);
            let parts: Vec<_> = order.map(|i| x.cols(part(block.len, world, i))).collect();
            let places: Vec<_> = (0..world).map(|i| to.cols(part(block.len, world, i))).collect();
            reduce_parts(tl, c.reduce, &parts);
            let mine = parts[world - 1];
            tl::store(places[rank], mine);
            gather_parts(tl, mine, &places, rank);
        });
    }
}
