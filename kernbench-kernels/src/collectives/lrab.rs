//! Local reduction and broadcast: over the cubes of each SIP, and between SIPs over one cube of each.

use super::grid::{Line, reduce_on_mesh};
use super::piece;
use super::ring::reduce_on_ring;
use kernbench_core::host::{Algorithm, Operation, Ranks};
use kernbench_core::launch_by_type;
use kernbench_core::prelude::*;
use kernbench_core::topology::RankTopology;
use kernbench_macros::kernel;

/// Its entry in the table.
pub const LRAB_HIERARCHICAL_ALLREDUCE: Algorithm = Algorithm {
    name: "lrab_hierarchical_allreduce",
    operation: Operation::AllReduce,
    topologies: &[RankTopology::Ring1d, RankTopology::Torus2d, RankTopology::Mesh2dNoWrap],
    every_cube: true,
    launch: launch_by_type!(lrab_hierarchical_allreduce),
};

/// All-reduce of the tiles of all cubes of all ranks, over PE 0 of each cube: the cubes of a row into the column of the
/// root cube, that column into the root cube, the root cubes of all ranks around a ring, the rings of a torus (rows,
/// then columns) or a mesh, and back into the column and the rows.
#[kernel]
pub fn lrab_hierarchical_allreduce<T: Num>(c: Ranks<T>) {
    let (rank, world, cube) = (tl::program_id(2), c.to.len(), tl::cube());
    let (from, to) = (c.from[rank].local(), c.to[rank].local());
    let n = to.nrows() * to.ncols();
    let (from, to) = (from.reshape([1, n]), to.reshape([1, n]));
    let ([w, h], root, [columns, rows]) = (c.cubes, c.root_cube, c.grid);
    let row = Line { at: cube % w, len: w, centre: root % w, ends: [Dir::W, Dir::E] };
    let column = Line { at: cube / w, len: h, centre: root / w, ends: [Dir::N, Dir::S] };
    for piece in Block::new(0, n).blocks(piece::<T>(tl, world + 5)) {
        scratch_scope!(buffers = 2, {
            let x = tl::load(from.cols(piece));
            row.gather(tl, c.reduce, x);
            let mut all = x;
            if row.at == row.centre {
                column.gather(tl, c.reduce, x);
                if column.at == column.centre {
                    match c.topology {
                        RankTopology::Torus2d => {
                            let (at, ends) = ([rank % columns, columns], [Dir::GlobalW, Dir::GlobalE]);
                            reduce_on_ring(tl, c.reduce, x, at, ends);
                            let (at, ends) = ([rank / columns, rows], [Dir::GlobalN, Dir::GlobalS]);
                            reduce_on_ring(tl, c.reduce, x, at, ends);
                        }
                        RankTopology::Mesh2dNoWrap => all = reduce_on_mesh(tl, c.reduce, x, rank, c.grid),
                        _ => reduce_on_ring(tl, c.reduce, x, [rank, world], [Dir::GlobalW, Dir::GlobalE]),
                    }
                }
                all = column.spread(tl, all);
            }
            all = row.spread(tl, all);
            tl::store(to.cols(piece), all);
        });
    }
}
