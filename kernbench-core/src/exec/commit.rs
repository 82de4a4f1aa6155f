//! What a program would do to the versions of the tensors, without data and without executing it.

use super::Options;
use super::findings::{CONFLICT, Finding, Findings, Rectangle, UNWRITTEN};
use crate::diag::{Diagnostic, Failure};
use crate::ir::{OpId, OpKind, PeProgram, Program};
use crate::store::{Store, Version, Writer, for_each_part, runs};

/// Records the versions of all stores of a program as launch number `launch`, in order of PEs and ops.
/// The warnings: ranges that two PEs write (`KB0502`), which may be a race.
///
/// # Errors
/// A read of what nobody wrote before the launch or in it (`KB0501`).
pub fn commit(
    program: &Program,
    store: &mut Store,
    launch: u32,
    options: &Options,
) -> Result<Vec<Diagnostic>, Failure> {
    let mut findings = Findings::default();
    for pe in &program.pes {
        for (op, kind) in ops(pe) {
            let OpKind::Store { access: id, .. } = *kind else { continue };
            let access = *pe.access(id);
            let Some(info) = program.tensors.get(access.tensor.at()) else { continue };
            let (mut place, mut other) = (Rectangle::default(), None);
            let cols = info.shape[1] as u64;
            // Every PE may write its own replica.
            if !(options.replicated)(access.tensor) {
                for (range, version) in runs(&access).flat_map(|run| store.versions(access.tensor, run)) {
                    if let Some(Version { launch: l, writer: Writer::Op { pe: writer, op, .. } }) = version
                        && l == launch
                        && writer != pe.pe
                    {
                        place.add(&range, cols);
                        other = other.or(Some((writer, op)));
                    }
                }
            }
            if !place.is_empty() {
                let (code, tensor) = (CONFLICT, access.tensor);
                findings.add(program, Finding { code, pe: pe.pe, op, tensor, place, other });
            }
            for_each_part(&access, pe.transfers_of(id), info.ty.bytes(), pe.pe, |range, holder| {
                store.note(access.tensor, range, launch, (pe.pe, op, holder));
            });
        }
    }
    for pe in &program.pes {
        for (op, kind) in ops(pe) {
            let OpKind::Load { access, .. } = *kind else { continue };
            let access = *pe.access(access);
            let mut place = Rectangle::default();
            for (range, version) in runs(&access).flat_map(|run| store.versions(access.tensor, run)) {
                if version.is_none() {
                    place.add(&range, store.row_len(access.tensor));
                }
            }
            if !place.is_empty() {
                let (code, tensor) = (UNWRITTEN, access.tensor);
                findings.add(program, Finding { code, pe: pe.pe, op, tensor, place, other: None });
            }
        }
    }
    findings.report(program, options, false)
}

fn ops(pe: &PeProgram) -> impl Iterator<Item = (OpId, &OpKind)> {
    pe.ops.iter().enumerate().map(|(i, op)| (OpId(i as u32), &op.kind))
}
