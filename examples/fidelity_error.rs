//! How far `message` is from the exact fidelity: a table of errors over random traffic, in Markdown.
//! `cargo run --release --example fidelity_error`.

use kernbench::engine::{Fidelity, Flow, Issuer, traffic};
use kernbench::ir::{PeId, Transfer};
use kernbench::topology::{Links, Topology};

/// Random numbers of a fixed seed: splitmix64, by Steele, Lea and Flood.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

#[derive(Clone, Copy)]
enum Pattern {
    /// Any PE reads any slice.
    Uniform,
    /// Half of all reads are of one slice.
    HotSpot,
    /// A PE reads the slice of a neighbour in its cube or in the next one.
    Neighbour,
}

/// Sets of transfers of each class.
const SETS: usize = 40;
/// Transfers of a set.
const TRANSFERS: usize = 256;

const CLASSES: [(&str, Pattern, u64); 6] = [
    // The starts of a set are spread over so many ns.
    ("uniform, light", Pattern::Uniform, 100_000),
    ("uniform, heavy", Pattern::Uniform, 1_000),
    ("hot spot, light", Pattern::HotSpot, 100_000),
    ("hot spot, heavy", Pattern::HotSpot, 1_000),
    ("neighbour, light", Pattern::Neighbour, 100_000),
    ("neighbour, heavy", Pattern::Neighbour, 1_000),
];

fn main() {
    let topology = Topology::default_machine();
    let links = Links::default_for(topology.machine());
    println!("| traffic | what | median | 90 % | 99 % | worst | mean, signed |");
    println!("|---|---|---|---|---|---|---|");
    for (seed, (name, pattern, spread_ns)) in CLASSES.into_iter().enumerate() {
        let mut random = Random(seed as u64);
        let (mut latencies, mut makespans) = (vec![], vec![]);
        for _ in 0..SETS {
            let flows: Vec<Flow> =
                (0..TRANSFERS).map(|_| flow(&mut random, &topology, &links, pattern, spread_ns)).collect();
            let ends = Fidelity::ALL.map(|fidelity| ends(&topology, &flows, fidelity));
            // The default is the exact one; with one fidelity only, every error is 0.
            let (exact, quick) = (&ends[0], &ends[ends.len() - 1]);
            for ((flow, exact), quick) in flows.iter().zip(exact).zip(quick) {
                latencies.push(error(exact - flow.start_ps, quick - flow.start_ps));
            }
            let last = |ends: &[u64]| ends.iter().copied().max().unwrap_or(0);
            makespans.push(error(last(exact), last(quick)));
        }
        line(name, "latency", latencies);
        line("", "makespan", makespans);
    }
}

/// A read of 256 B to 64 KiB by a random PE at a random time.
fn flow(random: &mut Random, topology: &Topology, links: &Links, pattern: Pattern, spread_ns: u64) -> Flow {
    let machine = topology.machine();
    let pes = u64::from(machine.pe_count());
    let issuer = PeId(random.below(pes) as u32);
    let home = match pattern {
        Pattern::Uniform => PeId(random.below(pes) as u32),
        Pattern::HotSpot if random.below(2) == 0 => PeId(0),
        Pattern::HotSpot => PeId(random.below(pes) as u32),
        Pattern::Neighbour => {
            let beside: Vec<PeId> = (links.links.iter())
                .filter(|link| link.from == issuer && machine.at(link.to).sip == machine.at(issuer).sip)
                .map(|link| link.to)
                .collect();
            beside[random.below(beside.len() as u64) as usize]
        }
    };
    let addr = machine.flit_bytes * random.below(machine.hbm.channels.into());
    let run_bytes = 256 << random.below(9);
    let transfer = Transfer { addr, home, run_bytes, runs: 1, ..Transfer::default() };
    Flow { issuer: Issuer::Dma(issuer), transfer, start_ps: 1000 * random.below(spread_ns) }
}

fn ends(topology: &Topology, flows: &[Flow], fidelity: Fidelity) -> Vec<u64> {
    traffic(topology, flows, fidelity).iter().map(|passage| passage.end_ps).collect()
}

/// In percent of the exact time.
fn error(exact: u64, quick: u64) -> f64 {
    100.0 * (quick as f64 - exact as f64) / exact as f64
}

fn line(traffic: &str, what: &str, errors: Vec<f64>) {
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let quantile = |q: f64| sizes[((sizes.len() - 1) as f64 * q).round() as usize];
    let [median, ninety, most, worst] = [0.5, 0.9, 0.99, 1.0].map(quantile);
    println!(
        "| {traffic} | {what} | {median:.1} % | {ninety:.1} % | {most:.1} % | {worst:.1} % | {mean:+.1} % |"
    );
}
