//! Mistakes found while recording: one diagnostic for each site chain, however many PEs and turns hit it.

use crate::diag::{Code, Diagnostic};
use crate::ir::{PeId, SiteId, Sites};
use rustc_hash::FxHashMap;

#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: Vec<Finding>,
    index: FxHashMap<(Code, SiteId), usize>,
}

#[derive(Debug)]
struct Finding {
    diagnostic: Diagnostic,
    site: SiteId,
    last_pe: PeId,
    more_pes: u32,
    more_turns: u32,
}

impl Findings {
    pub(crate) fn file(&mut self, pe: PeId, site: SiteId, make: impl FnOnce() -> Diagnostic, code: Code) {
        if let Some(&i) = self.index.get(&(code, site)) {
            let f = &mut self.found[i];
            if f.last_pe == pe {
                f.more_turns += u32::from(f.more_pes == 0);
            } else {
                f.last_pe = pe;
                f.more_pes += 1;
            }
            return;
        }
        self.index.insert((code, site), self.found.len());
        let finding = Finding { diagnostic: make(), site, last_pe: pe, more_pes: 0, more_turns: 0 };
        self.found.push(finding);
    }

    pub(crate) fn finish(self, sites: &Sites) -> Vec<Diagnostic> {
        self.found
            .into_iter()
            .map(|f| {
                let mut d = f.diagnostic;
                let more: Vec<String> = [(f.more_pes, "PE"), (f.more_turns, "turn")]
                    .iter()
                    .filter(|(n, _)| *n > 0)
                    .map(|(n, what)| format!("{n} more {what}{}", if *n == 1 { "" } else { "s" }))
                    .collect();
                if !more.is_empty() {
                    // A message may go on after its first line, which then ends in a colon.
                    let end = d.message.find(":\n").unwrap_or(d.message.len());
                    d.message.insert_str(end, &format!(" (and {})", more.join(", ")));
                }
                // The mistake's own place is the main one.
                let rest = std::mem::take(&mut d.labels);
                let mut d = sites.label(d, f.site);
                d.labels.extend(rest);
                d
            })
            .collect()
    }
}
