//! Results: every algorithm, world sizes 1 to 16, odd and empty sizes, types, reductions, queues.

use super::{Group, collective};
use kernbench::host::Operation;
use kernbench::kernels::collectives::ALGORITHMS;
use kernbench::kernels::collectives::oracle::{Collective, Element};
use kernbench::prelude::*;
use kernbench::ty::{bf16, f16};

/// What rank `rank` gives: values that do not cancel, whose products of 16 stay in range, different everywhere.
fn inputs<T: Element>(rank: usize, len: usize, reduce: ReduceOp) -> Vec<T> {
    let mut state = (rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let value = |x: f64| match (T::TYPE, reduce) {
        (ElementType::I32, ReduceOp::Prod) => {
            if x < 0.5 {
                -1.0
            } else {
                2.0
            }
        }
        (ElementType::I32, _) => (x * 2e6).floor() - 1e6,
        (_, ReduceOp::Prod) => {
            if x < 0.2 {
                x - 1.0
            } else {
                x + 0.5
            }
        }
        _ => 4.0 * x - 1.0,
    };
    (0..len).map(|_| T::of(value(next()))).collect()
}

/// One collective of a group; what is wrong with its results.
fn check<T: Element>(g: &Group, n: usize, reduce: ReduceOp, root: usize, in_place: bool) -> Vec<Vec<T>> {
    let (operation, p) = (g.operation(), g.ranks());
    // What a rank gives.
    let len = match operation {
        Operation::ReduceScatter | Operation::AllToAll => n * p,
        Operation::Barrier => 0,
        _ => n,
    };
    let from: Vec<Vec<T>> = (0..p).map(|rank| inputs(rank, len, reduce)).collect();
    let got = g.context().spawn(p, async |rank, ctx: Worker| {
        let place = Placement::replicated().on(1, 1);
        let done = collective(&ctx, operation, (&from[rank], in_place), (reduce, root), place).await?;
        Ok(done.0)
    });
    let what = format!("{g:?} {:?} n {n} {reduce:?} root {root} in place {in_place}", T::TYPE);
    let got = got.unwrap_or_else(|e| panic!("{what}: {e}"));
    let given: Vec<&[T]> = from.iter().map(|x| &x[..]).collect();
    let gotten: Vec<&[T]> = got.iter().map(|x| &x[..]).collect();
    if let Some(wrong) = (Collective { operation, reduce, root }).wrong(&given, &gotten) {
        panic!("{what}: {wrong:?}");
    }
    got
}

fn check_type(ty: usize, g: &Group, n: usize, reduce: ReduceOp, root: usize, in_place: bool) {
    match ty % 4 {
        0 => drop(check::<f32>(g, n, reduce, root, in_place)),
        1 => drop(check::<i32>(g, n, reduce, root, in_place)),
        2 => drop(check::<f16>(g, n, reduce, root, in_place)),
        _ => drop(check::<bf16>(g, n, reduce, root, in_place)),
    }
}

/// Every algorithm with every number of ranks and four sizes; the other choices take turns.
#[test]
fn every_algorithm_is_right_for_every_number_of_ranks() {
    let mut turn = 0;
    for a in ALGORITHMS {
        for ranks in 1..=16 {
            for n in [0, 1, 37, 331] {
                let g = Group {
                    n_slots: 1 + turn % 3,
                    slot_size: 256,
                    topology: a.topologies[turn % a.topologies.len()].name(),
                    buffer_kind: ["tcm", "sram", "hbm"][turn / 2 % 3],
                    backpressure: ["sleep", "poll"][turn / 3 % 2],
                    ..Group::of(a.name, ranks)
                };
                check_type(turn, &g, n, ReduceOp::ALL[turn / 4 % 4], turn % ranks, turn % 5 < 2);
                turn += 1;
            }
        }
    }
}

/// Every operation, type, reduction and way, for a number of ranks that is no power of two.
#[test]
fn every_type_and_reduction() {
    for a in ALGORITHMS {
        for ty in 0..4 {
            for reduce in ReduceOp::ALL {
                for in_place in [false, true] {
                    check_type(ty, &Group::of(a.name, 6), 25, reduce, 4, in_place);
                }
            }
        }
    }
}

#[test]
fn a_broadcast_comes_from_any_root() {
    for ranks in [1, 2, 3, 7, 16] {
        for root in 0..ranks {
            check::<f32>(&Group::of("binomial_broadcast", ranks), 9, ReduceOp::Sum, root, root % 2 == 0);
        }
    }
}

/// The order of reduction is fixed: queues, and how often it runs, do not show in the bits.
#[test]
fn bits_are_those_of_any_run() {
    for a in ALGORITHMS.iter().filter(|a| a.operation == Operation::AllReduce) {
        let g = Group { slot_size: 256, ..Group::of(a.name, 6) };
        let first = check::<f32>(&g, 333, ReduceOp::Sum, 0, false);
        let slow = Group { n_slots: 1, backpressure: "poll", buffer_kind: "hbm", ..g };
        for (g, in_place) in [(g, false), (g, true), (slow, false)] {
            assert_eq!(check::<f32>(&g, 333, ReduceOp::Sum, 0, in_place), first, "{}", a.name);
        }
    }
}

/// The whole-tile ring adds in order of rank, each sum rounded to the type.
#[test]
fn a_ring_of_whole_tiles_adds_in_order_of_rank() {
    let got = check::<f16>(&Group::of("ring_allreduce", 7), 50, ReduceOp::Sum, 0, true);
    for (i, got) in got[3].iter().enumerate() {
        let terms = (0..7).map(|rank| inputs::<f16>(rank, 50, ReduceOp::Sum)[i]);
        let want = terms.reduce(|a, b| f16::from_f32(a.to_f32() + b.to_f32())).unwrap();
        assert_eq!(got.to_bits(), want.to_bits());
    }
}
