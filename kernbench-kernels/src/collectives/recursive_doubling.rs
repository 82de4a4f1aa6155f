//! Exchange with ranks at growing distance.

use super::{piece, reduce_from, reduce_to};
use kernbench_core::host::{Algorithm, Operation, Ranks};
use kernbench_core::launch_by_type;
use kernbench_core::prelude::*;
use kernbench_core::topology::RankTopology;
use kernbench_macros::kernel;

/// Its entry in the table.
pub const RECURSIVE_DOUBLING_ALLREDUCE: Algorithm = Algorithm {
    name: "recursive_doubling_allreduce",
    operation: Operation::AllReduce,
    topologies: &[RankTopology::Hypercube, RankTopology::Full],
    every_cube: false,
    launch: launch_by_type!(recursive_doubling_allreduce),
};

/// All-reduce in which ranks that differ in one bit exchange what they have, bit after bit; of a power of two of them:
/// lg p (a + b n + c n). Ranks beyond the largest power of two give their elements to one below first, and get the
/// result from it (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH, 2005).
#[kernel]
pub fn recursive_doubling_allreduce<T: Num>(c: Ranks<T>) {
    let (rank, world) = (tl::program_id(2), c.to.len());
    let (from, to) = (c.from[rank], c.to[rank]);
    let power = 1 << world.ilog2();
    for piece in Block::new(0, to.ncols()).blocks(piece::<T>(tl, 2 + world.ilog2() as usize)) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(from.cols(piece));
            if rank >= power {
                tl::send(Dir::peer(rank - power), x);
                let all = tl::recv::<T>(Dir::peer(rank - power), x.shape());
                tl::store(to.cols(piece), all);
                continue;
            }
            let beyond = Some(rank + power).filter(|beyond| *beyond < world);
            if let Some(beyond) = beyond {
                reduce_from(tl, c.reduce, x, Dir::peer(beyond));
            }
            for bit in (0..world.ilog2()).map(|i| 1 << i) {
                let partner = rank ^ bit;
                tl::send(Dir::peer(partner), x);
                scratch_scope!({
                    let y = tl::recv(Dir::peer(partner), x.shape());
                    // Both get the same bits: the lower rank's come first.
                    let (low, high) = if rank < partner { (x, y) } else { (y, x) };
                    reduce_to(tl, c.reduce, x, low, high);
                });
            }
            if let Some(beyond) = beyond {
                tl::send(Dir::peer(beyond), x);
            }
            tl::store(to.cols(piece), x);
        });
    }
}
