//! The options that say which bench to launch, and how.

use super::Session;
use super::machine::MachineArgs;
use clap::{Args, ValueEnum};
use kernbench_core::diag::{Diagnostic, Failure, nearest};
use kernbench_core::host::{Context, LaunchOptions};
use kernbench_core::topology::IssueMode;
use kernbench_core::units;
use kernbench_kernels::bench::{Bench, HostArray, Outcome, Params};

#[derive(Args)]
pub(super) struct BenchArgs {
    /// The bench; `kernbench list` shows them with their parameters
    #[arg(value_name = "BENCH")]
    bench: Option<String>,
    /// Sets parameters of the bench; may be repeated
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..)]
    set: Vec<String>,
    #[command(flatten)]
    pub(super) machine: MachineArgs,
    /// dataflow: ops start when their inputs are ready; blocking: one at a time [default: the machine's]
    #[arg(long, value_name = "MODE", hide_possible_values = true)]
    issue: Option<Issue>,
    /// Scratch of each PE in bytes, or as 512KiB or 2MiB [default: the machine's]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    scratch: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Issue {
    Dataflow,
    Blocking,
}

/// `4096`, `512KiB` or `2MiB`.
fn size(text: &str) -> Result<u32, String> {
    let bytes = units::bytes(text).ok_or("write bytes, or a number with KiB or MiB")?;
    u32::try_from(bytes).map_err(|_| format!("write a number of bytes up to {}", u32::MAX))
}

impl BenchArgs {
    /// The bench and the values of its parameters.
    ///
    /// # Errors
    /// There is no such bench, or it has no such parameters.
    pub(super) fn pick(&self, session: &Session<'_>) -> Result<(Bench, Params), Failure> {
        let mut settings: Vec<&str> = self.set.iter().flat_map(|s| s.split_whitespace()).collect();
        // `--set a=1 BENCH` takes the bench for a setting.
        let stray = || settings.iter().position(|s| !s.contains('='));
        let name = match (&self.bench, stray()) {
            (Some(name), _) => name.as_str(),
            (None, Some(at)) => settings.remove(at),
            (None, None) => {
                let d = Diagnostic::error("KB0618", "no bench is named");
                return Err(d.help(format!("name one of {}", names(session))).into());
            }
        };
        let Some(bench) = session.benches().find(|b| b.name == name).copied() else {
            let near = nearest(name, session.benches().map(|b| b.name));
            let help = match near {
                Some(near) => format!("did you mean `{near}`? There are {}", names(session)),
                None => format!("there are {}", names(session)),
            };
            return Err(Diagnostic::error("KB0616", format!("there is no bench `{name}`")).help(help).into());
        };
        let params = Params::parse(bench.name, bench.params, settings)?;
        Ok((bench, params))
    }

    /// The context to launch in.
    ///
    /// # Errors
    /// The files that describe the machine are wrong.
    pub(super) fn context(&self, session: &mut Session<'_>) -> Result<Context, Failure> {
        self.machine.context(session)
    }

    /// Runs the bench.
    ///
    /// # Errors
    /// As [`Bench::run`], and a bench that launches nothing, of which there is nothing to tell.
    pub(super) fn run(
        bench: &Bench,
        ctx: &Context,
        params: &Params,
        inputs: &[HostArray],
        options: &LaunchOptions,
    ) -> Result<Outcome, Failure> {
        let outcome = (bench.run)(ctx, params, inputs, options)?;
        if outcome.launches.is_empty() {
            let text = format!("`{}` tells of no launch", bench.name);
            return Err(Diagnostic::error("KB0662", text)
                .help("put what `launch_with` returns into `Outcome::launches`")
                .into());
        }
        Ok(outcome)
    }

    pub(super) fn options(&self) -> LaunchOptions {
        LaunchOptions {
            issue: self.issue.map(|issue| match issue {
                Issue::Dataflow => IssueMode::Dataflow,
                Issue::Blocking => IssueMode::Blocking,
            }),
            scratch_bytes: self.scratch,
            ..LaunchOptions::default()
        }
    }
}

fn names(session: &Session<'_>) -> String {
    session.benches().map(|b| format!("`{}`", b.name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_have_units() {
        let size = |text| super::size(text).ok();
        assert_eq!(
            ["4096", "512KiB", "2 MiB", "1_000"].map(size),
            [Some(4096), Some(524_288), Some(2_097_152), Some(1000)]
        );
        assert_eq!(["", "1GB", "-1", "5000000000", "99999999999999999999MiB"].map(size), [None; 5]);
    }
}
