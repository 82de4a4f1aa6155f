//! What a user is told when something is wrong: a code, a place, what is wrong, what to do.

use std::fmt;
use std::ops::Range;

/// A code such as `KB0204`; the first two digits are the family
/// (01 record, 02 verify, 03 configuration, 04 stall, 05 data, 06 host and command line).
pub type Code = &'static str;

/// Whether the run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The result cannot be trusted or does not exist.
    Error,
    /// Worth knowing; the run goes on.
    Warning,
}

/// Where something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A place in the user's Rust source.
    Source {
        /// The file as rustc names it.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Column, from 1.
        column: u32,
    },
    /// A byte range of a text the user gave, such as `topology.yaml`.
    Text {
        /// The file's name as the user gave it.
        file: String,
        /// Bytes of the text.
        span: Range<usize>,
    },
}

/// A place and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub place: Place,
    /// What is there, in a few words; may be empty.
    pub text: String,
}

/// One mistake or finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The code, explained by `kernbench explain CODE`.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong: lower case, no final stop, names in backticks, numbers with units.
    pub message: String,
    /// The first label is the main place; the others explain it.
    pub labels: Vec<Label>,
    /// An action that mends it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error without a place yet.
    #[must_use]
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Diagnostic { code, severity: Severity::Error, message: message.into(), labels: vec![], help: None }
    }

    /// A warning without a place yet.
    #[must_use]
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message) }
    }

    /// Adds a label.
    #[must_use]
    pub fn at(mut self, place: Place, text: impl Into<String>) -> Self {
        self.labels.push(Label { place, text: text.into() });
        self
    }

    /// Sets the help line.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    /// The plain form without source snippets, one line per label.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.severity == Severity::Error { "error" } else { "warning" };
        write!(f, "{severity}[{}]: {}", self.code, self.message)?;
        for label in &self.labels {
            match &label.place {
                Place::Source { file, line, column } => write!(f, "\n  --> {file}:{line}:{column}")?,
                Place::Text { file, span } => write!(f, "\n  --> {file}, byte {}", span.start)?,
            }
            if !label.text.is_empty() {
                write!(f, ": {}", label.text)?;
            }
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// One or more diagnostics, at least one of them an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub Vec<Diagnostic>);

impl From<Diagnostic> for Failure {
    fn from(d: Diagnostic) -> Self {
        Failure(vec![d])
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            write!(f, "{}{d}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// The candidate nearest to `word`, if one is near enough to be what was meant.
///
/// ```
/// use kernbench_core::diag::nearest;
/// assert_eq!(nearest("widht", ["width", "height"]), Some("width"));
/// assert_eq!(nearest("zebra", ["width", "height"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|c| (strsim::osa_distance(word, c), c))
        .filter(|(distance, c)| *distance <= 1 + c.len().max(word.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}
