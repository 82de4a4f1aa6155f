//! Which elements of tensors a launch reads and writes.

use super::{Facts, and_more, label, pe_text};
use crate::diag::Diagnostic;
use crate::ir::{Access, PeId, Program, SiteId, TensorId};
use rangemap::RangeSet;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

#[derive(Clone, Copy)]
struct Write {
    start: u64,
    end: u64,
    pe: PeId,
    site: SiteId,
}

pub(super) fn check(program: &Program, facts: &Facts<'_>) -> Vec<Diagnostic> {
    let mut writes: BTreeMap<TensorId, Vec<Write>> = BTreeMap::new();
    for pe in &program.pes {
        for op in &pe.ops {
            if let Some(access) = pe.written_access(&op.kind) {
                let access = pe.access(access);
                let of = writes.entry(access.tensor).or_default();
                of.extend(access.runs().map(|r| Write {
                    start: r.start,
                    end: r.end,
                    pe: pe.pe,
                    site: op.site,
                }));
            }
        }
    }
    for of in writes.values_mut() {
        of.sort_by_key(|w| (w.start, w.pe));
    }
    let mut found = check_reads(program, facts, &writes);
    found.extend(check_looks(program, facts, &writes));
    if !facts.data {
        found.extend(check_overlaps(program, facts, &writes));
    }
    found
}

