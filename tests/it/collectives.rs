//! The collective algorithms: their results against an oracle, their times against formulas.

mod command;
mod costs;
mod data;
mod lrab;

use kernbench::ccl::Ccl;
use kernbench::diag::Failure;
use kernbench::host::{Context, Launched, Operation};
use kernbench::kernels::collectives::ALGORITHMS;
use kernbench::kernels::collectives::oracle::Element;
use kernbench::ndarray::Array2;
use kernbench::prelude::*;
use kernbench::topology::Topology;

/// A process group over some SIPs.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Columns and rows of SIPs.
    sips: [usize; 2],
    /// Columns and rows of cubes of a SIP; `None` for the default machine's.
    cubes: Option<[usize; 2]>,
    /// The default machine's cubes, not those of `one_port.yaml`.
    default_machine: bool,
    algorithm: &'static str,
    topology: &'static str,
    buffer_kind: &'static str,
    backpressure: &'static str,
    n_slots: usize,
    slot_size: usize,
}

impl Group {
    /// Ranks of the one-port machine that use an algorithm over its first topology.
    fn of(algorithm: &'static str, ranks: usize) -> Group {
        // A grid as square as can be.
        let h = (1..=ranks).rev().find(|h| h * h <= ranks && ranks.is_multiple_of(*h)).unwrap();
        let a = ALGORITHMS.iter().find(|a| a.name == algorithm).unwrap();
        Group {
            sips: [ranks / h, h],
            cubes: None,
            default_machine: false,
            algorithm,
            topology: a.topologies[0].name(),
            buffer_kind: "tcm",
            backpressure: "sleep",
            n_slots: 4,
            slot_size: 4096,
        }
    }

    fn ranks(&self) -> usize {
        self.sips[0] * self.sips[1]
    }

    fn operation(&self) -> Operation {
        ALGORITHMS.iter().find(|a| a.name == self.algorithm).unwrap().operation
    }

    fn context(&self) -> Context {
        let [w, h] = self.sips;
        let sips = format!("sips: {{count: {}, topology: mesh_2d_no_wrap, w: {w}, h: {h}}}", w * h);
        let machine = match self.default_machine {
            true => Topology::DEFAULT_YAML.replacen(
                "sips:\n    count: 2                        # R\n    topology: ring_1d ",
                &format!("{sips} "),
                1,
            ),
            false => include_str!("../machines/one_port.yaml").replacen(
                "sips: {count: 16, topology: mesh_2d_no_wrap, w: 4, h: 4}",
                &sips,
                1,
            ),
        };
        let machine = match self.cubes {
            Some([w, h]) => machine.replacen("{w: 1, h: 1}", &format!("{{w: {w}, h: {h}}}"), 1),
            None => machine,
        };
        let topology = Topology::from_yaml("topology.yaml", &machine).unwrap();
        assert_eq!(topology.machine().sips as usize, self.ranks());
        let Group { algorithm, topology: links, buffer_kind, backpressure, n_slots, slot_size, .. } = self;
        // Another all-reduce is the default where the algorithm is of another operation.
        let module = if self.operation() == Operation::AllReduce { algorithm } else { "ring_allreduce" };
        let first = if module == *algorithm { links } else { "ring_1d" };
        let ccl = format!(
            "defaults:\n  algorithm: mine\n  buffer_kind: {buffer_kind}\n  backpressure: {backpressure}\n  \
             n_slots: {n_slots}\n  slot_size: {slot_size}\nalgorithms:\n  mine: {{module: {module}, topology: {first}}}\n  \
             other: {{module: {algorithm}, topology: {links}}}\n"
        );
        let ctx = Context::with_ccl(topology, Ccl::from_yaml("ccl.yaml", &ccl).unwrap());
        ctx.init_process_group(Backend::Ahbm(&[ALGORITHMS])).unwrap();
        ctx
    }
}

/// What a rank gives and what it gets; `reduce` and `root` are for operations that have one.
async fn collective<T: Element>(
    ctx: &Worker,
    operation: Operation,
    (from, in_place): (&[T], bool),
    (reduce, root): (ReduceOp, usize),
    place: Placement,
) -> Result<(Vec<T>, Launched), Failure> {
    let p = ctx.world_size()?;
    let row = |x: &[T]| Array2::from_shape_vec([1, x.len()], x.to_vec()).unwrap();
    let n = from.len();
    let len = match operation {
        Operation::AllGather => n * p,
        Operation::ReduceScatter => n / p,
        _ => n,
    };
    let part = ctx.rank() * n.min(len)..(ctx.rank() + 1) * n.min(len);
    if in_place {
        let mut t = match operation {
            Operation::AllGather => {
                let mut whole = vec![T::of(0.0); len];
                whole[part.clone()].copy_from_slice(from);
                ctx.from_array(&row(&whole), place, "t")?
            }
            _ => ctx.from_array(&row(from), place, "t")?,
        };
        let done = match operation {
            Operation::AllReduce => ctx.all_reduce(&mut t, reduce),
            Operation::Broadcast => ctx.broadcast(&mut t, root),
            Operation::AllGather => ctx.all_gather_in_place(&mut t),
            Operation::ReduceScatter => ctx.reduce_scatter_in_place(&mut t, reduce),
            Operation::AllToAll => ctx.all_to_all_in_place(&mut t),
            Operation::Barrier => ctx.barrier(),
        };
        let done = done.await?;
        let all = t.data().await?;
        let got = if operation == Operation::ReduceScatter { all[part].to_vec() } else { all };
        return Ok((got, done));
    }
    let x = ctx.from_array(&row(from), place, "x")?;
    let mut y = ctx.empty::<T>([1, len], place, "y")?;
    let done = match operation {
        Operation::AllReduce => ctx.all_reduce_into(&x, &mut y, reduce),
        Operation::Broadcast => ctx.broadcast_into(&x, &mut y, root),
        Operation::AllGather => ctx.all_gather(&x, &mut y),
        Operation::ReduceScatter => ctx.reduce_scatter(&x, &mut y, reduce),
        Operation::AllToAll => ctx.all_to_all(&x, &mut y),
        Operation::Barrier => ctx.barrier(),
    };
    let done = done.await?;
    let got = if operation == Operation::Barrier { vec![] } else { y.data().await? };
    assert_eq!(x.data().await?.len(), n);
    Ok((got, done))
}
