//! The kernel computes what the oracle does, emits the ops it should, and explains wrong parameters.

use kernbench::kernels::bench::{Fill, Outcome, Params};
use kernbench::prelude::*;
use own_kernels::norm_linear::NORM_LINEAR;

fn run(settings: &str) -> (Context, Outcome) {
    let ctx = Context::new(Topology::default_machine());
    let params = Params::parse(NORM_LINEAR.name, NORM_LINEAR.params, settings.split(' ')).unwrap();
    let inputs = (NORM_LINEAR.inputs)(&ctx, &params, Fill::Seed(1)).unwrap();
    let outcome = (NORM_LINEAR.run)(&ctx, &params, &inputs, &LaunchOptions::default()).unwrap();
    (ctx, outcome)
}

#[test]
fn results_are_right() {
    for settings in
        ["rows=8 d=1 n=1", "rows=264 d=100 n=40", "rows=512 d=256 n=128 cubes=2", "rows=296 d=96 n=33"]
    {
        let check = run(settings).1.check.unwrap();
        assert!(check.correct, "{settings}: {check:?}");
    }
}

/// The log by PE and op, without times, so that another machine gives the same.
#[test]
fn emitted_ops() {
    let (ctx, _) = run("rows=264 d=64 n=32");
    insta::with_settings!({ filters => [(r"\.rs:\d+", ".rs:LINE")] }, {
        insta::assert_snapshot!(ctx.op_log().logical());
    });
}

#[test]
fn rows_that_do_not_divide() {
    let ctx = Context::new(Topology::default_machine());
    let params = Params::parse(NORM_LINEAR.name, NORM_LINEAR.params, ["rows=12"]).unwrap();
    let failure = (NORM_LINEAR.inputs)(&ctx, &params, Fill::Nothing).unwrap_err();
    insta::assert_snapshot!(failure, @"
    error[KB0623]: 12 rows do not divide by 8 PEs
      help: set rows=16 or another multiple of 8
    ");
}
