//! Other mistakes that recording a kernel finds: KB0103 to KB0114, and KB0203.

use super::{context, counted, counted_on, message, on};
use kernbench::host::LaunchOptions;
use kernbench::ndarray::Array2;
use kernbench::placement::{Placement, Split};
use kernbench::prelude::*;

#[device]
fn scaled<'a>(tl: &'a Scope, x: Tile<f32>, by: Tile<f32>) -> Tile<'a, f32> {
    tl::eval(x * by)
}

#[test]
fn kb0103_a_tile_in_an_outer_scope() {
    #[kernel]
    fn outer(wrong: bool) {
        let kernel = tl;
        scratch_scope!({
            let a = tl::zeros::<f32>([4, 4]);
            let b = if wrong { scaled(kernel, a, a) } else { scaled(tl, a, a) };
            let _ = tl::eval(a + b);
        });
    }
    let ctx = context();
    insta::assert_snapshot!(message(ctx.launch_with("outer", outer { wrong: true }, &on(1, 1))), @r#"
    error[KB0103]: a tile is made in an outer scratch scope while an inner one is open, so both would use the same bytes
      --> record.rs:L:C: `scaled`
      --> record.rs:L:C: the inner scope opens here
      help: make the tile before the inner `scratch_scope!` opens, or use the inner scope's `tl`
    "#);
    ctx.launch_with("outer", outer { wrong: false }, &on(1, 1)).unwrap();
}

#[test]
fn kb0106_no_neighbour() {
    #[kernel]
    fn shift(skip: bool) {
        let x = tl::zeros::<f32>([1, 4]);
        let last = tl::pe() == tl::num_programs(0) - 1;
        if !(skip && last) {
            tl::send(Dir::IntraE, x);
        }
        if tl::pe() > 0 {
            let _: Tile<f32> = tl::recv(Dir::IntraW, [1, 4]);
        }
    }
    let ctx = context();
    insta::assert_snapshot!(message(ctx.launch_with("shift", shift { skip: false }, &on(1, 4))), @r#"
    error[KB0106]: PE 3 of cube 0 of SIP 0 has no neighbour in direction `intra_E`
      --> record.rs:L:C: `x`
      help: it has neighbours in S, E, intra_S, intra_W, global_E, global_W: leave the PEs at the edge out with an `if`
    "#);
    ctx.launch_with("shift", shift { skip: true }, &on(1, 4)).unwrap();
}

#[test]
fn kb0107_message_larger_than_a_slot() {
    #[kernel]
    fn pass(rows: usize, cols: usize) {
        let x = tl::zeros::<f32>([rows, cols]);
        if tl::pe() == 0 {
            tl::send(Dir::IntraE, x);
        } else {
            let _: Tile<f32> = tl::recv(Dir::IntraW, [rows, cols]);
        }
    }
    let ctx = context();
    let run = |rows, cols| ctx.launch_with("pass", pass { rows, cols }, &on(1, 2));
    insta::assert_snapshot!(message(run(65, 16)), @r#"
    error[KB0107]: a message of [65, 16] f32 has 4160 bytes, but a slot holds 4096 bytes
      --> record.rs:L:C: `x`
      help: send blocks of at most 64 rows (`tl::slot_size()` gives a slot's bytes), or raise `slot_size` in ccl.yaml
    error[KB0107]: a message of [65, 16] f32 has 4160 bytes, but a slot holds 4096 bytes
      --> record.rs:L:C
      help: send blocks of at most 64 rows (`tl::slot_size()` gives a slot's bytes), or raise `slot_size` in ccl.yaml
    "#);
    insta::assert_snapshot!(message(run(1, 2048)), @r#"
    error[KB0107]: a message of [1, 2048] f32 has 8192 bytes, but a slot holds 4096 bytes
      --> record.rs:L:C: `x`
      help: send smaller slices (`cols`), or raise `slot_size` in ccl.yaml
    error[KB0107]: a message of [1, 2048] f32 has 8192 bytes, but a slot holds 4096 bytes
      --> record.rs:L:C
      help: send smaller slices (`cols`), or raise `slot_size` in ccl.yaml
    "#);
    run(64, 16).unwrap();
}

#[test]
fn kb0109_no_shard_here() {
    #[kernel]
    fn local(x: In<f32>) {
        tl::load(x.local());
    }
    let ctx = context();
    let x = counted_on(&ctx, [8, 8], Placement::row_wise().on(1, 4), "x");
    let run = |pes| ctx.launch_with("local", local { x: x.input() }, &on(1, pes));
    insta::assert_snapshot!(message(run(8)), @r#"
    error[KB0109]: `x` has no shard on PE 4 of cube 0 (and 3 more PEs)
      --> record.rs:L:C
      help: launch on the PEs that hold the tensor, or leave `local()` out and take `rows` of all of it
    "#);
    run(4).unwrap();
}

#[test]
fn kb0109_reshaped_shard_of_columns() {
    #[kernel]
    fn local(x: In<f32>, wrong: bool) {
        if wrong {
            tl::load(x.local().reshape([1, 16]));
        } else {
            let _ = tl::load(x.local()).reshape([1, 16]);
        }
    }
    let ctx = context();
    let columns = Placement::new(Split::ColumnWise, Split::ColumnWise).on(1, 4);
    let x = counted_on(&ctx, [8, 8], columns, "x");
    let run = |wrong| ctx.launch("local", local { x: x.input(), wrong });
    insta::assert_snapshot!(message(run(true)), @r#"
    error[KB0109]: a reshaped view of a shard of `x`: its [8, 2] elements are columns of the tensor, with its other columns between the rows (and 3 more PEs)
      --> record.rs:L:C
      help: load the shard, then `reshape` the tile
    "#);
    run(false).unwrap();
}

#[kernel]
fn both(x: In<f32>, y: In<f32>) {
    tl::load(x);
    tl::load(y);
}

#[test]
fn kb0110_view_of_a_freed_tensor() {
    let ctx = context();
    let x = counted(&ctx, [2, 2], "x");
    let freed = counted(&ctx, [2, 2], "freed").input();
    insta::assert_snapshot!(message(ctx.launch("both", both { x: x.input(), y: freed })), @r#"
    error[KB0110]: the view belongs to a tensor that was freed, or to one of another context
      --> record.rs:L:C
      help: keep the tensor until the launch, and launch on the context that made it
    "#);
    insta::assert_snapshot!(message(ctx.launch("both", both { x: freed, y: freed })), @r#"
    error[KB0110]: the tensors of kernel `both` were freed, or belong to another context
      help: keep the tensors until the launch, and launch on the context that made them
    "#);
    let kept = counted(&ctx, [2, 2], "kept");
    ctx.launch("both", both { x: x.input(), y: kept.input() }).unwrap();
}

#[test]
fn kb0110_tensor_of_another_context() {
    let (ctx, other) = (context(), context());
    let x = counted(&ctx, [2, 2], "x");
    let y = counted(&other, [2, 2], "y");
    insta::assert_snapshot!(message(ctx.launch("both", both { x: x.input(), y: y.input() })), @r#"
    error[KB0110]: the view belongs to a tensor that was freed, or to one of another context
      --> record.rs:L:C
      help: keep the tensor until the launch, and launch on the context that made it
    "#);
    insta::assert_snapshot!(message(ctx.read(&y)), @r#"
    error[KB0110]: tensor `y` belongs to another context
      help: use the context that made it
    "#);
    assert!(other.read(&y).is_ok());
}

#[test]
fn kb0111_tile_past_4_gib() {
    #[kernel]
    fn huge(n: usize) {
        let x = tl::zeros::<f32>([n, n]);
        let _ = tl::eval(x + 1.0);
    }
    let ctx = context();
    let run = |n| ctx.launch_with("huge", huge { n }, &on(1, 1));
    insta::assert_snapshot!(message(run(1 << 16)), @r#"
    error[KB0111]: a tile of [65536, 65536] f32 needs 17179869184 bytes: its scratch scope would exceed 4 GiB
      --> record.rs:L:C: `x`
      help: work on blocks: `Block::new(0, n).blocks(64)` with a `scratch_scope!` inside
    "#);
    insta::assert_snapshot!(message(run(usize::MAX)), @r#"
    error[KB0111]: a tile of [4294967295, 4294967295] f32 needs 18446744073709551615 bytes: its scratch scope would exceed 4 GiB
      --> record.rs:L:C: `x`
      help: work on blocks: `Block::new(0, n).blocks(64)` with a `scratch_scope!` inside
    "#);
    run(1 << 6).unwrap();
}

#[test]
fn kb0112_scope_without_buffers() {
    #[kernel]
    fn scope(n: u32) {
        scratch_scope!(buffers = n, {
            tl::zeros::<f32>([1, 1]);
        });
    }
    let ctx = context();
    insta::assert_snapshot!(message(ctx.launch_with("scope", scope { n: 0 }, &on(1, 1))), @r#"
    error[KB0112]: a scratch scope with 0 buffers holds nothing
      --> record.rs:L:C
      help: write `buffers = 1` or more, or leave it out
    "#);
    ctx.launch_with("scope", scope { n: 1 }, &on(1, 1)).unwrap();
}

#[test]
fn kb0113_a_kernel_panics() {
    #[kernel]
    fn pick(n: usize) {
        let sizes = [16, 32];
        tl::zeros::<f32>([1, 1]);
        tl::zeros::<f32>([sizes[n], 1]);
    }
    let ctx = context();
    insta::assert_snapshot!(message(ctx.launch_with("pick", pick { n: 2 }, &on(1, 1))), @r#"
    error[KB0113]: kernel `pick` panicked on PE 0 of cube 0 of SIP 0: index out of bounds: the len is 2 but the index is 2
      --> record.rs:L:C: the last op before it
      help: a kernel is ordinary Rust while it records: look for an index, an unwrap or an assertion
    "#);
    ctx.launch_with("pick", pick { n: 1 }, &on(1, 1)).unwrap();
}

#[test]
fn kb0113_says_what_was_wrong_before() {
    #[kernel]
    fn pick(x: In<f32>) {
        tl::load(x.rows(0..9));
        panic!("too many rows");
    }
    let ctx = context();
    let x = counted(&ctx, [8, 8], "x");
    insta::assert_snapshot!(message(ctx.launch("pick", pick { x: x.input() })), @r#"
    error[KB0104]: rows 0..9 of `x` do not exist: there are 8 rows
      --> record.rs:L:C
      help: slice within the shape; `nrows()` gives the rows
    error[KB0113]: kernel `pick` panicked on PE 0 of cube 0 of SIP 0: too many rows
      help: a kernel is ordinary Rust while it records: look for an index, an unwrap or an assertion
    "#);
}

#[test]
fn kb0114_no_such_axis() {
    #[kernel]
    fn axis(n: usize) {
        let rows = tl::num_programs(n) + tl::program_id(n);
        tl::zeros::<f32>([rows, 1]);
    }
    let ctx = context();
    insta::assert_snapshot!(message(ctx.launch_with("axis", axis { n: 3 }, &on(1, 1))), @r#"
    error[KB0114]: a launch has no axis 3
      --> record.rs:L:C: `rows.num_programs`
      help: axis 0 is the PE, 1 the cube, 2 the SIP
    error[KB0114]: a launch has no axis 3
      --> record.rs:L:C: `rows.program_id`
      help: axis 0 is the PE, 1 the cube, 2 the SIP
    "#);
    ctx.launch_with("axis", axis { n: 2 }, &on(1, 1)).unwrap();
}

#[test]
fn kb0203_scratch_overflows() {
    #[kernel]
    fn big(n: usize, buffers: u32) {
        let acc = tl::zeros::<f32>([n, 256]);
        for _ in 0..4 {
            scratch_scope!(buffers = buffers, {
                let k = tl::zeros::<f32>([n, 256]);
                let p = tl::eval(tl::exp(k).cast::<f16>());
                tl::copy_to(acc, p.cast());
            });
        }
    }
    let ctx = context();
    let run = |n, buffers| ctx.launch_with("big", big { n, buffers }, &on(1, 8));
    insta::assert_snapshot!(message(run(256, 3)), @"
    error[KB0203]: the kernel needs 1441792 bytes of scratch at once, but a PE has 1048576 bytes (and 7 more PEs):
      kernel        1441792 B
        acc                  262144 B  f32[256, 256]
      scope 1       1179648 B, 3 buffers
        k                    262144 B  f32[256, 256]
        p                    131072 B  f16[256, 256]
      --> record.rs:L:C: `acc`
      help: use smaller blocks or fewer `buffers`, open scopes later, or launch with `scratch_bytes: Some(1441792)` (`--scratch 1441792`)
    ");
    insta::assert_snapshot!(message(run(4096, 3)), @r#"
    error[KB0203]: the kernel needs 23068672 bytes of scratch at once, but a PE has 1048576 bytes (and 7 more PEs):
      kernel       23068672 B
        acc                 4194304 B  f32[4096, 256]
      scope 1      18874368 B, 3 buffers
        k                   4194304 B  f32[4096, 256]
        p                   2097152 B  f16[4096, 256]
      --> record.rs:L:C: `acc`
      help: use smaller blocks or fewer `buffers`, or open scopes later: all of a PE's TCM is 16777216 bytes
    "#);
    run(256, 1).unwrap();
    let more = LaunchOptions { scratch_bytes: Some(1_441_792), ..on(1, 8) };
    ctx.launch_with("big", big { n: 256, buffers: 3 }, &more).unwrap();
}

#[test]
fn kb0121_values_that_are_not_known() {
    #[kernel]
    fn pick<T: Dtype>(table: In<T>, o: Out<f32>) {
        let n = tl::read(table).len();
        tl::store(o, tl::zeros::<f32>([1, n]));
    }
    let ctx = context().data(false);
    let one = Placement::replicated().on(1, 1);
    let scales = ctx.zeros::<f32>([1, 8], one, "scales").unwrap();
    let table = ctx.zeros::<i32>([1, 8], one, "table").unwrap();
    let mut o = ctx.empty::<f32>([1, 8], one, "o").unwrap();
    insta::assert_snapshot!(message(ctx.launch("pick", pick { table: scales.input(), o: o.output() })), @"
    error[KB0121]: `tl::read` of `scales`, whose values are not known
      --> record.rs:L:C: `n`
      help: take the tensor as an argument of its own, and write it with data, or by the host as integers
    ");
    ctx.launch("pick", pick { table: table.input(), o: o.output() }).unwrap();
    let table = ctx.from_array(&Array2::from_elem([1, 8], 3), one, "table").unwrap();
    ctx.launch("pick", pick { table: table.input(), o: o.output() }).unwrap();
}
