//! Files in and out, with a diagnostic for each way it can fail.

use super::Session;
use super::interrupt;
use kernbench_core::diag::{Diagnostic, Failure};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What a file is called in messages.
pub(super) fn name(path: &Path) -> String {
    path.display().to_string()
}

/// Why a file cannot be read.
fn unreadable(path: &Path, what: &str, error: &io::Error) -> Failure {
    let name = name(path);
    let d = match error.kind() {
        ErrorKind::NotFound => Diagnostic::error("KB0612", format!("{what} `{name}` does not exist"))
            .help("check the path; it is relative to the current directory"),
        ErrorKind::IsADirectory => {
            Diagnostic::error("KB0613", format!("{what} `{name}` is a directory")).help("name a file in it")
        }
        _ => Diagnostic::error("KB0615", format!("{what} `{name}` cannot be read: {error}"))
            .help("check that you may read it"),
    };
    d.into()
}

/// The bytes of a file; `what` says what it is, such as `topology file`.
pub(super) fn read(path: &Path, what: &str) -> Result<Vec<u8>, Failure> {
    // A device never ends; a pipe, as from `<(..)`, does.
    use std::os::unix::fs::FileTypeExt;
    if fs::metadata(path).is_ok_and(|m| m.file_type().is_char_device()) {
        let d = Diagnostic::error("KB0613", format!("{what} `{}` is a device", name(path)));
        return Err(d.help("name a file").into());
    }
    fs::read(path).map_err(|error| unreadable(path, what, &error))
}

/// The text of a file, which the session keeps for its diagnostics.
pub(super) fn read_text(path: &Path, what: &str, session: &mut Session<'_>) -> Result<String, Failure> {
    match String::from_utf8(read(path, what)?) {
        Ok(text) => {
            session.texts.add(&name(path), &text);
            Ok(text)
        }
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count();
            let text = format!(
                "{what} `{}` is not UTF-8 text: line {line}, at byte {at} of the file, is not",
                name(path)
            );
            Err(Diagnostic::error("KB0614", text).help("save it as UTF-8").into())
        }
    }
}

fn unwritable(path: &Path, why: impl std::fmt::Display, help: &str) -> Failure {
    let text = format!("output file `{}` cannot be written: {why}", name(path));
    Diagnostic::error("KB0617", text).help(help).into()
}

/// Whether a path can hold an output, found out before any work is done for it.
pub(super) fn check_output(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(unwritable(path, "it is a directory", "name a file in it"));
    }
    let directory = directory(path);
    match fs::metadata(&directory) {
        Ok(m) if m.is_dir() => Ok(()),
        Ok(_) => {
            Err(unwritable(path, format!("`{}` is no directory", directory.display()), "check the path"))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let why = format!("there is no directory `{}`", directory.display());
            Err(unwritable(path, why, "create the directory first"))
        }
        Err(e) => Err(unwritable(path, e, "check that you may write there")),
    }
}

fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Writes a file whole or not at all. What is no regular file, such as `/dev/null`, is written directly.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |e: io::Error| unwritable(path, e, "make room, or name another file");
    if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return fs::write(path, bytes).map_err(failed);
    }
    // A link stays a link: what it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let file = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let temporary = directory(&target).join(format!(".{file}.{}.tmp", std::process::id()));
    interrupt::write_and_move(&temporary, &target, bytes).map_err(failed)
}
