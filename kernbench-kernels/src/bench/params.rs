//! Parameters of a bench: `key=value`, checked against what the bench takes.

use kernbench_core::diag::{Diagnostic, Failure, nearest};
use kernbench_core::ty::ElementType;
use std::collections::BTreeMap;

/// A parameter a bench takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Param {
    pub key: &'static str,
    /// As on the command line; `auto` where the bench works it out.
    pub default: &'static str,
    pub about: &'static str,
}

impl Param {
    /// A parameter by key, default and what it is.
    #[must_use]
    pub const fn new(key: &'static str, default: &'static str, about: &'static str) -> Param {
        Param { key, default, about }
    }
}

/// Products of a few counts must not overflow; no machine holds a tensor this large.
const MOST: usize = 1 << 31;

/// A count of at least `least`.
fn count(text: &str, least: usize) -> Option<usize> {
    text.replace('_', "").parse().ok().filter(|n| (least..=MOST).contains(n))
}

/// The values of a bench's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    values: BTreeMap<&'static str, String>,
}

impl Params {
    /// Defaults, overridden by `key=value` texts.
    ///
    /// # Errors
    /// A text that is no `key=value`, or a key the bench does not take.
    pub fn parse<'a>(
        bench: &str,
        params: &'static [Param],
        set: impl IntoIterator<Item = &'a str>,
    ) -> Result<Params, Failure> {
        let mut values: BTreeMap<_, _> = params.iter().map(|p| (p.key, p.default.to_owned())).collect();
        let mut given: Vec<&str> = vec![];
        let mut found = vec![];
        for text in set {
            let Some((key, value)) = text.split_once('=').filter(|(k, v)| !k.is_empty() && !v.is_empty())
            else {
                found.push(
                    Diagnostic::error(
                        "KB0621",
                        format!("`{text}` is no setting: it has no `key=value` form"),
                    )
                    .help("write for example `--set s_kv=4096`"),
                );
                continue;
            };
            let Some(param) = params.iter().find(|p| p.key == key) else {
                let keys: Vec<&str> = params.iter().map(|p| p.key).collect();
                let help = match nearest(key, keys.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`? `{bench}` takes {}", keys.join(", ")),
                    None => format!("`{bench}` takes {}", keys.join(", ")),
                };
                found.push(
                    Diagnostic::error("KB0622", format!("`{bench}` has no parameter `{key}`")).help(help),
                );
                continue;
            };
            if given.contains(&param.key) {
                found.push(
                    Diagnostic::error("KB0621", format!("parameter `{key}` is set twice"))
                        .help("set each parameter once"),
                );
            }
            given.push(param.key);
            values.insert(param.key, value.to_owned());
        }
        if found.is_empty() { Ok(Params { values }) } else { Err(Failure(found)) }
    }

    /// Every key with its value as text.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(k, v)| (*k, v.as_str()))
    }

    /// A value as text; empty if the bench has no such parameter.
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        self.values.get(key).map_or("", String::as_str)
    }

    /// A count of at least `least`.
    ///
    /// # Errors
    /// The value is no such number.
    pub fn count(&self, key: &str, least: usize) -> Result<usize, Failure> {
        count(self.text(key), least)
            .ok_or_else(|| self.malformed(key, &format!("a whole number from {least} to {MOST}")))
    }

    /// A count, or `None` for `auto`.
    ///
    /// # Errors
    /// The value is neither.
    pub fn count_or_auto(&self, key: &str, least: usize) -> Result<Option<usize>, Failure> {
        if self.text(key) == "auto" { Ok(None) } else { self.count(key, least).map(Some) }
    }

    /// A count, or `None` for `none`.
    ///
    /// # Errors
    /// The value is neither.
    pub fn count_or_none(&self, key: &str, least: usize) -> Result<Option<usize>, Failure> {
        let want = || format!("a whole number from {least} to {MOST} or `none`");
        match self.text(key) {
            "none" => Ok(None),
            text => count(text, least).map(Some).ok_or_else(|| self.malformed(key, &want())),
        }
    }

    /// Counts with commas between them, or `None` for `auto`.
    ///
    /// # Errors
    /// The value is neither.
    pub fn counts_or_auto(&self, key: &str, least: usize) -> Result<Option<Vec<usize>>, Failure> {
        let want = || format!("whole numbers from {least} to {MOST} with commas between them, or `auto`");
        match self.text(key) {
            "auto" => Ok(None),
            text => {
                let counts = text.split(',').map(|text| count(text, least)).collect::<Option<_>>();
                counts.map(Some).ok_or_else(|| self.malformed(key, &want()))
            }
        }
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// The value is neither.
    pub fn flag(&self, key: &str) -> Result<bool, Failure> {
        self.text(key).parse().map_err(|_| self.malformed(key, "`true` or `false`"))
    }

    /// A finite number, or `None` for `auto`.
    ///
    /// # Errors
    /// The value is neither.
    pub fn number_or_auto(&self, key: &str) -> Result<Option<f32>, Failure> {
        match self.text(key) {
            "auto" => Ok(None),
            text => match text.parse::<f32>() {
                Ok(x) if x.is_finite() => Ok(Some(x)),
                _ => Err(self.malformed(key, "a finite number or `auto`")),
            },
        }
    }

    /// A finite number that is not negative.
    ///
    /// # Errors
    /// The value is no such number.
    pub fn number(&self, key: &str) -> Result<f32, Failure> {
        match self.text(key).parse::<f32>() {
            Ok(x) if x.is_finite() && x >= 0.0 => Ok(x),
            _ => Err(self.malformed(key, "a finite number of at least 0")),
        }
    }

    /// A floating-point element type.
    ///
    /// # Errors
    /// The value is not one of f16, bf16, f32.
    pub fn float_type(&self, key: &str) -> Result<ElementType, Failure> {
        match self.text(key) {
            "f16" => Ok(ElementType::F16),
            "bf16" => Ok(ElementType::Bf16),
            "f32" => Ok(ElementType::F32),
            _ => Err(self.malformed(key, "`f16`, `bf16` or `f32`")),
        }
    }

    /// One of some words, each with its meaning.
    ///
    /// # Errors
    /// The value is none of them.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<T, Failure> {
        let found = choices.iter().find(|(word, _)| *word == self.text(key));
        let words = || choices.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        found.map(|(_, meaning)| *meaning).ok_or_else(|| self.malformed(key, &format!("one of {}", words())))
    }

    fn malformed(&self, key: &str, want: &str) -> Failure {
        if !self.values.contains_key(key) {
            let text = format!("the bench reads a parameter `{key}`, which its table does not have");
            let keys: Vec<&str> = self.values.keys().copied().collect();
            return Diagnostic::error("KB0622", text).help(format!("it has {}", keys.join(", "))).into();
        }
        Diagnostic::error("KB0621", format!("`{key}={}`: {want} is expected", self.text(key)))
            .help(format!("write `--set {key}=VALUE` with {want}"))
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_that_reads_a_parameter_it_does_not_have() {
        const PARAMS: &[Param] = &[Param::new("rows", "8", "rows of x")];
        let params = Params::parse("mine", PARAMS, []).unwrap();
        assert_eq!(params.count("rows", 1).unwrap(), 8);
        assert_eq!(
            params.count("row", 1).unwrap_err().to_string().trim(),
            "error[KB0622]: the bench reads a parameter `row`, which its table does not have\n  help: it has rows"
        );
    }
}