/// Everything read was written before, by the host, an earlier launch or this one; and no PE reads
/// from a replicated tensor what another PE writes in the same launch.
fn check_reads(
    program: &Program,
    facts: &Facts<'_>,
    writes: &BTreeMap<TensorId, Vec<Write>>,
) -> Vec<Diagnostic> {
    let mut found = vec![];
    // Where each diagnostic is, and the PEs that made the mistake.
    let mut reported: BTreeMap<(&'static str, SiteId), (usize, BTreeSet<PeId>)> = BTreeMap::new();
    // Files a mistake: `false` if its place has a diagnostic already.
    let mut is_new = |code, site, pe, at| {
        let (_, pes) = reported.entry((code, site)).or_insert((at, BTreeSet::new()));
        pes.insert(pe) && pes.len() == 1
    };
    let mut whole: BTreeMap<TensorId, bool> = BTreeMap::new();
    let mut sets: BTreeMap<(TensorId, Option<PeId>), RangeSet<u64>> = BTreeMap::new();
    for pe in &program.pes {
        for op in &pe.ops {
            for access in pe.read_accesses(&op.kind) {
                let access = pe.access(access);
                let id = access.tensor;
                let tensor = &program.tensors[id.at()];
                let elements = tensor.shape[0] as u64 * tensor.shape[1] as u64;
                let replicated = (facts.replicated)(id);
                let of = writes.get(&id).map_or(&[][..], Vec::as_slice);
                if replicated && let Some(other) = stale(of, access, pe.pe) {
                    if is_new("KB0210", op.site, pe.pe, found.len()) {
                        let d = Diagnostic::error(
                            "KB0210",
                            format!(
                                "{} reads `{}`, which {} writes in the same launch: its own replica is stale",
                                pe_text(facts, pe.pe),
                                program.access_text(access),
                                pe_text(facts, other.pe)
                            ),
                        )
                        .help("send the values with `tl::send`, or read them in a later launch");
                        let d = label(program, d, op.site, "is loaded here");
                        found.push(label(program, d, other.site, "is stored here"));
                    }
                    continue;
                }
                if *whole.entry(id).or_insert_with(|| (facts.written)(id, 0..elements)) {
                    continue;
                }
                let own = replicated.then_some(pe.pe);
                let set = sets.entry((id, own)).or_insert_with(|| {
                    let mine = of.iter().filter(|w| own.is_none_or(|pe| w.pe == pe) && w.start < w.end);
                    mine.map(|w| w.start..w.end).collect()
                });
                let missing: Option<Range<u64>> =
                    access.runs().find_map(|r| set.gaps(&r).find(|gap| !(facts.written)(id, gap.clone())));
                if let Some(gap) = missing
                    && is_new("KB0205", op.site, pe.pe, found.len())
                {
                    let width = tensor.shape[1].max(1) as u64;
                    let d = Diagnostic::error(
                        "KB0205",
                        format!(
                            "{} reads `{}`, but nobody has written `{}` from row {}, column {} on",
                            pe_text(facts, pe.pe),
                            program.access_text(access),
                            tensor.name,
                            gap.start / width,
                            gap.start % width
                        ),
                    )
                    .help("fill the tensor with `from_array` or `zeros`, or store to it before the load");
                    found.push(label(program, d, op.site, "is loaded here"));
                }
            }
        }
    }
    for (i, pes) in reported.into_values() {
        and_more(&mut found[i], pes.len() - 1, "PE");
    }
    found
}

/// Nobody writes what a kernel has looked at while it was recorded: it saw the values before the launch.
fn check_looks(
    program: &Program,
    facts: &Facts<'_>,
    writes: &BTreeMap<TensorId, Vec<Write>>,
) -> Vec<Diagnostic> {
    let mut found: BTreeMap<SiteId, (Diagnostic, usize)> = BTreeMap::new();
    for pe in &program.pes {
        for op in pe.reads.iter().map(|read| &pe.ops[read.at()]) {
            for access in pe.read_accesses(&op.kind).map(|access| pe.access(access)) {
                let of = writes.get(&access.tensor).map_or(&[][..], Vec::as_slice);
                let Some(write) = overlapping(of, access, |_| true) else { continue };
                if let Some((_, more)) = found.get_mut(&op.site) {
                    *more += 1;
                    continue;
                }
                let d = Diagnostic::error(
                    "KB0211",
                    format!(
                        "{} reads `{}` with `tl::read`, which {} writes in the same launch: it has seen the values from before",
                        pe_text(facts, pe.pe),
                        program.access_text(access),
                        pe_text(facts, write.pe)
                    ),
                )
                .help("read the values in a later launch");
                let d = label(program, d, op.site, "is read here");
                found.insert(op.site, (label(program, d, write.site, "is stored here"), 0));
            }
        }
    }
    let told = |(mut d, more): (Diagnostic, usize)| {
        and_more(&mut d, more, "time");
        d
    };
    found.into_values().map(told).collect()
}

fn stale(writes: &[Write], access: &Access, pe: PeId) -> Option<Write> {
    if writes.iter().all(|w| w.pe == pe) {
        return None;
    }
    overlapping(writes, access, |w| w.pe != pe)
}

/// A write that is such, of something an access covers.
fn overlapping(writes: &[Write], access: &Access, is_such: impl Fn(&Write) -> bool) -> Option<Write> {
    access.runs().find_map(|r| {
        let until = writes.partition_point(|w| w.start < r.end);
        writes[..until].iter().find(|w| is_such(w) && w.end > r.start).copied()
    })
}

/// Without data, two PEs that write the same range cannot be compared: a warning.
fn check_overlaps(
    program: &Program,
    facts: &Facts<'_>,
    writes: &BTreeMap<TensorId, Vec<Write>>,
) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (id, of) in writes {
        let mut reach: Option<Write> = None;
        for w in of.iter().filter(|w| w.start < w.end) {
            if let Some(r) = reach
                && r.end > w.start
                && r.pe != w.pe
            {
                let name = &program.tensors[id.at()].name;
                let d = Diagnostic::warning(
                    "KB0209",
                    format!(
                        "{} and {} write the same elements of `{name}` in one launch",
                        pe_text(facts, r.pe),
                        pe_text(facts, w.pe)
                    ),
                )
                .help("run with data to see whether the values differ, or let one PE write them");
                let d = label(program, d, r.site, "is stored here");
                found.push(label(program, d, w.site, "is stored here too"));
                break;
            }
            if reach.is_none_or(|r| w.end > r.end) {
                reach = Some(*w);
            }
        }
    }
    found
}
