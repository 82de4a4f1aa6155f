//! Changes of versions that move no values.

use super::{Store, runs};
use crate::ir::{OpKind, PeId, Program, TensorId};
use std::ops::Range;

impl Store {
    /// Every replica holds the newest version from now on: somebody copied it there.
    pub fn share(&mut self, id: TensorId) {
        let launch = self.newest_launch;
        let Some(t) = self.get_mut(id) else { return };
        let written: Vec<Range<u64>> = t
            .versions
            .over(0..t.elements())
            .filter(|(_, version)| version.is_some())
            .map(|(range, _)| range)
            .collect();
        for range in written {
            t.versions.host(range, launch);
        }
    }

    /// The ranges that not every replica holds the newest version of, in order, each with its holders.
    #[must_use]
    pub fn holders(&self, id: TensorId) -> Vec<(Range<u64>, Vec<PeId>)> {
        self.get(id).map_or_else(Vec::new, |t| t.versions.holders(0..t.elements()))
    }

    /// What a program stored is unknown, for it ran without values: nobody has written it.
    pub fn forget(&mut self, program: &Program) {
        for pe in &program.pes {
            for op in &pe.ops {
                let OpKind::Store { access, .. } = op.kind else { continue };
                let access = pe.access(access);
                let Some(t) = self.get_mut(access.tensor) else { continue };
                let poison = super::poison_byte(t.ty);
                let size = t.ty.bytes() as usize;
                for run in runs(access) {
                    t.versions.forget(run.clone());
                    t.bytes_mut()[run.start as usize * size..run.end as usize * size].fill(poison);
                }
            }
        }
    }
}
