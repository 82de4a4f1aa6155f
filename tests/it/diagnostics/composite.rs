//! Mistakes of a composite GEMM, found while recording (KB0102, KB0118, KB0119, KB0120) and in its buffers.

use super::{context, counted, message, on};
use kernbench::host::LaunchOptions;
use kernbench::ir::{CompositeId, Draft, OpId, OpKind, PeProgram};
use kernbench::placement::Placement;
use kernbench::prelude::*;

const ONE: Placement = Placement::replicated().on(1, 1);

#[kernel]
fn product(a: In<f32>, b: In<f32>, o: Out<f32>, k: usize, n: usize) {
    let p = tl::composite(Gemm::new(a.cols(0..k), b, o.cols(0..n)));
    tl::wait(p);
}

#[test]
fn kb0102_shapes_of_a_composite() {
    let ctx = context();
    let (a, b) = (counted(&ctx, [4, 16], "a"), counted(&ctx, [8, 6], "b"));
    let mut o = ctx.empty([4, 6], ONE, "o").unwrap();
    let mut run = |k, n| {
        let kernel = product { a: a.input(), b: b.input(), o: o.output(), k, n };
        ctx.launch("product", kernel)
    };
    insta::assert_snapshot!(message(run(16, 6)), @"
    error[KB0102]: `composite` of shapes [4, 16] and [8, 6]: the inner dimensions 16 and 8 differ
      --> composite.rs:L:C: `p`
      help: slice an operand, or load it and transpose the tile with `x.t()`
    ");
    insta::assert_snapshot!(message(run(8, 5)), @"
    error[KB0102]: `composite` of shape [4, 6] into an output of shape [4, 5]
      --> composite.rs:L:C: `p`
      help: give it an output of the product's shape: slice it with `rows` and `cols`
    ");
    // A view that does not exist is one mistake, not two.
    insta::assert_snapshot!(message(run(8, 7)), @"
    error[KB0104]: columns 0..7 of `o` do not exist: there are 6 columns
      --> composite.rs:L:C: `p`
      help: slice within the shape; `ncols()` gives the columns
    ");
    run(8, 6).unwrap();
}

#[kernel]
fn steps(a: In<f32>, b: In<f32>, x: In<f32>, o: Out<f32>, rows: usize, level: Level, then: Level) {
    let x = tl::load(x.rows(0..rows));
    let y = tl::composite(Gemm::new(a, b, o).bias(x, level).relu(then));
    tl::wait(y);
}

#[test]
fn kb0118_an_epilogue_step_broadcasts_to_what_it_works_on_and_kb0119_levels_do_not_go_back() {
    let ctx = context();
    let (a, b) = (counted(&ctx, [4, 130], "a"), counted(&ctx, [130, 6], "b"));
    let x = counted(&ctx, [8, 6], "x");
    let mut o = ctx.empty([4, 6], ONE, "o").unwrap();
    let mut run = |rows, level, then| {
        let kernel = steps { a: a.input(), b: b.input(), x: x.input(), o: o.output(), rows, level, then };
        ctx.launch("steps", kernel)
    };
    use Level::{KTile, Kernel, OutputTile};
    insta::assert_snapshot!(message(run(3, OutputTile, OutputTile)), @"
    error[KB0118]: `bias` of shape [3, 6] does not broadcast to the output's shape [4, 6]
      --> composite.rs:L:C: `y`
      help: each dimension must be equal or 1: a row `[1, n]` adds to every row of the output
    ");
    insta::assert_snapshot!(message(run(4, KTile, OutputTile)), @"
    error[KB0118]: `bias` of shape [4, 6] does not broadcast to [k tiles, n] = [3, 6]
      --> composite.rs:L:C: `y`
      help: each dimension must be equal or 1; a k tile has 64 of the 130 k (`tl::gemm_tile()`)
    ");
    insta::assert_snapshot!(message(run(4, OutputTile, KTile)), @"
    error[KB0119]: `relu` of each k tile comes after `bias` of each output tile
      --> composite.rs:L:C: `y`
      help: write steps of `Level::KTile` first, then `Level::OutputTile`, then `Level::Kernel`
    ");
    insta::assert_snapshot!(message(run(4, Kernel, OutputTile)), @"
    error[KB0119]: `relu` of each output tile comes after `bias` of the whole output
      --> composite.rs:L:C: `y`
      help: write steps of `Level::KTile` first, then `Level::OutputTile`, then `Level::Kernel`
    ");
    for (rows, level) in [(4, OutputTile), (1, Kernel), (3, KTile), (1, KTile)] {
        run(rows, level, Kernel).unwrap();
    }
}

#[kernel]
fn in_place(x: InOut<f32>, y: InOut<f32>, what: usize) {
    let tile = tl::load(y);
    let p = match what {
        0 => tl::composite(Gemm::new(x.cols(0..8), y, x.cols(4..12))),
        1 => tl::composite(Gemm::new(x.cols(0..8), tile, tile)),
        2 => tl::composite(Gemm::new(x.cols(0..8), y, tile).bias(tile.rows(3..4), Level::OutputTile)),
        // Neighbours share nothing.
        3 => tl::composite(Gemm::new(x.cols(0..8), tile, x.cols(8..16))),
        _ => tl::composite(Gemm::new(tile.cols(0..4), tile.rows(0..4).cols(4..6), tile.cols(6..8))),
    };
    tl::wait(p);
}

#[test]
fn kb0120_the_output_is_apart_from_what_is_read() {
    let ctx = context();
    let (mut x, mut y) = (counted(&ctx, [8, 16], "x"), counted(&ctx, [8, 8], "y"));
    let mut run = |what| ctx.launch("in_place", in_place { x: x.inout(), y: y.inout(), what });
    insta::assert_snapshot!(message(run(0)), @"
    error[KB0120]: the output of `composite` shares elements with its left operand
      --> composite.rs:L:C: `p`
      help: write to another tensor or tile: the output is written while operands are still read
    ");
    insta::assert_snapshot!(message(run(1)), @"
    error[KB0120]: the output of `composite` shares elements with its right operand
      --> composite.rs:L:C: `p`
      help: write to another tensor or tile: the output is written while operands are still read
    ");
    insta::assert_snapshot!(message(run(2)), @"
    error[KB0120]: the output of `composite` shares elements with its bias
      --> composite.rs:L:C: `p`
      help: write to another tensor or tile: the output is written while operands are still read
    ");
    run(3).unwrap();
    run(4).unwrap();
}

#[test]
fn kb0203_the_buffers_of_a_composite_are_in_scratch() {
    #[kernel]
    fn wide(a: In<f32>, b: In<f32>, o: Out<f32>) {
        let y = tl::composite(Gemm::new(a, b, o).relu(Level::Kernel));
        tl::wait(y);
    }
    let ctx = context();
    let (a, b) = (counted(&ctx, [64, 8], "a"), counted(&ctx, [8, 64], "b"));
    let mut o = ctx.empty([64, 64], ONE, "o").unwrap();
    let mut run = |scratch| {
        let options = LaunchOptions { scratch_bytes: Some(scratch), ..on(1, 1) };
        ctx.launch_with("wide", wide { a: a.input(), b: b.input(), o: o.output() }, &options)
    };
    insta::assert_snapshot!(message(run(16 << 10)), @"
    error[KB0203]: the kernel needs 20480 bytes of scratch at once, but a PE has 16384 bytes:
      kernel          20480 B
        y                     20480 B  u8[1, 20480]
      --> composite.rs:L:C: `y`
      help: use smaller blocks or fewer `buffers`, open scopes later, or launch with `scratch_bytes: Some(20480)` (`--scratch 20480`)
    ");
    // Two tiles of each operand, 32 x 8 and 8 x 32, and the whole output.
    run(2 * (32 * 8 + 8 * 32) * 4 + 64 * 64 * 4).unwrap();
}

#[test]
fn kb0207_and_kb0208_of_a_draft_that_was_edited() {
    let ctx = context();
    let (a, b) = (counted(&ctx, [4, 8], "a"), counted(&ctx, [8, 6], "b"));
    let mut o = ctx.empty([4, 6], ONE, "o").unwrap();
    let kernel = product { a: a.input(), b: b.input(), o: o.output(), k: 8, n: 6 };
    let options = LaunchOptions::default();
    let Draft(program) = ctx.record("product", &kernel, &options).unwrap();
    let edited = |edit: fn(&mut PeProgram)| {
        let mut program = program.clone();
        edit(&mut program.pes[0]);
        message(ctx.verify(Draft(program), &options).map(|(_, warnings)| warnings))
    };
    insta::assert_snapshot!(edited(|pe| pe.ops[0].kind = OpKind::Composite { composite: CompositeId(1) }), @"
    error[KB0207]: op 0 of PE 0 of cube 0: its composite does not exist
      --> composite.rs:L:C: `p`
      help: edit the draft so that its indices name what exists, or record it again
    ");
    insta::assert_snapshot!(edited(|pe| pe.ops[1].kind = OpKind::Join { composite: OpId(1) }), @"
    error[KB0207]: op 1 of PE 0 of cube 0: it waits for no composite
      --> composite.rs:L:C
      help: edit the draft so that its indices name what exists, or record it again
    ");
    insta::assert_snapshot!(edited(|pe| pe.accesses.truncate(5)), @"
    error[KB0207]: op 0 of PE 0 of cube 0: its access does not exist
      --> composite.rs:L:C: `p`
      help: edit the draft so that its indices name what exists, or record it again
    ");
    insta::assert_snapshot!(edited(|pe| pe.composites[0].mkn = [4, 8, 5]), @"
    error[KB0208]: op 0 of PE 0 of cube 0: a composite of [4, 8] and [8, 6] into shape [4, 6]
      --> composite.rs:L:C: `p`
      help: give the op tiles of shapes and types that fit each other
    ");
}

#[test]
fn kb0116_tiles_of_a_composite_count_as_ops() {
    let ctx = context();
    let (a, b) = (counted(&ctx, [64, 640], "a"), counted(&ctx, [640, 6], "b"));
    let mut o = ctx.empty([64, 6], ONE, "o").unwrap();
    let mut run = |max_ops| {
        let kernel = product { a: a.input(), b: b.input(), o: o.output(), k: 640, n: 6 };
        ctx.launch_with("product", kernel, &LaunchOptions { max_ops: Some(max_ops), ..on(1, 1) })
    };
    insta::assert_snapshot!(message(run(19)), @"
    error[KB0116]: the launch has more ops than it may have
      --> composite.rs:L:C: `p`
      help: work on larger blocks, split the work into several launches, or raise `max_ops`
    ");
    // 2 x 10 x 1 tiles, the op and its wait.
    run(22).unwrap();
}
