//! Numbers that are too large, and launches that fail half way: KB0104, KB0115 to KB0117, KB0502.

use super::{context, counted, counted_on, message};
use kernbench::host::LaunchOptions;
use kernbench::placement::Placement;
use kernbench::prelude::*;

#[test]
fn kb0115_scalars_alone() {
    #[kernel]
    fn alone(y: InOut<f32>) {
        let shift = tl::maximum(1.0, 2.0);
        tl::store(y, tl::load(y) * shift);
    }
    #[kernel]
    fn with_a_tile(y: InOut<f32>) {
        tl::store(y, tl::maximum(tl::load(y), 2.0));
    }
    let ctx = context();
    let mut y = counted(&ctx, [1, 4], "y");
    insta::assert_snapshot!(message(ctx.launch("alone", alone { y: y.inout() })), @"
    error[KB0115]: `maximum` of scalars alone has no tile to work on
      --> limits.rs:L:C: `shift`
      help: compute it in plain Rust, or make one operand a tile
    ");
    ctx.launch("with_a_tile", with_a_tile { y: y.inout() }).unwrap();
}

#[test]
fn kb0116_too_many_ops() {
    #[kernel]
    fn many(y: Out<f32>, n: usize) {
        for _ in 0..n {
            scratch_scope!({
                let t = tl::zeros([1, 4]);
                tl::store(y, t);
            });
        }
    }
    let ctx = context();
    let mut y = counted(&ctx, [1, 4], "y");
    let options = LaunchOptions { max_ops: Some(10), ..LaunchOptions::default() };
    insta::assert_snapshot!(message(ctx.launch_with("many", many { y: y.output(), n: 6 }, &options)), @"
    error[KB0116]: the launch has more ops than it may have
      --> limits.rs:L:C: `t`
      help: work on larger blocks, split the work into several launches, or raise `max_ops`
    ");
    ctx.launch_with("many", many { y: y.output(), n: 5 }, &options).unwrap();
}

#[test]
fn kb0117_positions_past_i32() {
    #[kernel]
    fn positions(y: Out<i32>, start: usize) {
        let j = tl::arange(Block::new(start, 4), Axis::Cols);
        tl::store(y, j);
    }
    let ctx = context();
    let mut y = ctx.zeros::<i32>([1, 4], Placement::replicated().on(1, 1), "y").unwrap();
    for start in [(1 << 31) - 3, usize::MAX] {
        assert!(message(ctx.launch("j", positions { y: y.output(), start })).contains("KB0117"), "{start}");
    }
    insta::assert_snapshot!(message(ctx.launch("j", positions { y: y.output(), start: 1 << 31 })), @"
    error[KB0117]: positions 2147483648 to 2147483651 do not fit i32
      --> limits.rs:L:C: `j`
      help: count from the start of a block; positions end at 2147483647
    ");
    ctx.launch("j", positions { y: y.output(), start: (1 << 31) - 4 }).unwrap();
    assert_eq!(ctx.read(&y).unwrap()[[0, 3]], i32::MAX);
}

#[test]
fn kb0104_blocks_past_any_number() {
    #[kernel]
    fn wrap(x: In<f32>, y: Out<f32>, tile: bool) {
        let past = Block { start: usize::MAX, len: 2 };
        let t = if tile { tl::load(x).rows(past) } else { tl::load(x.rows(past)) };
        tl::store(y.rows(0..2), t);
    }
    let ctx = context();
    let x = counted(&ctx, [4, 4], "x");
    let mut y = counted(&ctx, [4, 4], "y");
    for tile in [false, true] {
        let wrong = ctx.launch("wrap", wrap { x: x.input(), y: y.output(), tile });
        assert!(message(wrong).contains("KB0104"), "{tile}");
    }
}

#[test]
fn what_a_failed_launch_stored_is_not_read_later() {
    #[kernel]
    fn clash(y: Out<f32>) {
        tl::store(y, tl::full([1, 4], tl::pe() as f32));
    }
    let ctx = context();
    let mut y = counted_on(&ctx, [1, 4], Placement::replicated().on(1, 2), "y");
    assert!(message(ctx.launch("clash", clash { y: y.output() })).contains("KB0502"));
    assert!(message(ctx.read(&y)).contains("KB0611"));
}
