//! The HBM channels as flits meet them: each burst commits when its channel has been free for it.

use super::flight::Flight;
use super::train::Train;
use crate::topology::Hbm;
use crate::units::Ps;

/// The channel of a flit of a transfer.
fn channel(hbm: &Hbm, flit_bytes: u64, flight: &Flight, number: u32) -> usize {
    let load = &flight.load;
    let (run, flit) = match load.runs {
        1 => (0, number),
        _ => (number / flight.flits_per_run, number % flight.flits_per_run),
    };
    let address = load.addr + u64::from(run) * load.stride_bytes + u64::from(flit) * flit_bytes;
    hbm.channel(address, flit_bytes) as usize
}

/// Commits one flit: at max(arrival, channel free) + burst time.
pub(super) fn commit_flit(
    hbm: &Hbm,
    flit_bytes: u64,
    free: &mut [Ps],
    flight: &Flight,
    number: u32,
    arrival: Ps,
) -> Ps {
    let free = &mut free[channel(hbm, flit_bytes, flight, number)];
    *free = arrival.max(*free) + hbm.burst_ps;
    *free
}

/// Commits the flits of a train that arrives at a slice; the last commit.
pub(super) fn commit(hbm: &Hbm, flit_bytes: u64, free: &mut [Ps], flight: &Flight, train: &Train) -> Ps {
    let mut done = 0;
    let mut number = train.first;
    let channels = hbm.channels;
    for s in &train.segments {
        let mut skip = 0;
        // Contiguous flits that come no faster than the channels drain, on free channels, do not
        // wait: only the last one on each channel leaves a trace.
        if flight.load.runs == 1
            && s.count > channels
            && s.step * Ps::from(channels) >= hbm.burst_ps
            && free.iter().all(|f| *f <= s.time)
        {
            skip = s.count - channels;
        }
        for k in skip..s.count {
            done = done.max(commit_flit(hbm, flit_bytes, free, flight, number + k, s.at(k)));
        }
        number += s.count;
    }
    done
}
