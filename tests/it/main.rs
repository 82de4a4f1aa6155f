//! The integration tests: one binary, data in, text out.

mod diagnostics;
mod language;
mod seeds;
