//! The command line of kernbench, with the benches of this crate before its own.

use kernbench::kernels::bench::BENCHES;
use std::process::ExitCode;

fn main() -> ExitCode {
    kernbench::cli::main(&[own_kernels::MINE, BENCHES])
}
