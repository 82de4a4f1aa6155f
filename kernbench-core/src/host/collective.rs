//! Collectives as their kernels see them: the operation, the ranks' tensors, and an algorithm in the table.

use super::launch::{LaunchOptions, Order, Queues, Submission};
use super::state::State;
use crate::diag::{Failure, Place};
use crate::tl::{In, InOut, Kernel, Raw};
use crate::topology::RankTopology;
use crate::ty::{Dtype, ElementType};
use std::cell::RefCell;

/// What ranks do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Every rank ends with the reduction of all ranks' elements.
    AllReduce,
    /// Every rank ends with the root's elements.
    Broadcast,
    /// Every rank ends with the elements of all ranks, in order of rank.
    AllGather,
    /// Rank r ends with the reduction of part r of all ranks' elements.
    ReduceScatter,
    /// Rank r ends with part r of every rank, in order of rank.
    AllToAll,
    /// No rank goes on before all have come.
    Barrier,
}

impl Operation {
    /// All there are.
    pub const ALL: [Operation; 6] = {
        use Operation::*;
        [AllReduce, Broadcast, AllGather, ReduceScatter, AllToAll, Barrier]
    };

    /// The name in messages, tables and logs: `all_reduce`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::AllReduce => "all_reduce",
            Operation::Broadcast => "broadcast",
            Operation::AllGather => "all_gather",
            Operation::ReduceScatter => "reduce_scatter",
            Operation::AllToAll => "all_to_all",
            Operation::Barrier => "barrier",
        }
    }
}

/// How elements are reduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// Their sum.
    #[default]
    Sum,
    /// The largest; NaN if one is.
    Max,
    /// The smallest; NaN if one is.
    Min,
    /// Their product.
    Prod,
}

impl ReduceOp {
    /// All there are.
    pub const ALL: [ReduceOp; 4] = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min, ReduceOp::Prod];

    /// The name in messages and on the command line: `sum`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::Prod => "prod",
        }
    }
}

/// The argument of a collective's kernel: what each rank gives and gets, each as one row.
///
/// Of p ranks with n elements each:
///
/// | operation | `from` | `to` |
/// |---|---|---|
/// | all-reduce, broadcast | `[1, n]` | `[1, n]` |
/// | all-gather | `[1, n]` | `[1, p n]` |
/// | reduce-scatter | `[1, p n]` | `[1, n]` |
/// | all-to-all | `[1, p n]` | `[1, p n]` |
/// | barrier | `[1, 0]` | `[1, 0]` |
///
/// In place, a rank's two views are of the same elements: of an all-gather `from` is the rank's part of `to`, of a
/// reduce-scatter `to` that of `from`. In the kernel the rank is `tl::program_id(2)`.
#[derive(Clone, Debug)]
pub struct Ranks<T: Dtype> {
    /// What each rank gives.
    pub from: Vec<In<T>>,
    /// What each rank gets.
    pub to: Vec<InOut<T>>,
    /// How elements are reduced.
    pub reduce: ReduceOp,
    /// The rank a broadcast comes from.
    pub root: usize,
    /// The neighbours the ranks have.
    pub topology: RankTopology,
    /// Columns and rows of the grid of ranks, row by row; `[p, 1]` if `topology` is no grid.
    pub grid: [usize; 2],
    /// Columns and rows of the cubes of a rank, row by row.
    pub cubes: [usize; 2],
    /// The cube that is a neighbour of those of other ranks, where an algorithm runs on every cube: that of
    /// `ccl.yaml`, else the one at column `w / 2` of row `h / 2`.
    pub root_cube: usize,
}

/// A collective algorithm: a kernel under the name that `ccl.yaml` gives it.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// The last segment of `module`.
    pub name: &'static str,
    /// What it does.
    pub operation: Operation,
    /// The neighbours its ranks may have; the first is the default.
    pub topologies: &'static [RankTopology],
    /// Whether it runs on PE 0 of every cube, each of which has a tile of the rank's tensor; else on PE 0 of cube 0.
    pub every_cube: bool,
    /// Launches its kernel; [`launch_by_type`](crate::launch_by_type) makes it.
    ///
    /// # Errors
    /// Those of the launch.
    pub launch: fn(&Call<'_>) -> Result<(), Failure>,
}

/// The `launch` of an [`Algorithm`] whose kernel is `fn name<T: Num>(c: Ranks<T>)`.
#[macro_export]
macro_rules! launch_by_type {
    ($kernel:ident) => {
        |call: &$crate::host::Call<'_>| match call.dtype() {
            $crate::ty::ElementType::F16 => call.launch($kernel::<$crate::ty::f16> { c: call.ranks() }),
            $crate::ty::ElementType::Bf16 => call.launch($kernel::<$crate::ty::bf16> { c: call.ranks() }),
            $crate::ty::ElementType::I32 => call.launch($kernel::<i32> { c: call.ranks() }),
            _ => call.launch($kernel::<f32> { c: call.ranks() }),
        }
    };
}

/// A collective that all ranks have entered, about to be launched.
#[derive(Debug)]
pub struct Call<'a> {
    pub(super) state: RefCell<&'a mut State>,
    pub(super) queues: Queues,
    pub(super) options: LaunchOptions,
    pub(super) place: Place,
    pub(super) name: String,
    pub(super) ty: ElementType,
    pub(super) from: Vec<Raw>,
    pub(super) to: Vec<Raw>,
    pub(super) reduce: ReduceOp,
    pub(super) root: usize,
    pub(super) topology: RankTopology,
    pub(super) grid: [u32; 2],
    pub(super) cubes: [u32; 2],
    pub(super) root_cube: u32,
    pub(super) submission: RefCell<Option<Submission>>,
}

impl Call<'_> {
    /// The element type of its tensors.
    #[must_use]
    pub fn dtype(&self) -> ElementType {
        self.ty
    }

    /// The argument of its kernel.
    #[must_use]
    pub fn ranks<T: Dtype>(&self) -> Ranks<T> {
        Ranks {
            from: self.from.iter().map(|raw| In::of(*raw)).collect(),
            to: self.to.iter().map(|raw| InOut::of(*raw)).collect(),
            reduce: self.reduce,
            root: self.root,
            topology: self.topology,
            grid: self.grid.map(|n| n as usize),
            cubes: self.cubes.map(|n| n as usize),
            root_cube: self.root_cube as usize,
        }
    }

    /// Launches its kernel on the ranks.
    ///
    /// # Errors
    /// Mistakes of the kernel, findings of the checks, or wrong data.
    pub fn launch<K: Kernel>(&self, kernel: K) -> Result<(), Failure> {
        let order = Order { options: &self.options, queues: self.queues.clone(), place: self.place.clone() };
        let submission = self.state.borrow_mut().submit(&self.name, &kernel, &order)?;
        *self.submission.borrow_mut() = Some(submission);
        Ok(())
    }
}
