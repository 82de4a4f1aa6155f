//! The max-min fair shares of flows: what each gets of edges and HBM channels when no flow can get
//! more without another, which has no more, getting less.
//!
//! Shares are of a fluid, for comparison with simulated transfers; no simulated time depends on them.

use super::measure::route;
use crate::engine::{Flow, Issuer};
use crate::topology::Topology;

/// The fair share of each flow in bytes per microsecond, as if all ran for ever.
///
/// A flow uses each edge of its route, and each channel of its slice by its share of the bursts there.
#[must_use]
pub fn fair_share(topology: &Topology, flows: &[Flow]) -> Vec<f64> {
    let machine = topology.machine();
    let (flit, channels) = (machine.flit_bytes, machine.hbm.channels as usize);
    let edges = topology.wires().iter().map(|wire| wire.rate.map_or(f64::INFINITY, |r| r.per_us as f64));
    let channel_rate = flit as f64 * 1e6 / machine.hbm.burst_ps.max(1) as f64;
    let mut capacities: Vec<f64> = edges.collect();
    let first_channel = capacities.len();
    capacities.resize(first_channel + channels * machine.pe_count() as usize, channel_rate);
    let uses = flows.iter().map(|flow| {
        let mut uses: Vec<(usize, f64)> =
            route(topology, flow).edges.iter().map(|edge| (edge.0 as usize, 1.0)).collect();
        if !matches!(flow.issuer, Issuer::Message(_)) {
            let slice = first_channel + channels * flow.transfer.home.at();
            let bursts = bursts(flow, flit, channels);
            let uses_channel = |(channel, n): (usize, u64)| {
                (slice + channel, (n * flit) as f64 / flow.transfer.bytes() as f64)
            };
            uses.extend(bursts.into_iter().enumerate().filter(|(_, n)| *n > 0).map(uses_channel));
        }
        uses
    });
    let uses: Vec<_> = uses.collect();
    max_min(&capacities, &uses)
}

/// How many bursts of a flow go to each channel.
fn bursts(flow: &Flow, flit: u64, channels: usize) -> Vec<u64> {
    let t = &flow.transfer;
    let mut bursts = vec![0; channels];
    let per_run = u64::from(t.run_bytes).div_ceil(flit);
    for run in 0..u64::from(t.runs) {
        let first = (t.addr + run * u64::from(t.stride_bytes)) / flit;
        for (channel, n) in bursts.iter_mut().enumerate() {
            let distance = (channel as u64 + channels as u64 - first % channels as u64) % channels as u64;
            *n += (per_run + channels as u64 - 1 - distance) / channels as u64;
        }
    }
    bursts
}

/// Progressive filling: all rates rise together; when a resource is full, its flows keep theirs.
/// `uses` has the resources of each flow, and how much of each a unit of its rate takes.
fn max_min(capacities: &[f64], uses: &[Vec<(usize, f64)>]) -> Vec<f64> {
    let mut rates: Vec<Option<f64>> = vec![None; uses.len()];
    let mut left = capacities.to_vec();
    let mut rising = vec![0.0; capacities.len()];
    for &(resource, weight) in uses.iter().flatten() {
        rising[resource] += weight;
    }
    while rates.contains(&None) {
        let level = |&(resource, _): &(usize, f64)| left[resource] / rising[resource];
        // A flow is held by the tightest of its resources, and those held most stop first.
        let levels: Vec<f64> = (rates.iter().zip(uses))
            .map(|(rate, uses)| match rate {
                Some(_) => f64::INFINITY,
                None => uses.iter().map(level).fold(f64::INFINITY, f64::min),
            })
            .collect();
        let lowest = levels.iter().copied().fold(f64::INFINITY, f64::min);
        if lowest.is_infinite() {
            break;
        }
        for (flow, uses) in uses.iter().enumerate() {
            // Levels that differ by rounding only are one.
            if rates[flow].is_none() && levels[flow] <= lowest * (1.0 + 1e-12) {
                rates[flow] = Some(lowest);
                for &(resource, weight) in uses {
                    left[resource] -= weight * lowest;
                    rising[resource] -= weight;
                }
            }
        }
    }
    // Nothing holds a flow without edges; it moves no bytes over the machine.
    rates.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates over resources that flows use fully, as whole numbers.
    fn rates(capacities: &[f64], uses: &[&[usize]]) -> Vec<f64> {
        let uses: Vec<Vec<_>> = uses.iter().map(|u| u.iter().map(|r| (*r, 1.0)).collect()).collect();
        max_min(capacities, &uses)
    }

    #[test]
    fn by_hand() {
        assert_eq!(rates(&[12.0], &[&[0]]), [12.0]);
        assert_eq!(rates(&[12.0], &[&[0], &[0], &[0]]), [4.0; 3]);
        // A long flow over two links, a short one on each: the long one and the first get half of 10.
        assert_eq!(rates(&[10.0, 30.0], &[&[0, 1], &[0], &[1]]), [5.0, 5.0, 25.0]);
        // Bertsekas and Gallager: three levels, each link full in its turn.
        assert_eq!(
            rates(&[9.0, 10.0, 20.0], &[&[0], &[0, 1], &[0, 1, 2], &[1, 2], &[2]]),
            [3.0, 3.0, 3.0, 4.0, 13.0]
        );
        // Nothing to share.
        assert_eq!(rates(&[10.0], &[]), [0.0; 0]);
        assert_eq!(rates(&[10.0], &[&[], &[0]]), [0.0, 10.0]);
    }

    #[test]
    fn by_weight() {
        // The second flow takes half of its rate from resource 0: 1.5 x = 12.
        assert_eq!(max_min(&[12.0, 100.0], &[vec![(0, 1.0)], vec![(0, 0.5), (1, 0.5)]]), [8.0, 8.0]);
    }

    #[test]
    fn bursts_go_round_the_channels() {
        use crate::ir::Transfer;
        let bursts = |addr, run_bytes, runs, stride_bytes| {
            let transfer = Transfer { addr, run_bytes, runs, stride_bytes, ..Transfer::default() };
            bursts(&Flow { issuer: Issuer::HostRead, transfer, start_ps: 0 }, 256, 4)
        };
        assert_eq!(bursts(0, 1024, 1, 0), [1, 1, 1, 1]);
        assert_eq!(bursts(768, 600, 1, 0), [1, 1, 0, 1]);
        assert_eq!(bursts(256, 1536, 1, 0), [1, 2, 2, 1]);
        assert_eq!(bursts(0, 64, 3, 1024), [3, 0, 0, 0]);
    }
}
