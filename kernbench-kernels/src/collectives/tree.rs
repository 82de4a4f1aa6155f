//! Up a binary tree and down again.

use super::{piece, reduce_from};
use kernbench_core::host::{Algorithm, Operation, Ranks};
use kernbench_core::launch_by_type;
use kernbench_core::prelude::*;
use kernbench_core::topology::RankTopology;
use kernbench_macros::kernel;

/// Its entry in the table.
pub const TREE_ALLREDUCE: Algorithm = Algorithm {
    name: "tree_allreduce",
    operation: Operation::AllReduce,
    topologies: &[RankTopology::Tree],
    every_cube: false,
    launch: launch_by_type!(tree_allreduce),
};

/// All-reduce over a binary tree of ranks in heap order: each reduces its own elements with those of its left child
/// and then its right one. Of a tree of depth d: at most 2 d (a + b n) and what the second child adds, d (a + b n + 2 c n).
#[kernel]
pub fn tree_allreduce<T: Num>(c: Ranks<T>) {
    let (rank, world) = (tl::program_id(2), c.to.len());
    let (from, to) = (c.from[rank], c.to[rank]);
    let children = [(2 * rank + 1, Dir::ChildLeft), (2 * rank + 2, Dir::ChildRight)];
    let children = children.into_iter().filter(|(child, _)| *child < world).map(|(_, dir)| dir);
    for piece in Block::new(0, to.ncols()).blocks(piece::<T>(tl, 3)) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(from.cols(piece));
            for child in children.clone() {
                reduce_from(tl, c.reduce, x, child);
            }
            let mut all = x;
            if rank > 0 {
                tl::send(Dir::Parent, x);
                all = tl::recv(Dir::Parent, x.shape());
            }
            for child in children.clone() {
                tl::send(child, all);
            }
            tl::store(to.cols(piece), all);
        });
    }
}
