//! PEs together: ids, messages, barriers, scratch buffers, threads and issue modes.

use super::{ONE, context, floats, on};
use kernbench::host::{Context, LaunchOptions};
use kernbench::ndarray::Array2;
use kernbench::placement::Placement;
use kernbench::prelude::*;
use kernbench::topology::IssueMode;

#[kernel]
fn ids(o: Out<i32>) {
    let found = [
        tl::sip(),
        tl::cube(),
        tl::pe(),
        tl::program_id(0),
        tl::program_id(1),
        tl::program_id(2),
        tl::num_programs(0),
        tl::num_programs(1),
        tl::num_programs(2),
        tl::slot_size(),
    ];
    for (i, id) in found.into_iter().enumerate() {
        let x = tl::full([1, 1], id as i32);
        tl::store(o.local().cols(i..i + 1), x);
    }
}

#[test]
fn ids_say_where_a_pe_is() {
    let ctx = context();
    ctx.set_device(1).unwrap();
    let mut o = ctx.empty([8, 10], Placement::row_wise().on(2, 4), "o").unwrap();
    ctx.launch("ids", ids { o: o.output() }).unwrap();
    let want = Array2::from_shape_fn((8, 10), |(i, j)| {
        let (cube, pe) = ((i / 4) as i32, (i % 4) as i32);
        // Of the launch's SIPs this is the first, whatever its number.
        [1, cube, pe, pe, cube, 0, 4, 2, 1, 4096][j]
    });
    assert_eq!(ctx.read(&o).unwrap(), want);
}

#[kernel]
fn prefix_sums(x: In<f32>, o: Out<f32>, asynchronous: bool) {
    // Along pe 0 1 2 3 of a cube; the receive may be posted before the work it overlaps with.
    let acc = tl::load(x.local());
    if tl::pe() > 0 {
        if asynchronous {
            let pending = tl::recv_async(Dir::IntraW, acc.shape());
            let twice = tl::eval(acc * 2.0);
            let left = tl::wait(pending);
            tl::copy_to(acc, twice - acc + left);
        } else {
            let left = tl::recv(Dir::IntraW, acc.shape());
            tl::copy_to(acc, acc + left);
        }
    }
    if tl::pe() < 3 {
        tl::send(Dir::IntraE, acc);
    }
    tl::store(o.local(), acc);
}

#[test]
fn messages_carry_values_in_order() {
    let x = floats::<f32>([8, 6], 1);
    for asynchronous in [false, true] {
        let ctx = context();
        let place = Placement::row_wise().on(2, 4);
        let a = ctx.from_array(&x, place, "x").unwrap();
        let mut o = ctx.empty([8, 6], place, "o").unwrap();
        ctx.launch("prefix", prefix_sums { x: a.input(), o: o.output(), asynchronous }).unwrap();
        let want = Array2::from_shape_fn((8, 6), |(i, j)| (i / 4 * 4..=i).map(|k| x[[k, j]]).sum::<f32>());
        assert_eq!(ctx.read(&o).unwrap(), want);
        assert_eq!(ctx.op_log().count("ipcq_copy"), 6);
    }
}

#[kernel]
fn meet(o: InOut<f32>, group: Group) {
    // Later PEs work longer before they meet.
    for _ in 0..=tl::pe() {
        scratch_scope!({
            let x = tl::full([64, 64], 1.0f32);
            let _ = tl::eval(tl::exp(x));
        });
    }
    tl::barrier(group);
    let id = tl::cube() * 4 + tl::pe();
    let one = tl::full([1, 8], id as f32);
    tl::store(o.rows(id..id + 1), one);
    tl::fence();
    let back = tl::load(o.rows(id..id + 1));
    tl::store(o.rows(id..id + 1), back + 1.0);
}

#[test]
fn barriers_and_fences_order_time() {
    for group in [Group::Cube, Group::Sip] {
        let ctx = context();
        let mut o = ctx.empty([8, 8], Placement::row_wise().on(2, 4), "o").unwrap();
        ctx.launch("meet", meet { o: o.inout(), group }).unwrap();
        let want = Array2::from_shape_fn((8, 8), |(i, _)| i as f32 + 1.0);
        assert_eq!(ctx.read(&o).unwrap(), want);
        let log = ctx.op_log();
        let of = |name: &'static str| log.filter(move |r| r.name() == name);
        for barrier in of("barrier") {
            let same = |pe: u32| group == Group::Sip || pe / 8 == barrier.pe().0 / 8;
            let arrived = of("barrier").filter(|r| same(r.pe().0)).map(|r| r.start_ps()).max().unwrap();
            assert!(barrier.end_ps() >= arrived, "nobody leaves before all have come");
        }
        for fence in of("fence") {
            let mine = |name| of(name).filter(|r| r.pe() == fence.pe());
            assert!(mine("dma_write").next().unwrap().end_ps() <= fence.end_ps());
            assert!(mine("dma_read").next().unwrap().start_ps() >= fence.end_ps());
        }
    }
}

#[kernel]
fn blocks(x: In<f32>, o: Out<f32>, buffers: u32) {
    let acc = tl::zeros([64, 64]);
    for rows in Block::new(0, x.nrows()).blocks(64) {
        scratch_scope!(buffers = buffers, {
            let b = tl::load(x.rows(rows));
            let e = tl::eval(tl::exp(b * 0.25));
            tl::dot_add(acc, b.t(), e);
        });
    }
    tl::store(o, acc);
}

