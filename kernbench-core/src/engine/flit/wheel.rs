//! The order of what happens on the wires: two wheels of buckets, of short spans of time and of long ones.
//!
//! Nearly everything that happens causes something a few flits later, so a push links an entry into
//! the bucket of its span, and a bucket is sorted once, when time gets there. What lies beyond the
//! turn of the first wheel waits in the second, whose buckets span a turn of the first; what lies
//! beyond that waits in a heap.

use crate::units::Ps;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Buckets of the first wheel, one bit of a word each, and of the second.
const NEAR_BITS: u32 = 6;
const NEAR: u64 = 1 << NEAR_BITS;
const LATE_BITS: u32 = 10;
const LATE: u64 = 1 << LATE_BITS;
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

#[derive(Debug)]
pub(super) struct Wheel {
    /// A bucket of the first wheel spans `1 << bits` ps.
    bits: u32,
    /// The number of the span that `current` holds, sorted, from `next` on.
    span: u64,
    current: Vec<Packed>,
    next: usize,
    /// Later spans of the same turn, and a bit for each that holds something.
    near: Vec<Vec<Packed>>,
    occupied: u64,
    /// Later turns of the same turn of turns: lists in `pool`.
    late: Vec<u32>,
    late_count: usize,
    pool: Vec<(Packed, u32)>,
    unused: u32,
    /// All the rest.
    far: BinaryHeap<Reverse<Entry>>,
}

impl Wheel {
    /// An empty wheel for things that are usually `step` ps apart.
    pub fn new(step: Ps) -> Self {
        Wheel {
            // Two wheels together span less than the time that an entry knows.
            bits: step.max(2).ilog2().min(31 - NEAR_BITS - LATE_BITS),
            span: 0,
            current: vec![],
            next: 0,
            near: vec![vec![]; NEAR as usize],
            occupied: 0,
            late: vec![NONE; LATE as usize],
            late_count: 0,
            pool: vec![],
            unused: NONE,
            far: BinaryHeap::new(),
        }
    }

    /// Adds an entry, which is not before any that was popped, nor before the end of a pop in vain.
    #[inline(always)]
    pub fn push(&mut self, entry: Entry) {
        let (span, packed) = (entry.time >> self.bits, Packed::new(entry));
        if span <= self.span {
            return self.insert(packed);
        }
        // The highest bit in which the spans differ says which wheel turns first.
        if (span ^ self.span) >> NEAR_BITS == 0 {
            self.near[(span % NEAR) as usize].push(packed);
            self.occupied |= 1 << (span % NEAR);
        } else {
            self.push_late(span, entry);
        }
    }

    #[cold]
    fn push_late(&mut self, span: u64, entry: Entry) {
        if (span ^ self.span) >> (NEAR_BITS + LATE_BITS) != 0 {
            self.far.push(Reverse(entry));
            return;
        }
        let first = &mut self.late[(span >> NEAR_BITS) as usize % LATE as usize];
        let place = (Packed::new(entry), *first);
        self.late_count += 1;
        if self.unused == NONE {
            *first = self.pool.len() as u32;
            self.pool.push(place);
        } else {
            *first = self.unused;
            let old = std::mem::replace(&mut self.pool[self.unused as usize], place);
            self.unused = old.1;
        }
    }

    /// Adds to the span under way.
    #[cold]
    fn insert(&mut self, packed: Packed) {
        let rest = &self.current[self.next..];
        let at = rest.iter().rposition(|e| *e < packed).map_or(0, |i| i + 1);
        self.current.insert(self.next + at, packed);
    }

    /// The first entry, if it is before `until`.
    #[inline(always)]
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
        let near = self.next < self.current.len() || self.occupied != 0;
        !near && self.late_count == 0 && self.far.is_empty()
    }

    /// Goes on to the next span, or turn, that holds something; false if there is none before `until`.
    #[inline(never)]
    fn turn(&mut self, until: Ps) -> bool {
        let later = self.occupied & (!0 << (self.span % NEAR));
        if later != 0 {
            let bucket = u64::from(later.trailing_zeros());
            let span = (self.span & !(NEAR - 1)) | bucket;
            if span << self.bits >= until {
                return false;
            }
            self.begin(span);
            std::mem::swap(&mut self.current, &mut self.near[bucket as usize]);
            self.occupied &= !(1 << bucket);
            self.current.sort_unstable_by_key(|e| e.0);
            return true;
        }
        if self.late_count > 0 {
            let turn = self.span >> NEAR_BITS;
            let from = (turn % LATE) as usize;
            let Some(bucket) = self.late[from..].iter().position(|first| *first != NONE) else { return false };
            let turn = turn + bucket as u64;
            let span = turn << NEAR_BITS;
            if span << self.bits >= until {
                return false;
            }
            self.begin(span);
            let mut at = std::mem::replace(&mut self.late[from + bucket], NONE);
            while at != NONE {
                let (packed, next) = self.pool[at as usize];
                self.pool[at as usize].1 = std::mem::replace(&mut self.unused, at);
                self.late_count -= 1;
                self.put_near(packed.entry(span << self.bits));
                at = next;
            }
            return true;
        }
        let Some(Reverse(first)) = self.far.peek() else { return false };
        if first.time >= until {
            return false;
        }
        let turns = |time: Ps| time >> self.bits >> (NEAR_BITS + LATE_BITS);
        let this = turns(first.time);
        let mut moved = vec![];
        while self.far.peek().is_some_and(|e| turns(e.0.time) == this) {
            moved.extend(self.far.pop().map(|e| e.0));
        }
        self.begin(moved[0].time >> self.bits & !(NEAR - 1));
        for entry in moved {
            let span = entry.time >> self.bits;
            match (span ^ self.span) >> NEAR_BITS {
                0 => self.put_near(entry),
                _ => self.push_late(span, entry),
            }
        }
        true
    }

    /// Adds to this turn, also to its first span.
    fn put_near(&mut self, entry: Entry) {
        let bucket = (entry.time >> self.bits) % NEAR;
        self.near[bucket as usize].push(Packed::new(entry));
        self.occupied |= 1 << bucket;
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
                    if got.is_some() {
                        model.pop();
                    }
                    now = got.map_or(until, |entry| entry.time);
                }
            }
            assert_eq!(wheel.is_empty(), model.is_empty());
        }
    }
}
