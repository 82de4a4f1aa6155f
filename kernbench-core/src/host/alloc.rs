//! First-fit allocation with coalescing, for one memory.

/// Free ranges of a memory, sorted and never adjacent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FreeList {
    free: Vec<(u64, u64)>,
}

/// Allocations begin at multiples of this many bytes.
const ALIGN: u64 = 256;

impl FreeList {
    pub(super) fn new(bytes: u64) -> FreeList {
        FreeList { free: vec![(0, bytes)] }
    }

    /// The address of `bytes` bytes; the largest free block if none is large enough.
    pub(super) fn take(&mut self, bytes: u64) -> Result<u64, u64> {
        let size = bytes.next_multiple_of(ALIGN);
        match self.free.iter_mut().find(|(_, len)| *len >= size) {
            Some((start, len)) => {
                let at = *start;
                *start += size;
                *len -= size;
                self.free.retain(|(_, len)| *len > 0);
                Ok(at)
            }
            None => Err(self.free.iter().map(|(_, len)| *len).max().unwrap_or(0)),
        }
    }

    /// Takes the last `bytes` bytes for good; the largest free block if they are in use.
    pub(super) fn take_top(&mut self, bytes: u64) -> Result<(), u64> {
        let size = bytes.next_multiple_of(ALIGN);
        match self.free.last_mut() {
            _ if size == 0 => Ok(()),
            Some((_, len)) if *len >= size => {
                *len -= size;
                Ok(())
            }
            _ => Err(self.free.iter().map(|(_, len)| *len).max().unwrap_or(0)),
        }
    }

    /// Gives back what `take(bytes)` gave at `start`.
    pub(super) fn give(&mut self, start: u64, bytes: u64) {
        let size = bytes.next_multiple_of(ALIGN);
        if size == 0 {
            return;
        }
        let i = self.free.partition_point(|(s, _)| *s < start);
        self.free.insert(i, (start, size));
        for j in [i + 1, i] {
            if j >= 1 && j < self.free.len() && self.free[j - 1].0 + self.free[j - 1].1 == self.free[j].0 {
                self.free[j - 1].1 += self.free[j].1;
                self.free.remove(j);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_first_fit_and_joins_what_comes_back() {
        let mut m = FreeList::new(2048);
        let at: Vec<_> = [100, 256, 300].iter().map(|&n| m.take(n)).collect();
        assert_eq!(at, [Ok(0), Ok(256), Ok(512)]);
        m.give(256, 256);
        assert_eq!(m.take(512), Ok(1024), "the hole of 256 is too small");
        assert_eq!(m.take(200), Ok(256), "and is used by what fits");
        assert_eq!(m.take(1024), Err(512));
        for (start, bytes) in [(0, 100), (512, 300), (256, 200), (1024, 512)] {
            m.give(start, bytes);
        }
        assert_eq!(m, FreeList::new(2048));
    }
}
