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
