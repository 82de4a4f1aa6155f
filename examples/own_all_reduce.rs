//! An all-reduce of one's own: a kernel, its entry in a table, and its name in `ccl.yaml`.
//!
//! ```text
//! cargo run --release --example own_all_reduce
//! ```

use kernbench::ccl::{Ccl, RankTopology};
use kernbench::diag::Failure;
use kernbench::host::{Algorithm, Operation, Ranks};
use kernbench::ndarray::Array2;
use kernbench::prelude::*;

/// Rank 0 takes the elements of all ranks, reduces them in order of rank, and sends the result to all.
#[kernel]
pub fn star_allreduce<T: Num>(c: Ranks<T>) {
    let (rank, world) = (tl::program_id(2), c.to.len());
    let (from, to) = (c.from[rank], c.to[rank]);
    for piece in Block::new(0, to.ncols()).blocks(tl::slot_size() / size_of::<T>()) {
        scratch_scope!({
            let x = tl::load(from.cols(piece));
            if rank > 0 {
                tl::send(Dir::peer(0), x);
                let result = tl::recv::<T>(Dir::peer(0), x.shape());
                tl::store(to.cols(piece), result);
                continue;
            }
            for other in 1..world {
                scratch_scope!({
                    let y = tl::recv(Dir::peer(other), x.shape());
                    match c.reduce {
                        ReduceOp::Sum => tl::copy_to(x, x + y),
                        ReduceOp::Prod => tl::copy_to(x, x * y),
                        ReduceOp::Max => tl::copy_to(x, tl::maximum(x, y)),
                        ReduceOp::Min => tl::copy_to(x, tl::minimum(x, y)),
                    }
                });
            }
            for other in 1..world {
                tl::send(Dir::peer(other), x);
            }
            tl::store(to.cols(piece), x);
        });
    }
}

/// Its entry in a table for `init_process_group`.
pub const STAR: Algorithm = Algorithm {
    name: "star_allreduce",
    operation: Operation::AllReduce,
    topologies: &[RankTopology::Full],
    every_cube: false,
    launch: kernbench::launch_by_type!(star_allreduce),
};

/// What names it: `module` by its last segment.
pub const CCL: &str = "\
defaults:
  algorithm: my_star
algorithms:
  my_star:
    module: mine.star_allreduce
    topology: full
";

/// Sums a row of every rank, and says what each rank has then and how long it took.
pub fn run(sips: usize) -> Result<String, Failure> {
    let machine = Topology::DEFAULT_YAML.replace("count: 2   ", &format!("count: {sips}   "));
    let ctx =
        Context::with_ccl(Topology::from_yaml("topology.yaml", &machine)?, Ccl::from_yaml("ccl.yaml", CCL)?);
    ctx.init_process_group(Backend::Ahbm(&[&[STAR]]))?;
    let rows = ctx.spawn(ctx.world_size()?, async |rank, ctx: Worker| {
        let mine = Array2::from_elem([1, 4], rank as f32 + 1.0);
        let mut t = ctx.from_array(&mine, Placement::replicated().on(1, 1), "t")?;
        let done = ctx.all_reduce(&mut t, ReduceOp::Sum).await?;
        Ok(format!("rank {rank}: {} after {} ns", t.to_array().await?, done.simulated_ps as f64 / 1000.0))
    })?;
    Ok(rows.join("\n"))
}

#[allow(dead_code)] // Tests call `run`.
fn main() -> Result<(), Failure> {
    println!("{}", run(4)?);
    Ok(())
}
