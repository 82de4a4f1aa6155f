//! The integration tests: one binary, data in, text out.

mod cli;
mod pages;
mod seeds;
