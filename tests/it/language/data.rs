//! Where data is: shards, placements, replicas.

use super::{COLUMNS, ONE, context, floats, on};
use kernbench::host::Context;
use kernbench::ndarray::Array2;
use kernbench::placement::{Placement, Split};
use kernbench::prelude::*;

/// Every placement of 8 x 16 elements over 2 cubes of 4 PEs.
fn placements() -> Vec<Placement> {
    let splits = [Split::Replicate, Split::RowWise, Split::ColumnWise];
    splits.into_iter().flat_map(|cube| splits.map(|pe| Placement::new(cube, pe).on(2, 4))).collect()
}

#[kernel]
fn copy_shards(x: In<f32>, o: Out<f32>) {
    // Row by row, then a column: slices of a shard count from its corner.
    let n = x.local().ncols();
    for i in 0..x.local().nrows() {
        scratch_scope!({
            let row = tl::load(x.local().rows(i..i + 1).cols(0..n - 1));
            tl::store(o.local().rows(i..i + 1).cols(0..n - 1), row * 2.0);
        });
    }
    let last = tl::load(x.local().cols(n - 1..n));
    tl::store(o.local().cols(n - 1..n), last * 3.0);
}

#[test]
fn local_views_are_the_shards_of_every_placement() {
    let x = floats::<f32>([8, 16], 1);
    for placement in placements() {
        let ctx = context();
        let a = ctx.from_array(&x, placement, "x").unwrap();
        let mut o = ctx.empty([8, 16], placement, "o").unwrap();
        ctx.launch("copy", copy_shards { x: a.input(), o: o.output() }).unwrap();
        let width = ctx.shards(a.id()).unwrap().shard[1];
        let want = Array2::from_shape_fn((8, 16), |(i, j)| {
            x[[i, j]] * if j % width == width - 1 { 3.0 } else { 2.0 }
        });
        assert_eq!(ctx.read(&o).unwrap(), want, "{placement:?}");
        let log = ctx.op_log();
        assert_eq!(log.records().map(|r| r.remote_bytes()).sum::<u64>(), 0, "{placement:?}: a shard is here");
    }
}

#[kernel]
fn reshaped_shard(x: In<f32>, o: Out<f32>) {
    let n = x.local().nrows() * x.local().ncols();
    let all = tl::load(x.local().reshape([n / 4, 4]).rows(1..n / 4));
    tl::store(o.local().reshape([n / 4, 4]).rows(1..n / 4), all + 1.0);
    let first = tl::load(x.local().reshape([1, n]).cols(0..4));
    tl::store(o.local().reshape([1, n]).cols(0..4), first + 1.0);
}

#[test]
fn shards_of_whole_rows_can_be_reshaped() {
    let ctx = context();
    let x = floats::<f32>([16, 8], 1);
    let a = ctx.from_array(&x, Placement::row_wise().on(2, 4), "x").unwrap();
    let mut o = ctx.empty([16, 8], Placement::row_wise().on(2, 4), "o").unwrap();
    ctx.launch("reshaped", reshaped_shard { x: a.input(), o: o.output() }).unwrap();
    assert_eq!(ctx.read(&o).unwrap(), x + 1.0);
}

#[kernel]
fn transpose_blocks(x: In<f32>, o: Out<f32>) {
    // Reads a block from wherever it is, and writes it to where its transposed index says.
    let id = tl::cube() * 4 + tl::pe();
    let block = tl::load(x.rows(id..id + 1).cols(2..14).reshape([3, 4]));
    tl::store(o.rows(7 - id..8 - id).cols(1..13).reshape([3, 4]), block);
}

