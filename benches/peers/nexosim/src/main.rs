//! The rules of transport as an ordinary nexosim bench: a model for each node, with the edges that
//! leave it.
//!
//! Reads what `peer_traffic export` wrote, simulates it flit by flit for a second and prints the answer
//! as JSON.

mod machine;
mod node;

use machine::{Done, Machine};
use serde::Serialize;
use std::error::Error;
use std::time::{Duration, Instant};

#[derive(Serialize)]
struct Answer {
    end_ps: Vec<u64>,
    best_s: f64,
    median_s: f64,
    flit_hops: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("expected a file that `peer_traffic export` wrote")?;
    let threads = args.next().map_or(Ok(1), |n| n.parse())?;
    let machine: Machine = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let (mut times, begin) = (vec![], Instant::now());
    let mut end_ps = vec![];
    while times.len() < 3 || begin.elapsed() < Duration::from_secs(1) {
        let (mut simulation, mut sink) = node::assemble(&machine, threads)?;
        let start = Instant::now();
        simulation.run()?;
        times.push(start.elapsed().as_secs_f64());
        end_ps = vec![0; machine.moves.len()];
        while let Some(Done { number, commit_ps }) = nexosim::ports::EventSinkReader::try_read(&mut sink) {
            let number = number as usize;
            end_ps[number] = commit_ps + machine.moves[number].response_ps;
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    let flit_hops = machine.moves.iter().map(|m| machine.flits(m) as usize * m.route.len()).sum();
    let answer = Answer { end_ps, best_s: times[0], median_s: times[times.len() / 2], flit_hops };
    println!("{}", serde_json::to_string(&answer)?);
    Ok(())
}
