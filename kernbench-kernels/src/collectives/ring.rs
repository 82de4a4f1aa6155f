//! Whole tiles around a ring.

use super::{piece, reduce_to, reduced_of};
use kernbench_core::host::{Algorithm, Operation, Ranks, ReduceOp};
use kernbench_core::launch_by_type;
use kernbench_core::prelude::*;
use kernbench_core::topology::RankTopology;
use kernbench_macros::{device, kernel};

/// Its entry in the table.
pub const RING_ALLREDUCE: Algorithm = Algorithm {
    name: "ring_allreduce",
    operation: Operation::AllReduce,
    topologies: &[RankTopology::Ring1d],
    every_cube: false,
    launch: launch_by_type!(ring_allreduce),
};

/// All-reduce in which every rank's elements travel around the ring: (p-1)(a + b n + c n).
#[kernel]
pub fn ring_allreduce<T: Num>(c: Ranks<T>) {
    let (rank, world) = (tl::program_id(2), c.to.len());
    let (from, to) = (c.from[rank], c.to[rank]);
    for piece in Block::new(0, to.ncols()).blocks(piece::<T>(tl, world + 2)) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(from.cols(piece));
            reduce_on_ring(tl, c.reduce, x, [rank, world], [Dir::GlobalW, Dir::GlobalE]);
            tl::store(to.cols(piece), x);
        });
    }
}

/// Reduces the tiles `x` of all `len` places of a ring, of which this is place `at`, into every `x`. Tiles come from
/// the place behind, `back`, and go `ahead`; they are reduced in order of place as soon as the next in order is there,
/// so that all places get the same bits.
#[device]
pub(super) fn reduce_on_ring<T: Num>(
    tl: &Scope,
    op: ReduceOp,
    x: Tile<T>,
    [at, len]: [usize; 2],
    [back, ahead]: [Dir; 2],
) {
    if len == 1 {
        return;
    }
    let mut tiles = vec![None; len];
    tiles[at] = Some(x);
    let (mut last, mut sum, mut reduced) = (x, x, 0);
    for step in 1..=len {
        while let Some(Some(tile)) = tiles.get(reduced).copied() {
            reduced += 1;
            match reduced {
                1 => sum = tile,
                _ if reduced == len => reduce_to(tl, op, x, sum, tile),
                // What has come must go on as it is, so that the first sum is a tile of its own.
                2 => sum = reduced_of(tl, op, sum, tile),
                _ => reduce_to(tl, op, sum, sum, tile),
            }
        }
        if step < len {
            tl::send(ahead, last);
            last = tl::recv(back, x.shape());
            tiles[(at + len - step) % len] = Some(last);
        }
    }
}
