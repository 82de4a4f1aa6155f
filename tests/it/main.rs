//! The integration tests: one binary, data in, text out.

mod architecture;
mod cli;
mod collectives;
mod companions;
mod diagnostics;
mod host;
mod ipcq;
mod language;
mod long;
mod mlp;
mod pages;
mod probe;
mod seeds;
