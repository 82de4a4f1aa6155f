//! Parts around a ring, collected on the way.

use super::piece;
use kernbench_core::host::{Algorithm, Operation, Ranks};
use kernbench_core::launch_by_type;
use kernbench_core::prelude::*;
use kernbench_core::topology::RankTopology;
use kernbench_macros::{device, kernel};

/// Its entry in the table.
pub const RING_ALL_GATHER: Algorithm = Algorithm {
    name: "ring_all_gather",
    operation: Operation::AllGather,
    topologies: &[RankTopology::Ring1d],
    every_cube: false,
    launch: launch_by_type!(ring_all_gather),
};

/// All-gather along a ring; of parts of n bytes: (p-1)(a + b n).
#[kernel]
pub fn ring_all_gather<T: Num>(c: Ranks<T>) {
    let (rank, world) = (tl::program_id(2), c.to.len());
    let (from, to) = (c.from[rank], c.to[rank]);
    let n = from.ncols();
    for piece in Block::new(0, n).blocks(piece::<T>(tl, world)) {
        scratch_scope!(buffers = 2, {
            let place = |i: usize| to.cols(Block::new(i * n + piece.start, piece.len));
            let places: Vec<_> = (0..world).map(place).collect();
            let mine = tl::load(from.cols(piece));
            if from.tensor() != to.tensor() {
                tl::store(places[rank], mine);
            }
            gather_parts(tl, mine, &places, rank);
        });
    }
}

/// Puts the parts of all other ranks of a ring into their places. Each goes around the ring once. Empty parts do not
/// travel.
#[device]
pub(super) fn gather_parts<T: Num>(tl: &Scope, mine: Tile<T>, places: &[InOut<T>], rank: usize) {
    let world = places.len();
    let mut last = mine;
    for step in 1..world {
        if last.ncols() > 0 {
            tl::send(Dir::GlobalE, last);
        }
        let place = places[(rank + world - step) % world];
        if place.ncols() > 0 {
            last = tl::recv(Dir::GlobalW, place.shape());
            tl::store(place, last);
        } else {
            last = last.cols(0..0);
        }
    }
}