#[test]
fn global_views_reach_every_placement() {
    let x = floats::<f32>([8, 16], 1);
    let want =
        Array2::from_shape_fn((8, 16), |(i, j)| if (1..13).contains(&j) { x[[7 - i, j + 1]] } else { 0.0 });
    for from in placements() {
        for to in [COLUMNS.on(2, 4), Placement::new(Split::RowWise, Split::ColumnWise).on(2, 4)] {
            let ctx = context();
            let a = ctx.from_array(&x, from, "x").unwrap();
            let mut o = ctx.zeros([8, 16], to, "o").unwrap();
            ctx.launch("transpose", transpose_blocks { x: a.input(), o: o.output() }).unwrap();
            assert_eq!(ctx.read(&o).unwrap(), want, "{from:?} to {to:?}");
        }
    }
}

#[kernel]
fn write_rows(o: Out<f32>, add: f32) {
    let row = tl::full([1, 8], tl::pe() as f32 + add);
    tl::store(o.rows(tl::pe()..tl::pe() + 1), row);
}

#[kernel]
fn rotate(x: In<f32>, o: Out<f32>) {
    let next = (tl::pe() + 1) % 4;
    let row = tl::load(x.rows(next..next + 1));
    tl::store(o.local(), row);
}

/// Rows of `x` rotated by one, and the bytes that came from other PEs.
fn rotated(ctx: &Context, x: In<f32>) -> (Vec<f32>, u64) {
    let mut o = ctx.empty([4, 8], Placement::row_wise().on(1, 4), "rotated").unwrap();
    let launched = ctx.launch("rotate", rotate { x, o: o.output() }).unwrap();
    let remote = ctx.op_log().launch(launched.index).map(|r| r.remote_bytes()).sum();
    (ctx.read(&o).unwrap().column(7).to_vec(), remote)
}

#[test]
fn replicas_merge_over_launches() {
    let ctx = context();
    let mut x = ctx.zeros([4, 8], Placement::replicated().on(1, 4), "x").unwrap();
    ctx.launch("write", write_rows { o: x.output(), add: 1.0 }).unwrap();
    // Each row is newest where it was written: on the neighbour of who reads it now.
    assert_eq!(rotated(&ctx, x.input()), (vec![2.0, 3.0, 4.0, 1.0], 4 * 8 * 4));
    // PEs 0 and 1 write again; rows 2 and 3 keep what they had.
    ctx.launch_with("write", write_rows { o: x.output(), add: 10.0 }, &on(1, 2)).unwrap();
    assert_eq!(rotated(&ctx, x.input()), (vec![11.0, 3.0, 4.0, 10.0], 4 * 8 * 4));
    assert_eq!(ctx.read(&x).unwrap().column(0).to_vec(), [10.0, 11.0, 3.0, 4.0]);
    let before = ctx.now_ps();
    ctx.sync_replicas(&mut x).unwrap();
    assert!(ctx.now_ps() > before, "copies cost time");
    assert_eq!(rotated(&ctx, x.input()), (vec![11.0, 3.0, 4.0, 10.0], 0), "every replica is the newest");
    let before = ctx.now_ps();
    ctx.sync_replicas(&mut x).unwrap();
    assert_eq!(ctx.now_ps(), before, "nothing is left to copy");
}

#[kernel]
fn split_load(x: In<f32>, o: Out<f32>) {
    let all = tl::load(x);
    tl::store(o, all);
}

#[test]
fn a_load_takes_each_range_from_its_newest_holder() {
    let ctx = context();
    let mut x = ctx.zeros([4, 8], Placement::replicated().on(1, 4), "x").unwrap();
    ctx.launch("write", write_rows { o: x.output(), add: 1.0 }).unwrap();
    let mut o = ctx.empty([4, 8], ONE, "o").unwrap();
    let launched = ctx.launch_with("split", split_load { x: x.input(), o: o.output() }, &on(1, 1)).unwrap();
    let homes: Vec<u32> = launched.program.pes[0].transfers.iter().take(4).map(|t| t.home.0).collect();
    assert_eq!(homes, [0, 1, 2, 3]);
    assert_eq!(ctx.read(&o).unwrap(), ctx.read(&x).unwrap());
}
