//! `kernbench topology`: the machine's numbers, its graph, and the way between two nodes.

mod path;
mod summary;

use super::machine::TopologyArg;
use super::{Session, out};
use kernbench_core::diag::Failure;

/// Show the machine: its numbers, its graph, or the way between two nodes
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    #[command(flatten)]
    topology: TopologyArg,
    /// Prints the graph in DOT
    #[arg(long, conflicts_with_all = ["json", "path"])]
    dot: bool,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
    /// Prints the way from one node to another; a PE such as sip0.cube0.pe1 stands for its pe_dma
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"])]
    path: Option<Vec<String>>,
    /// The transfer that --path times
    #[arg(long, value_name = "N", default_value_t = 16384, requires = "path", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    bytes: u64,
}

const AFTER: &str = "\
Examples:
  kernbench topology
  kernbench topology --topology my.yaml --json
  kernbench topology --path sip0.cube0.pe1 sip0.cube0.hbm_ctrl.pe0
  kernbench topology --dot | dot -Tsvg > machine.svg";

pub(super) fn run(args: &Args, session: &mut Session<'_>) -> Result<(), Failure> {
    let topology = args.topology.read(session)?;
    if let Some([from, to]) = args.path.as_deref() {
        let way = path::find(&topology, from, to, args.bytes)?;
        return out::print(&if args.json {
            path::json(&topology, &way)
        } else {
            path::text(&topology, &way)
        });
    }
    match (args.dot, args.json) {
        (true, _) => out::print(&topology.dot()),
        (_, true) => out::print(&summary::json(&topology)),
        _ => out::print(&summary::text(&topology)),
    }
}
