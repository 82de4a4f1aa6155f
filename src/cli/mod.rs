//! The command line: `run`, `list`, `program`, `log`, `topology`, `probe`, `collectives`, `conform`, `explain`.
//!
//! Results go to stdout; diagnostics and progress to stderr. The exit code is 0 if a result is right
//! (or was not asked for), 1 if it is wrong, 2 for any mistake of the user, 130 after Ctrl-C.

mod bench;
mod collectives;
mod conform;
mod explain;
mod files;
mod inputs;
mod interrupt;
mod list;
mod log;
mod machine;
mod out;
mod probe;
mod program;
mod progress;
mod report;
mod run;
mod text;
mod topology;

use crate::render::{Texts, render};
use clap::{Parser, Subcommand};
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_kernels::bench::Bench;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// Simulate kernels on an AI accelerator: is the result right, is the program sound, how long does it
/// take and why.
#[derive(Parser)]
#[command(name = "kernbench", version, arg_required_else_help = true, disable_help_subcommand = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  kernbench list                                   what there is to run
  kernbench run gqa-decode-short                   run it and check the result
  kernbench run gqa-decode-short --set s_kv=1024   with another parameter
  kernbench log gqa-decode-short --timed           every op with its times
  kernbench probe                                  what transfers cost on the machine
  kernbench collectives --op all_reduce            what collectives between SIPs cost
  kernbench conform conformance/onnx_attention     run an outside suite of attention cases
  kernbench explain KB0303                         what a diagnostic means";

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    List(list::Args),
    Program(program::Args),
    Log(log::Args),
    Topology(topology::Args),
    Probe(probe::Args),
    Collectives(Box<collectives::Args>),
    Conform(conform::Args),
    Explain(explain::Args),
}

/// What the subcommands share: the benches there are, and what to tell the user besides results.
struct Session<'a> {
    benches: &'a [&'a [Bench]],
    texts: Texts,
    warnings: Vec<Diagnostic>,
}

impl Session<'_> {
    fn benches(&self) -> impl Iterator<Item = &Bench> {
        self.benches.iter().copied().flatten()
    }

    /// Names choose benches and parameters, so that one of two of a name could never be reached.
    fn check_names(&self) -> Result<(), Failure> {
        let benches = twice(self.benches().map(|b| b.name)).into_iter().map(|name| {
            Diagnostic::error("KB0661", format!("two benches are named `{name}`"))
                .help("give one of them another name in its table")
        });
        let params = self.benches().flat_map(|b| {
            twice(b.params.iter().map(|p| p.key)).into_iter().map(|key| {
                Diagnostic::error("KB0661", format!("`{}` has two parameters `{key}`", b.name))
                    .help("give one of them another key in the bench's table")
            })
        });
        let found: Vec<Diagnostic> = benches.chain(params).collect();
        if found.is_empty() { Ok(()) } else { Err(Failure(found)) }
    }
}

/// The names that occur more than once, each once.
fn twice<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}

/// Runs the command line of this process over tables of benches.
///
/// A program with benches of its own is:
///
/// ```no_run
/// use kernbench::kernels::bench::{BENCHES, Bench};
/// const MINE: &[Bench] = &[];
/// fn main() -> std::process::ExitCode {
///     kernbench::cli::main(&[MINE, BENCHES])
/// }
/// ```
#[must_use]
pub fn main(benches: &[&[Bench]]) -> ExitCode {
    interrupt::install();
    let args: Vec<OsString> = std::env::args_os().collect();
    let stem = args.first().and_then(|a| Path::new(a).file_stem()).map(|s| s.to_string_lossy().into_owned());
    let name = stem.unwrap_or_else(|| "kernbench".to_owned());
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results; a reader that has gone is no error.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let mut session = Session { benches, texts: Texts::default(), warnings: vec![] };
    let result = session.check_names().and_then(|()| match &cli.command {
        Command::Run(args) => run::run(args, &mut session),
        Command::List(args) => list::run(args, &session).map(|()| ExitCode::SUCCESS),
        Command::Program(args) => program::run(args, &mut session).map(|()| ExitCode::SUCCESS),
        Command::Log(args) => log::run(args, &mut session).map(|()| ExitCode::SUCCESS),
        Command::Topology(args) => topology::run(args, &mut session).map(|()| ExitCode::SUCCESS),
        Command::Probe(args) => probe::run(args, &mut session).map(|()| ExitCode::SUCCESS),
        Command::Collectives(args) => collectives::run(args, &mut session),
        Command::Conform(args) => conform::run(args, &mut session),
        Command::Explain(args) => explain::run(args).map(|()| ExitCode::SUCCESS),
    });
    let mut told = std::mem::take(&mut session.warnings);
    let code = result.unwrap_or_else(|Failure(mistakes)| {
        told.extend(mistakes);
        ExitCode::from(2)
    });
    let colour = colours(&std::io::stderr());
    // Nobody is left to tell if stderr is closed.
    let _ = write!(std::io::stderr(), "{}", render(&told, &session.texts, colour, &name));
    code
}

/// Whether a stream shows colours: a terminal, unless `NO_COLOR` is set or it is a dumb one.
fn colours(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    stream.is_terminal() && set("NO_COLOR").is_none() && set("TERM").is_none_or(|t| t != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernbench_kernels::bench::{BENCHES, Param};

    fn said(benches: &[&[Bench]]) -> String {
        let session = Session { benches, texts: Texts::default(), warnings: vec![] };
        session.check_names().err().map_or(String::new(), |failure| failure.to_string())
    }

    #[test]
    fn names_are_there_once() {
        const TWICE: &[Param] = &[Param::new("n", "1", "rows"), Param::new("n", "2", "columns")];
        let mine = [Bench { name: "mine", params: TWICE, ..BENCHES[0] }, BENCHES[1]];
        assert_eq!(said(&[BENCHES]), "");
        insta::assert_snapshot!(said(&[&mine, BENCHES]), @"
        error[KB0661]: two benches are named `gqa-prefill-short`
          help: give one of them another name in its table
        error[KB0661]: `mine` has two parameters `n`
          help: give one of them another key in the bench's table
        ");
    }
}