/// The result, the simulated time, and how long the DMA stood still between loads.
fn run_blocks(buffers: u32, options: &LaunchOptions, threads: usize) -> (Array2<f32>, u64, u64) {
    let ctx: Context = context().threads(threads);
    let x = ctx.from_array(&floats::<f32>([512, 64], 1), ONE, "x").unwrap();
    let mut o = ctx.empty([64, 64], ONE, "o").unwrap();
    let kernel = blocks { x: x.input(), o: o.output(), buffers };
    let launched = ctx.launch_with("blocks", kernel, options).unwrap();
    let log = ctx.op_log();
    let loads: Vec<_> = log.filter(|r| r.name() == "dma_read").collect();
    let waits = loads.windows(2).map(|w| w[1].start_ps().saturating_sub(w[0].end_ps())).sum();
    (ctx.read(&o).unwrap(), launched.simulated_ps, waits)
}

#[test]
fn two_buffers_wait_less_and_compute_the_same() {
    let options = LaunchOptions::default();
    let (one, slow, waits) = run_blocks(1, &options, 1);
    let (two, fast, fewer) = run_blocks(2, &options, 1);
    assert_eq!(one, two);
    assert!(fast < slow, "{fast} ps with two buffers, {slow} ps with one");
    assert!(fewer < waits, "{fewer} ps of waiting with two buffers, {waits} ps with one");
}

#[test]
fn issue_modes_and_threads_change_no_value() {
    let values = |issue, threads| {
        let options = LaunchOptions { issue: Some(issue), ..LaunchOptions::default() };
        let (value, time, _) = run_blocks(2, &options, threads);
        (value.mapv(f32::to_bits), time)
    };
    let (want, dataflow) = values(IssueMode::Dataflow, 1);
    let (same, blocking) = values(IssueMode::Blocking, 1);
    assert_eq!(want, same);
    assert!(dataflow < blocking, "{dataflow} ps, {blocking} ps");
    assert_eq!(values(IssueMode::Dataflow, 4), (want.clone(), dataflow));
    assert_eq!(values(IssueMode::Blocking, 4), (want, blocking));
}

#[test]
fn threads_change_no_value_of_pes_that_talk() {
    let run = |threads, issue| {
        let ctx = context().threads(threads);
        let place = Placement::row_wise().on(16, 4);
        let x = ctx.from_array(&floats::<f32>([128, 32], 1), place, "x").unwrap();
        let mut o = ctx.empty([128, 32], place, "o").unwrap();
        let kernel = prefix_sums { x: x.input(), o: o.output(), asynchronous: true };
        ctx.launch_with("prefix", kernel, &LaunchOptions { issue: Some(issue), ..on(16, 4) }).unwrap();
        let log = ctx.op_log().logical();
        (ctx.read(&o).unwrap(), log)
    };
    let want = run(1, IssueMode::Dataflow);
    assert_eq!(run(4, IssueMode::Dataflow), want);
    assert_eq!(run(4, IssueMode::Blocking).0, want.0);
}

/// Every PE of both SIPs reads of both, and passes what it read on to its twin.
#[kernel]
fn everywhere(x0: In<f32>, x1: In<f32>, o0: Out<f32>, o1: Out<f32>) {
    let rows = Block::new(4 * (8 * tl::cube() + tl::pe()), 4);
    let (a, b) = (tl::load(x0.rows(rows)), tl::load(x1.rows(rows)));
    tl::send(Dir::GlobalE, a);
    let twin = tl::recv(Dir::GlobalW, a.shape());
    tl::store([o0, o1][tl::sip()].rows(rows), a + b + twin);
}

#[test]
fn a_run_of_both_sips_is_the_same_byte_for_byte() {
    let run = |threads: usize| {
        let ctx = context().threads(threads);
        let split = Placement::row_wise().on(16, 8);
        let (values, mut tensors) = ([floats::<f32>([512, 256], 1), floats::<f32>([512, 256], 2)], vec![]);
        for (sip, values) in values.iter().enumerate() {
            ctx.set_device(sip).unwrap();
            let x = ctx.from_array(values, split, "x").unwrap();
            tensors.push((x, ctx.empty::<f32>([512, 256], split, "o").unwrap()));
        }
        let [(x0, mut o0), (x1, mut o1)] = <[_; 2]>::try_from(tensors).unwrap();
        let (i0, i1) = (x0.input(), x1.input());
        ctx.launch("everywhere", everywhere { x0: i0, x1: i1, o0: o0.output(), o1: o1.output() }).unwrap();
        let want = &values[0] * 2.0 + &values[1];
        assert_eq!([ctx.read(&o0).unwrap(), ctx.read(&o1).unwrap()], [want.clone(), want]);
        let log = ctx.op_log();
        assert_eq!(log.count("dma_read"), 512);
        (log.timed_text(), serde_json::to_string(&log.records().collect::<Vec<_>>()).unwrap())
    };
    let first = run(1);
    assert_eq!(first, run(1));
    assert_eq!(first, run(4));
}
