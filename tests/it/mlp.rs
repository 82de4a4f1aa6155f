//! The tensor-parallel perceptron against one device.

use kernbench::host::Context;
use kernbench::kernels::bench::{Fill, Outcome, Params};
use kernbench::kernels::mlp::MLP;
use kernbench::prelude::*;

fn run(sips: usize, settings: &str) -> (Context, Outcome) {
    let yaml = Topology::DEFAULT_YAML.replace("count: 2   ", &format!("count: {sips}   "));
    let ctx = Context::new(Topology::from_yaml("topology.yaml", &yaml).unwrap());
    let params = Params::parse("mlp", MLP.params, settings.split(' ')).unwrap();
    let inputs = (MLP.inputs)(&ctx, &params, Fill::Seed(3)).unwrap();
    let outcome = (MLP.run)(&ctx, &params, &inputs, &LaunchOptions::default()).unwrap();
    (ctx, outcome)
}

/// The same layers on 1 to 6 SIPs: all are right against f64 on one device, and what the ranks add up is the same.
#[test]
fn any_number_of_ranks_gives_what_one_device_gives() {
    for dtype in ["f16", "bf16", "f32"] {
        let settings = format!("m=5 d=64 ff=192 dtype={dtype}");
        let one = run(1, &settings).1;
        let (alone, bound) = (one.outputs[0].floats(), one.check.unwrap().error_bound);
        for ranks in [1, 2, 3, 4, 6] {
            let (ctx, outcome) = run(ranks, &settings);
            let check = outcome.check.unwrap();
            assert!(check.correct, "{ranks} ranks of {dtype}: {check:?}");
            let apart = alone.iter().zip(outcome.outputs[0].floats()).map(|(a, b)| (a - b).abs());
            let worst = apart.fold(0.0, f32::max);
            assert!(f64::from(worst) <= bound + check.error_bound, "{ranks} ranks of {dtype}: {worst}");
            let names: Vec<&str> = outcome.launches.iter().map(|l| &*l.program.name).collect();
            let products = [vec!["column_linear"; ranks], vec!["row_linear"; ranks]].concat();
            assert_eq!(names, [&products[..], &["all_reduce"]].concat());
            // Nothing of the hidden layer leaves its rank: all messages are the sum's.
            let log = ctx.op_log();
            let messages = log.records().filter(|r| r.name() == "ipcq_copy").count();
            let of_sum = log.launch(outcome.launches.last().unwrap().index);
            assert_eq!(of_sum.filter(|r| r.name() == "ipcq_copy").count(), messages);
        }
    }
}

/// Products of all ranks run at one time; the sum follows them.
#[test]
fn ranks_compute_side_by_side() {
    let (ctx, outcome) = run(3, "m=16 d=128 ff=384 cubes=2");
    let log = ctx.op_log();
    let spans: Vec<(u64, u64)> = outcome
        .launches
        .iter()
        .map(|l| &log.launches[l.index].timing)
        .map(|t| (t.start_ps, t.end_ps))
        .collect();
    let [first @ .., sum] = &spans[..] else { panic!("no launches") };
    let (column, row) = first.split_at(3);
    assert!(column.iter().all(|c| c.0 == column[0].0), "{spans:?}");
    assert!(row.iter().all(|r| r.0 == row[0].0 && r.0 > column[0].1), "{spans:?}");
    assert!(row.iter().all(|r| sum.0 > r.1), "{spans:?}");
}

#[test]
fn layers_that_ranks_cannot_share() {
    let said = |settings: &str| {
        let ctx = Context::new(Topology::default_machine());
        let params = Params::parse("mlp", MLP.params, settings.split(' ')).unwrap();
        let inputs = (MLP.inputs)(&ctx, &params, Fill::Nothing).unwrap();
        (MLP.run)(&ctx, &params, &inputs, &LaunchOptions::default()).unwrap_err().to_string()
    };
    insta::assert_snapshot!(said("ff=1025"), @"
    error[KB0623]: `ff` is 1025, which 2 ranks cannot share
      help: use a multiple of 16
    ");
    insta::assert_snapshot!(said("d=252").lines().next().unwrap(), @"error[KB0603]: rank 0: tensor `w2`: 252 columns do not divide by 8 PEs of a cube");
}
