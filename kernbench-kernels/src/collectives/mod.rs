//! Collective algorithms: kernels over IPCQ, each with its entry for the table from which `ccl.yaml` chooses.
//!
//! All work in pieces of at most one slot, so that any size will do. In every kernel the sends and receives of a
//! rank come in an order in which each receive's send, and each send's free slot, comes earlier in time: one slot
//! for each link is enough.
//!
//! Costs are those of p ranks and n bytes on a machine with one port for each direction, where a message takes
//! `a + b n` and reducing it `c n`, for what fits a slot.

mod all_gather;
mod all_to_all;
mod barrier;
mod broadcast;
mod case;
mod grid;
mod lrab;
mod measure;
/// What collectives must give.
pub mod oracle;
mod recursive_doubling;
mod reduce_scatter;
mod ring;
mod ring_rs_ag;
mod tree;

pub use all_gather::{RING_ALL_GATHER, ring_all_gather};
pub use all_to_all::{PAIRWISE_ALL_TO_ALL, pairwise_all_to_all};
pub use barrier::{DISSEMINATION_BARRIER, dissemination_barrier};
pub use broadcast::{BINOMIAL_BROADCAST, binomial_broadcast};
pub use case::ALL_REDUCE;
pub use grid::{MESH_ALLREDUCE, mesh_allreduce};
pub use lrab::{LRAB_HIERARCHICAL_ALLREDUCE, lrab_hierarchical_allreduce};
pub use measure::{Case, Measured, Moved};
pub use recursive_doubling::{RECURSIVE_DOUBLING_ALLREDUCE, recursive_doubling_allreduce};
pub use reduce_scatter::{RING_REDUCE_SCATTER, ring_reduce_scatter};
pub use ring::{RING_ALLREDUCE, ring_allreduce};
pub use ring_rs_ag::{RING_RS_AG_ALLREDUCE, ring_rs_ag_allreduce};
pub use tree::{TREE_ALLREDUCE, tree_allreduce};

use kernbench_core::host::{Algorithm, ReduceOp};
use kernbench_core::prelude::*;
use kernbench_macros::device;

/// All algorithms of the library, for [`Backend::Ahbm`](kernbench_core::host::Backend).
pub const ALGORITHMS: &[Algorithm] = &[
    RING_ALLREDUCE,
    RING_RS_AG_ALLREDUCE,
    TREE_ALLREDUCE,
    MESH_ALLREDUCE,
    RECURSIVE_DOUBLING_ALLREDUCE,
    LRAB_HIERARCHICAL_ALLREDUCE,
    BINOMIAL_BROADCAST,
    RING_ALL_GATHER,
    RING_REDUCE_SCATTER,
    PAIRWISE_ALL_TO_ALL,
    DISSEMINATION_BARRIER,
];

/// Elements of a piece: what fits a slot, and of which `tiles` fit into scratch twice, for the piece under way and the
/// next.
#[device]
fn piece<T: Num>(tl: &Scope, tiles: usize) -> usize {
    // Scratch is allocated in lines.
    let room = (tl::scratch_size() / (2 * tiles)).saturating_sub(256);
    (tl::slot_size().min(room) / size_of::<T>()).max(1)
}

/// `low op high`, into `dst`, which may be one of them.
#[device]
fn reduce_to<T: Num>(tl: &Scope, op: ReduceOp, dst: Tile<T>, low: Tile<T>, high: Tile<T>) {
    match op {
        ReduceOp::Sum => tl::copy_to(dst, low + high),
        ReduceOp::Prod => tl::copy_to(dst, low * high),
        ReduceOp::Max => tl::copy_to(dst, tl::maximum(low, high)),
        ReduceOp::Min => tl::copy_to(dst, tl::minimum(low, high)),
    }
}

/// `low op high`, as a new tile.
#[device]
fn reduced_of<'s, T: Num>(tl: &'s Scope, op: ReduceOp, low: Tile<T>, high: Tile<T>) -> Tile<'s, T> {
    match op {
        ReduceOp::Sum => tl::eval(low + high),
        ReduceOp::Prod => tl::eval(low * high),
        ReduceOp::Max => tl::eval(tl::maximum(low, high)),
        ReduceOp::Min => tl::eval(tl::minimum(low, high)),
    }
}

/// Receives a tile of the shape of `x` and reduces `x` with it.
#[device]
fn reduce_from<T: Num>(tl: &Scope, op: ReduceOp, x: Tile<T>, from: Dir) {
    scratch_scope!({
        let y = tl::recv(from, x.shape());
        reduce_to(tl, op, x, x, y);
    });
}

/// Part `i` of `count` parts of `len` elements, as equal as can be; the first ones are the longer ones.
fn part(len: usize, count: usize, i: usize) -> Block {
    let (least, more) = (len / count, len % count);
    Block::new(i * least + i.min(more), least + usize::from(i < more))
}
