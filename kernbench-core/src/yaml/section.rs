//! One map of a YAML tree: every key is asked for once, every mistake is collected.

use std::ops::Range;

use super::{Key, Log, Value, Yaml};
use crate::diag::{Diagnostic, Place};
use crate::units;

/// No number may be larger; keeps every time and size far from overflow.
const LARGEST: f64 = 1e6;
/// No count may be larger.
const MOST: u32 = 1_000_000_000;

/// One map of the file. A getter that finds a mistake records it and returns a harmless value, so
/// that one reading finds all of them.
pub(crate) struct Section<'a, 'f> {
    /// The file's mistakes.
    pub log: &'a Log<'f>,
    pub(super) path: String,
    pub(super) named: Range<usize>,
    pub(super) entries: &'a [(Key, Yaml)],
    pub(super) known: Vec<&'static str>,
    pub(super) missing: Vec<&'static str>,
}

impl<'a, 'f> Section<'a, 'f> {
    /// The place of a key's value, or of the section's own key if it is missing.
    pub fn place(&self, key: &str) -> Place {
        let found = self.entries.iter().find(|(k, _)| k.name == key);
        self.log.place(found.map_or_else(|| self.named.clone(), |(k, v)| visible(k, v)))
    }

    /// Reads something, and says whether it was free of mistakes; what is checked against it makes
    /// sense only then.
    pub fn sound<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let before = self.log.len() + self.missing.len();
        let value = read(self);
        (value, before == self.log.len() + self.missing.len())
    }

    /// Whether a key is there.
    pub fn has(&mut self, key: &'static str) -> bool {
        self.find(key).is_some()
    }

    /// All keys of a map whose names the user chooses.
    pub fn names(&mut self) -> Vec<(&'a Key, &'a Yaml)> {
        let mut seen: Vec<(&Key, &Yaml)> = vec![];
        for (key, value) in self.entries {
            match seen.iter().find(|(k, _)| k.name == key.name) {
                Some((first, _)) => self.repeated(first, key),
                None => seen.push((key, value)),
            }
        }
        seen
    }

    /// Reads the map under a key; `None` if it is missing or no map.
    pub fn section<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Section<'a, 'f>) -> T,
    ) -> Option<T> {
        let (name, value) = self.required(key)?;
        self.enter(name, value, read)
    }

    /// Reads a value that must be a map.
    pub fn enter<T>(
        &self,
        key: &'a Key,
        value: &'a Yaml,
        read: impl FnOnce(&mut Section<'a, 'f>) -> T,
    ) -> Option<T> {
        self.enter_as(key.name.clone(), &key.span, value, read)
    }

    pub(super) fn enter_as<T>(
        &self,
        name: String,
        named: &Range<usize>,
        value: &'a Yaml,
        read: impl FnOnce(&mut Section<'a, 'f>) -> T,
    ) -> Option<T> {
        let entries = match &value.value {
            Value::Map(entries) => entries.as_slice(),
            // A key with nothing below it: its missing keys say more than its type.
            Value::Null => &[],
            other => {
                let span = if value.span.is_empty() { named.clone() } else { value.span.clone() };
                self.wrong_type(&name, span, "a map of keys", other);
                return None;
            }
        };
        let named = match entries.first() {
            // An item of a list has no name of its own; its first key stands for it.
            Some((first, _)) if name.ends_with(']') => first.span.clone(),
            _ => named.clone(),
        };
        let (known, missing) = (vec![], vec![]);
        let mut inner = Section { log: self.log, path: self.full(&name), named, entries, known, missing };
        let result = read(&mut inner);
        inner.finish();
        Some(result)
    }

    /// A whole number from 1.
    pub fn count(&mut self, key: &'static str) -> u32 {
        self.whole(key, 1)
    }

    /// A whole number of at least `least`.
    pub fn whole(&mut self, key: &'static str, least: u32) -> u32 {
        let Some((name, value)) = self.required(key) else { return least };
        self.whole_of(name, value, [least, MOST])
    }

    /// A whole number below `count`.
    pub fn index(&mut self, key: &'static str, count: u32) -> u32 {
        let Some((name, value)) = self.required(key) else { return 0 };
        self.whole_of(name, value, [0, count.saturating_sub(1)])
    }

    /// A whole number from 1, if the key is there.
    pub fn count_or(&mut self, key: &'static str, default: u32) -> u32 {
        if self.has(key) { self.count(key) } else { default }
    }

    /// Bytes from 1 to `most`, as a number or with a unit, as in `16KiB`.
    pub fn size(&mut self, key: &'static str, most: u64) -> u64 {
        let Some((name, value)) = self.required(key) else { return 1 };
        let (n, written) = match &value.value {
            Value::Int(n) => (u64::try_from(*n).unwrap_or(0), n.to_string()),
            Value::Text(word) => match units::bytes(word) {
                Some(n) => (n, word.clone()),
                None => {
                    let text = format!("`{}` is no size: `{word}`", self.full(key));
                    let help = "write bytes, or a whole number with KiB, MiB or GiB";
                    self.error(key, "KB0317", text, help);
                    return 1;
                }
            },
            other => {
                self.wrong_type(key, visible(name, value), "a size such as `16KiB`", other);
                return 1;
            }
        };
        if n == 0 || n > most {
            self.out_of_range(key, value, &written, [1, most]);
            return 1;
        }
        n
    }

    fn whole_of(&self, key: &Key, value: &Yaml, [least, most]: [u32; 2]) -> u32 {
        match value.value {
            Value::Int(n) if n >= i128::from(least) && n <= i128::from(most) => n as u32,
            Value::Int(n) => {
                self.out_of_range(&key.name, value, &n.to_string(), [least, most]);
                least
            }
            ref other => {
                self.wrong_type(&key.name, visible(key, value), "a whole number", other);
                least
            }
        }
    }

    /// A power of two.
    pub fn power_of_two(&mut self, key: &'static str) -> u32 {
        let n = self.count(key);
        if !n.is_power_of_two() {
            let (below, above) = (n.next_power_of_two() / 2, n.next_power_of_two());
            self.log.push(
                Diagnostic::error("KB0307", format!("`{}` must be a power of two, not {n}", self.full(key)))
                    .at(self.place(key), "")
                    .help(format!("write {below} or {above}")),
            );
        }
        n.next_power_of_two()
    }

    /// A number above 0: a bandwidth, a rate or a size.
    pub fn positive(&mut self, key: &'static str) -> f64 {
        // Less than a thousandth of a unit would round to nothing.
        self.number(key, [0.001, LARGEST])
    }

    /// A number of at least 0: a time or a length.
    pub fn non_negative(&mut self, key: &'static str) -> f64 {
        self.number(key, [0.0, LARGEST])
    }

    /// A number in a range.
    pub fn number(&mut self, key: &'static str, [least, most]: [f64; 2]) -> f64 {
        let Some((name, value)) = self.required(key) else { return 1.0 };
        let x = match value.value {
            Value::Int(n) => n as f64,
            Value::Float(x) => x,
            ref other => {
                self.wrong_type(key, visible(name, value), "a number", other);
                return 1.0;
            }
        };
        if x < least || x > most {
            self.out_of_range(key, value, &x.to_string(), [least, most]);
            return 1.0;
        }
        x
    }

    /// One of several words.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&'static str, T)]) -> T {
        let fallback = choices[0].1;
        let Some(word) = self.text(key) else { return fallback };
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == word) {
            return *value;
        }
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        self.unknown_name(key, &word, &names);
        fallback
    }

    /// One of several words, if the key is there.
    pub fn choice_or<T: Copy>(&mut self, key: &'static str, choices: &[(&'static str, T)], default: T) -> T {
        if self.has(key) { self.choice(key, choices) } else { default }
    }

    /// A text.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        let (name, value) = self.required(key)?;
        self.text_of(name, value)
    }

    fn text_of(&self, key: &Key, value: &Yaml) -> Option<String> {
        match &value.value {
            Value::Text(s) => Some(s.clone()),
            other => {
                self.wrong_type(&key.name, visible(key, value), "a name", other);
                None
            }
        }
    }

    /// A list of texts, each with its place.
    pub fn texts(&mut self, key: &'static str) -> Vec<(String, Place)> {
        let (name, items) = self.items(key);
        let Some(name) = name else { return vec![] };
        items
            .iter()
            .filter_map(|item| Some((self.text_of(name, item)?, self.log.place(item.span.clone()))))
            .collect()
    }

    /// A list of whole numbers from 0, each with its place.
    pub fn wholes(&mut self, key: &'static str) -> Vec<(u32, Place)> {
        let (name, items) = self.items(key);
        let Some(name) = name else { return vec![] };
        items
            .iter()
            .map(|item| (self.whole_of(name, item, [0, MOST]), self.log.place(item.span.clone())))
            .collect()
    }

    /// Reads the items of a list of maps; messages call them `key[0]`, `key[1]`, ..
    pub fn maps(&mut self, key: &'static str, mut read: impl FnMut(&mut Section<'a, 'f>)) {
        let (Some(name), items) = self.items(key) else { return };
        for (i, item) in items.iter().enumerate() {
            self.enter_as(format!("{key}[{i}]"), &name.span, item, &mut read);
        }
    }

    /// The items of a list, and the key that names it.
    fn items(&mut self, key: &'static str) -> (Option<&'a Key>, &'a [Yaml]) {
        let Some((name, value)) = self.required(key) else { return (None, &[]) };
        match &value.value {
            Value::List(items) => (Some(name), items),
            other => {
                self.wrong_type(key, visible(name, value), "a list", other);
                (None, &[])
            }
        }
    }

    /// A key with the names of the sections that hold it: `cube.noc.grid`.
    pub fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn find(&mut self, key: &'static str) -> Option<(&'a Key, &'a Yaml)> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.entries.iter().find(|(k, _)| k.name == key).map(|(k, v)| (k, v))
    }

    fn required(&mut self, key: &'static str) -> Option<(&'a Key, &'a Yaml)> {
        let found = self.find(key);
        if found.is_none() && !self.missing.contains(&key) {
            self.missing.push(key);
        }
        found
    }
}

/// The bytes to point at for a value: its own, or its key's if it has none of its own.
fn visible(key: &Key, value: &Yaml) -> Range<usize> {
    if value.span.is_empty() { key.span.clone() } else { value.span.clone() }
}
