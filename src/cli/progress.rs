//! Signs of life on stderr while something takes long.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Shows that work goes on from one second after its start until it is dropped, on terminals only.
pub(super) struct Progress {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    pub(super) fn start(what: String) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress { running: None };
        }
        let (done, wait) = channel::<()>();
        let thread = thread::spawn(move || {
            let start = std::time::Instant::now();
            if wait.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let spinner = ProgressBar::new_spinner().with_message(what).with_elapsed(start.elapsed());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(Duration::from_millis(100));
            // Returns when the other end is dropped.
            let _ = wait.recv();
            spinner.finish_and_clear();
        });
        Progress { running: Some((done, thread)) }
    }
}

/// How much of a number of things is done, on terminals only.
pub(super) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    pub(super) fn start(what: &'static str, count: usize) -> Bar {
        if !std::io::stderr().is_terminal() {
            return Bar { bar: ProgressBar::hidden() };
        }
        let bar = ProgressBar::new(count as u64).with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {pos} of {len}, {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar { bar }
    }

    pub(super) fn advance(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, thread)) = self.running.take() {
            drop(done);
            let _ = thread.join();
        }
    }
}
