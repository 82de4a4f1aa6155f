//! Laws of the language, end to end: kernels on small data against plain Rust.

mod attention;
mod composite;
mod data;
mod gemm;
mod intrinsics;
mod machine;

use kernbench::host::{Context, LaunchOptions};
use kernbench::ndarray::Array2;
use kernbench::placement::{Placement, Split};
use kernbench::prelude::*;
use kernbench::topology::Topology;

fn context() -> Context {
    Context::new(Topology::default_machine())
}

/// One PE.
const ONE: Placement = Placement::replicated().on(1, 1);

/// Columns split over cubes, then over the PEs of each.
const COLUMNS: Placement = Placement::new(Split::ColumnWise, Split::ColumnWise);

/// Small numbers of both signs, exact in every floating-point type: multiples of 1/4 from -4 to 4.
fn floats<T: Float>([m, n]: [usize; 2], seed: usize) -> Array2<T> {
    Array2::from_shape_fn((m, n), |(i, j)| T::from_f32(((i * 7 + j * 11 + seed * 5) % 33) as f32 / 4.0 - 4.0))
}

fn ints([m, n]: [usize; 2], seed: usize) -> Array2<i32> {
    Array2::from_shape_fn((m, n), |(i, j)| ((i * 7 + j * 11 + seed * 5) % 33) as i32 - 16)
}

/// Launches on a grid of cubes x PEs.
fn on(cubes: usize, pes: usize) -> LaunchOptions {
    LaunchOptions { grid: Some([cubes, pes]), ..LaunchOptions::default() }
}

/// What a kernel of one PE makes of two arrays.
fn compute<T: Dtype, U: Dtype, K: Kernel>(
    a: &Array2<T>,
    b: &Array2<T>,
    shape: [usize; 2],
    kernel: impl FnOnce(In<T>, In<T>, Out<U>) -> K,
) -> Array2<U> {
    let ctx = context();
    let (a, b) = (ctx.from_array(a, ONE, "a").unwrap(), ctx.from_array(b, ONE, "b").unwrap());
    let mut o = ctx.empty::<U>(shape, ONE, "o").unwrap();
    ctx.launch("compute", kernel(a.input(), b.input(), o.output())).unwrap();
    ctx.read(&o).unwrap()
}
