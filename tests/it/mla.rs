//! Multi-head latent attention: any heads, lengths and batches, and what a cube shares out.

use kernbench::diag::Failure;
use kernbench::host::Context;
use kernbench::kernels::attention::MLA_DECODE;
use kernbench::kernels::bench::{Fill, Outcome, Params};
use kernbench::prelude::*;

fn run_on(ctx: &Context, settings: &str) -> Result<Outcome, Failure> {
    let params = Params::parse("mla-decode", MLA_DECODE.params, settings.split_whitespace())?;
    let inputs = (MLA_DECODE.inputs)(ctx, &params, Fill::Seed(11))?;
    (MLA_DECODE.run)(ctx, &params, &inputs, &LaunchOptions::default())
}

fn run(settings: &str) -> Result<Outcome, Failure> {
    run_on(&Context::new(Topology::default_machine()), settings)
}

/// Runs the bench in each type. The result is right, and the bound small beside it, for one that anything keeps proves
/// nothing. Gives the results in f32.
fn check(settings: &str) -> Vec<f32> {
    let mut last = vec![];
    for (dtype, most) in [("f16", 0.02), ("bf16", 0.05), ("f32", 1e-5)] {
        let settings = format!("{settings} dtype={dtype}");
        let outcome = run(&settings).unwrap_or_else(|e| panic!("{settings}: {e}"));
        let check = outcome.check.unwrap();
        last = outcome.outputs[0].floats();
        let largest = f64::from(last.iter().fold(0.0, |a: f32, x| a.max(x.abs())));
        assert!(check.correct, "{settings}: {check:?}");
        assert!(check.error_bound <= most * largest || largest == 0.0, "{settings}: {check:?} of {largest}");
    }
    last
}

#[test]
fn heads_of_deepseek() {
    for settings in ["keys=1", "keys=257", "heads=16 keys=600 batch=2", "heads=17 keys=129 batch=3"] {
        check(settings);
    }
}

/// Blocks of heads and keys with a last shorter one, PEs without keys, cubes with several blocks.
#[test]
fn any_shape() {
    for settings in [
        "heads=1 latent=1 rope=1 keys=1",
        "heads=1 latent=40 rope=8 keys=63",
        "heads=5 latent=24 rope=40 keys=7 batch=3",
        "heads=37 latent=96 rope=16 keys=521 batch=2",
        "heads=33 latent=8 rope=4 keys=65 batch=19",
        "heads=3 latent=1024 rope=128 keys=70 batch=2",
        "heads=9 latent=64 rope=32 keys=100 scale=0.5",
        "heads=9 latent=64 rope=32 keys=100 d=1",
        "heads=37 latent=96 rope=16 keys=521 batch=2 split=4",
        "heads=33 latent=8 rope=4 keys=65 batch=19 split=2",
        "heads=1 latent=40 rope=8 keys=63 split=4",
    ] {
        check(settings);
    }
}

#[test]
fn ragged_lengths() {
    let of = |lengths: &str| {
        let settings = format!("batch=3 heads=7 latent=64 rope=16 keys=200 lengths={lengths}");
        check(&format!("{settings} split=2"));
        check(&settings)
    };
    of("200,1,199");
    of("9,64,65");
    let o = of("0,200,3");
    assert!(o[..7 * 64].iter().all(|x| *x == 0.0) && o[7 * 64..].iter().all(|x| *x != 0.0));
    assert!(of("0,0,0").iter().all(|x| *x == 0.0));
}

