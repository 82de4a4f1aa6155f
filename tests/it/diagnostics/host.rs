//! Mistakes of a host program: KB0601 to KB0611.

use super::{context, counted, message, on};
use kernbench::host::LaunchOptions;
use kernbench::ndarray::Array2;
use kernbench::placement::{Placement, Split};
use kernbench::prelude::*;

#[kernel]
fn nothing() {
    tl::zeros::<f32>([1, 1]);
}

#[kernel]
fn ones(o: Out<f32>, rows: usize) {
    let one = tl::full([rows, o.ncols()], 1.0);
    tl::store(o.rows(0..rows), one);
}

const HERE: Placement = Placement::replicated().on(1, 1);

#[test]
fn kb0601_no_tensor_says_where_to_run() {
    let ctx = context();
    insta::assert_snapshot!(message(ctx.launch("nothing", nothing {})), @r#"
    error[KB0601]: kernel `nothing` has no tensor argument that says where it runs
      help: launch it with a `grid` of cubes and PEs
    "#);
    ctx.launch_with("nothing", nothing {}, &on(1, 1)).unwrap();
}

#[test]
fn kb0602_more_holders_than_there_are() {
    let ctx = context();
    let place = |cubes, pes| ctx.zeros::<f32>([64, 8], Placement::replicated().on(cubes, pes), "x");
    insta::assert_snapshot!(message(place(17, 8)), @r#"
    error[KB0602]: tensor `x` is placed on 17 cubes, but there are 16
      help: place it on 1 to 16 cubes, or describe a larger machine with `--topology`
    "#);
    insta::assert_snapshot!(message(place(16, 9)), @r#"
    error[KB0602]: tensor `x` is placed on 9 PEs of each cube, but there are 8
      help: place it on 1 to 8 PEs of each cube, or describe a larger machine with `--topology`
    "#);
    insta::assert_snapshot!(message(place(0, 8)), @r#"
    error[KB0602]: tensor `x` is placed on 0 cubes, but there are 16
      help: place it on 1 to 16 cubes, or describe a larger machine with `--topology`
    "#);
    place(16, 8).unwrap();
}

#[test]
fn kb0603_a_dimension_that_does_not_divide() {
    let ctx = context();
    let rows = Placement::row_wise().on(4, 8);
    let columns = Placement::new(Split::Replicate, Split::ColumnWise).on(1, 8);
    insta::assert_snapshot!(message(ctx.zeros::<f32>([10, 8], rows, "x")), @r#"
    error[KB0603]: tensor `x`: 10 rows do not divide by 4 cubes
      help: give the tensor 8 or 12 rows instead of 10
    "#);
    insta::assert_snapshot!(message(ctx.zeros::<f32>([44, 8], rows, "x")), @r#"
    error[KB0603]: tensor `x`: 11 rows do not divide by 8 PEs of a cube
      help: give the tensor 32 or 64 rows instead of 44
    "#);
    insta::assert_snapshot!(message(ctx.zeros::<f32>([8, 3], columns, "x")), @r#"
    error[KB0603]: tensor `x`: 3 columns do not divide by 8 PEs of a cube
      help: give the tensor 8 columns instead of 3
    "#);
    ctx.zeros::<f32>([64, 8], rows, "x").unwrap();
    ctx.zeros::<f32>([8, 8], columns, "x").unwrap();
}

#[test]
fn kb0604_memory_is_exhausted() {
    let ctx = context().data(false);
    // A slice has 6 GiB.
    let half = ctx.empty::<f32>([1 << 20, 1 << 10], HERE, "half").unwrap();
    insta::assert_snapshot!(message(ctx.empty::<f32>([1 << 20, 1 << 10], HERE, "other")), @r#"
    error[KB0604]: tensor `other` needs 4294967296 bytes in the HBM slice of PE 0 of cube 0 of SIP 0, where the largest free block has 2147483648 bytes
      help: drop tensors that are no longer needed, or split this one over more PEs
    "#);
    drop(half);
    ctx.empty::<f32>([1 << 20, 1 << 10], HERE, "other").unwrap();
}

#[test]
fn kb0605_an_array_of_another_shape() {
    let ctx = context();
    let x = counted(&ctx, [4, 8], "x");
    insta::assert_snapshot!(message(ctx.write(&x, &Array2::zeros((8, 4)))), @r#"
    error[KB0605]: an array of f32[8, 4] for tensor `x`, which is f32[4, 8]
      help: give the array the tensor's shape
    "#);
    ctx.write(&x, &Array2::zeros((4, 8))).unwrap();
}

#[test]
fn kb0606_grid_larger_than_the_machine() {
    let ctx = context();
    insta::assert_snapshot!(message(ctx.launch_with("nothing", nothing {}, &on(20, 8))), @r#"
    error[KB0606]: a grid of 20 cubes x 8 PEs, but a SIP has 16 cubes x 8 PEs
      help: use 1 to 16 cubes and 1 to 8 PEs
    "#);
    insta::assert_snapshot!(message(ctx.launch_with("nothing", nothing {}, &on(1, 0))), @r#"
    error[KB0606]: a grid of 1 cubes x 0 PEs, but a SIP has 16 cubes x 8 PEs
      help: use 1 to 16 cubes and 1 to 8 PEs
    "#);
    ctx.launch_with("nothing", nothing {}, &on(16, 8)).unwrap();
}

#[test]
fn kb0607_scratch_larger_than_what_is_left_of_the_tcm() {
    let ctx = context();
    let run = |bytes| {
        ctx.launch_with("nothing", nothing {}, &LaunchOptions { scratch_bytes: Some(bytes), ..on(1, 1) })
    };
    insta::assert_snapshot!(message(run(16 << 20)), @r#"
    error[KB0607]: 16777216 bytes of scratch do not fit: a PE has 16777216 bytes of TCM, of which IPCQ rings take 147456 bytes
      help: launch with at most 16629760 bytes of scratch
    "#);
    run(15 << 20).unwrap();
}

#[test]
fn kb0608_no_such_sip() {
    let ctx = context();
    insta::assert_snapshot!(message(ctx.set_device(2)), @r#"
    error[KB0608]: the machine has no SIP 2: it has 2 SIPs
      help: use a SIP from 0 to 1
    "#);
    ctx.set_device(1).unwrap();
}

#[test]
fn kb0609_a_tensor_too_large_to_count() {
    let ctx = context().data(false);
    insta::assert_snapshot!(message(ctx.empty::<f32>([1, 1 << 33], HERE, "x")), @r#"
    error[KB0609]: tensor `x` of shape [1, 8589934592] has a dimension past 4294967295
      help: split it into several tensors
    "#);
    insta::assert_snapshot!(message(ctx.empty::<f32>([1 << 31, 1 << 31], HERE, "x")), @r#"
    error[KB0609]: tensor `x` of shape [2147483648, 2147483648] has 4611686018427387904 elements
      help: split it into several tensors
    "#);
    ctx.empty::<f32>([1, 1 << 20], HERE, "x").unwrap();
}

#[test]
fn kb0610_a_context_without_data() {
    let ctx = context().data(false);
    let x = ctx.zeros::<f32>([2, 2], HERE, "x").unwrap();
    insta::assert_snapshot!(message(ctx.read(&x)), @r#"
    error[KB0610]: `x` has no values: the context only keeps time
      help: make the context with `data(true)`, or do not read the tensor
    "#);
    let ctx = context();
    let x = ctx.zeros::<f32>([2, 2], HERE, "x").unwrap();
    assert_eq!(ctx.read(&x).unwrap(), Array2::<f32>::zeros((2, 2)));
}

#[test]
fn kb0611_reading_what_nobody_wrote() {
    let ctx = context();
    let mut o = ctx.empty::<f32>([4, 8], HERE, "o").unwrap();
    ctx.launch("ones", ones { o: o.output(), rows: 3 }).unwrap();
    insta::assert_snapshot!(message(ctx.read(&o)), @r#"
    error[KB0611]: `o` has no values from row 3, column 0 on (8 elements): nobody has written them, or only a launch without data
      help: let a kernel store the whole tensor with data on, or create it with `zeros`
    "#);
    ctx.launch("ones", ones { o: o.output(), rows: 4 }).unwrap();
    assert_eq!(ctx.read(&o).unwrap(), Array2::<f32>::ones((4, 8)));
}

#[test]
fn kb0611_reading_after_a_launch_without_data() {
    let ctx = context();
    let mut o = ctx.zeros::<f32>([4, 8], HERE, "o").unwrap();
    let timed = LaunchOptions { data: Some(false), ..LaunchOptions::default() };
    ctx.launch_with("ones", ones { o: o.output(), rows: 2 }, &timed).unwrap();
    insta::assert_snapshot!(message(ctx.read(&o)), @r#"
    error[KB0611]: `o` has no values from row 0, column 0 on (16 elements): nobody has written them, or only a launch without data
      help: let a kernel store the whole tensor with data on, or create it with `zeros`
    "#);
    ctx.launch("ones", ones { o: o.output(), rows: 2 }).unwrap();
    ctx.read(&o).unwrap();
}
