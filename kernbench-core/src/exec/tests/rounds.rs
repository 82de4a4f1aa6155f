use super::*;
use crate::ty::Group;

fn text(r: Result<Vec<Diagnostic>, Failure>) -> String {
    match r {
        Ok(warnings) => warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        Err(failure) => failure.to_string(),
    }
}

/// Every PE adds what its left neighbour sends to its own row and hands that on, around the ring.
fn ring(pes: u32, cols: u32) -> Program {
    let build = |pe: u32| {
        let mut b = Build::new(pe);
        let mine = b.tile(F32, [1, cols]);
        b.load(0, u64::from(pe * cols), cols, mine);
        let sum = b.tile(F32, [1, cols]);
        b.map(sum, &E::T(mine));
        let from = LinkId((pe + pes - 1) % pes);
        for seq in 0..pes - 1 {
            b.op(OpKind::Send { link: LinkId(pe), seq, src: mine });
            b.op(OpKind::Recv { link: from, seq, dst: mine });
            b.map(sum, &E::Op(Fun::Add, F32, vec![E::T(sum), E::T(mine)]));
        }
        b.store(1, u64::from(pe * cols), cols, sum);
        b
    };
    let shape = [pes as usize, cols as usize];
    program(&[("x", F32, shape), ("y", F32, shape)], (0..pes).map(build).collect())
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let p = ring(8, 33);
    let mut r = Random(5);
    let x: Vec<f32> = (0..8 * 33).map(|_| r.float()).collect();
    let run = |threads| {
        let mut s = store(&p, &[Some(bytes(&x))]);
        execute(&p, &mut s, 1, &options(threads, &|_| false)).expect("runs");
        s.bytes(TensorId(1)).to_vec()
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(5));
    // And they are the sums in the order in which the rows arrive.
    let y = values::<f32>(&one);
    for pe in 0..8usize {
        for j in 0..33 {
            let want = (1..8).fold(x[pe * 33 + j], |a, i| a + x[(pe + 8 - i) % 8 * 33 + j]);
            let got = y[pe * 33 + j];
            assert!(got == want || got.is_nan() && want.is_nan());
        }
    }
}

#[test]
fn a_racy_program_has_one_result_for_any_number_of_threads() {
    // Every PE writes its number to the same element, then reads it and writes what it saw.
    let build = |pe: u32| {
        let mut b = Build::new(pe);
        let t = b.fill(I32, [1, 1], Scalar::I32(pe as i32));
        b.store(0, 0, 1, t);
        b.load(0, 0, 1, t);
        b.store(1, u64::from(pe), 1, t);
        b
    };
    let p = program(&[("x", I32, [1, 1]), ("y", I32, [1, 6])], (0..6).map(build).collect());
    let run = |threads| {
        let mut s = store(&p, &[]);
        let said = text(execute(&p, &mut s, 1, &options(threads, &|_| false)));
        (said, values::<i32>(s.bytes(TensorId(1))))
    };
    let one = run(1);
    assert_eq!(one.1, [5; 6]);
    assert_eq!(
        one.0,
        "error[KB0502]: `sip0.cube0.pe1` and 4 more PEs and `sip0.cube0.pe0` write different bytes to `x`: \
         rows 0..1, columns 0..1\n  --> k.rs:2:5: `x` is stored here\n  --> k.rs:2:5: was stored here\n  \
         help: give each PE a range of its own, or let one PE write"
    );
    assert_eq!(one, run(2));
    assert_eq!(one, run(5));
}

#[test]
fn equal_bytes_from_two_pes_are_fine() {
    let build = |pe: u32| {
        let mut b = Build::new(pe);
        let t = b.fill(F16, [2, 2], Scalar::F32(1.5));
        b.store(0, 0, 2, t);
        b
    };
    let p = program(&[("x", F16, [2, 2])], (0..4).map(build).collect());
    let mut s = store(&p, &[]);
    assert_eq!(text(execute(&p, &mut s, 3, &options(2, &|_| true))), "");
    assert!(
        (0..4).all(|pe| s.is_held(TensorId(0), 0..4, PeId(pe))) && !s.is_held(TensorId(0), 0..4, PeId(4))
    );
}

