//! Diagnostics as a terminal shows them: the source with carets, the help, a closing line.

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use kernbench_core::diag::{Diagnostic, Label, Place, Severity};
use std::collections::BTreeMap;
use std::ops::Range;

/// The texts that diagnostics point into, by the name the user gave.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    texts: BTreeMap<String, String>,
}

impl Texts {
    /// Adds a text that was read.
    pub fn add(&mut self, file: &str, text: &str) {
        self.texts.insert(file.to_owned(), text.to_owned());
    }

    /// The text of a file: one that was read, else the file on disk.
    fn find(&self, file: &str) -> Option<String> {
        self.texts.get(file).cloned().or_else(|| std::fs::read_to_string(file).ok())
    }
}

/// Diagnostics one after another, each with an empty line after it, and a closing line that counts
/// them; `command` is what the user calls the program. Empty if there are none.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], texts: &Texts, colour: bool, command: &str) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for d in diagnostics {
        out += renderer.render(&[group(d, texts)]).trim_end();
        out += "\n\n";
    }
    out + &closing(diagnostics, command)
}

/// `2 errors; kernbench explain KB0303 says more`.
fn closing(diagnostics: &[Diagnostic], command: &str) -> String {
    let Some(first) = diagnostics.iter().min_by_key(|d| d.severity) else { return String::new() };
    let count = |severity, one: &str| match diagnostics.iter().filter(|d| d.severity == severity).count() {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {one}s")),
    };
    let counts: Vec<String> = [count(Severity::Error, "error"), count(Severity::Warning, "warning")]
        .into_iter()
        .flatten()
        .collect();
    let counts = counts.join(" and ");
    match diagnostics.iter().all(|d| d.code == first.code) {
        true => format!("{counts}; run `{command} explain {}` for more\n", first.code),
        false => {
            format!("{counts}; run `{command} explain CODE` for more about one, such as {}\n", first.code)
        }
    }
}

/// What a file says about a diagnostic.
struct Part<'a> {
    file: &'a str,
    text: Option<String>,
    labels: Vec<(usize, &'a Label)>,
}

fn group<'a>(d: &'a Diagnostic, texts: &Texts) -> Group<'a> {
    let level = if d.severity == Severity::Error { Level::ERROR } else { Level::WARNING };
    let mut group = level.primary_title(d.message.as_str()).id(d.code).elements(Vec::<Element<'a>>::new());
    let mut parts: Vec<Part<'a>> = vec![];
    for (i, label) in d.labels.iter().enumerate() {
        let file = match &label.place {
            Place::Source { file, .. } | Place::Text { file, .. } => file.as_str(),
        };
        match parts.iter_mut().find(|p| p.file == file) {
            Some(part) => part.labels.push((i, label)),
            None => parts.push(Part { file, text: texts.find(file), labels: vec![(i, label)] }),
        }
    }
    for part in parts {
        group = group.elements(elements(part));
    }
    match &d.help {
        Some(help) => group.element(Level::HELP.message(help.as_str())),
        None => group,
    }
}

/// A snippet with the labels whose places exist in the text; the bare place of each other one.
fn elements(part: Part<'_>) -> Vec<Element<'_>> {
    let mut all: Vec<Element<'_>> = vec![];
    let mut annotations = vec![];
    for (i, label) in part.labels {
        let span = part.text.as_deref().and_then(|text| span_of(text, &label.place));
        let Some(span) = span else {
            let origin = Origin::path(part.file);
            all.push(match &label.place {
                Place::Source { line, column, .. } => {
                    origin.line(*line as usize).char_column(*column as usize).into()
                }
                Place::Text { .. } => origin.into(),
            });
            if !label.text.is_empty() {
                all.push(Level::NOTE.message(label.text.as_str()).into());
            }
            continue;
        };
        let kind = if i == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let text = Some(label.text.as_str()).filter(|t| !t.is_empty());
        annotations.push(kind.span(span).label(text));
    }
    if let (Some(text), false) = (part.text, annotations.is_empty()) {
        all.insert(0, Snippet::source(text).path(part.file).annotations(annotations).into());
    }
    all
}

/// The bytes of a text that a place means; `None` if it has no such place.
fn span_of(text: &str, place: &Place) -> Option<Range<usize>> {
    match place {
        Place::Text { span, .. } => {
            let boundary = |at: usize| (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i));
            let (start, end) = (boundary(span.start)?, boundary(span.end)?);
            Some(start..end.max(start))
        }
        Place::Source { line, column, .. } => {
            let lines = text.split_inclusive('\n').take((*line as usize).saturating_sub(1));
            let before: usize = lines.map(str::len).sum();
            let rest = text.get(before..)?.lines().next()?;
            let (skip, _) = rest.char_indices().nth((*column as usize).saturating_sub(1))?;
            // A path such as `tl::load`, or one character.
            let token = rest[skip..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            let first = rest[skip..].chars().next().map_or(0, char::len_utf8);
            let len = token.unwrap_or(rest.len() - skip).max(first);
            Some(before + skip..before + skip + len)
        }
    }
}

#[cfg(test)]
mod tests;
