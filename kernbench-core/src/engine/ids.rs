//! Event and transfer ids: static, in order of launch, PE and op (rule 9 of the machine).
//!
//! An op has one id. A composite has one for each of its stages, since they overlap in time; the first
//! stands for the op itself.

use crate::ir::{OpId, OpKind, PeProgram};

/// Ids of a composite.
pub(super) const STAGES: u32 = 6;

/// What an id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Position of the PE in the simulation.
    pub pe: usize,
    pub op: OpId,
    /// The stage of a composite; 0 for every other op.
    pub stage: u32,
}

#[derive(Debug)]
struct PeIds {
    /// The id of its op 0.
    base: u32,
    /// Its composites, each with its first id.
    composites: Vec<(u32, u32)>,
}

/// The ids of some programs.
#[derive(Debug)]
pub(super) struct Ids {
    pes: Vec<PeIds>,
    /// The PE of each id.
    pe_of: Vec<u32>,
}

impl Ids {
    pub fn new<'a>(pes: impl Iterator<Item = &'a PeProgram>) -> Self {
        let mut ids = Ids { pes: vec![], pe_of: vec![] };
        for (p, pe) in pes.enumerate() {
            let base = ids.pe_of.len() as u32;
            let mut composites = vec![];
            if !pe.composites.is_empty() {
                let ops = pe.ops.iter().enumerate();
                let found = ops.filter(|(_, op)| matches!(op.kind, OpKind::Composite { .. }));
                let first = |(n, (op, _)): (usize, (usize, _))| {
                    (op as u32, base + op as u32 + n as u32 * (STAGES - 1))
                };
                composites = found.enumerate().map(first).collect();
            }
            let count = pe.ops.len() + composites.len() * (STAGES as usize - 1);
            ids.pe_of.resize(base as usize + count, p as u32);
            ids.pes.push(PeIds { base, composites });
        }
        ids
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pe_of.len()
    }

    /// Composites of a PE before an op.
    pub fn composites_before(&self, pe: usize, op: OpId) -> usize {
        match &self.pes[pe].composites[..] {
            [] => 0,
            composites => composites.partition_point(|&(of, _)| of < op.0),
        }
    }

    /// The id of an op, or of a stage of a composite.
    pub fn id(&self, pe: usize, op: OpId, stage: u32) -> u32 {
        self.pes[pe].base + op.0 + self.composites_before(pe, op) as u32 * (STAGES - 1) + stage
    }

    /// What an id stands for.
    pub fn owner(&self, id: u32) -> Owner {
        let pe = self.pe_of[id as usize] as usize;
        let PeIds { base, composites } = &self.pes[pe];
        let before = match composites[..] {
            [] => 0,
            _ => composites.partition_point(|&(_, first)| first <= id),
        };
        let Some(&(op, first)) = before.checked_sub(1).and_then(|last| composites.get(last)) else {
            return Owner { pe, op: OpId(id - base), stage: 0 };
        };
        match id - first {
            stage @ 0..STAGES => Owner { pe, op: OpId(op), stage },
            past => Owner { pe, op: OpId(op + 1 + past - STAGES), stage: 0 },
        }
    }
}
