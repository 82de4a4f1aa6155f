//! Mistakes that the checks of a recorded program find: KB0201 to KB0211.

use super::{context, counted, counted_on, message, on, text};
use kernbench::host::{Context, LaunchOptions};
use kernbench::ir::{Draft, Edge, EdgeKind, OpId, OpKind, PeProgram, TileId};
use kernbench::placement::Placement;
use kernbench::prelude::*;

#[kernel]
fn chain(sends: usize, recvs: usize) {
    let x = tl::zeros::<f32>([1, 4]);
    if tl::pe().is_multiple_of(2) {
        for _ in 0..sends {
            tl::send(Dir::IntraE, x);
        }
    } else {
        for _ in 0..recvs {
            scratch_scope!({
                let _: Tile<f32> = tl::recv(Dir::IntraW, [1, 4]);
            });
        }
    }
}

#[test]
fn kb0201_sent_but_not_received() {
    let ctx = context();
    let run = |sends, recvs, pes| ctx.launch_with("chain", chain { sends, recvs }, &on(1, pes));
    insta::assert_snapshot!(message(run(1, 0, 2)), @r#"
    error[KB0201]: PE 0 of cube 0 sends 1 message in direction `intra_E` to PE 1 of cube 0, which receives 0: message 0 is never received
      --> verify.rs:L:C: `x` is sent here
      help: add a `tl::recv(Dir::IntraW, ..)` on PE 1 of cube 0, or take this one out
    "#);
    insta::assert_snapshot!(message(run(3, 2, 8)), @r#"
    error[KB0201]: PE 0 of cube 0 sends 3 messages in direction `intra_E` to PE 1 of cube 0, which receives 2: message 2 is never received (and 3 more links)
      --> verify.rs:L:C: `x` is sent here
      help: add a `tl::recv(Dir::IntraW, ..)` on PE 1 of cube 0, or take this one out
    "#);
    run(3, 3, 8).unwrap();
}

#[test]
fn kb0201_received_but_not_sent() {
    let ctx = context();
    let run = |sends, recvs| ctx.launch_with("chain", chain { sends, recvs }, &on(1, 2));
    insta::assert_snapshot!(message(run(0, 1)), @r#"
    error[KB0201]: PE 0 of cube 0 sends 0 messages in direction `intra_E` to PE 1 of cube 0, which receives 1: message 0 is never sent
      --> verify.rs:L:C: is received here
      help: add a `tl::send(Dir::IntraE, ..)` on PE 0 of cube 0, or take this one out
    "#);
    run(1, 1).unwrap();
}

#[test]
fn kb0202_message_of_another_shape_or_type() {
    #[kernel]
    fn pass(cols: usize, half: bool) {
        if tl::pe() == 0 {
            let x = tl::zeros::<f32>([2, 8]);
            tl::send(Dir::IntraE, x);
        } else if half {
            let y: Tile<f16> = tl::recv(Dir::IntraW, [2, 16]);
            let _ = tl::eval(y + 1.0);
        } else {
            let y: Tile<f32> = tl::recv(Dir::IntraW, [2, cols]);
            let _ = tl::eval(y + 1.0);
        }
    }
    let ctx = context();
    let run = |cols, half| ctx.launch_with("pass", pass { cols, half }, &on(1, 2));
    insta::assert_snapshot!(message(run(4, false)), @r#"
    error[KB0202]: message 0 from PE 0 of cube 0 to PE 1 of cube 0 is sent as f32[2, 8] and received as f32[2, 4]
      --> verify.rs:L:C: `x` is sent here
      --> verify.rs:L:C: `y` is received here
      help: give the receive the element type and shape of the send
    "#);
    insta::assert_snapshot!(message(run(8, true)), @r#"
    error[KB0202]: message 0 from PE 0 of cube 0 to PE 1 of cube 0 is sent as f32[2, 8] and received as f16[2, 16]
      --> verify.rs:L:C: `x` is sent here
      --> verify.rs:L:C: `y` is received here
      help: give the receive the element type and shape of the send
    "#);
    run(8, false).unwrap();
}

#[kernel]
fn small(x: In<f32>, o: Out<f32>) {
    let x = tl::load(x);
    let y = tl::eval(x + 1.0);
    let z = tl::dot(y, y.t());
    let m = tl::max(z, Axis::Cols);
    tl::store(o, m);
}

/// The message for a recorded draft that was edited.
fn edited(ctx: &Context, edit: impl Fn(&mut PeProgram)) -> String {
    let (x, mut o) = (counted(ctx, [4, 4], "x"), counted(ctx, [4, 1], "o"));
    let options = LaunchOptions::default();
    let kernel = small { x: x.input(), o: o.output() };
    let Draft(mut program) = ctx.record("small", &kernel, &options).unwrap();
    ctx.verify(Draft(program.clone()), &options).unwrap();
    edit(&mut program.pes[0]);
    message(ctx.verify(Draft(program), &options).map(|(_, warnings)| warnings))
}

#[test]
fn kb0204_read_before_written() {
    let ctx = context();
    insta::assert_snapshot!(edited(&ctx, |pe| pe.ops.swap(0, 1)), @r#"
    error[KB0204]: op 0 of PE 0 of cube 0: tile %0 is read before anything was written to it
      --> verify.rs:L:C: `y`
      help: put the op that writes the tile before this one
    "#);
}

#[test]
fn kb0207_indices_that_name_nothing() {
    let ctx = context();
    insta::assert_snapshot!(edited(&ctx, |pe| pe.edges[0] = Edge::new(EdgeKind::Data, OpId(9))), @r#"
    error[KB0207]: op 1 of PE 0 of cube 0: an edge does not come from an earlier op
      --> verify.rs:L:C: `y`
      help: edit the draft so that its indices name what exists, or record it again
    "#);
    let no_tile = |pe: &mut PeProgram| {
        if let OpKind::Dot { a, .. } = &mut pe.ops[2].kind {
            *a = TileId(99);
        }
    };
    insta::assert_snapshot!(edited(&ctx, no_tile), @r#"
    error[KB0207]: op 2 of PE 0 of cube 0: a tile does not exist
      --> verify.rs:L:C: `z`
      help: edit the draft so that its indices name what exists, or record it again
    "#);
    insta::assert_snapshot!(edited(&ctx, |pe| pe.accesses.clear()), @r#"
    error[KB0207]: op 0 of PE 0 of cube 0: its access does not exist
      --> verify.rs:L:C: `x`
      help: edit the draft so that its indices name what exists, or record it again
    "#);
    insta::assert_snapshot!(edited(&ctx, |pe| pe.steps.clear()), @r#"
    error[KB0207]: op 1 of PE 0 of cube 0: its expression does not exist
      --> verify.rs:L:C: `y`
      help: edit the draft so that its indices name what exists, or record it again
    "#);
    insta::assert_snapshot!(edited(&ctx, |pe| pe.ops[0].site.0 = 99), @r#"
    error[KB0207]: op 0 of PE 0 of cube 0: its site does not exist
      help: edit the draft so that its indices name what exists, or record it again
    "#);
    insta::assert_snapshot!(edited(&ctx, |pe| pe.ops[4].kind = OpKind::Wait { recv: OpId(0) }), @r#"
    error[KB0207]: op 4 of PE 0 of cube 0: it waits for no receive
      --> verify.rs:L:C: `o`
      help: edit the draft so that its indices name what exists, or record it again
    "#);
}

#[test]
fn kb0208_shapes_that_do_not_fit() {
    let ctx = context();
    insta::assert_snapshot!(edited(&ctx, |pe| pe.tiles[0].shape = [4, 3]), @r#"
    error[KB0208]: op 0 of PE 0 of cube 0: a tile of shape [4, 3] for a view of shape [4, 4]
      --> verify.rs:L:C: `x`
      help: give the op tiles of shapes and types that fit each other
    "#);
    insta::assert_snapshot!(edited(&ctx, |pe| pe.tiles[1].shape = [1, 4]), @r#"
    error[KB0208]: op 1 of PE 0 of cube 0: an expression of shape [4, 4] into a tile of shape [1, 4]
      --> verify.rs:L:C: `y`
      help: give the op tiles of shapes and types that fit each other
    "#);
    let not_turned = |pe: &mut PeProgram| {
        pe.tiles[0].shape = [2, 8];
        pe.tiles[1].shape = [2, 8];
        pe.steps[0].shape = [2, 8];
        pe.accesses[0].shape = [2, 8];
        if let OpKind::Dot { b_t, .. } = &mut pe.ops[2].kind {
            *b_t = false;
        }
    };
    insta::assert_snapshot!(edited(&ctx, not_turned), @r#"
    error[KB0208]: op 2 of PE 0 of cube 0: a dot of [2, 8] and [2, 8] into a tile of shape [4, 4]
      --> verify.rs:L:C: `z`
      help: give the op tiles of shapes and types that fit each other
    "#);
    insta::assert_snapshot!(edited(&ctx, |pe| pe.tiles[3].shape = [1, 4]), @r#"
    error[KB0208]: op 3 of PE 0 of cube 0: a max of [4, 4] into a tile of shape [1, 4]
      --> verify.rs:L:C: `m`
      help: give the op tiles of shapes and types that fit each other
    "#);
}

#[test]
fn kb0205_nobody_wrote_what_is_loaded() {
    #[kernel]
    fn read(x: InOut<f32>, fill: usize) {
        for row in 0..fill {
            let zero = tl::zeros::<f32>([1, 8]);
            tl::store(x.rows(row..row + 1), zero);
        }
        tl::fence();
        tl::load(x);
    }
    let ctx = context();
    let mut x = ctx.empty([4, 8], Placement::row_wise().on(1, 1), "x").unwrap();
    let mut run = |fill, pes| ctx.launch_with("read", read { x: x.inout(), fill }, &on(1, pes));
    insta::assert_snapshot!(message(run(3, 1)), @r#"
    error[KB0205]: PE 0 of cube 0 reads `x[0:4, 0:8]`, but nobody has written `x` from row 3, column 0 on
      --> verify.rs:L:C: is loaded here
      help: fill the tensor with `from_array` or `zeros`, or store to it before the load
    "#);
    insta::assert_snapshot!(message(run(0, 8)), @r#"
    error[KB0205]: PE 0 of cube 0 reads `x[0:4, 0:8]`, but nobody has written `x` from row 0, column 0 on (and 7 more PEs)
      --> verify.rs:L:C: is loaded here
      help: fill the tensor with `from_array` or `zeros`, or store to it before the load
    "#);
    run(4, 1).unwrap();
}

#[test]
fn kb0206_barriers_that_not_everyone_comes_to() {
    #[kernel]
    fn meet(group: Group, who: usize) {
        tl::barrier(group);
        if tl::cube() * 8 + tl::pe() < who {
            tl::barrier(group);
        }
    }
    let ctx = context();
    let run = |group, who| ctx.launch_with("meet", meet { group, who }, &on(2, 8));
    insta::assert_snapshot!(message(run(Group::Cube, 3)), @r#"
    error[KB0206]: PE 0 of cube 0 comes to 2 barriers of its cube, PE 3 of cube 0 to 1: the first would wait for ever
      --> verify.rs:L:C: PE 3 of cube 0 does not come to this one
      help: call `tl::barrier` the same number of times on every PE of the group
    "#);
    insta::assert_snapshot!(message(run(Group::Sip, 8)), @r#"
    error[KB0206]: PE 0 of cube 0 comes to 2 barriers of its SIP, PE 0 of cube 1 to 1: the first would wait for ever
      --> verify.rs:L:C: PE 0 of cube 1 does not come to this one
      help: call `tl::barrier` the same number of times on every PE of the group
    "#);
    run(Group::Cube, 8).unwrap();
    run(Group::Sip, 16).unwrap();
}

#[kernel]
fn write(o: Out<f32>, base: f32, step: f32, rows: usize) {
    let first = if rows == 4 { 0 } else { tl::pe() * rows };
    let x = tl::full([rows, 8], base + step * tl::pe() as f32);
    tl::store(o.rows(first..first + rows), x);
}

#[test]
fn kb0209_overlapping_writes_without_data() {
    let ctx = context().data(false);
    let mut o = ctx.empty([4, 8], Placement::row_wise().on(1, 2), "o").unwrap();
    let mut run = |rows| ctx.launch("write", write { o: o.output(), base: 1.0, step: 1.0, rows }).unwrap();
    insta::assert_snapshot!(text(&run(4).warnings), @r#"
    warning[KB0209]: PE 0 of cube 0 and PE 1 of cube 0 write the same elements of `o` in one launch
      --> verify.rs:L:C: `o` is stored here
      --> verify.rs:L:C: `o` is stored here too
      help: run with data to see whether the values differ, or let one PE write them
    "#);
    assert_eq!(run(2).warnings, []);
}

#[test]
fn kb0209_holds_for_replicas_as_kb0502_does() {
    let run = |data, step| {
        let ctx = context().data(data);
        let mut o = ctx.empty([4, 8], Placement::replicated().on(1, 2), "o").unwrap();
        ctx.launch("write", write { o: o.output(), base: 1.0, step, rows: 4 })
    };
    assert_eq!(run(false, 0.0).unwrap().warnings[0].code, "KB0209");
    assert_eq!(run(true, 0.0).unwrap().warnings, []);
    assert_eq!(run(true, 1.0).unwrap_err().0[0].code, "KB0502");
}

#[test]
fn kb0502_overlapping_writes_of_other_bytes() {
    let ctx = context();
    let mut o = ctx.empty([4, 8], Placement::row_wise().on(1, 2), "o").unwrap();
    let mut run = |step| ctx.launch("write", write { o: o.output(), base: 1.0, step, rows: 4 });
    insta::assert_snapshot!(message(run(1.0)), @r#"
    error[KB0502]: `sip0.cube0.pe1` and `sip0.cube0.pe0` write different bytes to `o`: rows 0..4, columns 0..8
      --> verify.rs:L:C: `o` is stored here
      --> verify.rs:L:C: was stored here
      help: give each PE a range of its own, or let one PE write
    "#);
    assert_eq!(run(0.0).unwrap().warnings, [], "equal bytes are no conflict");
}

#[test]
fn kb0210_a_stale_replica() {
    #[kernel]
    fn exchange(x: InOut<f32>, early: bool) {
        let mine = x.rows(tl::pe()..tl::pe() + 1);
        let one = tl::full([1, 8], 1.0f32);
        if early {
            tl::store(mine, one);
        }
        let all = tl::load(if early { x } else { mine });
        let _ = tl::sum(all, Axis::Rows);
    }
    let ctx = context();
    let mut x = counted_on(&ctx, [4, 8], Placement::replicated().on(1, 4), "x");
    let mut run = |early| ctx.launch("exchange", exchange { x: x.inout(), early });
    insta::assert_snapshot!(message(run(true)), @r#"
    error[KB0210]: PE 0 of cube 0 reads `x[0:4, 0:8]`, which PE 1 of cube 0 writes in the same launch: its own replica is stale (and 3 more PEs)
      --> verify.rs:L:C: `all` is loaded here
      --> verify.rs:L:C: `mine` is stored here
      help: send the values with `tl::send`, or read them in a later launch
    "#);
    run(false).unwrap();
}

#[test]
fn kb0211_a_launch_writes_what_it_has_read() {
    #[kernel]
    fn longer(lengths: InOut<i32>, at: usize) {
        let n = tl::read(lengths.cols(0..2));
        tl::store(lengths.cols(at..at + 1), tl::full([1, 1], n[0]));
    }
    let ctx = context();
    let mut x = ctx.zeros::<i32>([1, 4], Placement::replicated().on(1, 1), "lengths").unwrap();
    let mut run = |at| ctx.launch("longer", longer { lengths: x.inout(), at });
    insta::assert_snapshot!(message(run(1)), @"
    error[KB0211]: PE 0 of cube 0 reads `lengths[0:1, 0:2]` with `tl::read`, which PE 0 of cube 0 writes in the same launch: it has seen the values from before
      --> verify.rs:L:C: `n` is read here
      --> verify.rs:L:C: `lengths` is stored here
      help: read the values in a later launch
    ");
    run(2).unwrap();
}

#[test]
fn kb0205_a_read_of_what_nobody_wrote() {
    #[kernel]
    fn sum(lengths: In<i32>, o: Out<i32>, n: usize) {
        let n: i32 = tl::read(lengths.cols(0..n)).iter().sum();
        tl::store(o, tl::full([1, 1], n));
    }
    let ctx = context();
    let one = Placement::replicated().on(1, 1);
    let mut x = ctx.empty::<i32>([1, 4], one, "lengths").unwrap();
    let mut o = ctx.empty::<i32>([1, 1], one, "o").unwrap();
    insta::assert_snapshot!(message(ctx.launch("sum", sum { lengths: x.input(), o: o.output(), n: 4 })), @"
    error[KB0205]: `tl::read` of `lengths`, but nobody has written it from row 0, column 0 on
      --> verify.rs:L:C: `n`
      help: fill the tensor with `from_array` or `zeros` before the launch
    ");
    #[kernel]
    fn write(x: Out<i32>) {
        tl::store(x.cols(0..3), tl::arange(5..8, Axis::Cols));
    }
    ctx.launch("write", write { x: x.output() }).unwrap();
    insta::assert_snapshot!(message(ctx.launch("sum", sum { lengths: x.input(), o: o.output(), n: 4 })), @"
    error[KB0205]: `tl::read` of `lengths`, but nobody has written it from row 0, column 3 on
      --> verify.rs:L:C: `n`
      help: fill the tensor with `from_array` or `zeros` before the launch
    ");
    ctx.launch("sum", sum { lengths: x.input(), o: o.output(), n: 3 }).unwrap();
    assert_eq!(ctx.read(&o).unwrap()[[0, 0]], 18);
}
