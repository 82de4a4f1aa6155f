//! What is said about a mistake in a section.

use std::fmt::Display;
use std::ops::Range;

use super::section::Section;
use super::{Key, Value, Yaml};
use crate::diag::{Code, Diagnostic, nearest};

impl Section<'_, '_> {
    /// Records a name that is none of those known (`KB0308`), with the nearest one.
    pub fn unknown_name(&self, key: &str, word: &str, known: &[&str]) {
        let help = match nearest(word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write one of {}", list(known)),
        };
        self.error(key, "KB0308", format!("`{}` cannot be `{word}`", self.full(key)), help);
    }

    /// Records a mistake at a key's value.
    pub fn error(&self, key: &str, code: Code, message: String, help: impl Into<String>) {
        self.log.push(Diagnostic::error(code, message).at(self.place(key), "").help(help));
    }

    pub(super) fn repeated(&self, first: &Key, again: &Key) {
        self.log.push(
            Diagnostic::error("KB0302", format!("key `{}` is given twice", self.full(&again.name)))
                .at(self.log.place(again.span.clone()), "given again")
                .at(self.log.place(first.span.clone()), "first given here")
                .help("remove one of the two"),
        );
    }

    pub(super) fn wrong_type(&self, key: &str, span: Range<usize>, expected: &str, found: &Value) {
        let found = match found {
            Value::Null => "nothing",
            Value::Bool => "a truth value",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a fraction",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        };
        self.log.push(
            Diagnostic::error("KB0305", format!("`{}` must be {expected}, not {found}", self.full(key)))
                .at(self.log.place(span), "")
                .help(format!("write {expected}")),
        );
    }

    pub(super) fn out_of_range<N: Display>(
        &self,
        key: &str,
        value: &Yaml,
        written: &str,
        [least, most]: [N; 2],
    ) {
        let text = format!("`{}` must be from {least} to {most}, not {written}", self.full(key));
        self.log.push(
            Diagnostic::error("KB0306", text)
                .at(self.log.place(value.span.clone()), "")
                .help(format!("write a number from {least} to {most}")),
        );
    }

    /// Records repeated, unknown and missing keys. A section that was asked for no key names its own.
    pub(super) fn finish(self) {
        if self.known.is_empty() {
            return;
        }
        let mut misspelt = vec![];
        for (i, (key, _)) in self.entries.iter().enumerate() {
            if let Some((first, _)) = self.entries[..i].iter().find(|(k, _)| k.name == key.name) {
                self.repeated(first, key);
            } else if !self.known.contains(&key.name.as_str()) {
                let near = nearest(&key.name, self.missing.iter().copied())
                    .or_else(|| nearest(&key.name, self.known.iter().copied()));
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("remove it; the keys here are {}", list(&self.known)),
                };
                misspelt.extend(near);
                self.log.push(
                    Diagnostic::error("KB0303", format!("unknown key `{}`", self.full(&key.name)))
                        .at(self.log.place(key.span.clone()), "")
                        .help(help),
                );
            }
        }
        // A misspelt key is not also a missing one: one mistake, one message.
        for key in self.missing.iter().filter(|key| !misspelt.contains(key)) {
            self.log.push(
                Diagnostic::error("KB0304", format!("missing key `{}`", self.full(key)))
                    .at(self.log.place(self.named.clone()), "")
                    .help(format!("add `{key}: ..` here")),
            );
        }
    }
}

fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
