//! The event queue: keys ordered by time and then by what the event is.

use crate::units::Ps;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// What happens, in the order in which events of one instant are handled: what ends comes before
/// what starts, so that a resource freed at an instant can be taken at it, and heads of transfers
/// come last, so that all transfers that reach a node at an instant are known before one is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum EventKind {
    /// An op completes.
    Done,
    /// The last flit of a send has left its PE.
    Left,
    /// A message can be received.
    Visible,
    /// A polling sender sees its credit.
    Poll,
    /// An op that meets others (at the accelerator slot, a queue, a barrier) gets there.
    Ready,
    /// The head of a transfer arrives at a node.
    Head,
}

const KINDS: [EventKind; 6] = [
    EventKind::Done,
    EventKind::Left,
    EventKind::Visible,
    EventKind::Poll,
    EventKind::Ready,
    EventKind::Head,
];

/// An event: when, what, and of which op or transfer. Ids are static, so the order is total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub time: Ps,
    pub kind: EventKind,
    pub id: u32,
}

impl Event {
    fn key(self) -> u128 {
        (u128::from(self.time) << 64) | (u128::from(self.kind as u8) << 56) | u128::from(self.id)
    }

    fn from_key(key: u128) -> Self {
        let kind = KINDS[usize::from((key >> 56) as u8)];
        Event { time: (key >> 64) as Ps, kind, id: key as u32 }
    }
}

/// The events to come. The order of pushes never shows.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<u128>>,
    /// The event pushed last. Most events push one that follows them, so that a push and a pop
    /// together cost one descent of the heap, or none.
    latest: Option<u128>,
}

impl Queue {
    pub fn push(&mut self, time: Ps, kind: EventKind, id: u32) {
        if let Some(earlier) = self.latest.replace(Event { time, kind, id }.key()) {
            self.heap.push(Reverse(earlier));
        }
    }

    /// When the next event happens; `Ps::MAX` if there is none.
    pub fn next_ps(&self) -> Ps {
        let top = self.heap.peek().map_or(u128::MAX, |e| e.0);
        (top.min(self.latest.unwrap_or(u128::MAX)) >> 64) as Ps
    }

    pub fn pop(&mut self) -> Option<Event> {
        let key = match (self.latest.take(), self.heap.peek_mut()) {
            (None, None) => return None,
            (None, Some(top)) => PeekMut::pop(top).0,
            (Some(latest), Some(mut top)) if top.0 < latest => std::mem::replace(&mut top.0, latest),
            (Some(latest), _) => latest,
        };
        Some(Event::from_key(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_insertion_does_not_show() {
        let mut events: Vec<Event> = (0..60)
            .map(|i| Event { time: i / 12, kind: KINDS[i as usize % 6], id: (i / 6 % 2) as u32 })
            .collect();
        let mut orders = vec![];
        for step in [1, 7, 11, 13, 59] {
            let mut queue = Queue::default();
            for i in 0..events.len() {
                let e = events[i * step % events.len()];
                queue.push(e.time, e.kind, e.id);
            }
            orders.push(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>());
        }
        events.sort_by_key(|e| (e.time, e.kind, e.id));
        assert!(orders.iter().all(|o| *o == events));
    }
}