/// Each PE loads its own keys once for its block of heads; m, l and O of it move over 7 hops of a cube, O of at most two
/// rows of 512 elements a message.
#[test]
fn what_a_cube_shares_out() {
    let counts = |settings: &str| {
        let ctx = Context::new(Topology::default_machine());
        run_on(&ctx, settings).unwrap();
        ["dma_read", "gemm_bf16", "ipcq_copy", "dma_write"].map(|op| ctx.op_log().count(op))
    };
    // Eight heads on each of 16 cubes, 64 keys on each PE.
    assert_eq!(counts("heads=128 keys=512"), [128 * (2 + 2), 128 * 3, 16 * 7 * 3 * 4, 16]);
    // The same heads and keys on teams of four cubes: blocks of 32 heads; partials go over 28 hops and from cube to cube.
    assert_eq!(counts("heads=128 keys=512 split=4"), [128 * (2 + 2), 128 * 3, 4 * (4 * 7 + 3) * 3 * 16, 4]);
    // Two cubes of one head, of which four PEs have a key.
    assert_eq!(counts("heads=2 keys=4"), [2 * (8 * 2 + 4 * 2), 2 * 4 * 3, 2 * 7 * 3, 2]);
}

/// Two buffers of the largest blocks of keys, in every type.
#[test]
fn the_default_scratch_holds_all_tiles() {
    for dtype in ["f16", "bf16", "f32"] {
        for sizes in
            ["latent=512 rope=64", "latent=512 rope=512", "latent=1024 rope=1", "latent=128 rope=640"]
        {
            let ctx = Context::new(Topology::default_machine()).data(false);
            run_on(&ctx, &format!("batch=9 keys=1100 {sizes} dtype={dtype}"))
                .unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn without_data_lengths_still_decide() {
    let reads = |lengths: &str| {
        let ctx = Context::new(Topology::default_machine()).data(false);
        let outcome = run_on(&ctx, &format!("heads=4 batch=2 keys=900 lengths={lengths}")).unwrap();
        assert!(outcome.check.is_none() && outcome.outputs.is_empty());
        ctx.op_log().count("dma_read")
    };
    assert!(reads("900,10") > reads("10,10"));
}

#[test]
fn parameters_that_do_not_fit() {
    let said = |settings: &str| {
        let ctx = Context::new(Topology::default_machine()).data(false);
        run_on(&ctx, settings).unwrap_err().to_string()
    };
    let wrong = [
        "split=3",
        "split=8",
        "batch=2 lengths=5",
        "keys=9 lengths=10",
        "lengths=3,x",
        "lengths=-1",
        "heads=0",
    ];
    insta::assert_snapshot!(wrong.map(said).join("\n"), @"
    error[KB0623]: split=3, but 4 cubes in a row do not divide by it
      help: set split=2
    error[KB0623]: split=8, but 4 cubes in a row do not divide by it
      help: set split=4
    error[KB0623]: `lengths` is a list of 1, but batch=2
      help: give a length of each batch, or set batch=1
    error[KB0623]: `lengths` has 10, but keys=9
      help: write at most 9, or set keys=10
    error[KB0621]: `lengths=3,x`: whole numbers from 0 to 2147483648 with commas between them, or `auto` is expected
      help: write `--set lengths=VALUE` with whole numbers from 0 to 2147483648 with commas between them, or `auto`
    error[KB0621]: `lengths=-1`: whole numbers from 0 to 2147483648 with commas between them, or `auto` is expected
      help: write `--set lengths=VALUE` with whole numbers from 0 to 2147483648 with commas between them, or `auto`
    error[KB0621]: `heads=0`: a whole number from 1 to 2147483648 is expected
      help: write `--set heads=VALUE` with a whole number from 1 to 2147483648
    ");
    insta::assert_snapshot!(said("heads=1 latent=1025 keys=8"), @"
    error[KB0107]: a message of [1, 1025] f32 has 4100 bytes, but a slot holds 4096 bytes (and 5 more PEs, 1 more turn)
      --> kernbench-kernels/src/attention/softmax.rs:101:24: `o`
      --> kernbench-kernels/src/attention/mla.rs:107:21: called here
      help: send smaller slices (`cols`), or raise `slot_size` in ccl.yaml
    error[KB0107]: a message of [1, 1025] f32 has 4100 bytes, but a slot holds 4096 bytes (and 6 more PEs)
      --> kernbench-kernels/src/attention/softmax.rs:88:65: `tile`
      --> kernbench-kernels/src/attention/mla.rs:110:33: called here
      help: send smaller slices (`cols`), or raise `slot_size` in ccl.yaml
    ");
}
