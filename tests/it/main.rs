//! The integration tests: one binary, data in, text out.

mod architecture;
mod cli;
mod pages;
mod seeds;
