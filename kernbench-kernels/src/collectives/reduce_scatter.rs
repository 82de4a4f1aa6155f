//! Parts around a ring, reduced on the way.

use super::{piece, reduce_to};
use kernbench_core::host::{Algorithm, Operation, Ranks, ReduceOp};
use kernbench_core::launch_by_type;
use kernbench_core::prelude::*;
use kernbench_core::topology::RankTopology;
use kernbench_macros::{device, kernel};

/// Its entry in the table.
pub const RING_REDUCE_SCATTER: Algorithm = Algorithm {
    name: "ring_reduce_scatter",
    operation: Operation::ReduceScatter,
    topologies: &[RankTopology::Ring1d],
    every_cube: false,
    launch: launch_by_type!(ring_reduce_scatter),
};

/// Reduce-scatter along a ring; of parts of n bytes: (p-1)(a + b n + c n).
#[kernel]
pub fn ring_reduce_scatter<T: Num>(c: Ranks<T>) {
    let (rank, world) = (tl::program_id(2), c.to.len());
    let (from, to) = (c.from[rank], c.to[rank]);
    let n = to.ncols();
    for piece in Block::new(0, n).blocks(piece::<T>(tl, world + 1)) {
        scratch_scope!(buffers = 2, {
            // In the order in which they are used.
            let order = (1..=world).map(|step| (rank + world - step) % world);
            let part = |i: usize| from.cols(Block::new(i * n + piece.start, piece.len));
            let parts: Vec<_> = order.map(|i| tl::load(part(i))).collect();
            reduce_parts(tl, c.reduce, &parts);
            tl::store(to.cols(piece), parts[world - 1]);
        });
    }
}

/// Reduces parts around a ring. `parts` are this rank's, that of the rank behind it first, its own last; which becomes
/// the reduction of all ranks', and the others are spoilt. Each part goes around the ring once, from the rank ahead of
/// its own, and is reduced with those of the ranks it comes by, in that order. Empty parts do not travel.
#[device]
pub(super) fn reduce_parts<T: Num>(tl: &Scope, op: ReduceOp, parts: &[Tile<T>]) {
    for (out, back) in parts.iter().zip(&parts[1..]) {
        if out.ncols() > 0 {
            tl::send(Dir::GlobalE, *out);
        }
        if back.ncols() > 0 {
            scratch_scope!({
                let y = tl::recv(Dir::GlobalW, back.shape());
                reduce_to(tl, op, *back, y, *back);
            });
        }
    }
}
