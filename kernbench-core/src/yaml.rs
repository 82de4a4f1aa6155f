//! YAML with exact byte spans: text in, a tree of values that know their place out.
//!
//! The one module that knows the YAML library. [`crate::topology`], [`crate::ccl`] and [`crate::probe`]
//! read the tree through [`Section`], which collects every mistake instead of stopping at the first.

#[cfg(test)]
pub(crate) mod carets;
mod file;
mod mistakes;
mod section;

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Error, Location, Spanned};

use crate::diag::{Diagnostic, Place};

pub(crate) use file::{Log, read, read_list};
pub(crate) use section::Section;

/// A value and the bytes it was written in; for a block map or list, the empty range at its start.
#[derive(Debug)]
pub(crate) struct Yaml {
    pub value: Value,
    pub span: Range<usize>,
}

/// A YAML value. Repeated keys are kept, so that [`Section`] can point at both.
#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Bool,
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Yaml>),
    Map(Vec<(Key, Yaml)>),
}

/// A key of a map.
#[derive(Debug)]
pub(crate) struct Key {
    pub name: String,
    pub span: Range<usize>,
}

/// Parses one document. Aliases and merge keys work; a mistake is `KB0301`.
pub(crate) fn parse(file: &str, text: &str) -> Result<Yaml, Diagnostic> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|e| syntax_error(file, text, &e))
}

fn syntax_error(file: &str, text: &str, error: &Error) -> Diagnostic {
    let span = error.location().map_or(0..0, |l| match bytes(&l) {
        exact if exact != (0..0) => exact,
        _ => at_line(text, l.line(), l.column()),
    });
    let what = match error {
        Error::ExternalMessage { msg, .. } | Error::Message { msg, .. } => msg.clone(),
        Error::MultipleDocuments { .. } => "a second document begins here".into(),
        Error::Eof { .. } => "the text ends too early".into(),
        Error::UnknownAnchor { .. } => "alias without an anchor".into(),
        Error::NonFiniteFloat { value, .. } => format!("`{value}` is not a finite number"),
        Error::Unexpected { expected, .. } => format!("expected {expected}"),
        other => {
            let whole = other.without_snippet().to_string();
            whole.split(" at line ").next().unwrap_or_default().to_owned()
        }
    };
    Diagnostic::error("KB0301", format!("`{file}` is not YAML: {what}"))
        .at(Place::Text { file: file.into(), span }, "")
        .help("check the indentation, the brackets and the quotes up to this place")
}

/// The byte of a line and column, both from 1; columns count characters.
fn at_line(text: &str, line: u64, column: u64) -> Range<usize> {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1) as usize).map(str::len).sum();
    let rest = &text[start.min(text.len())..];
    let skip: usize = rest.chars().take(column.saturating_sub(1) as usize).map(char::len_utf8).sum();
    let len = rest[skip..].chars().next().filter(|c| *c != '\n').map_or(0, char::len_utf8);
    start + skip..start + skip + len
}

fn bytes(location: &Location) -> Range<usize> {
    let span = location.span();
    let start = span.byte_offset().unwrap_or(0) as usize;
    start..start + span.byte_len().unwrap_or(0) as usize
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(d)?;
        let mut span = bytes(&spanned.defined);
        if matches!(spanned.value, Value::List(_) | Value::Map(_)) {
            // The library marks the opening bracket of a flow collection, nothing of a block one.
            span.end = span.start;
        }
        Ok(Yaml { value: spanned.value, span })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Bool)
    }
    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Int(n.into()))
    }
    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(Value::Int(n.into()))
    }
    fn visit_i128<E>(self, n: i128) -> Result<Value, E> {
        Ok(Value::Int(n))
    }
    fn visit_u128<E>(self, n: u128) -> Result<Value, E> {
        Ok(Value::Int(i128::try_from(n).unwrap_or(i128::MAX)))
    }
    fn visit_f64<E>(self, x: f64) -> Result<Value, E> {
        Ok(Value::Float(x))
    }
    fn visit_str<E>(self, s: &str) -> Result<Value, E> {
        Ok(Value::Text(s.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = vec![];
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = vec![];
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, Yaml>()? {
            map.push((Key { span: bytes(&key.defined), name: key.value }, value));
        }
        Ok(Value::Map(map))
    }
}
