//! Attention at long context: results for every number of cubes, and how partials travel.

use kernbench::host::Context;
use kernbench::kernels::attention::DECODE_LONG;
use kernbench::kernels::bench::{Fill, Outcome, Params};
use kernbench::prelude::*;
use std::collections::BTreeMap;

fn run(settings: &str) -> (Context, Outcome) {
    let ctx = Context::new(Topology::default_machine());
    let params = Params::parse("gqa-decode-long", DECODE_LONG.params, settings.split(' ')).unwrap();
    let inputs = (DECODE_LONG.inputs)(&ctx, &params, Fill::Seed(5)).unwrap();
    let outcome = (DECODE_LONG.run)(&ctx, &params, &inputs, &LaunchOptions::default()).unwrap();
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
            let (_, outcome) =
                run(&format!("h_q=6 h_kv=2 d=40 cubes={cubes} s_kv={s_kv} valid={valid} dtype={dtype}"));
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
            let (ctx, _) = run(&format!("h_q=8 h_kv={h_kv} d=64 cubes={cubes} s_kv={}", 8 * cubes));
            let want = [("W", west), ("N", north), ("intra_W", 18 * cubes), ("intra_N", 3 * cubes)];
            let want: BTreeMap<_, _> =
                want.into_iter().filter(|(_, n)| *n > 0).map(|(d, n)| (d, n * h_kv)).collect();
            assert_eq!(hops(&ctx), want, "{cubes} cubes, {h_kv} heads");
            assert_eq!(ctx.op_log().count("dma_write"), h_kv, "the root writes");
        }
    }
}

#[test]
fn parameters_that_do_not_fit() {
    let said = |settings: &str| {
        let ctx = Context::new(Topology::default_machine());
        let params = Params::parse("gqa-decode-long", DECODE_LONG.params, [settings]).unwrap();
        (DECODE_LONG.inputs)(&ctx, &params, Fill::Nothing).unwrap_err().to_string()
    };
    let all = ["h_q=30", "cubes=17", "s_kv=8200", "valid=9000"].map(said).join("\n");
    insta::assert_snapshot!(all, @"
    error[KB0623]: 30 query heads do not divide by 8 key/value heads
      help: set h_q=32 or another multiple of 8
    error[KB0623]: 17 cubes, but a SIP of this machine has 16
      help: set cubes to at most 16
    error[KB0623]: 8200 keys do not divide by the 128 PEs of 16 cubes
      help: set s_kv=8320 or another multiple of 128
    error[KB0623]: valid=9000 of 8192 keys
      help: set valid to at most 8192
    ");
}