#[test]
fn a_read_of_what_nobody_wrote_names_tensor_rows_and_columns_once() {
    let build = |pe: u32| {
        let mut b = Build::new(pe);
        let t = b.tile(F32, [2, 3]);
        b.load(0, 9, 8, t);
        b
    };
    let p = program(&[("k", F32, [8, 8])], (0..8).map(build).collect());
    let mut s = store(&p, &[]);
    s.write_host_at(TensorId(0), 0, &[0; 4 * 10]);
    let said = "error[KB0501]: `k` is read where nobody wrote it: rows 1..3, columns 1..4 \
                (by `sip0.cube0.pe0` and 7 more PEs)\n  --> k.rs:1:5: `x` is loaded here\n  help: write `k` before \
                this launch, for example with `ctx.zeros`, or load only what was written";
    assert_eq!(text(execute(&p, &mut s, 1, &options(2, &|_| false))), said);
    s.write_zeros(TensorId(0));
    assert_eq!(text(execute(&p, &mut s, 2, &options(2, &|_| false))), "");
}

#[test]
fn a_stale_replica_is_reported_and_a_later_launch_sees_the_newest() {
    let writer = || {
        let mut b = Build::new(0);
        let t = b.fill(I32, [1, 4], Scalar::I32(7));
        b.store(0, 4, 4, t);
        b.op(OpKind::Send { link: LinkId(0), seq: 0, src: t });
        b
    };
    let reader = |told: bool| {
        let mut b = Build::new(1);
        let t = b.tile(I32, [1, 4]);
        if told {
            b.op(OpKind::Recv { link: LinkId(0), seq: 0, dst: t });
        }
        b.load(0, 4, 4, t);
        b.store(1, 0, 4, t);
        b
    };
    let tensors = [("o", I32, [2, 4]), ("y", I32, [1, 4])];
    let p = program(&tensors, vec![writer(), reader(true)]);
    let mut s = store(&p, &[Some(bytes(&[1i32; 8]))]);
    let replicated = |t: TensorId| t == TensorId(0);
    assert_eq!(
        text(execute(&p, &mut s, 1, &options(1, &replicated))),
        "error[KB0503]: replica is stale: `sip0.cube0.pe1` reads rows 1..2, columns 0..4 of `o`, which \
         `sip0.cube0.pe0` wrote in the same launch\n  --> k.rs:2:5: `x` is loaded here\n  --> k.rs:2:5: was stored \
         here\n  help: send the values to the reader, or read `o` in a later launch"
    );
    // Not replicated, the message orders the two.
    assert_eq!(text(execute(&p, &mut s, 2, &options(1, &|_| false))), "");
    let p = program(&tensors, vec![reader(false)]);
    assert_eq!(text(execute(&p, &mut s, 3, &options(1, &replicated))), "");
    assert_eq!(values::<i32>(s.bytes(TensorId(1))), [7; 4]);
}

#[test]
fn a_deadlock_names_the_ops_that_wait() {
    let build = |pe: u32| {
        let mut b = Build::new(pe);
        let t = b.tile(F32, [1, 1]);
        b.op(OpKind::Recv { link: LinkId(1 - pe), seq: 0, dst: t });
        b.op(OpKind::Send { link: LinkId(pe), seq: 0, src: t });
        b
    };
    let p = program(&[], vec![build(0), build(1)]);
    assert_eq!(
        text(execute(&p, &mut Store::new(true), 1, &options(1, &|_| false))),
        "error[KB0504]: `test` cannot go on: 2 of 2 PEs wait for ever\n  --> k.rs:1:5: `sip0.cube0.pe0` waits for \
         message 0 from W (`sip0.cube0.pe1`)\n  --> k.rs:1:5: `sip0.cube0.pe1` waits for message 0 from W \
         (`sip0.cube0.pe0`)\n  help: let every receive have a send that does not itself wait for it, and every PE of \
         a group reach its barrier"
    );
}

