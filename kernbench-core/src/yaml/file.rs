//! A file as a whole: its mistakes, and its top level, which is a map of keys or a list of maps.

use std::cell::RefCell;
use std::ops::Range;

use super::{Section, Value, Yaml, parse};
use crate::diag::{Diagnostic, Failure, Place};

/// What all sections of a file share: its name and the mistakes so far.
pub(crate) struct Log<'a> {
    file: &'a str,
    mistakes: RefCell<Vec<Diagnostic>>,
}

impl<'a> Log<'a> {
    /// A place in the file.
    pub fn place(&self, span: Range<usize>) -> Place {
        Place::Text { file: self.file.to_owned(), span }
    }

    /// How many mistakes there are.
    pub(super) fn len(&self) -> usize {
        self.mistakes.borrow().len()
    }

    /// Adds a mistake.
    pub fn push(&self, d: Diagnostic) {
        self.mistakes.borrow_mut().push(d);
    }

    /// The value, or the mistakes in the order of their places.
    fn into_result<T>(self, value: T) -> Result<T, Failure> {
        let mut mistakes = self.mistakes.into_inner();
        if mistakes.is_empty() {
            return Ok(value);
        }
        mistakes.sort_by_key(|d| match d.labels.first().map(|l| &l.place) {
            Some(Place::Text { span, .. }) => span.start,
            _ => 0,
        });
        Err(Failure(mistakes))
    }
}

/// Parses a file and lets `read` take its top-level keys. What `read` returns counts only if
/// nothing was wrong; otherwise the mistakes come back in the order of their places.
pub(crate) fn read<T>(
    file: &str,
    text: &str,
    read: impl FnOnce(&mut Section<'_, '_>) -> T,
) -> Result<T, Failure> {
    let tree = parse(file, text)?;
    let log = Log { file, mistakes: RefCell::default() };
    let empty = vec![];
    let entries = match &tree.value {
        Value::Map(entries) => entries,
        Value::Null => &empty,
        _ => {
            let d = Diagnostic::error("KB0305", format!("`{file}` must be a map of keys"));
            return Err(d.at(log.place(tree.span.clone()), "").help("write `key: value` lines").into());
        }
    };
    let start = entries.first().map_or(0..0, |(key, _)| key.span.clone());
    let mut section =
        Section { log: &log, path: String::new(), named: start, entries, known: vec![], missing: vec![] };
    let value = read(&mut section);
    section.finish();
    log.into_result(value)
}

/// Parses a file that is a list of maps, and lets `read` take each with its number. Messages call
/// them `items[0]`, `items[1]`, .. An empty file is an empty list.
pub(crate) fn read_list<T>(
    file: &str,
    text: &str,
    items: &str,
    mut read: impl FnMut(usize, &mut Section<'_, '_>) -> T,
) -> Result<Vec<T>, Failure> {
    let tree = parse(file, text)?;
    let log = Log { file, mistakes: RefCell::default() };
    let empty = vec![];
    let list = match &tree.value {
        Value::List(list) => list,
        Value::Null => &empty,
        _ => {
            let d = Diagnostic::error("KB0305", format!("`{file}` must be a list of {items}"));
            return Err(d.at(log.place(tree.span.clone()), "").help("write `- key: value` lines").into());
        }
    };
    let (known, missing) = (vec![], vec![]);
    let root = Section { log: &log, path: String::new(), named: 0..0, entries: &[], known, missing };
    let read =
        |(i, item): (usize, &Yaml)| root.enter_as(format!("{items}[{i}]"), &item.span, item, |s| read(i, s));
    let values: Vec<Option<T>> = list.iter().enumerate().map(read).collect();
    // Whoever gives no value has recorded a mistake.
    log.into_result(values.into_iter().flatten().collect())
}
