//! What data tracking finds, one diagnostic for each source place however many PEs meet it.

use super::Options;
use crate::diag::{Code, Diagnostic, Failure, Severity};
use crate::ir::{OpId, PeId, Program, SiteId, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::ops::Range;

/// A read of what nobody wrote.
pub(super) const UNWRITTEN: Code = "KB0501";
/// Two PEs write different bytes to one range.
pub(super) const CONFLICT: Code = "KB0502";
/// A read of a replica that another PE made stale in the same launch.
pub(super) const STALE: Code = "KB0503";
/// Every PE waits.
pub(super) const DEADLOCK: Code = "KB0504";

/// Something a PE met.
#[derive(Debug)]
pub(super) struct Finding {
    pub code: Code,
    pub pe: PeId,
    pub op: OpId,
    /// The tensor.
    pub tensor: TensorId,
    /// The elements concerned.
    pub place: Rectangle,
    /// Who wrote it, if that matters.
    pub other: Option<(PeId, OpId)>,
}

/// Findings of all PEs, merged by source place.
#[derive(Debug, Default)]
pub(super) struct Findings {
    list: Vec<(Finding, SiteId, usize)>,
    index: FxHashMap<(Code, SiteId), usize>,
    seen: FxHashSet<(Code, SiteId, PeId)>,
}

impl Findings {
    pub fn add(&mut self, program: &Program, finding: Finding) {
        let Some(site) = site(program, finding.pe, finding.op) else { return };
        if !self.seen.insert((finding.code, site, finding.pe)) {
            return;
        }
        match self.index.get(&(finding.code, site)) {
            Some(&i) => self.list[i].2 += 1,
            None => {
                self.index.insert((finding.code, site), self.list.len());
                self.list.push((finding, site, 0));
            }
        }
    }

    /// The warnings, or a failure if anything is an error. Without data a conflict is a warning: the
    /// bytes may be equal.
    pub fn report(self, program: &Program, options: &Options) -> Result<Vec<Diagnostic>, Failure> {
        let list: Vec<_> = self.list.iter().map(|(f, _, n)| diagnostic(program, options, f, *n)).collect();
        if list.iter().any(|d| d.severity == Severity::Error) { Err(Failure(list)) } else { Ok(list) }
    }
}

fn diagnostic(program: &Program, options: &Options, f: &Finding, more: usize) -> Diagnostic {
    let tensor = program.tensors.get(f.tensor.at());
    let name = tensor.map_or("?", |t| t.name.as_str());
    let place = &f.place;
    let who = pe_name(options, f.pe);
    let more = match more {
        0 => String::new(),
        1 => " and 1 more PE".to_owned(),
        n => format!(" and {n} more PEs"),
    };
    let other = f.other.map(|(pe, op)| (pe_name(options, pe), site(program, pe, op)));
    let by = other.as_ref().map_or("another PE", |(pe, _)| pe.as_str());
    let (mut d, text, note) = match f.code {
        UNWRITTEN => (
            Diagnostic::error(
                f.code,
                format!("`{name}` is read where nobody wrote it: {place} (by `{who}`{more})"),
            )
            .help(format!("write `{name}` before this launch, for example with `ctx.zeros`, or load only what was written")),
            "is loaded here",
            "",
        ),
        STALE => (
            Diagnostic::error(
                f.code,
                format!(
                    "replica is stale: `{who}`{more} reads {place} of `{name}`, which `{by}` wrote in the same launch"
                ),
            )
            .help(format!("send the values to the reader, or read `{name}` in a later launch")),
            "is loaded here",
            "was stored here",
        ),
        _ => {
            let message = format!("`{who}`{more} and `{by}` write different bytes to `{name}`: {place}");
            let d = Diagnostic::error(f.code, message);
            (
                d.help("give each PE a range of its own, or let one PE write"),
                "is stored here",
                "was stored here",
            )
        }
    };
    if let Some(site) = site(program, f.pe, f.op) {
        d = at_site(program, d, site, format!("`{}` {text}", program.binding(site)).replace("`_` ", ""));
    }
    if let Some(site) = other.and_then(|(_, site)| site) {
        d = at_site(program, d, site, note.to_owned());
    }
    d
}

/// Adds the labels of a site: the intrinsic, then the calls around it.
pub(super) fn at_site(program: &Program, d: Diagnostic, site: SiteId, text: String) -> Diagnostic {
    let mut texts = std::iter::once(text).chain(std::iter::repeat("called from here".to_owned()));
    program.sites.chain(site).fold(d, |d, source| d.at(source.place(), texts.next().unwrap_or_default()))
}

/// The site of an op.
pub(super) fn site(program: &Program, pe: PeId, op: OpId) -> Option<SiteId> {
    Some(program.pe(pe)?.ops.get(op.at())?.site)
}

/// The dotted name of a PE.
pub(super) fn pe_name(options: &Options, pe: PeId) -> String {
    let (cubes, pes) = (options.cubes.max(1), options.pes.max(1));
    format!("sip{}.cube{}.pe{}", pe.0 / (cubes * pes), pe.0 / pes % cubes, pe.0 % pes)
}

/// The smallest rectangle of a tensor that holds some ranges of elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rectangle(Option<(Range<u64>, Range<u64>)>);

impl Rectangle {
    /// Takes a range of elements in; `cols` is the length of a row.
    pub fn add(&mut self, range: &Range<u64>, cols: u64) {
        if range.is_empty() || cols == 0 {
            return;
        }
        let last = range.end - 1;
        let rows = range.start / cols..last / cols + 1;
        let columns = if rows.end - rows.start > 1 { 0..cols } else { range.start % cols..last % cols + 1 };
        let (rows, columns) = match self.0.take() {
            None => (rows, columns),
            Some((r, c)) => (
                r.start.min(rows.start)..r.end.max(rows.end),
                c.start.min(columns.start)..c.end.max(columns.end),
            ),
        };
        self.0 = Some((rows, columns));
    }

    /// Whether it holds nothing.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Display for Rectangle {
    /// Such as `rows 0..4, columns 8..16`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, columns) = self.0.clone().unwrap_or((0..0, 0..0));
        write!(f, "rows {}..{}, columns {}..{}", rows.start, rows.end, columns.start, columns.end)
    }
}
