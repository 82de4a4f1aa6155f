//! Where the user wrote an op: the intrinsic and every call of a `#[device]` function around it.

use super::SiteId;
use crate::diag::{Diagnostic, Place};
use rustc_hash::FxHashMap;

/// A place in the user's source, made by the macros as a constant.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// The file as rustc names it.
    pub file: &'static str,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// The binding the value gets, such as `acc.l`; empty if it has none.
    pub name: &'static str,
}

/// A source place and the call that led there.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The place itself.
    pub source: &'static Source,
    /// The call of the `#[device]` function that holds it, if it is in one.
    pub caller: Option<SiteId>,
}

/// Interned sites. Interning is by pointer, printing by content.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    sites: Vec<Site>,
    index: FxHashMap<(usize, u32), SiteId>,
    /// A direct-mapped cache in front of `index`: recording asks once for each op.
    cache: Vec<(usize, u32, SiteId)>,
}

const CACHE: usize = 1024;
const NO_CALLER: u32 = u32::MAX;

impl Sites {
    /// The id of a place reached through `caller`.
    #[inline]
    pub fn intern(&mut self, source: &'static Source, caller: Option<SiteId>) -> SiteId {
        let pointer = std::ptr::from_ref(source) as usize;
        let caller_key = caller.map_or(NO_CALLER, |c| c.0);
        let hash = (pointer as u64 ^ (u64::from(caller_key) << 40)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let slot = (hash >> 54) as usize;
        if let Some(&(p, c, id)) = self.cache.get(slot)
            && p == pointer
            && c == caller_key
        {
            return id;
        }
        if self.cache.is_empty() {
            self.cache = vec![(0, 0, SiteId(0)); CACHE];
        }
        let sites = &mut self.sites;
        let id = *self.index.entry((pointer, caller_key)).or_insert_with(|| {
            sites.push(Site { source, caller });
            SiteId(sites.len() as u32 - 1)
        });
        self.cache[slot] = (pointer, caller_key, id);
        id
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// A site by its id.
    #[must_use]
    pub fn get(&self, id: SiteId) -> Site {
        self.sites[id.at()]
    }

    /// The chain of a site, innermost first.
    pub fn chain(&self, id: SiteId) -> impl Iterator<Item = &'static Source> {
        let mut next = Some(id);
        std::iter::from_fn(move || {
            let site = self.get(next?);
            next = site.caller;
            Some(site.source)
        })
    }

    /// Labels a diagnostic with a site and each call that led there.
    #[must_use]
    pub fn label(&self, mut d: Diagnostic, id: SiteId) -> Diagnostic {
        for (i, source) in self.chain(id).enumerate() {
            let text = match (i, source.name) {
                (0, "") => String::new(),
                (0, name) => format!("`{name}`"),
                _ => "called here".to_owned(),
            };
            d = d.at(source.place(), text);
        }
        d
    }
}

impl Source {
    /// The place for a diagnostic.
    #[must_use]
    pub fn place(&self) -> Place {
        Place::Source { file: self.file.to_owned(), line: self.line, column: self.column }
    }
}
