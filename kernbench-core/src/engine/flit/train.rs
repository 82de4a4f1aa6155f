//! Trains: the flits of a transfer that follow each other over an edge, as few equally spaced runs.

use crate::units::Ps;
use smallvec::SmallVec;

/// Flits of one size, equally spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The first one.
    pub time: Ps,
    pub step: Ps,
    pub count: u32,
    /// They are short flits, the ends of runs; else full ones.
    pub short: bool,
}

impl Segment {
    /// The time of flit `k`.
    pub fn at(&self, k: u32) -> Ps {
        self.time + self.step * Ps::from(k)
    }

    pub fn last(&self) -> Ps {
        self.at(self.count - 1)
    }
}

/// What one flit holds an edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlitTimes {
    pub full: Ps,
    pub short: Ps,
    pub propagation: Ps,
}

/// Consecutive flits of a transfer and when they arrive at a node; at least one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Train {
    /// The number of the first flit.
    pub first: u32,
    pub segments: SmallVec<[Segment; 2]>,
}

impl Train {
    /// The number after that of the last flit.
    pub fn end(&self) -> u32 {
        self.first + self.segments.iter().map(|s| s.count).sum::<u32>()
    }

    /// Whether there is one flit only.
    pub fn is_one(&self) -> bool {
        self.segments.len() == 1 && self.segments[0].count == 1
    }

    pub fn head(&self) -> Ps {
        self.segments[0].time
    }

    pub fn last(&self) -> Ps {
        self.segments[self.segments.len() - 1].last()
    }

    /// Takes the first flit away: whether it is short.
    pub fn pop(&mut self) -> bool {
        let segment = &mut self.segments[0];
        let short = segment.short;
        segment.time += segment.step;
        segment.count -= 1;
        if segment.count == 0 {
            self.segments.remove(0);
        }
        self.first += 1;
        short
    }

    /// Adds flits behind the last one.
    pub fn push(&mut self, next: Segment) {
        if let Some(last) = self.segments.last_mut()
            && last.short == next.short
        {
            let gap = next.time.wrapping_sub(last.last());
            let fits = (last.count == 1 || gap == last.step) && (next.count == 1 || gap == next.step);
            if fits {
                last.step = gap;
                last.count += next.count;
                return;
            }
        }
        self.segments.push(next);
    }

    /// The first flit that arrives at `now` or later; at `now` only if `ties` says so.
    pub fn first_from(&self, now: Ps, ties: bool) -> Option<(u32, Ps)> {
        let least = now + Ps::from(!ties);
        let mut number = self.first;
        for s in &self.segments {
            if s.last() >= least {
                let k = match least.checked_sub(s.time) {
                    None | Some(0) => 0,
                    Some(wait) => wait.div_ceil(s.step) as u32,
                };
                return Some((number + k, s.at(k)));
            }
            number += s.count;
        }
        None
    }

    /// Cuts before flit `number`, which is not the first one: the flits from there on.
    pub fn split_off(&mut self, number: u32) -> Train {
        let mut keep = number - self.first;
        let mut tail = Train { first: number, segments: SmallVec::new() };
        let mut i = 0;
        while i < self.segments.len() && self.segments[i].count <= keep {
            keep -= self.segments[i].count;
            i += 1;
        }
        if let Some(s) = self.segments.get(i).copied() {
            tail.segments.push(Segment { time: s.at(keep), count: s.count - keep, ..s });
            tail.segments.extend(self.segments[i + 1..].iter().copied());
            self.segments.truncate(i);
            if keep > 0 {
                self.segments.push(Segment { count: keep, ..s });
            }
        }
        tail
    }

    /// The train behind an edge that is free at `free` and whose node lets no flit go before `open`;
    /// and when the edge is free again.
    ///
    /// Flit k starts at the latest of its arrival, `open` and the end of the flit before. In a segment
    /// whose flits come no slower than the edge carries them, each waits for the one before; else the
    /// first ones do until the queue is empty, and the others start as they arrive.
    pub fn over(&self, times: &FlitTimes, open: Ps, mut free: Ps) -> (Train, Ps) {
        let mut out = Train { first: self.first, segments: SmallVec::new() };
        for s in &self.segments {
            let t = if s.short { times.short } else { times.full };
            let start = s.time.max(open).max(free);
            let after = t + times.propagation;
            let queued = match s.step.checked_sub(t) {
                None | Some(0) => s.count,
                Some(gain) => (start - s.time).div_ceil(gain).clamp(1, s.count.into()) as u32,
            };
            out.push(Segment { time: start + after, step: t, count: queued, short: s.short });
            free = start + t * Ps::from(queued);
            if queued < s.count {
                out.push(Segment { time: s.at(queued) + after, count: s.count - queued, ..*s });
                free = s.last() + t;
            }
        }
        (out, free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::laws::Random;

    fn train(r: &mut Random) -> Train {
        let mut train = Train { first: r.below(5) as u32, segments: SmallVec::new() };
        let mut time = r.below(20);
        for _ in 0..1 + r.below(4) {
            let s = Segment { time, step: r.below(5), count: 1 + r.below(6) as u32, short: r.below(2) == 0 };
            time = s.last() + r.below(9);
            train.push(s);
        }
        train
    }

    fn flits(train: &Train) -> Vec<(Ps, bool)> {
        let all = |s: &Segment| (0..s.count).map(|k| (s.at(k), s.short)).collect::<Vec<_>>();
        train.segments.iter().flat_map(all).collect()
    }

    #[test]
    fn over_an_edge_equals_flit_by_flit() {
        for seed in 0..2000 {
            let mut r = Random(seed);
            let train = train(&mut r);
            let times = FlitTimes { full: 1 + r.below(5), short: 1 + r.below(3), propagation: r.below(3) };
            let (open, mut free) = (r.below(40), r.below(40));
            let (out, end) = train.over(&times, open, free);
            let expected: Vec<_> = flits(&train)
                .into_iter()
                .map(|(arrival, short)| {
                    let t = if short { times.short } else { times.full };
                    free = arrival.max(open).max(free) + t;
                    (free + times.propagation, short)
                })
                .collect();
            assert_eq!((flits(&out), end), (expected, free), "seed {seed}: {train:?}");
        }
    }

    #[test]
    fn a_cut_and_a_pop_keep_every_flit() {
        for seed in 0..500 {
            let mut r = Random(seed);
            let whole = train(&mut r);
            let all = flits(&whole);
            for k in 1..=all.len() {
                let (mut a, number) = (whole.clone(), whole.first + k as u32);
                let b = a.split_off(number);
                assert_eq!((a.end(), b.first, b.end()), (number, number, whole.end()));
                assert_eq!([flits(&a), flits(&b)].concat(), all);
            }
            let mut popped = whole.clone();
            assert_eq!((popped.pop(), flits(&popped)), (all[0].1, all[1..].to_vec()));
            for now in 0..60 {
                for ties in [false, true] {
                    let first = all.iter().position(|f| f.0 > now || (ties && f.0 == now));
                    let expected = first.map(|k| (whole.first + k as u32, all[k].0));
                    assert_eq!(whole.first_from(now, ties), expected);
                }
            }
        }
    }
}
