//! From one to all, each rank that has it helping.

use super::piece;
use kernbench_core::host::{Algorithm, Operation, Ranks};
use kernbench_core::launch_by_type;
use kernbench_core::prelude::*;
use kernbench_core::topology::RankTopology;
use kernbench_macros::kernel;

/// Its entry in the table.
pub const BINOMIAL_BROADCAST: Algorithm = Algorithm {
    name: "binomial_broadcast",
    operation: Operation::Broadcast,
    topologies: &[RankTopology::Full],
    every_cube: false,
    launch: launch_by_type!(binomial_broadcast),
};

/// Broadcast over a binomial tree: in round k the 2^k ranks that have the elements send them to as many others. At most
/// ceil(lg p)(a + b n), which a power of two of ranks takes.
#[kernel]
pub fn binomial_broadcast<T: Num>(c: Ranks<T>) {
    let (rank, world) = (tl::program_id(2), c.to.len());
    let (from, to) = (c.from[rank], c.to[rank]);
    // Ranks counted from the root.
    let mine = (rank + world - c.root) % world;
    let peer = |other: usize| Dir::peer((other + c.root) % world);
    for piece in Block::new(0, to.ncols()).blocks(piece::<T>(tl, 1)) {
        scratch_scope!(buffers = 2, {
            let (x, mut round) = if mine == 0 {
                (tl::load(from.cols(piece)), 1)
            } else {
                let came = 1 << mine.ilog2();
                (tl::recv(peer(mine - came), [1, piece.len]), 2 * came)
            };
            while mine + round < world {
                tl::send(peer(mine + round), x);
                round *= 2;
            }
            if mine > 0 || from.tensor() != to.tensor() {
                tl::store(to.cols(piece), x);
            }
        });
    }
}
