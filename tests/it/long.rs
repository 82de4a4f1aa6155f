//! Attention at long context: results for every number of cubes, and how partials, keys and values travel.

#[path = "../../examples/overlap.rs"]
#[expect(dead_code, reason = "its `main` is for `cargo run --example`")]
mod example;

use kernbench::host::Context;
use kernbench::kernels::attention::{DECODE_LONG, PREFILL_LONG};
use kernbench::kernels::bench::{Bench, Fill, Outcome, Params};
use kernbench::prelude::*;
use std::collections::BTreeMap;

fn run(bench: &Bench, settings: &str) -> (Context, Outcome) {
    let ctx = Context::new(Topology::default_machine());
    let params = Params::parse(bench.name, bench.params, settings.split(' ')).unwrap();
    let inputs = (bench.inputs)(&ctx, &params, Fill::Seed(5)).unwrap();
    let outcome = (bench.run)(&ctx, &params, &inputs, &LaunchOptions::default()).unwrap();
    (ctx, outcome)
}

/// Messages by direction.
fn hops(ctx: &Context) -> BTreeMap<&'static str, usize> {
    let mut hops = BTreeMap::new();
    for record in ctx.op_log().records().filter(|r| r.name() == "ipcq_copy") {
        *hops.entry(record.direction().map_or("", Dir::name)).or_default() += 1;
    }
    hops
}

#[test]
fn any_number_of_cubes_is_right() {
    for cubes in 1..=16 {
        let keys = [1, 3, 17][cubes % 3];
        let dtype = ["f16", "bf16", "f32"][cubes / 3 % 3];
        let s_kv = 8 * cubes * keys;
        for valid in [s_kv, s_kv / 2 + 1, 1] {
            let set = format!("h_q=6 h_kv=2 d=40 cubes={cubes} s_kv={s_kv} valid={valid} dtype={dtype}");
            let (_, outcome) = run(&DECODE_LONG, &set);
            let check = outcome.check.unwrap();
            assert!(check.correct, "{cubes} cubes, {valid} of {s_kv} keys, {dtype}: {check:?}");
        }
    }
}

/// Three tiles a hop for each head: west along the rows of cubes, north along the first column; within each cube as at
/// short context with one head.
#[test]
fn partials_go_west_and_then_north() {
    for (cubes, west, north) in [(1, 0, 0), (4, 9, 0), (5, 9, 3), (16, 36, 9)] {
        for h_kv in [1, 2] {
            let (ctx, _) =
                run(&DECODE_LONG, &format!("h_q=8 h_kv={h_kv} d=64 cubes={cubes} s_kv={}", 8 * cubes));
            let want = [("W", west), ("N", north), ("intra_W", 18 * cubes), ("intra_N", 3 * cubes)];
            let want: BTreeMap<_, _> =
                want.into_iter().filter(|(_, n)| *n > 0).map(|(d, n)| (d, n * h_kv)).collect();
            assert_eq!(hops(&ctx), want, "{cubes} cubes, {h_kv} heads");
            assert_eq!(ctx.op_log().count("dma_write"), h_kv, "the root writes");
        }
    }
}

#[test]
fn prefill_on_any_number_of_cubes_is_right() {
    for cubes in 1..=16 {
        // Slots of 4096 B hold 51 keys of 40 f16 or bf16, so that some of the shards have two blocks.
        let keys = [1, 3, 55][cubes % 3];
        let dtype = ["f16", "bf16", "f32"][cubes / 3 % 3];
        let (t_q, s_kv) = (cubes * [1, 5][cubes % 2], 8 * cubes * keys);
        for (causal, valid) in [(true, s_kv), (false, s_kv), (true, s_kv / 2 + 1), (false, 1), (true, 0)] {
            let set = format!(
                "h_q=6 h_kv=2 d=40 cubes={cubes} t_q={t_q} s_kv={s_kv} causal={causal} valid={valid} dtype={dtype}"
            );
            let (_, outcome) = run(&PREFILL_LONG, &set);
            let check = outcome.check.unwrap();
            assert!(check.correct, "{set}: {check:?}");
        }
    }
}

/// A block of K and one of V of each PE cross every link of the line of cubes once in each direction that leads away
/// from their cube: `n (n - 1)` messages of each PE and block.
#[test]
fn keys_reach_every_cube_once() {
    for cubes in [1, 2, 4, 5, 7, 16] {
        let (ctx, _) =
            run(&PREFILL_LONG, &format!("h_q=2 h_kv=1 d=64 cubes={cubes} t_q={cubes} s_kv={}", 8 * cubes));
        let sent: usize = ["E", "W", "N", "S"].iter().filter_map(|dir| hops(&ctx).get(dir).copied()).sum();
        assert_eq!(sent, 8 * 2 * cubes * (cubes - 1), "{cubes} cubes");
        assert_eq!(ctx.op_log().count("dma_write"), cubes, "PE 0 of each cube writes");
    }
}

/// While a PE has keys or values on their way, it computes with those that are there.
#[test]
fn transfers_are_hidden_under_compute() {
    let text = example::text().unwrap();
    let page = std::fs::read_to_string("docs/pipelining.md").unwrap();
    assert!(page.contains(text.trim_end()), "docs/pipelining.md has other numbers:\n{text}");
    for cubes in [2, 5, 16] {
        let measured = example::measure(cubes, kernbench::topology::IssueMode::Dataflow).unwrap();
        assert!(measured.hidden_percent() >= 95, "{cubes} cubes: {measured:?}");
    }
}

#[test]
fn parameters_that_do_not_fit() {
    let said = |bench: &Bench, settings: &str| {
        let ctx = Context::new(Topology::default_machine());
        let params = Params::parse(bench.name, bench.params, [settings]).unwrap();
        (bench.inputs)(&ctx, &params, Fill::Nothing).unwrap_err().to_string()
    };
    let decode = ["h_q=30", "cubes=17", "s_kv=8200", "valid=9000"].map(|set| said(&DECODE_LONG, set));
    let all = decode.join("\n") + "\n" + &said(&PREFILL_LONG, "t_q=100");
    insta::assert_snapshot!(all, @"
    error[KB0623]: 30 query heads do not divide by 8 key/value heads
      help: set h_q=32 or another multiple of 8
    error[KB0623]: 17 cubes, but a SIP of this machine has 16
      help: set cubes to at most 16
    error[KB0623]: 8200 keys do not divide by the 128 PEs of 16 cubes
      help: set s_kv=8320 or another multiple of 128
    error[KB0623]: valid=9000 of 8192 keys
      help: set valid to at most 8192
    error[KB0623]: 100 queries do not divide by 16 cubes
      help: set t_q=112 or another multiple of 16
    ");
}
