//! The integration tests: one binary, data in, text out.

mod architecture;
mod seeds;
