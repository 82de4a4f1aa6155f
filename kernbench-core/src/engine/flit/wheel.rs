//! The order of what happens on the wires: two wheels of buckets, of short spans of time and of long ones.
//!
//! Nearly everything that happens causes something a few flits later, so a push links an entry into
//! the bucket of its span, and a bucket is sorted once, when time gets there. What lies beyond the
//! turn of the first wheel waits in the second, whose buckets span a turn of the first; what lies
//! beyond that waits in a heap.

use crate::units::Ps;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const BUCKET_BITS: u32 = 9;
/// Buckets of a wheel.
const BUCKETS: u64 = 1 << BUCKET_BITS;
const LAST: u64 = BUCKETS - 1;
/// The end of a list of entries.
const NONE: u32 = u32::MAX;

/// Something to happen: ordered by time, then by transfer (rule 9 of the machine). At one node no two
/// flits of a transfer arrive at one instant, but for those that have been waiting in one place, which
/// are handled together; so their numbers decide nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub time: Ps,
    pub id: u32,
    pub number: u32,
    /// What happens; never decides an order that shows.
    pub what: u32,
}

/// An entry of known span: the lower half of its time and its transfer; flit and what happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Packed(u64, u64);

impl Packed {
    fn new(e: Entry) -> Self {
        Packed(u64::from(e.time as u32) << 32 | u64::from(e.id), u64::from(e.number) << 32 | u64::from(e.what))
    }

    /// The entry, at the first time from `base` on that ends like its own.
    fn entry(self, base: Ps) -> Entry {
        let time = base + Ps::from(((self.0 >> 32) as u32).wrapping_sub(base as u32));
        Entry { time, id: self.0 as u32, number: (self.1 >> 32) as u32, what: self.1 as u32 }
    }
}

/// The entries of one turn: a list for each span.
#[derive(Debug)]
struct Turn {
    first: [u32; BUCKETS as usize],
    /// A bit for each bucket that holds something.
    occupied: [u64; BUCKETS as usize / 64],
}

impl Turn {
    fn new() -> Self {
        Turn { first: [NONE; BUCKETS as usize], occupied: [0; BUCKETS as usize / 64] }
    }

    /// Makes an entry the first of a bucket; gives the one that was.
    fn link(&mut self, span: u64, at: u32) -> u32 {
        let bucket = (span & LAST) as usize;
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        std::mem::replace(&mut self.first[bucket], at)
    }

