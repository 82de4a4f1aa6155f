//! Scratch scopes as a tree of turns, and where their bytes go.
//!
//! A scope instance is one `scratch_scope!` token inside one turn of its parent; each time control
//! enters it is a turn. The `n` buffers of an instance follow each other above the parent's live
//! bytes, each of the size of the largest turn, and turn `t` uses buffer `t mod n`.

use crate::ir::SiteId;

/// Tiles begin at multiples of this many bytes.
pub(crate) const ALIGN: u64 = 64;

const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Turn {
    /// The scope instance it is a turn of.
    pub(crate) instance: u32,
    /// The turn that encloses it.
    pub(crate) parent: u32,
    /// Which turn of its instance it is, from 0.
    pub(crate) number: u32,
    /// The newest of the instances inside it.
    child: u32,
    /// Bytes of its own tiles so far.
    pub(crate) live: u32,
    /// Bytes of the parent's own tiles when it opened.
    pub(crate) entry: u32,
    /// Bytes it needs with everything inside it; known after `lay_out`.
    pub(crate) need: u64,
    /// Its address; known after `lay_out`.
    pub(crate) base: u64,
}

#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) site: SiteId,
    pub(crate) buffers: u32,
    /// The next older instance of the same parent.
    older: u32,
    turns: u32,
    /// The most bytes the parent had live at an entry.
    max_entry: u32,
    /// Bytes of its largest turn; known after `lay_out`.
    pub(crate) turn_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Turns {
    pub(crate) turns: Vec<Turn>,
    pub(crate) instances: Vec<Instance>,
    open: Vec<u32>,
}

impl Turns {
    pub(crate) fn open_root(&mut self) -> u32 {
        self.push(NONE, NONE, 0, 0)
    }

    fn push(&mut self, instance: u32, parent: u32, number: u32, entry: u32) -> u32 {
        let id = self.turns.len() as u32;
        let turn = Turn { instance, parent, number, child: NONE, live: 0, entry, need: 0, base: 0 };
        self.turns.push(turn);
        self.open.push(id);
        id
    }

    /// Opens a turn inside `parent` of the scope whose token is at `site`.
    pub(crate) fn open(&mut self, parent: u32, site: SiteId, buffers: u32) -> u32 {
        let entry = self.turns[parent as usize].live;
        let newest = self.turns[parent as usize].child;
        let mut instance = newest;
        while instance != NONE && self.instances[instance as usize].site != site {
            instance = self.instances[instance as usize].older;
        }
        if instance == NONE {
            instance = self.instances.len() as u32;
            let new = Instance { site, buffers, older: newest, turns: 0, max_entry: 0, turn_bytes: 0 };
            self.instances.push(new);
            self.turns[parent as usize].child = instance;
        }
        let i = &mut self.instances[instance as usize];
        i.max_entry = i.max_entry.max(entry);
        i.buffers = i.buffers.max(buffers);
        i.turns += 1;
        let number = i.turns - 1;
        self.push(instance, parent, number, entry)
    }

    /// Closes a turn by identity: scopes dropped out of order do not close each other.
    pub(crate) fn close(&mut self, turn: u32) {
        if let Some(at) = self.open.iter().rposition(|&t| t == turn) {
            self.open.remove(at);
        }
    }

    pub(crate) fn is_innermost(&self, turn: u32) -> bool {
        self.open.last() == Some(&turn)
    }

    /// The token of the innermost open scope, unless it is the kernel itself.
    pub(crate) fn innermost_site(&self) -> Option<SiteId> {
        let turn = &self.turns[*self.open.last()? as usize];
        self.instances.get(turn.instance as usize).map(|i| i.site)
    }

    /// Takes bytes of a turn; gives their offset in it, or `None` past 4 GiB.
    #[inline]
    pub(crate) fn alloc(&mut self, turn: u32, bytes: u64) -> Option<u32> {
        let live = &mut self.turns[turn as usize].live;
        let end = (u64::from(*live) + bytes).checked_next_multiple_of(ALIGN)?;
        let offset = *live;
        *live = u32::try_from(end).ok()?;
        Some(offset)
    }

    /// Gives every turn its address; returns the bytes the whole kernel needs.
    pub(crate) fn lay_out(&mut self) -> u64 {
        // A turn opens after its parent, so a walk from the back sees children first.
        for t in (0..self.turns.len()).rev() {
            let turn = &mut self.turns[t];
            turn.need = turn.need.max(u64::from(turn.live));
            let (need, parent, first) = (turn.need, turn.parent, turn.number == 0);
            if let Some(i) = self.instances.get_mut(turn.instance as usize) {
                i.turn_bytes = i.turn_bytes.max(need);
                if first {
                    let total = u64::from(i.max_entry) + u64::from(i.buffers) * i.turn_bytes;
                    let outer = &mut self.turns[parent as usize].need;
                    *outer = total.max(*outer);
                }
            }
        }
        for t in 0..self.turns.len() {
            let turn = &self.turns[t];
            if let Some(i) = self.instances.get(turn.instance as usize) {
                let buffer = u64::from(turn.number % i.buffers) * i.turn_bytes;
                self.turns[t].base = self.turns[turn.parent as usize].base + u64::from(turn.entry) + buffer;
            }
        }
        self.turns.first().map_or(0, |root| root.need)
    }
}
