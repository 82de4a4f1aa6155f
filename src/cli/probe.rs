//! `kernbench probe`: what transfers cost: published results, a catalogue, traffic of one's own.

mod json;
mod tables;
mod traffic;

use super::machine::{FidelityArg, TopologyArg};
use super::progress::Progress;
use super::{Session, files, out};
use kernbench_core::diag::Failure;
use kernbench_core::engine::Fidelity;
use kernbench_core::probe::{self, Entry, Row, SIZES};
use kernbench_core::topology::Topology;
use kernbench_core::units;
use std::path::PathBuf;

/// Measure what transfers cost: published results, a catalogue of traffic, or traffic of your own
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    #[command(flatten)]
    topology: TopologyArg,
    #[command(flatten)]
    fidelity: FidelityArg,
    /// Sizes of the catalogue, such as 16KiB; may be repeated [default: 4KiB 16KiB 64KiB 256KiB 1MiB]
    #[arg(long, value_name = "BYTES", num_args = 1.., value_parser = size, conflicts_with = "traffic")]
    size: Vec<u32>,
    /// Simulates the transfers of a YAML file, all together, instead
    #[arg(long, value_name = "FILE")]
    traffic: Option<PathBuf>,
    /// Prints one JSON object, with times in ns
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
The parts of a latency sum to it: wire (the way of the flits), overhead (of nodes, both ways), drain (bytes
at the bottleneck), commit (HBM burst or queue slots) and contention. docs/probe.md explains each column.

A traffic file is a list of transfers; from may be host, op is read (default), write or message:
  - {from: sip0.cube0.pe1, to: sip0.cube3.pe4, bytes: 16KiB}
  - {from: host, to: sip0.cube0.pe0, bytes: 64KiB, op: write, start_ns: 12.5, channel: 3}

Examples:
  kernbench probe
  kernbench probe --topology my.yaml --size 4KiB 2MiB
  kernbench probe --traffic my-traffic.yaml
  kernbench probe --json | jq '.rows[] | [.id, .ns, .reference_ns]'";

/// The largest size of a transfer in the catalogue.
const LARGEST: u32 = 1 << 30;

fn size(text: &str) -> Result<u32, String> {
    let bytes = units::bytes(text).ok_or("write bytes, or a whole number with KiB or MiB")?;
    let small = u32::try_from(bytes).ok().filter(|n| (1..=LARGEST).contains(n));
    small.ok_or_else(|| "write a size from 1 B to 1 GiB".to_owned())
}

/// What was measured on a machine.
struct Probed<'a> {
    topology: &'a Topology,
    fidelity: Fidelity,
    /// The published results are of this machine.
    is_reference: bool,
    rows: Vec<Row>,
    catalogue: Vec<Entry>,
}

pub(super) fn run(args: &Args, session: &mut Session<'_>) -> Result<(), Failure> {
    let topology = args.topology.read(session)?;
    let fidelity = args.fidelity.fidelity;
    if let Some(path) = &args.traffic {
        let text = files::read_text(path, "traffic file", session)?;
        let requests = probe::requests(&topology, &files::name(path), &text)?;
        let progress = Progress::start("simulating the transfers".to_owned());
        let flows: Vec<_> = requests.iter().map(|request| request.flow).collect();
        let passed = probe::passed(&topology, &flows, fidelity);
        drop(progress);
        return out::print(&match args.json {
            true => traffic::json(&topology, fidelity, &requests, &passed),
            false => traffic::text(&topology, fidelity, &requests, &passed),
        });
    }
    let sizes = if args.size.is_empty() { &SIZES[..] } else { &args.size };
    let progress = Progress::start("measuring transfers".to_owned());
    let probed = Probed {
        topology: &topology,
        fidelity,
        is_reference: probe::is_reference(&topology),
        rows: probe::rows(&topology, fidelity),
        catalogue: probe::catalogue(&topology, sizes, fidelity),
    };
    drop(progress);
    out::print(&if args.json { json::json(&probed) } else { tables::text(&probed) })
}
