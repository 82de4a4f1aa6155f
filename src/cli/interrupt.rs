//! Ctrl-C: the process ends at once, and no half file stays.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The file that is being written and not yet at its place. Who holds the lock decides: the handler
/// never gives it back, so nothing is created or renamed after it.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

fn unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes Ctrl-C end the process with code 130.
pub(super) fn install() {
    // Fails only where a program that calls the command line has its own handler.
    let _ = ctrlc::set_handler(|| {
        let file = unfinished();
        if let Some(path) = &*file {
            let _ = fs::remove_file(path);
        }
        let mut stderr = io::stderr();
        let clear = if stderr.is_terminal() { "\r\x1b[K" } else { "" };
        let _ = writeln!(stderr, "{clear}interrupted");
        process::exit(130);
    });
}

/// Writes `bytes` to `temporary` and moves it to `path`; on any error, or Ctrl-C, `temporary` is gone.
pub(super) fn write_and_move(temporary: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = {
        let mut unfinished = unfinished();
        let file = fs::File::create_new(temporary)?;
        *unfinished = Some(temporary.to_owned());
        file
    };
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let mut unfinished = unfinished();
    let moved = written.and_then(|()| fs::rename(temporary, path));
    if moved.is_err() {
        let _ = fs::remove_file(temporary);
    }
    *unfinished = None;
    moved
}
