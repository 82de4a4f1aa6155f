//! The options that describe the machine and how exactly it is simulated.

use super::{Session, files};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kernbench_core::ccl::Ccl;
use kernbench_core::diag::Failure;
use kernbench_core::engine::Fidelity;
use kernbench_core::host::Context;
use kernbench_core::topology::Topology;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct TopologyArg {
    /// The machine, as in the shipped topology.yaml [default: the built-in one]
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
}

/// How exactly bytes are moved.
#[derive(Args)]
pub(super) struct FidelityArg {
    /// How exactly bytes are moved; docs/fidelity.md says what is lost
    #[arg(long, value_name = "NAME", value_parser = fidelities(), default_value = Fidelity::default().name())]
    pub(super) fidelity: Fidelity,
}

fn fidelities() -> impl TypedValueParser<Value = Fidelity> {
    let named = |name: String| Fidelity::ALL.into_iter().find(|f| f.name() == name).unwrap_or_default();
    PossibleValuesParser::new(Fidelity::ALL.map(Fidelity::name)).map(named)
}

#[derive(Args)]
pub(super) struct MachineArgs {
    #[command(flatten)]
    topology: TopologyArg,
    /// Queues between PEs and collectives, as in the shipped ccl.yaml [default: the built-in one]
    #[arg(long, value_name = "FILE")]
    ccl: Option<PathBuf>,
}

impl TopologyArg {
    /// # Errors
    /// The file cannot be read or describes no machine.
    pub(super) fn read(&self, session: &mut Session<'_>) -> Result<Topology, Failure> {
        match &self.topology {
            None => Ok(Topology::default_machine()),
            Some(path) => {
                let text = files::read_text(path, "topology file", session)?;
                Topology::from_yaml(&files::name(path), &text)
            }
        }
    }
}

impl MachineArgs {
    /// # Errors
    /// The mistakes of both files.
    pub(super) fn context(&self, session: &mut Session<'_>) -> Result<Context, Failure> {
        let topology = self.topology.read(session);
        let ccl = match &self.ccl {
            None => Ok(Ccl::default_config()),
            Some(path) => files::read_text(path, "ccl file", session)
                .and_then(|text| Ccl::from_yaml(&files::name(path), &text)),
        };
        match (topology, ccl) {
            (Ok(topology), Ok(ccl)) => Ok(Context::with_ccl(topology, ccl)),
            (Err(a), Err(b)) => Err(Failure([a.0, b.0].concat())),
            (Err(e), _) | (_, Err(e)) => Err(e),
        }
    }
}
