//! Which write the elements of one tensor come from, as a map from element ranges to versions.

use crate::ir::{OpId, PeId};
use rangemap::RangeMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// The write that elements of a tensor come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The launch that wrote, or for a host write the newest launch before it.
    pub launch: u32,
    /// Who wrote.
    pub writer: Writer,
}

/// Who wrote elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The host; every replica holds what it wrote.
    Host,
    /// A store of a kernel.
    Op {
        /// The PE that stored.
        pe: PeId,
        /// Its op.
        op: OpId,
        /// The PE whose slice or replica got the bytes.
        holder: PeId,
    },
}

/// The versions of one tensor. Ranges without an entry were never written.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions {
    newest: RangeMap<u64, Version>,
    /// For each holder the launch in which its copy was last written by a kernel.
    /// Only entries of the newest version's launch mean anything.
    held: BTreeMap<PeId, RangeMap<u64, u32>>,
}

impl Versions {
    /// A host write: from now on every replica holds the range.
    pub fn host(&mut self, range: Range<u64>, launch: u32) {
        if range.is_empty() {
            return;
        }
        for held in self.held.values_mut() {
            held.remove(range.clone());
        }
        self.newest.insert(range, Version { launch, writer: Writer::Host });
    }

    /// A store of a kernel.
    pub fn store(&mut self, range: Range<u64>, launch: u32, pe: PeId, op: OpId, holder: PeId) {
        if range.is_empty() {
            return;
        }
        self.held.entry(holder).or_default().insert(range.clone(), launch);
        self.newest.insert(range, Version { launch, writer: Writer::Op { pe, op, holder } });
    }

    /// The range cut by version, gaps included.
    pub fn over(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, Option<Version>)> + '_ {
        let (mut at, end) = (range.start, range.end);
        let mut found = self.newest.overlapping(range).peekable();
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let part = match found.peek() {
                Some((r, _)) if r.start > at => (at..r.start.min(end), None),
                Some((r, v)) => (at..r.end.min(end), Some(**v)),
                None => (at..end, None),
            };
            if part.1.is_some() {
                found.next();
            }
            at = part.0.end;
            Some(part)
        })
    }

    /// Nobody has written the range.
    pub fn forget(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.newest.remove(range);
        }
    }

    /// The ranges last written by kernels, in order, each with everyone who holds that version.
    pub fn holders(&self, range: Range<u64>) -> Vec<(Range<u64>, Vec<PeId>)> {
        let mut all: Vec<(Range<u64>, Vec<PeId>)> = vec![];
        for (part, version) in self.over(range) {
            if !matches!(version, Some(Version { writer: Writer::Op { .. }, .. })) {
                continue;
            }
            // Copies of one launch may cover a part of the range each: cut there.
            let mut cuts = vec![part.start, part.end];
            for held in self.held.values() {
                let inside = |x: &u64| *x > part.start && *x < part.end;
                let ends = held.overlapping(part.clone()).flat_map(|(r, _)| [r.start, r.end]);
                cuts.extend(ends.filter(inside));
            }
            cuts.sort_unstable();
            cuts.dedup();
            for cut in cuts.windows(2).map(|w| w[0]..w[1]) {
                let pes: Vec<PeId> =
                    self.held.keys().copied().filter(|&pe| self.is_held(cut.clone(), pe)).collect();
                match all.last_mut() {
                    Some((r, p)) if r.end == cut.start && *p == pes => r.end = cut.end,
                    _ => all.push((cut, pes)),
                }
            }
        }
        all
    }

    /// Whether the copy of `pe` has the newest version of all of the range.
    pub fn is_held(&self, range: Range<u64>, pe: PeId) -> bool {
        self.over(range).all(|(part, version)| match version {
            None | Some(Version { writer: Writer::Host, .. }) => true,
            Some(Version { writer: Writer::Op { holder, .. }, .. }) if holder == pe => true,
            Some(Version { launch, .. }) => self.held.get(&pe).is_some_and(|held| {
                let mut at = part.start;
                for (r, l) in held.overlapping(part.clone()) {
                    if r.start > at || *l != launch {
                        return false;
                    }
                    at = r.end;
                }
                at >= part.end
            }),
        })
    }
}
