//! The bench of the tensor-parallel perceptron.

use super::{Part, columns, mlp};
use crate::bench::{Bench, Fill, HostArray, Outcome, Param, Params};
use crate::collectives::ALGORITHMS;
use crate::tolerance;
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Backend, Context, LaunchOptions, Tensor, Worker};
use kernbench_core::placement::Placement;
use kernbench_core::ty::{ElementType, Float, bf16, f16};
use std::ops::Range;
use std::sync::Arc;

/// Two linear layers over all ranks of the process group, on one cube of each SIP by default.
pub const MLP: Bench = Bench {
    name: "mlp",
    about: "two linear layers shared by all SIPs, and an all-reduce",
    params: &[
        Param::new("m", "32", "rows of x and y"),
        Param::new("d", "256", "columns of x and y; a multiple of the PEs of a SIP in use"),
        Param::new("ff", "1024", "columns of the hidden layer; a multiple of the PEs of all SIPs in use"),
        Param::new("cubes", "1", "cubes of each SIP"),
        Param::new("dtype", "f16", "element type: f16, bf16 or f32"),
    ],
    inputs,
    run,
};

fn inputs(_: &Context, p: &Params, fill: Fill) -> Result<Vec<HostArray>, Failure> {
    let (m, d, ff) = (p.count("m", 1)?, p.count("d", 1)?, p.count("ff", 1)?);
    let ty = p.float_type("dtype")?;
    let array = |name: &str, shape: [usize; 2]| fill.array(name, ty, &shape);
    Ok(vec![
        array("x", [m, d]),
        array("w1", [d, ff]),
        array("b1", [1, ff]),
        array("w2", [ff, d]),
        array("b2", [1, d]),
    ])
}

fn run(ctx: &Context, p: &Params, inputs: &[HostArray], options: &LaunchOptions) -> Result<Outcome, Failure> {
    match p.float_type("dtype")? {
        ElementType::F16 => run_in::<f16>(ctx, p, inputs, options),
        ElementType::Bf16 => run_in::<bf16>(ctx, p, inputs, options),
        _ => run_in::<f32>(ctx, p, inputs, options),
    }
}

fn run_in<T: Float>(
    ctx: &Context,
    p: &Params,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let [x, w1, b1, w2, b2] = inputs else {
        return Err(Diagnostic::error("KB0624", "the bench needs inputs x, w1, b1, w2 and b2").into());
    };
    let (cubes, pes) = (p.count("cubes", 1)?, ctx.topology().machine().pes() as usize);
    let ff = p.count("ff", 1)?;
    ctx.init_process_group_with(Backend::Ahbm(&[ALGORITHMS]), options)?;
    let world = ctx.world_size()?;
    if !ff.is_multiple_of(world) {
        let text = format!("`ff` is {ff}, which {world} ranks cannot share");
        return Err(Diagnostic::error("KB0623", text)
            .help(format!("use a multiple of {}", world * cubes * pes))
            .into());
    }
    let part = |rank: usize| rank * ff / world..(rank + 1) * ff / world;
    let place = columns(cubes, pes);
    let results = ctx.spawn(world, async |rank, ctx: Worker| {
        let mine = part(rank);
        let everywhere = Placement::replicated().on(cubes, pes);
        let x = tensor::<T>(&ctx, x, all(x), everywhere)?;
        let part = Part {
            w1: tensor(&ctx, w1, (all(w1).0, mine.clone()), place)?,
            b1: tensor(&ctx, b1, (all(b1).0, mine.clone()), place)?,
            w2: tensor(&ctx, w2, (mine, all(w2).1), place)?,
            b2: tensor(&ctx, b2, all(b2), place)?,
        };
        let (y, launches) = mlp(&ctx, &x, &part, place, options).await?;
        let computed = launches.iter().all(|l| l.computed);
        Ok((if computed { y.data().await? } else { vec![] }, launches))
    })?;
    let (outputs, launches): (Vec<Vec<T>>, Vec<_>) = results.into_iter().unzip();
    let mut launches: Vec<_> = launches.into_iter().flatten().collect();
    launches.sort_by_key(|l| l.index);
    // All ranks tell of the same sum; what is only recorded has no position.
    if !options.dry_run {
        launches.dedup_by_key(|l| l.index);
    }
    if outputs[0].is_empty() {
        return Ok(Outcome { launches, outputs: vec![], check: None });
    }
    let output = HostArray::new("y", &x.shape, &outputs[0]);
    let layers = Layers::new(inputs, world);
    let mut check = tolerance::check::<T>(&output.floats(), &layers.exact(), &layers.plain::<T>());
    check.correct &= outputs.iter().all(|y| y.iter().zip(&outputs[0]).all(|(a, b)| same(*a, *b)));
    Ok(Outcome { launches, outputs: vec![output], check: Some(check) })
}

