//! Changes of versions that move no values.

use super::{Store, Version, Writer};
use crate::ir::{AccessId, OpId, PeId, PeProgram, Program, TensorId};
use std::ops::Range;
use std::sync::OnceLock;

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

    /// Notes the stores of a program that ran without values, in order of PEs and ops.
    pub fn commit(&mut self, program: &Program, launch: u32) {
        for pe in &program.pes {
            for (i, op) in pe.ops.iter().enumerate() {
                if let Some(access) = pe.written_access(&op.kind) {
                    self.note_store(pe, access, OpId(i as u32), launch);
                    if let Some(t) = self.get_mut(pe.access(access).tensor) {
                        t.bytes = OnceLock::new();
                    }
                }
            }
        }
    }

    /// Notes a store of a kernel: each part is held by the PE whose slice it went to.
    pub(crate) fn note_store(&mut self, pe: &PeProgram, access: AccessId, op: OpId, launch: u32) {
        self.newest_launch = self.newest_launch.max(launch);
        let Some(t) = self.get_mut(pe.access(access).tensor) else { return };
        let (width, size) = (t.shape[1] as u64, u64::from(t.ty.bytes()));
        let parts = pe.transfers_of(access);
        if parts.is_empty() {
            // A program built by hand may say nothing of slices: then the PE's own has it.
            for run in pe.access(access).runs() {
                t.versions.store(run, launch, pe.pe, op, pe.pe);
            }
        }
        for part in parts {
            for range in part.elements(width, size) {
                t.versions.store(range, launch, pe.pe, op, part.home);
            }
        }
    }

    /// What a program stored is unknown, for it ran without values: nobody has written it.
    pub fn forget(&mut self, program: &Program) {
        self.forget_if(program, |_| true);
    }

    /// The same of what a launch stored and nobody has written since.
    pub fn forget_launch(&mut self, program: &Program, launch: u32) {
        let of_launch = |v: Version| v.launch == launch && v.writer != Writer::Host;
        self.forget_if(program, |version| version.is_some_and(of_launch));
    }

    fn forget_if(&mut self, program: &Program, forgets: impl Fn(Option<Version>) -> bool) {
        for pe in &program.pes {
            for op in &pe.ops {
                let Some(access) = pe.written_access(&op.kind) else { continue };
                let access = pe.access(access);
                let Some(t) = self.get_mut(access.tensor) else { continue };
                let poison = super::poison_byte(t.ty);
                let size = t.ty.bytes() as usize;
                for run in access.runs() {
                    let parts: Vec<_> = t.versions.over(run).filter(|(_, v)| forgets(*v)).collect();
                    for (part, _) in parts {
                        t.versions.forget(part.clone());
                        t.bytes_mut()[part.start as usize * size..part.end as usize * size].fill(poison);
                    }
                }
            }
        }
    }
}
