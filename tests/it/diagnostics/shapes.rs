//! Shapes that do not fit, found while recording (KB0101, KB0102, KB0104), and where such mistakes are placed.

use super::{context, counted, message, on};
use kernbench::diag::Place;
use kernbench::placement::Placement;
use kernbench::prelude::*;

#[device]
fn scaled<'a>(tl: &'a Scope, x: Tile<f32>, by: Tile<f32>) -> Tile<'a, f32> {
    tl::eval(x * by)
}

#[test]
fn kb0101_operands_do_not_broadcast() {
    #[kernel]
    fn scale(x: In<f32>, columns: usize) {
        let x = tl::load(x);
        let by = tl::full([4, columns], 2.0);
        let y = scaled(tl, x, by);
        // What a mistake gives is silent.
        let _ = tl::sum(y, Axis::Cols);
    }
    let ctx = context();
    let x = counted(&ctx, [4, 8], "x");
    insta::assert_snapshot!(message(ctx.launch("scale", scale { x: x.input(), columns: 7 })), @r#"
    error[KB0101]: `mul` of shapes [4, 8] and [4, 7]: they do not broadcast
      --> shapes.rs:L:C
      --> shapes.rs:L:C: called here
      help: each dimension must be equal or 1; slice with `rows` or `cols`, or `reshape`
    "#);
    ctx.launch("scale", scale { x: x.input(), columns: 1 }).unwrap();
}

#[test]
fn kb0101_copy_to_does_not_grow_its_destination() {
    #[kernel]
    fn copy(rows: usize) {
        let dst = tl::zeros::<f32>([1, 8]);
        let src = tl::zeros([rows, 8]);
        tl::copy_to(dst, src + 1.0);
    }
    let ctx = context();
    insta::assert_snapshot!(message(ctx.launch_with("copy", copy { rows: 4 }, &on(1, 1))), @r#"
    error[KB0101]: `copy_to` of shape [4, 8] into shape [1, 8]: it does not broadcast
      --> shapes.rs:L:C: `dst`
      help: each dimension must be equal to the destination's or 1
    "#);
    ctx.launch_with("copy", copy { rows: 1 }, &on(1, 1)).unwrap();
}

#[test]
fn kb0101_store_does_not_grow_its_view() {
    #[kernel]
    fn store(o: Out<f32>, rows: usize) {
        let src = tl::zeros::<f32>([rows, 8]);
        tl::store(o, src);
    }
    let ctx = context();
    let mut o = ctx.empty([2, 8], Placement::replicated().on(1, 1), "o").unwrap();
    insta::assert_snapshot!(message(ctx.launch("store", store { o: o.output(), rows: 4 })), @r#"
    error[KB0101]: `store` of shape [4, 8] into shape [2, 8]: it does not broadcast
      --> shapes.rs:L:C: `o`
      help: each dimension must be equal to the destination's or 1
    "#);
    ctx.launch("store", store { o: o.output(), rows: 1 }).unwrap();
}

#[test]
fn kb0102_inner_dimensions_differ() {
    #[kernel]
    fn product(q: In<f32>, k: In<f32>, transpose: bool) {
        let q = tl::load(q);
        let k = tl::load(k);
        let s = if transpose { tl::dot(q, k.t()) } else { tl::dot(q, k) };
        let _ = tl::max(s, Axis::Cols);
    }
    let ctx = context();
    let (q, k) = (counted(&ctx, [4, 8], "q"), counted(&ctx, [16, 8], "k"));
    let kernel = product { q: q.input(), k: k.input(), transpose: false };
    insta::assert_snapshot!(message(ctx.launch("product", kernel.clone())), @r#"
    error[KB0102]: `dot` of shapes [4, 8] and [16, 8]: the inner dimensions 8 and 16 differ
      --> shapes.rs:L:C: `s`
      help: transpose an operand with `x.t()`, or slice it
    "#);
    ctx.launch("product", product { transpose: true, ..kernel }).unwrap();
}

#[test]
fn kb0102_accumulator_of_another_shape() {
    #[kernel]
    fn add(x: In<f32>, columns: usize) {
        let x = tl::load(x);
        let acc = tl::zeros([4, columns]);
        tl::dot_add(acc, x, x.t());
    }
    let ctx = context();
    let x = counted(&ctx, [4, 8], "x");
    insta::assert_snapshot!(message(ctx.launch("add", add { x: x.input(), columns: 8 })), @r#"
    error[KB0102]: `dot_add` of shape [4, 4] into an accumulator of shape [4, 8]
      --> shapes.rs:L:C: `acc`
      help: make the accumulator of the product's shape
    "#);
    ctx.launch("add", add { x: x.input(), columns: 4 }).unwrap();
}

#[kernel]
fn slices(x: In<f32>, what: &'static str) {
    let whole = tl::load(x);
    let _ = match what {
        "rows of a view" => tl::load(x.rows(4..12)),
        "columns of a view" => tl::load(x.cols(6..10)),
        "reshape of a view" => tl::load(x.reshape([3, 8])),
        "reshape of a slice of a view" => tl::load(x.cols(0..4).reshape([16, 2])),
        "shard of a slice" => tl::load(x.rows(0..4).local()),
        "rows of a tile" => whole.rows(4..12),
        "columns of a tile" => whole.cols(6..10),
        "reshape of a tile" => whole.reshape([3, 8]),
        "reshape of a slice of a tile" => whole.cols(0..4).reshape([16, 2]),
        _ => {
            tl::load(x.local().reshape([16, 4]).rows(15..16).cols(1..4));
            whole.rows(4..8).reshape([16, 2]).cols(1..2)
        }
    };
}

#[test]
fn kb0104_slices_and_reshapes_that_do_not_fit() {
    let ctx = context();
    let x = counted(&ctx, [8, 8], "x");
    let run = |what| ctx.launch("slices", slices { x: x.input(), what });
    insta::assert_snapshot!(message(run("rows of a view")), @r#"
    error[KB0104]: rows 4..12 of `x` do not exist: there are 8 rows
      --> shapes.rs:L:C
      help: slice within the shape; `nrows()` gives the rows
    "#);
    insta::assert_snapshot!(message(run("columns of a view")), @r#"
    error[KB0104]: columns 6..10 of `x` do not exist: there are 8 columns
      --> shapes.rs:L:C
      help: slice within the shape; `ncols()` gives the columns
    "#);
    insta::assert_snapshot!(message(run("reshape of a view")), @r#"
    error[KB0104]: `x` of shape [8, 8] has 64 elements and cannot become [3, 8] of 24
      --> shapes.rs:L:C
      help: reshape to as many elements; `shape()` gives the shape it has
    "#);
    insta::assert_snapshot!(message(run("reshape of a slice of a view")), @r#"
    error[KB0104]: `x` of shape [8, 4] is a slice of columns: its rows are apart in memory and cannot be reshaped
      --> shapes.rs:L:C
      help: reshape first and slice then, or copy the slice to a tile of its own with `tl::eval`
    "#);
    insta::assert_snapshot!(message(run("shard of a slice")), @r#"
    error[KB0104]: `local()` of a part of `x`: only a whole tensor has a shard
      --> shapes.rs:L:C
      help: call `local()` first, then slice the shard
    "#);
    insta::assert_snapshot!(message(run("rows of a tile")), @r#"
    error[KB0104]: rows 4..12 of the tile do not exist: there are 8 rows
      --> shapes.rs:L:C
      help: slice within the shape; `nrows()` gives the rows
    "#);
    insta::assert_snapshot!(message(run("columns of a tile")), @r#"
    error[KB0104]: columns 6..10 of the tile do not exist: there are 8 columns
      --> shapes.rs:L:C
      help: slice within the shape; `ncols()` gives the columns
    "#);
    insta::assert_snapshot!(message(run("reshape of a tile")), @r#"
    error[KB0104]: the tile of shape [8, 8] has 64 elements and cannot become [3, 8] of 24
      --> shapes.rs:L:C
      help: reshape to as many elements; `shape()` gives the shape it has
    "#);
    insta::assert_snapshot!(message(run("reshape of a slice of a tile")), @r#"
    error[KB0104]: the tile of shape [8, 4] is a slice of columns: its rows are apart in memory and cannot be reshaped
      --> shapes.rs:L:C
      help: reshape first and slice then, or copy the slice to a tile of its own with `tl::eval`
    "#);
    run("what fits").unwrap();
}

#[test]
fn a_mistake_on_many_pes_and_turns_is_one_diagnostic() {
    #[kernel]
    fn many(x: In<f32>, _y: In<f32>, columns: usize) {
        let x = tl::load(x);
        for _ in 0..5 {
            scratch_scope!({
                let by = tl::zeros([4, columns]);
                let _ = tl::eval(x + by);
            });
        }
    }
    let ctx = context();
    let x = counted(&ctx, [4, 8], "x");
    // A tensor on each of the 2 SIPs: the launch has 2 x 16 x 8 PEs.
    ctx.set_device(1).unwrap();
    let y = counted(&ctx, [4, 8], "y");
    let run = |columns, [cubes, pes]: [usize; 2]| {
        ctx.launch_with("many", many { x: x.input(), _y: y.input(), columns }, &on(cubes, pes))
    };
    insta::assert_snapshot!(message(run(7, [16, 8])), @r#"
    error[KB0101]: `add` of shapes [4, 8] and [4, 7]: they do not broadcast (and 255 more PEs, 4 more turns)
      --> shapes.rs:L:C
      help: each dimension must be equal or 1; slice with `rows` or `cols`, or `reshape`
    "#);
    insta::assert_snapshot!(message(run(7, [1, 2])), @r#"
    error[KB0101]: `add` of shapes [4, 8] and [4, 7]: they do not broadcast (and 3 more PEs, 4 more turns)
      --> shapes.rs:L:C
      help: each dimension must be equal or 1; slice with `rows` or `cols`, or `reshape`
    "#);
    run(8, [16, 8]).unwrap();
}

#[test]
fn arguments_that_call_helpers_keep_the_whole_chain() {
    #[kernel]
    fn nested(rows: usize) {
        let a = tl::zeros::<f32>([4, 4]);
        let b = tl::zeros([rows, 4]);
        let y = scaled(tl, b, scaled(tl, a, a));
        let _ = tl::eval(-y);
    }
    let ctx = context();
    insta::assert_snapshot!(message(ctx.launch_with("nested", nested { rows: 3 }, &on(1, 1))), @r#"
    error[KB0101]: `mul` of shapes [3, 4] and [4, 4]: they do not broadcast
      --> shapes.rs:L:C
      --> shapes.rs:L:C: called here
      help: each dimension must be equal or 1; slice with `rows` or `cols`, or `reshape`
    "#);
    ctx.launch_with("nested", nested { rows: 4 }, &on(1, 1)).unwrap();
}

#[test]
fn labels_give_the_exact_line_and_column() {
    let line = line!();
    #[kernel]
    fn wrong(x: In<f32>) {
        let x = tl::load(x);
        let y = scaled(tl, x, x.rows(0..3));
        let _ = tl::dot(y, x);
        tl::dot(x, x);
    }
    let ctx = context();
    let x = counted(&ctx, [4, 8], "x");
    let failure = ctx.launch("wrong", wrong { x: x.input() }).unwrap_err();
    let places: Vec<Vec<(u32, u32)>> = failure
        .0
        .iter()
        .map(|d| {
            let place = |place: &Place| match place {
                Place::Source { line, column, .. } => (*line, *column),
                Place::Text { .. } => (0, 0),
            };
            d.labels.iter().map(|l| place(&l.place)).collect()
        })
        .collect();
    // The operator itself, and the call that led there; then `tl::dot`.
    assert_eq!(places[0][1], (line + 4, 17));
    assert_eq!(places[1], [(line + 6, 9)]);
    assert_eq!(places[0][0].1, 14, "the operator in `scaled`: `x * by`");
}