fn same<T: Float>(a: T, b: T) -> bool {
    a.to_f32().to_bits() == b.to_f32().to_bits()
}

/// All rows and all columns.
fn all(array: &HostArray) -> (Range<usize>, Range<usize>) {
    (0..array.shape[0], 0..array.shape[1])
}

/// Some rows and columns of an array, as a tensor of a rank.
fn tensor<T: Float>(
    ctx: &Worker,
    array: &HostArray,
    (rows, cols): (Range<usize>, Range<usize>),
    place: Placement,
) -> Result<Tensor<T>, Failure> {
    let shape = [rows.len(), cols.len()];
    if array.bytes.is_empty() {
        return ctx.zeros(shape, place, &array.name);
    }
    let (n, size) = (array.shape[1], T::TYPE.bytes() as usize);
    let row = |r: usize| &array.bytes[(r * n + cols.start) * size..(r * n + cols.end) * size];
    let bytes = rows.flat_map(row).copied().collect();
    ctx.from_bytes(&Arc::new(bytes), shape, place, &array.name)
}

/// The layers on one device, without any of the kernels' structure.
struct Layers<'a> {
    inputs: &'a [HostArray],
    values: Vec<Vec<f32>>,
    world: usize,
}

impl Layers<'_> {
    fn new(inputs: &[HostArray], world: usize) -> Layers<'_> {
        Layers { inputs, values: inputs.iter().map(HostArray::floats).collect(), world }
    }

    /// Everything in f64.
    fn exact(&self) -> Vec<f64> {
        let ([m, d], ff) = (self.size(), self.inputs[1].shape[1]);
        let [x, w1, b1, w2, b2] =
            [0, 1, 2, 3, 4].map(|i| -> Vec<f64> { self.values[i].iter().map(|x| f64::from(*x)).collect() });
        let mut y = vec![0.0; m * d];
        for (x, y) in x.chunks(d).zip(y.chunks_mut(d)) {
            let mut hidden = b1.clone();
            for (x, w) in x.iter().zip(w1.chunks(ff)) {
                hidden.iter_mut().zip(w).for_each(|(h, w)| *h += x * w);
            }
            y.copy_from_slice(&b2);
            for (h, w) in hidden.iter().zip(w2.chunks(d)) {
                y.iter_mut().zip(w).for_each(|(y, w)| *y += h.max(0.0) * w);
            }
        }
        y
    }

    /// As plain implementations in `T` on as many devices do it: products in f32, the hidden layer, each device's part and
    /// each sum of parts rounded to `T`.
    fn plain<T: Float>(&self) -> Vec<f32> {
        let ([m, d], ff) = (self.size(), self.inputs[1].shape[1]);
        let [x, w1, b1, w2, b2] = [0, 1, 2, 3, 4].map(|i| &self.values[i]);
        let round = |x: f32| T::from_f32(x).to_f32();
        let mut all = vec![0.0; m * d];
        for (x, all) in x.chunks(d).zip(all.chunks_mut(d)) {
            let mut hidden = vec![0.0; ff];
            for (x, w) in x.iter().zip(w1.chunks(ff)) {
                hidden.iter_mut().zip(w).for_each(|(h, w)| *h += x * w);
            }
            hidden.iter_mut().zip(b1).for_each(|(h, b)| *h = round((*h + b).max(0.0)));
            for rank in 0..self.world {
                let mine = rank * ff / self.world..(rank + 1) * ff / self.world;
                let mut y = vec![0.0; d];
                for (h, w) in hidden[mine.clone()].iter().zip(w2.chunks(d).skip(mine.start)) {
                    y.iter_mut().zip(w).for_each(|(y, w)| *y += h * w);
                }
                let bias = |i: usize| if rank == 0 { b2[i] } else { 0.0 };
                all.iter_mut().zip(y).enumerate().for_each(|(i, (a, y))| *a = round(*a + round(y + bias(i))));
            }
        }
        all
    }

    fn size(&self) -> [usize; 2] {
        [self.inputs[0].shape[0], self.inputs[0].shape[1]]
    }
}
