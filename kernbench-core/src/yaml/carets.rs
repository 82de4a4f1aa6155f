//! Diagnostics with the line and a caret under the bytes they point at, for tests.

use crate::diag::{Failure, Place};

/// All diagnostics of a failure, each with the lines of its labels.
pub(crate) fn render(text: &str, failure: &Failure) -> String {
    let mut out = String::new();
    for d in &failure.0 {
        out += &format!("[{}] {}\n", d.code, d.message);
        for label in &d.labels {
            let Place::Text { file, span } = &label.place else { continue };
            let start = text[..span.start].rfind('\n').map_or(0, |i| i + 1);
            let line = text[start..].lines().next().unwrap_or_default();
            let number = text[..start].matches('\n').count() + 1;
            let head = format!("{file}:{number}: ");
            let indent = head.chars().count() + text[start..span.start].chars().count();
            let carets = "^".repeat(text[span.clone()].chars().count().max(1));
            out += format!("{head}{line}\n{:indent$}{carets} {}", "", label.text).trim_end();
            out.push('\n');
        }
        if let Some(help) = &d.help {
            out += &format!("help: {help}\n");
        }
    }
    out.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
