//! A perceptron of two linear layers shared by ranks, `y = relu(x w1 + b1) w2 + b2`: tensor parallelism as of Shoeybi et
//! al., Megatron-LM, 2019, section 3.
//!
//! Each rank has some columns of the first layer and the same rows of the second, so that its part of the hidden layer
//! stays with it; the parts of the result are summed by one all-reduce. Within its SIP, a rank shares the columns of
//! each product out over cubes and PEs.

mod case;

pub use case::MLP;

use crate::gemm::{Epilogue, gemm_composite};
use kernbench_core::diag::Failure;
use kernbench_core::host::{LaunchOptions, Launched, ReduceOp, Tensor, Worker};
use kernbench_core::placement::{Placement, Split};
use kernbench_core::ty::{Dtype, Float};

/// Columns over the PEs of some cubes of a SIP: how weights, biases and results lie.
#[must_use]
pub fn columns(cubes: usize, pes: usize) -> Placement {
    Placement::new(Split::ColumnWise, Split::ColumnWise).on(cubes, pes)
}

/// What one rank has of the layers.
#[derive(Debug)]
pub struct Part<T: Dtype> {
    /// Columns of the first weights, `(d, ff / p)`.
    pub w1: Tensor<T>,
    /// The same of the first bias, `(1, ff / p)`.
    pub b1: Tensor<T>,
    /// Rows of the second weights, `(ff / p, d)`.
    pub w2: Tensor<T>,
    /// The second bias, `(1, d)`; that of rank 0 counts.
    pub b2: Tensor<T>,
}

/// A linear layer of which this rank has some columns: `y = epilogue(x w)`, `(m, n / p)`. No rank needs another's.
///
/// # Errors
/// As [`Worker::launch`].
pub async fn column_linear<T: Float>(
    ctx: &Worker,
    x: &Tensor<T>,
    (w, b, epilogue): (&Tensor<T>, &Tensor<T>, Epilogue),
    place: Placement,
    options: &LaunchOptions,
) -> Result<(Tensor<T>, Launched), Failure> {
    let mut y = ctx.empty::<T>([x.shape()[0], w.shape()[1]], place, "y")?;
    let product = gemm_composite { x: x.input(), w: w.input(), e: b.input(), y: y.output(), epilogue };
    let launched = ctx.launch_with("column_linear", product, options)?.await?;
    Ok((y, launched))
}

/// A linear layer of which this rank has some rows and of its input the same columns: `y = x w + b`, `(m, n)`, summed
/// over all ranks. The bias of rank 0 counts.
///
/// # Errors
/// As [`Worker::launch`] and [`Worker::all_reduce`].
pub async fn row_linear<T: Float>(
    ctx: &Worker,
    x: &Tensor<T>,
    (w, b): (&Tensor<T>, &Tensor<T>),
    place: Placement,
    options: &LaunchOptions,
) -> Result<(Tensor<T>, [Launched; 2]), Failure> {
    let mut y = ctx.empty::<T>([x.shape()[0], w.shape()[1]], place, "y")?;
    let epilogue = if ctx.rank() == 0 { Epilogue::Bias } else { Epilogue::None };
    let product = gemm_composite { x: x.input(), w: w.input(), e: b.input(), y: y.output(), epilogue };
    // The sum follows the product, whose bytes it uses.
    let product = ctx.launch_with("row_linear", product, options)?;
    let sum = ctx.all_reduce(&mut y, ReduceOp::Sum).await?;
    Ok((y, [product.await?, sum]))
}

/// Both layers, of which this rank has `part`; `x`, `(m, d)`, is the same on every rank. Gives the result, `(m, d)`, and
/// the launches.
///
/// # Errors
/// As [`Worker::launch`] and [`Worker::all_reduce`].
pub async fn mlp<T: Float>(
    ctx: &Worker,
    x: &Tensor<T>,
    part: &Part<T>,
    place: Placement,
    options: &LaunchOptions,
) -> Result<(Tensor<T>, Vec<Launched>), Failure> {
    let first = (&part.w1, &part.b1, Epilogue::BiasRelu);
    let (hidden, one) = column_linear(ctx, x, first, place, options).await?;
    let (y, [two, sum]) = row_linear(ctx, &hidden, (&part.w2, &part.b2), place, options).await?;
    Ok((y, vec![one, two, sum]))
}
