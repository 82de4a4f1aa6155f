//! `kernbench program`: what a bench launches, recorded and checked but not run.

use super::bench::BenchArgs;
use super::{Session, out};
use kernbench_core::diag::Failure;
use kernbench_core::host::LaunchOptions;
use kernbench_kernels::bench::Fill;

/// Print the checked program of a bench: every op of every PE
#[derive(clap::Args)]
#[command(override_usage = "kernbench program BENCH [OPTIONS]", after_help = AFTER)]
pub(super) struct Args {
    #[command(flatten)]
    bench: BenchArgs,
}

const AFTER: &str = "\
One op a line: its number, the binding it gets, what it does, the type of the result, and after `<-`
the ops it waits for: plain numbers for data, `~` for bytes it overwrites, `|` for a fence. PEs whose
programs differ only in the ranges they access are printed once.

Example:
  kernbench program gqa-decode-short --set kv_per_cube=8 s_kv=64";

pub(super) fn run(args: &Args, session: &mut Session<'_>) -> Result<(), Failure> {
    let (bench, params) = args.bench.pick(session)?;
    let ctx = args.bench.context(session)?.data(false);
    let inputs = (bench.inputs)(&ctx, &params, Fill::Nothing)?;
    let options = LaunchOptions { dry_run: true, ..args.bench.options() };
    let outcome = BenchArgs::run(&bench, &ctx, &params, &inputs, &options)?;
    session.warnings.extend(outcome.launches.iter().flat_map(|l| l.warnings.iter().cloned()));
    let topology = ctx.topology();
    let name = |pe| {
        let at = topology.machine().at(pe);
        [at.sip, at.cube, at.pe]
    };
    out::results(|w| {
        for (i, launched) in outcome.launches.iter().enumerate() {
            let between = if i > 0 { "\n" } else { "" };
            write!(w, "{between}{}", launched.program.listing(&name))?;
        }
        Ok(())
    })
}
