//! One collective as a whole host program: inputs, the call on every rank, the time, the check.

use super::oracle::{Collective, Element};
use crate::random;
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Algorithm, Context, Launched, Operation, ReduceOp, Worker};
use kernbench_core::ndarray::Array2;
use kernbench_core::placement::Placement;
use kernbench_core::ty::{ElementType, bf16, f16};

/// A collective to measure.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The algorithm, which the process group of the context has been told to use.
    pub algorithm: Algorithm,
    /// The element type: f16, bf16, f32 or i32.
    pub ty: ElementType,
    /// Bytes of the larger of a rank's tensors, of each cube if the algorithm runs on every cube; rounded up to whole
    /// elements for every rank.
    pub bytes: u64,
    /// How it reduces, if it does.
    pub reduce: ReduceOp,
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The launch.
    pub launched: Launched,
    /// Bytes as in [`Case::bytes`], after rounding.
    pub bytes: u64,
    /// Whether every rank has what it must have; `None` without data.
    pub correct: Option<bool>,
}

/// What every rank gives and gets.
#[derive(Clone, Debug)]
pub struct Moved<T> {
    /// By rank.
    pub from: Vec<Vec<T>>,
    /// By rank; empty without data.
    pub to: Vec<Vec<T>>,
    /// The launch.
    pub launched: Launched,
}

impl Case {
    /// Elements a rank gives, in all its cubes, and bytes as in [`Case::bytes`] after rounding.
    #[must_use]
    pub fn elements(&self, ctx: &Context, world: usize) -> (usize, u64) {
        let size = u64::from(self.ty.bytes());
        let all = usize::try_from(self.bytes.div_ceil(size)).unwrap_or(usize::MAX);
        let part = all.div_ceil(world.max(1));
        let cubes = if self.algorithm.every_cube { ctx.topology().machine().cubes() as usize } else { 1 };
        let (given, larger) = match self.algorithm.operation {
            Operation::AllReduce | Operation::Broadcast => (all, all),
            Operation::AllGather => (part, part * world),
            Operation::ReduceScatter | Operation::AllToAll => (part * world, part * world),
            Operation::Barrier => (0, 0),
        };
        (given * cubes, larger as u64 * size)
    }

    /// Runs it once, out of place, on random elements of a seed.
    ///
    /// # Errors
    /// Those of the tensors and of the collective.
    pub fn measure(&self, ctx: &Context, data: bool, seed: u64) -> Result<Measured, Failure> {
        match self.ty {
            ElementType::F16 => self.measure_in::<f16>(ctx, data, seed),
            ElementType::Bf16 => self.measure_in::<bf16>(ctx, data, seed),
            ElementType::I32 => self.measure_in::<i32>(ctx, data, seed),
            _ => self.measure_in::<f32>(ctx, data, seed),
        }
    }

    fn measure_in<T: Element>(&self, ctx: &Context, data: bool, seed: u64) -> Result<Measured, Failure> {
        let world = ctx.world_size()?;
        let (given, bytes) = self.elements(ctx, world);
        let value = |x: f32| match T::TYPE {
            ElementType::I32 => T::of(f64::from(x * 1000.0)),
            _ => T::of(x.into()),
        };
        let rank = |rank: usize| -> Vec<T> {
            let values = random::normal::<f32>(seed, &format!("rank {rank}"), given);
            values.into_iter().map(value).collect()
        };
        let from = if data { (0..world).map(rank).collect() } else { vec![] };
        let moved = self.run(ctx, from)?;
        let correct = (data && bytes > 0).then(|| self.is_correct(ctx, &moved));
        Ok(Measured { launched: moved.launched, bytes, correct })
    }

    /// Runs it once, out of place; without data if `from` is empty.
    ///
    /// # Errors
    /// `from` is not of as many ranks as the process group; those of the tensors and of the collective.
    pub fn run<T: Element>(&self, ctx: &Context, from: Vec<Vec<T>>) -> Result<Moved<T>, Failure> {
        let world = ctx.world_size()?;
        let (given, _) = self.elements(ctx, world);
        if !from.is_empty() && (from.len() != world || from.iter().any(|x| x.len() != given)) {
            let text = format!("a collective of {world} ranks of {given} elements is given other inputs");
            return Err(Diagnostic::error("KB0624", text)
                .help("give as many elements for each rank as `Case::elements` says")
                .into());
        }
        let operation = self.algorithm.operation;
        let (place, rows) = match self.algorithm.every_cube {
            true => {
                let cubes = ctx.topology().machine().cubes() as usize;
                (Placement::row_wise().on(cubes, 1), cubes)
            }
            false => (Placement::replicated().on(1, 1), 1),
        };
        let got = match operation {
            Operation::AllGather => given * world,
            Operation::ReduceScatter => given / world,
            _ => given,
        };
        let (reduce, root) = (self.reduce, 0);
        let shapes = [given, got].map(|n| [rows, n / rows]);
        let results = ctx.spawn(world, async |rank, ctx: Worker| {
            let x = match from.get(rank) {
                // The shape holds as many elements by construction.
                Some(from) => match Array2::from_shape_vec(shapes[0], from.clone()) {
                    Ok(array) => ctx.from_array(&array, place, "x")?,
                    Err(_) => ctx.zeros(shapes[0], place, "x")?,
                },
                None => ctx.zeros(shapes[0], place, "x")?,
            };
            let mut y = ctx.empty::<T>(shapes[1], place, "y")?;
            let done = match operation {
                Operation::AllReduce => ctx.all_reduce_into(&x, &mut y, reduce),
                Operation::Broadcast => ctx.broadcast_into(&x, &mut y, root),
                Operation::AllGather => ctx.all_gather(&x, &mut y),
                Operation::ReduceScatter => ctx.reduce_scatter(&x, &mut y, reduce),
                Operation::AllToAll => ctx.all_to_all(&x, &mut y),
                Operation::Barrier => ctx.barrier(),
            };
            let launched = done.await?;
            let values = if launched.computed && got > 0 { y.data().await? } else { vec![] };
            Ok((launched, values))
        })?;
        let (mut launches, to): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        // Every rank tells of the same launch.
        let launched = launches.swap_remove(0);
        let to = if launched.computed { to } else { vec![] };
        Ok(Moved { from, to, launched })
    }

    /// Whether every rank has got what it must have.
    #[must_use]
    pub fn is_correct<T: Element>(&self, ctx: &Context, moved: &Moved<T>) -> bool {
        let c = Collective { operation: self.algorithm.operation, reduce: self.reduce, root: 0 };
        c.wrong(&self.tiles(ctx, &moved.from), &self.tiles(ctx, &moved.to)).is_none()
    }

    /// The tensors of all ranks, of an algorithm that runs on every cube those of all cubes, which are reduced like those
    /// of ranks.
    pub(super) fn tiles<'a, T>(&self, ctx: &Context, ranks: &'a [Vec<T>]) -> Vec<&'a [T]> {
        let cubes = if self.algorithm.every_cube { ctx.topology().machine().cubes() as usize } else { 1 };
        ranks.iter().flat_map(|x| x.chunks((x.len() / cubes).max(1))).collect()
    }
}
