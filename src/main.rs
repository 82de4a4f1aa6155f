//! The command line with the benches that kernbench ships.

use kernbench::kernels::bench::BENCHES;
use std::process::ExitCode;

fn main() -> ExitCode {
    kernbench::cli::main(&[BENCHES])
}
