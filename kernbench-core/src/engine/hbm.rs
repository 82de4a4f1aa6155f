//! The channels of all HBM slices: each burst occupies its channel for a fixed time.

use super::wires::Load;
use crate::ir::PeId;
use crate::topology::{Hbm, Machine};
use crate::units::Ps;

/// When each channel of each slice is free again.
#[derive(Debug)]
pub(super) struct Channels {
    hbm: Hbm,
    flit_bytes: u64,
    free: Vec<Ps>,
    scratch: Vec<Ps>,
}

impl Channels {
    pub fn new(machine: &Machine) -> Self {
        let channels = machine.hbm.channels as usize;
        Channels {
            hbm: machine.hbm,
            flit_bytes: machine.flit_bytes,
            free: vec![0; channels * machine.pe_count() as usize],
            scratch: vec![0; channels],
        }
    }

    /// The channels of a slice.
    pub fn of(&mut self, home: PeId) -> &mut [Ps] {
        let channels = self.hbm.channels as usize;
        &mut self.free[home.at() * channels..][..channels]
    }

    /// The last commit of a load whose first burst arrives at `head` and whose last at `tail`.
    pub fn commit(&mut self, home: PeId, load: &Load, head: Ps, tail: Ps) -> Ps {
        let channels = self.hbm.channels as usize;
        let free = &mut self.free[home.at() * channels..][..channels];
        schedule(&self.hbm, self.flit_bytes, free, load, head, tail)
    }

    /// The same on idle channels, changing nothing.
    pub fn commit_alone(&mut self, load: &Load, head: Ps, tail: Ps) -> Ps {
        self.scratch.fill(0);
        schedule(&self.hbm, self.flit_bytes, &mut self.scratch, load, head, tail)
    }
}

/// Burst `i` arrives at `head` plus its share of the drain by bytes, and commits at
/// max(arrival, channel free) + burst time.
fn schedule(hbm: &Hbm, flit: u64, free: &mut [Ps], load: &Load, head: Ps, tail: Ps) -> Ps {
    let arrivals = Arrivals::new(flit, load, head, tail);
    let (bursts, channels) = (load.run_bytes / flit, u64::from(hbm.channels));
    // A long contiguous load on idle channels that comes no faster than they drain never waits:
    // only the last burst of each channel leaves a trace.
    if load.runs == 1
        && bursts > channels
        && arrivals.step.is_some_and(|step| step * channels >= hbm.burst_ps)
        && free.iter().all(|&f| f <= head)
    {
        for i in bursts - channels..bursts {
            let channel = hbm.channel(load.addr + i * flit, flit) as usize;
            free[channel] = arrivals.at(i * flit) + hbm.burst_ps;
        }
        return tail + hbm.burst_ps;
    }
    let (mut done, mut arrival, mut arrived) = (head, head, 0);
    for run in 0..load.runs {
        let mut left = load.run_bytes;
        let mut channel = hbm.channel(load.addr + run * load.stride_bytes, flit) as usize;
        while left > 0 {
            let bytes = flit.min(left);
            if run > 0 || left < load.run_bytes {
                arrived += bytes;
                arrival = arrivals.step.map_or_else(|| arrivals.at(arrived), |step| arrival + step);
            }
            free[channel] = arrival.max(free[channel]) + hbm.burst_ps;
            done = done.max(free[channel]);
            // The next flit begins one flit further, so on the next channel.
            channel = if channel + 1 == free.len() { 0 } else { channel + 1 };
            left -= bytes;
        }
    }
    done
}

/// When the bursts of a load arrive.
struct Arrivals {
    head: Ps,
    drain: Ps,
    /// Bytes after the first flit.
    rest: u64,
    /// From one burst to the next, if all are full and it is a whole number.
    step: Option<Ps>,
}

impl Arrivals {
    fn new(flit: u64, load: &Load, head: Ps, tail: Ps) -> Self {
        let rest = load.bytes() - load.run_bytes.min(flit);
        let mut arrivals = Arrivals { head, drain: tail - head, rest, step: None };
        let full = load.run_bytes.is_multiple_of(flit) && rest > 0;
        let steps = rest / flit;
        if full && arrivals.drain.is_multiple_of(steps) {
            arrivals.step = Some(arrivals.drain / steps);
        }
        arrivals
    }

    /// The arrival of the burst with which `bytes` have arrived after the first flit.
    fn at(&self, bytes: u64) -> Ps {
        if self.rest == 0 {
            return self.head;
        }
        let share = match self.drain.checked_mul(bytes) {
            Some(product) => product / self.rest,
            None => (u128::from(self.drain) * u128::from(bytes) / u128::from(self.rest)) as Ps,
        };
        self.head + share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HBM: Hbm = Hbm { slice_bytes: 6 << 30, channels: 8, burst_ps: 8000 };

    fn load(addr: u64, run_bytes: u64, runs: u64, stride_bytes: u64) -> Load {
        Load { addr, run_bytes, runs, stride_bytes }
    }

    #[test]
    fn a_stream_at_the_slice_rate_waits_nowhere_and_leaves_what_bursts_leave() {
        let mut quick = [0; 8];
        let done = schedule(&HBM, 256, &mut quick, &load(512, 16384, 1, 0), 4000, 67_000);
        assert_eq!(done, 75_000);
        // The same as 64 runs of one burst, which take the loop.
        let mut slow = [0; 8];
        let done = schedule(&HBM, 256, &mut slow, &load(512, 256, 64, 256), 4000, 67_000);
        assert_eq!((done, slow), (75_000, quick));
    }

    #[test]
    fn runs_that_share_a_channel_queue_for_it() {
        let mut free = [0; 8];
        assert_eq!(schedule(&HBM, 256, &mut free, &load(0, 64, 4, 2048), 1000, 1750), 1000 + 4 * 8000);
        let mut free = [0; 8];
        assert_eq!(schedule(&HBM, 256, &mut free, &load(0, 64, 4, 256), 1000, 1750), 1750 + 8000);
    }
}
