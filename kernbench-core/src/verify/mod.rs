//! Turns a draft into a program, or says everything that is wrong with it.
//!
//! All checks read the op graph alone: they run before any simulated time passes.

mod data;
mod links;
mod structure;

use crate::diag::{Diagnostic, Failure, Severity};
use crate::ir::{Draft, PeId, Program, SiteId, TensorId};
use std::ops::Range;

/// What the checks need to know besides the program.
pub struct Facts<'a> {
    /// SIP, cube and PE of a PE.
    pub name: &'a dyn Fn(PeId) -> [u32; 3],
    /// Whether all elements of a range were written before the launch.
    pub written: &'a dyn Fn(TensorId, Range<u64>) -> bool,
    /// Whether more than one PE holds a part of a tensor.
    pub replicated: &'a dyn Fn(TensorId) -> bool,
    /// Whether values will be computed: then two PEs that write the same range are compared.
    pub data: bool,
}

impl std::fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("facts of a launch")
    }
}

/// Checks a draft.
///
/// # Errors
/// Every finding, if at least one of them is an error; otherwise the program with its warnings.
pub fn verify(draft: Draft, facts: &Facts<'_>) -> Result<(Program, Vec<Diagnostic>), Failure> {
    let Draft(program) = draft;
    let mut found = structure::check(&program, facts);
    // The other checks follow indices and need a sound structure.
    if found.is_empty() {
        found.extend(links::check(&program, facts));
        found.extend(links::check_barriers(&program, facts));
        found.extend(data::check(&program, facts));
    }
    if found.iter().any(|d| d.severity == Severity::Error) {
        return Err(Failure(found));
    }
    Ok((program, found))
}

/// Adds the labels of a site; what happens there follows the binding's name.
fn label(program: &Program, d: Diagnostic, site: SiteId, what: &str) -> Diagnostic {
    let first = d.labels.len();
    let mut d = program.sites.label(d, site);
    let text = &mut d.labels[first].text;
    *text = if text.is_empty() { what.to_owned() } else { format!("{text} {what}") };
    d
}

/// Says how many others made the mistake of a diagnostic at the same place.
fn and_more(d: &mut Diagnostic, more: usize, what: &str) {
    if more > 0 {
        d.message += &format!(" (and {more} more {what}{})", if more == 1 { "" } else { "s" });
    }
}

/// `PE 3 of cube 1`, and the SIP if it is not the first.
fn pe_text(facts: &Facts<'_>, pe: PeId) -> String {
    let [sip, cube, pe] = (facts.name)(pe);
    if sip == 0 { format!("PE {pe} of cube {cube}") } else { format!("PE {pe} of cube {cube} of SIP {sip}") }
}
