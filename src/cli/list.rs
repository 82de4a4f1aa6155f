//! `kernbench list`: the benches and what they take.

use super::{Session, out};
use kernbench_core::diag::Failure;
use std::fmt::Write;

/// List the benches with their parameters and defaults
#[derive(clap::Args)]
#[command(after_help = "Example:\n  kernbench list")]
pub(super) struct Args {}

pub(super) fn run(_: &Args, session: &Session<'_>) -> Result<(), Failure> {
    let mut text = String::new();
    for bench in session.benches() {
        let _ = writeln!(text, "{}\n  {}\n", bench.name, bench.about);
        let row = |p: &kernbench_kernels::bench::Param| {
            vec![format!("  {}", p.key), p.default.to_owned(), p.about.to_owned()]
        };
        let rows: Vec<_> = bench.params.iter().map(row).collect();
        text += &out::table(&[], &rows, &[]);
        text.push('\n');
    }
    text += "Set parameters with `--set KEY=VALUE ..`; the second column has their defaults.\n";
    out::print(&text)
}