    /// The first bucket that holds something, from that of `span` on.
    fn next(&self, span: u64) -> Option<usize> {
        let from = (span & LAST) as usize;
        let mut word = from / 64;
        let mut bits = self.occupied[word] & (!0 << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.occupied.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// Empties a bucket; gives its first entry.
    fn unlink(&mut self, bucket: usize) -> u32 {
        self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        std::mem::replace(&mut self.first[bucket], NONE)
    }

    fn is_empty(&self) -> bool {
        self.occupied.iter().all(|w| *w == 0)
    }
}

#[derive(Debug)]
pub(super) struct Wheel {
    /// A bucket of the first wheel spans `1 << bits` ps.
    bits: u32,
    /// The number of the span that `current` holds, sorted, from `next` on.
    span: u64,
    current: Vec<Packed>,
    next: usize,
    /// Later spans of the same turn.
    near: Turn,
    /// Later turns of the same turn of turns.
    late: Turn,
    /// All the rest.
    far: BinaryHeap<Reverse<Entry>>,
    /// The entries of both wheels, each with the one that follows it in its list.
    pool: Vec<(Packed, u32)>,
    unused: u32,
}

impl Wheel {
    /// An empty wheel for things that are usually `step` ps apart.
    pub fn new(step: Ps) -> Self {
        Wheel {
            // Two wheels together span less than half of the time that an entry knows.
            bits: step.max(2).ilog2().min(31 - 2 * BUCKET_BITS),
            span: 0,
            current: vec![],
            next: 0,
            near: Turn::new(),
            late: Turn::new(),
            far: BinaryHeap::new(),
            pool: vec![],
            unused: NONE,
        }
    }

    /// Adds an entry, which is not before any that was popped.
    #[inline]
    pub fn push(&mut self, entry: Entry) {
        let (span, packed) = (entry.time >> self.bits, Packed::new(entry));
        if span <= self.span {
            return self.insert(packed);
        }
        // The highest bit in which the spans differ says which wheel turns first.
        match (span ^ self.span) >> BUCKET_BITS {
            0 => self.link(false, span, packed),
            turns if turns < BUCKETS => self.link(true, span >> BUCKET_BITS, packed),
            _ => self.far.push(Reverse(entry)),
        }
    }

    #[inline]
    fn link(&mut self, late: bool, span: u64, packed: Packed) {
        let at = if self.unused == NONE {
            self.pool.push((packed, NONE));
            self.pool.len() as u32 - 1
        } else {
            let at = self.unused;
            let place = &mut self.pool[at as usize];
            self.unused = place.1;
            place.0 = packed;
            at
        };
        let turn = if late { &mut self.late } else { &mut self.near };
        self.pool[at as usize].1 = turn.link(span, at);
    }

    /// Adds to the span under way.
    fn insert(&mut self, packed: Packed) {
        let rest = &self.current[self.next..];
        let at = rest.iter().rposition(|e| *e < packed).map_or(0, |i| i + 1);
        self.current.insert(self.next + at, packed);
    }

    /// The first entry, if it is before `until`.
    #[inline]
    pub fn pop(&mut self, until: Ps) -> Option<Entry> {
        while self.next == self.current.len() {
            if !self.turn(until) {
                return None;
            }
        }
        let entry = self.current[self.next].entry(self.span << self.bits);
        if entry.time >= until {
            return None;
        }
        self.next += 1;
        Some(entry)
    }

    pub fn is_empty(&self) -> bool {
        self.next == self.current.len()
            && self.far.is_empty()
            && self.near.is_empty()
            && self.late.is_empty()
    }

    /// Goes on to the next span, or turn, that holds something; false if there is none before `until`.
    fn turn(&mut self, until: Ps) -> bool {
        if let Some(bucket) = self.near.next(self.span) {
            let span = (self.span & !LAST) | bucket as u64;
            if span << self.bits >= until {
                return false;
            }
            self.begin(span);
            let mut at = self.near.unlink(bucket);
            while at != NONE {
                let place = &mut self.pool[at as usize];
                self.current.push(place.0);
                let next = std::mem::replace(&mut place.1, self.unused);
                self.unused = at;
                at = next;
            }
            self.current.sort_unstable_by_key(|e| e.0);
            return true;
        }
        let turn = self.span >> BUCKET_BITS;
        if let Some(bucket) = self.late.next(turn) {
            let span = ((turn & !LAST) | bucket as u64) << BUCKET_BITS;
            if span << self.bits >= until {
                return false;
            }
            self.begin(span);
            let mut at = self.late.unlink(bucket);
            while at != NONE {
                let (packed, next) = self.pool[at as usize];
                let its = packed.entry(span << self.bits).time >> self.bits;
                self.pool[at as usize].1 = self.near.link(its, at);
                at = next;
            }
            return true;
        }
        let Some(Reverse(first)) = self.far.peek() else { return false };
        if first.time >= until {
            return false;
        }
        let turns = |e: &Entry| e.time >> self.bits >> (2 * BUCKET_BITS);
        let this = turns(first);
        let mut moved = vec![];
        while self.far.peek().is_some_and(|e| turns(&e.0) == this) {
            moved.extend(self.far.pop().map(|e| e.0));
        }
        self.begin(moved[0].time >> self.bits & !LAST);
        // One that belongs to the first span of the turn comes into its bucket, not into `current`.
        for entry in moved {
            let span = entry.time >> self.bits;
            match (span ^ self.span) >> BUCKET_BITS {
                0 => self.link(false, span, Packed::new(entry)),
                _ => self.link(true, span >> BUCKET_BITS, Packed::new(entry)),
            }
        }
        true
    }

    fn begin(&mut self, span: u64) {
        self.span = span;
        self.current.clear();
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::laws::Random;

    #[test]
    fn pops_in_order_whatever_the_spans() {
        for seed in 0..200 {
            let mut r = Random(seed);
            let mut wheel = Wheel::new(1 << r.below(12));
            let mut model = BinaryHeap::new();
            let (mut now, reach) = (0, 1 << r.below(40));
            for i in 0..400 {
                if r.below(2) == 0 {
                    let entry = Entry { time: now + r.below(reach), id: i, number: 0, what: i };
                    wheel.push(entry);
                    model.push(Reverse(entry));
                } else {
                    let until = now + r.below(2 * reach);
                    let expected = model.peek().map(|e| e.0).filter(|e| e.time < until);
                    let got = wheel.pop(until);
                    assert_eq!(got, expected, "seed {seed}");
                    if let Some(entry) = got {
                        model.pop();
                        now = entry.time;
                    }
                }
            }
            assert_eq!(wheel.is_empty(), model.is_empty());
        }
    }
}
