//! `kernbench run`: runs a bench and says whether the result is right and where the time went.

use super::bench::BenchArgs;
use super::machine::FidelityArg;
use super::progress::Progress;
use super::report::{Run, human, json};
use super::{Session, colours, files, inputs, out, text};
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::LaunchOptions;
use kernbench_core::report::Report;
use kernbench_kernels::bench::{Fill, HostArray};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Run a bench: is the result right, how long does it take, where does the time go
#[derive(clap::Args)]
#[command(override_usage = "kernbench run BENCH [OPTIONS]", after_help = AFTER)]
pub(super) struct Args {
    #[command(flatten)]
    bench: BenchArgs,
    #[command(flatten)]
    fidelity: FidelityArg,
    /// Ends with an error when this much simulated time has passed
    #[arg(long, value_name = "N")]
    max_ns: Option<u64>,
    /// Seed of the random inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Only simulate: compute no values and check no result
    #[arg(long, conflicts_with_all = ["input", "output", "seed"])]
    no_data: bool,
    /// Takes the inputs from a safetensors file, by their names, types and shapes
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    input: Option<PathBuf>,
    /// Writes the outputs to a safetensors file, whole or not at all
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Prints one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Threads that compute values; results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

const AFTER: &str = "\
Exit code: 0 if the result is right (or --no-data ran to its end), 1 if it is wrong, 2 if something
could not be done, 130 after Ctrl-C.

Examples:
  kernbench run gqa-decode-short
  kernbench run gqa-decode-short --set h_q=32 h_kv=8 d=128 s_kv=1024
  kernbench run gqa-prefill-short --topology my.yaml --issue blocking
  kernbench run gqa-decode-short --input qkv.safetensors --output o.safetensors
  kernbench run gqa-decode-short --no-data --json | jq .simulated_ps";

pub(super) fn run(args: &Args, session: &mut Session<'_>) -> Result<ExitCode, Failure> {
    let (bench, params) = args.bench.pick(session)?;
    let mut ctx = args.bench.context(session)?.data(!args.no_data);
    if let Some(threads) = args.threads {
        ctx = ctx.threads(usize::from(threads));
    }
    if let Some(path) = &args.output {
        files::check_output(path)?;
    }
    let start = Instant::now();
    let progress = Progress::start(format!("running {}", bench.name));
    let wanted = (bench.inputs)(&ctx, &params, Fill::Nothing)?;
    if !args.no_data {
        check_memory(&wanted)?;
    }
    let arrays = match &args.input {
        _ if args.no_data => wanted,
        Some(path) => inputs::read(path, &wanted, session)?,
        None => (bench.inputs)(&ctx, &params, Fill::Seed(args.seed))?,
    };
    let max_ps = args.max_ns.map(|ns| ns.saturating_mul(1000));
    let options = LaunchOptions { max_ps, fidelity: Some(args.fidelity.fidelity), ..args.bench.options() };
    let outcome = BenchArgs::run(&bench, &ctx, &params, &arrays, &options)?;
    drop(progress);
    let wall = start.elapsed();
    session.warnings.extend(outcome.launches.iter().flat_map(|l| l.warnings.iter().cloned()));
    if let Some(path) = &args.output {
        inputs::write(path, &outcome.outputs)?;
    }
    let topology = ctx.topology();
    let run = Run {
        bench: &bench,
        params: &params,
        inputs: match (&args.input, args.no_data) {
            (_, true) => "no data".to_owned(),
            (Some(path), _) => format!("inputs from {}", files::name(path)),
            (None, _) => format!("seed {}", args.seed),
        },
        odd: if args.no_data { None } else { Some(inputs::odd(&arrays)) },
        outcome: &outcome,
        report: Report::of_all(&ctx.op_log(), &outcome.launches.iter().map(|l| l.index).collect::<Vec<_>>()),
        machine: topology.machine(),
        deploy_ps: ctx.deploy_ps(),
        wall,
    };
    match args.json {
        true => out::print(&json(&run))?,
        false => out::print(&human(&run, colours(&std::io::stdout())))?,
    }
    let wrong = outcome.check.is_some_and(|check| !check.correct);
    Ok(if wrong { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Inputs that the host cannot hold end in a diagnostic, not in the middle of the run.
fn check_memory(wanted: &[HostArray]) -> Result<(), Failure> {
    // The bench and the machine share the bytes.
    let elements = |a: &HostArray| a.shape.iter().fold(1u64, |n, &d| n.saturating_mul(d as u64));
    let need = wanted.iter().map(|a| elements(a).saturating_mul(u64::from(a.ty.bytes())));
    let need = need.fold(0, u64::saturating_add);
    let Some(free) = free_memory().filter(|free| need > *free) else { return Ok(()) };
    let text = format!("the inputs take {} of memory, but {} are free", text::bytes(need), text::bytes(free));
    Err(Diagnostic::error("KB0645", text)
        .help("set smaller parameters, or only simulate with `--no-data`")
        .into())
}

/// Memory the host can give, where it says so.
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}
