//! The options that describe the machine and how exactly it is simulated.

use super::{Session, files};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kernbench_core::ccl::Ccl;
use kernbench_core::diag::Failure;
use kernbench_core::engine::Fidelity;
use kernbench_core::host::Context;
use kernbench_core::topology::{SipTopology, Topology};
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
    /// The name and the text of the description.
    fn text(&self, session: &mut Session<'_>) -> Result<(String, String), Failure> {
        match &self.topology {
            None => Ok(("topology.yaml".to_owned(), Topology::DEFAULT_YAML.to_owned())),
            Some(path) => Ok((files::name(path), files::read_text(path, "topology file", session)?)),
        }
    }

    /// # Errors
    /// The file cannot be read or describes no machine.
    pub(super) fn read(&self, session: &mut Session<'_>) -> Result<Topology, Failure> {
        let (file, text) = self.text(session)?;
        Topology::from_yaml(&file, &text)
    }
}

/// A machine and its queues, as described.
pub(super) struct MachineText {
    pub(super) topology: Topology,
    pub(super) ccl: Ccl,
    file: String,
    text: String,
}

impl MachineText {
    /// The machine with another grid of SIPs.
    ///
    /// # Errors
    /// The description names parts of SIPs that are not there then.
    pub(super) fn with_sips(&self, grid: [u32; 2], topology: SipTopology) -> Result<Topology, Failure> {
        Topology::from_yaml_with_sips(&self.file, &self.text, grid, topology)
    }
}

impl MachineArgs {
    /// # Errors
    /// The mistakes of both files.
    pub(super) fn text(&self, session: &mut Session<'_>) -> Result<MachineText, Failure> {
        let topology = self.topology.text(session).and_then(|(file, text)| {
            let topology = Topology::from_yaml(&file, &text)?;
            Ok((file, text, topology))
        });
        let ccl = match &self.ccl {
            None => Ok(Ccl::default_config()),
            Some(path) => files::read_text(path, "ccl file", session)
                .and_then(|text| Ccl::from_yaml(&files::name(path), &text)),
        };
        match (topology, ccl) {
            (Ok((file, text, topology)), Ok(ccl)) => Ok(MachineText { topology, ccl, file, text }),
            (Err(a), Err(b)) => Err(Failure([a.0, b.0].concat())),
            (Err(e), _) | (_, Err(e)) => Err(e),
        }
    }

    /// # Errors
    /// The mistakes of both files.
    pub(super) fn context(&self, session: &mut Session<'_>) -> Result<Context, Failure> {
        let MachineText { topology, ccl, .. } = self.text(session)?;
        Ok(Context::with_ccl(topology, ccl))
    }
}
