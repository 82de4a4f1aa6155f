//! Lines towards their centre and back: the rows of a grid, then the column of their centres.

use super::{piece, reduce_from};
use kernbench_core::host::{Algorithm, Operation, Ranks, ReduceOp};
use kernbench_core::launch_by_type;
use kernbench_core::prelude::*;
use kernbench_core::topology::RankTopology;
use kernbench_macros::{device, kernel};

/// Its entry in the table.
pub const MESH_ALLREDUCE: Algorithm = Algorithm {
    name: "mesh_allreduce",
    operation: Operation::AllReduce,
    topologies: &[RankTopology::Mesh2dNoWrap, RankTopology::Torus2d],
    every_cube: false,
    launch: launch_by_type!(mesh_allreduce),
};

/// All-reduce over a mesh of ranks: to the centre of each row, to the centre of their column, and back.
#[kernel]
pub fn mesh_allreduce<T: Num>(c: Ranks<T>) {
    let rank = tl::program_id(2);
    let (from, to) = (c.from[rank], c.to[rank]);
    for piece in Block::new(0, to.ncols()).blocks(piece::<T>(tl, 4)) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(from.cols(piece));
            let all = reduce_on_mesh(tl, c.reduce, x, rank, c.grid);
            tl::store(to.cols(piece), all);
        });
    }
}

/// The reduction of the tiles `x` of all ranks of a mesh. Spoils `x`.
#[device]
pub(super) fn reduce_on_mesh<'s, T: Num>(
    tl: &'s Scope,
    op: ReduceOp,
    x: Tile<'s, T>,
    rank: usize,
    [w, h]: [usize; 2],
) -> Tile<'s, T> {
    let row = Line { at: rank % w, len: w, centre: w / 2, ends: [Dir::GlobalW, Dir::GlobalE] };
    let column = Line { at: rank / w, len: h, centre: h / 2, ends: [Dir::GlobalN, Dir::GlobalS] };
    row.gather(tl, op, x);
    let mut all = x;
    if row.at == row.centre {
        column.gather(tl, op, x);
        all = column.spread(tl, x);
    }
    row.spread(tl, all)
}

/// A place on a line of `len` places, of which one is the centre.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub at: usize,
    pub len: usize,
    pub centre: usize,
    /// Towards place 0, and towards the last one.
    pub ends: [Dir; 2],
}

impl Line {
    /// Reduces the tiles `x` of all places into that of the centre: each place passes on what it has and what came from
    /// further out. The centre takes the side of place 0 first. Spoils the other tiles.
    #[device]
    pub(super) fn gather<T: Num>(self, tl: &Scope, op: ReduceOp, x: Tile<T>) {
        let Line { at, len, centre, ends: [first, last] } = self;
        if at > 0 && at <= centre {
            reduce_from(tl, op, x, first);
        }
        if at + 1 < len && at >= centre {
            reduce_from(tl, op, x, last);
        }
        if at != centre {
            tl::send(if at < centre { last } else { first }, x);
        }
    }

    /// The tile `x` of the centre, at every place. The centre sends towards place 0 first.
    #[device]
    pub(super) fn spread<'s, T: Num>(self, tl: &'s Scope, x: Tile<'s, T>) -> Tile<'s, T> {
        let Line { at, len, centre, ends: [first, last] } = self;
        let mut all = x;
        if at != centre {
            all = tl::recv(if at < centre { last } else { first }, x.shape());
        }
        if at > 0 && at <= centre {
            tl::send(first, all);
        }
        if at + 1 < len && at >= centre {
            tl::send(last, all);
        }
        all
    }
}
