//! Times against the formulas of the algorithms, on a machine with one full-duplex port for each rank.
//!
//! A message of n bytes takes `a + b n` there, from the start of its send to the end of its receive; reducing n bytes
//! takes `c n`. All three are measured on programs of one message.

use super::{Group, collective};
use kernbench::host::{Context, Operation};
use kernbench::ir::OpKind;
use kernbench::prelude::*;

/// Times of a launch, in ps: from the first send to the end of the last op that is no store. Loads before and stores
/// behind are no part of the formulas.
fn span(ctx: &Context) -> u64 {
    let log = ctx.op_log();
    let launch = log.launches.last().unwrap();
    let (mut first, mut last) = (u64::MAX, 0);
    for (pe, times) in launch.program.pes.iter().zip(&launch.timing.pes) {
        for (op, t) in pe.ops.iter().zip(&times.ops) {
            match op.kind {
                OpKind::Load { .. } | OpKind::Store { .. } => {}
                OpKind::Send { .. } => first = first.min(t.start_ps),
                _ => last = last.max(t.end_ps),
            }
        }
    }
    last - first
}

/// What an algorithm takes for `n` f32 elements a rank, with slots that hold all of it.
fn takes(algorithm: &'static str, ranks: usize, n: usize) -> f64 {
    let g = Group { slot_size: (4 * n).max(256), n_slots: 1, ..Group::of(algorithm, ranks) };
    let operation = g.operation();
    let len =
        if operation == Operation::ReduceScatter || operation == Operation::AllToAll { n * ranks } else { n };
    let ctx = g.context();
    let done = ctx.spawn(ranks, async |_, ctx: Worker| {
        let place = Placement::replicated().on(1, 1);
        collective(&ctx, operation, (&vec![1f32; len], true), (ReduceOp::Sum, 0), place).await
    });
    done.unwrap();
    span(&ctx) as f64
}

/// `a`, `b` and `c` of f32 elements, in ps and ps for each byte: a broadcast of two ranks is one message; a reduction
/// of two ranks is one more op.
fn constants() -> [f64; 3] {
    let message = |n| takes("binomial_broadcast", 2, n);
    let reduced = |n| takes("ring_allreduce", 2, n);
    let (small, large) = (2048, 16 << 10);
    let slope = |f: &dyn Fn(usize) -> f64| (f(large) - f(small)) / (4 * (large - small)) as f64;
    let b = slope(&message);
    [message(small) - b * (4 * small) as f64, b, slope(&reduced) - b]
}

/// Each formula for the numbers of ranks it holds for, to the rounding: what is stored meanwhile shares an edge with what
/// is sent, on which a flit takes the shortest time there is, 1 ps.
#[test]
fn algorithms_take_what_their_formulas_say() {
    let [a, b, c] = constants();
    let lg = |p: f64| p.log2().ceil();
    type Formula<'a> = Box<dyn Fn(f64, f64) -> f64 + 'a>;
    let formulas: [(&str, &[usize], Formula); 6] = [
        ("ring_allreduce", &[2, 3, 4, 7, 16], Box::new(|p, n| (p - 1.0) * (a + n * b + n * c))),
        (
            "ring_rs_ag_allreduce",
            &[2, 4, 8, 16],
            Box::new(|p, n| 2.0 * (p - 1.0) * a + 2.0 * (p - 1.0) / p * n * b + (p - 1.0) / p * n * c),
        ),
        ("recursive_doubling_allreduce", &[2, 4, 8, 16], Box::new(|p, n| lg(p) * (a + n * b + n * c))),
        ("binomial_broadcast", &[2, 4, 8, 16], Box::new(|p, n| lg(p) * (a + n * b))),
        ("ring_all_gather", &[2, 3, 4, 7, 16], Box::new(|p, n| (p - 1.0) * (a + n * b))),
        ("ring_reduce_scatter", &[2, 3, 4, 7, 16], Box::new(|p, n| (p - 1.0) * (a + n * b + n * c))),
    ];
    for (algorithm, ranks, formula) in &formulas {
        for p in *ranks {
            for n in [4096, 8192] {
                let (got, want) = (takes(algorithm, *p, n), formula(*p as f64, (4 * n) as f64));
                let flits = (p * n * 4).div_ceil(256) as f64;
                assert!(got >= want && got <= want + flits, "{algorithm} of {p}: {got} ps, not {want} ps");
            }
        }
    }
}

/// Other numbers of ranks than powers of two need no more rounds than the next power.
#[test]
fn a_broadcast_takes_no_more_than_its_rounds() {
    for p in [3, 5, 6, 7, 9, 15] {
        let next = takes("binomial_broadcast", usize::next_power_of_two(p), 4096);
        let got = takes("binomial_broadcast", p, 4096);
        assert!(got <= next && got > next / 2.0, "{p}: {got} ps, {next} ps");
    }
}

/// Bus bandwidth of a reduce-scatter and an all-gather does not depend on the number of ranks where n is large; that
/// of the ring of whole tiles falls as one over it.
#[test]
fn bus_bandwidth_over_ranks() {
    // As large as a ring of 16 tiles has room for at once.
    let n = 96 << 10;
    let busbw = |algorithm, p: usize| {
        let bus = 2.0 * (p as f64 - 1.0) / p as f64;
        bus * (4 * n) as f64 / takes(algorithm, p, n) * 1000.0
    };
    let [_, b, c] = constants();
    for p in [2, 4, 8, 16] {
        let (flat, whole) = (busbw("ring_rs_ag_allreduce", p), busbw("ring_allreduce", p));
        // For n without end, in GB/s.
        let (limit_flat, limit_whole) = (1000.0 / (b + c / 2.0), 2.0 / p as f64 * 1000.0 / (b + c));
        assert!((0.95..=1.0).contains(&(flat / limit_flat)), "{p}: {flat} GB/s, {limit_flat} GB/s");
        assert!((0.95..=1.0).contains(&(whole / limit_whole)), "{p}: {whole} GB/s, {limit_whole} GB/s");
    }
}

/// No rank leaves a barrier before every rank has come to it.
#[test]
fn nobody_leaves_a_barrier_before_all_have_come() {
    for p in 2..=16 {
        let ctx = Group::of("dissemination_barrier", p).context();
        ctx.spawn(p, async |_, ctx: Worker| ctx.barrier().await.map(|_| ())).unwrap();
        // Who knows of whom when: a receive adds what the sender knew at its send.
        let log = ctx.op_log();
        let launch = &log.launches[0];
        let mut knows: Vec<u32> = (0..p).map(|rank| 1 << rank).collect();
        let rounds =
            launch.program.pes[0].ops.iter().filter(|op| matches!(op.kind, OpKind::Send { .. })).count();
        for round in 0..rounds {
            let before = knows.clone();
            for (rank, (pe, times)) in launch.program.pes.iter().zip(&launch.timing.pes).enumerate() {
                let receives =
                    pe.ops.iter().zip(&times.ops).filter(|(op, _)| matches!(op.kind, OpKind::Recv { .. }));
                let (_, t) = receives.into_iter().nth(round).unwrap();
                let send = t.peer.unwrap();
                assert!(launch.timing.op(send).start_ps <= t.end_ps);
                knows[rank] |= before[send.pe as usize];
            }
        }
        assert_eq!(knows, vec![(1 << p) - 1; p], "{p} ranks");
    }
}
