//! The integration tests: one binary, data in, text out.

mod architecture;
mod attention;
mod cli;
mod collectives;
mod conform;
mod companions;
mod diagnostics;
mod host;
mod ipcq;
mod language;
mod long;
mod mesh;
mod mla;
mod mlp;
mod pages;
mod pipelining;
mod probe;
mod seeds;