#[test]
fn a_barrier_makes_stores_of_its_group_visible() {
    // PE 0 to 3 are a cube, 4 to 7 another. Each stores its number and reads its neighbour's.
    let build = |pe: u32| {
        let mut b = Build::new(pe);
        let t = b.fill(I32, [1, 1], Scalar::I32(pe as i32));
        b.store(0, u64::from(pe), 1, t);
        b.op(OpKind::Barrier { group: Group::Cube });
        b.op(OpKind::Barrier { group: Group::Sip });
        b.load(0, u64::from((pe + 1) % 8), 1, t);
        b.store(1, u64::from(pe), 1, t);
        b
    };
    let p = program(&[("x", I32, [1, 8]), ("y", I32, [1, 8])], (0..8).map(build).collect());
    let mut s = store(&p, &[]);
    assert_eq!(text(execute(&p, &mut s, 1, &options(2, &|_| false))), "");
    assert_eq!(values::<i32>(s.bytes(TensorId(1))), [1, 2, 3, 4, 5, 6, 7, 0]);
}

#[test]
fn a_receive_posted_early_takes_its_own_message() {
    let mut a = Build::new(0);
    for (seq, x) in [(0, 1.0), (1, 2.0)] {
        let src = a.fill(F32, [1, 2], Scalar::F32(x));
        a.op(OpKind::Send { link: LinkId(0), seq, src });
    }
    let mut b = Build::new(1);
    let (early, late) = (b.tile(F32, [2, 1]), b.tile(F32, [1, 2]));
    let recv = b.op(OpKind::RecvAsync { link: LinkId(0), seq: 0, dst: early });
    b.op(OpKind::Recv { link: LinkId(0), seq: 1, dst: late });
    b.op(OpKind::Wait { recv });
    b.store(0, 0, 1, early);
    b.store(0, 2, 2, late);
    let p = program(&[("y", F32, [2, 2])], vec![a, b]);
    let mut s = store(&p, &[]);
    assert_eq!(text(execute(&p, &mut s, 1, &options(1, &|_| false))), "");
    assert_eq!(values::<f32>(s.bytes(TensorId(0))), [1.0, 1.0, 2.0, 2.0]);
}

#[test]
fn a_pe_sees_its_own_stores_and_views_with_gaps() {
    let mut b = Build::new(0);
    let t = b.fill(I32, [2, 2], Scalar::I32(9));
    b.store(0, 1, 4, t);
    let all = b.tile(I32, [2, 4]);
    b.load(0, 0, 4, all);
    b.store(1, 0, 4, all);
    let p = program(&[("x", I32, [2, 4]), ("y", I32, [2, 4])], vec![b]);
    let mut s = store(&p, &[Some(bytes(&[0i32; 8]))]);
    assert_eq!(text(execute(&p, &mut s, 1, &options(1, &|_| false))), "");
    assert_eq!(values::<i32>(s.bytes(TensorId(1))), [0, 9, 9, 0, 0, 9, 9, 0]);
}

#[test]
fn a_long_loop_keeps_only_the_tiles_that_fit_and_none_at_its_end() {
    let mut b = Build::new(0);
    for turn in 0..1000u32 {
        let dst = b.tile_at(turn % 3 * 256, [F32, F16, I32][(turn % 3) as usize], [4, 16]);
        b.op(OpKind::Fill { dst, value: if turn % 3 == 2 { Scalar::I32(1) } else { Scalar::F32(1.0) } });
    }
    b.op(OpKind::Barrier { group: Group::Cube });
    let p = b.p;
    let mut pe = Pe::new(&p);
    pe.run(&Store::new(true), 1, &options(1, &|_| false));
    assert_eq!((pe.status, pe.live_tiles()), (Status::Meets(Group::Cube), 3));
    pe.release();
    pe.run(&Store::new(true), 1, &options(1, &|_| false));
    assert_eq!((pe.status, pe.live_tiles()), (Status::Done, 0));
}
