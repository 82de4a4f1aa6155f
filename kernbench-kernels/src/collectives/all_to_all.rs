//! Exchange of parts, pair by pair.

use super::piece;
use kernbench_core::host::{Algorithm, Operation, Ranks};
use kernbench_core::launch_by_type;
use kernbench_core::prelude::*;
use kernbench_core::topology::RankTopology;
use kernbench_macros::kernel;

/// Its entry in the table.
pub const PAIRWISE_ALL_TO_ALL: Algorithm = Algorithm {
    name: "pairwise_all_to_all",
    operation: Operation::AllToAll,
    topologies: &[RankTopology::Full],
    every_cube: false,
    launch: launch_by_type!(pairwise_all_to_all),
};

/// All-to-all in which each rank exchanges one part at a time with one other; in step s those whose numbers add up to s
/// modulo p. Of parts of n bytes: p (a + b n), less where a rank is its own partner. Both ends of an exchange read a
/// part before they write it, so that it works in place.
#[kernel]
pub fn pairwise_all_to_all<T: Num>(c: Ranks<T>) {
    let (rank, world) = (tl::program_id(2), c.to.len());
    let (from, to) = (c.from[rank], c.to[rank]);
    let n = to.ncols() / world;
    for piece in Block::new(0, n).blocks(piece::<T>(tl, 2)) {
        for step in 0..world {
            let partner = (step + world - rank) % world;
            let cols = Block::new(partner * n + piece.start, piece.len);
            scratch_scope!(buffers = 2, {
                if partner != rank {
                    let x = tl::load(from.cols(cols));
                    tl::send(Dir::peer(partner), x);
                    let y = tl::recv::<T>(Dir::peer(partner), x.shape());
                    tl::store(to.cols(cols), y);
                } else if from.tensor() != to.tensor() {
                    let x = tl::load(from.cols(cols));
                    tl::store(to.cols(cols), x);
                }
            });
        }
    }
}
