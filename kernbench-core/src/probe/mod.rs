//! What transfers cost: published rows, a catalogue of traffic, and traffic of one's own.
//!
//! Plain values in and out. `rows` are the published results beside what is simulated now,
//! `catalogue` the common kinds of traffic at several sizes, `requests` reads a file of transfers,
//! which `passed` simulates together.

mod catalogue;
mod fair;
mod measure;
mod requests;
mod rows;
#[cfg(test)]
mod tests;

pub use catalogue::{Entry, SIZES, catalogue};
pub use fair::fair_share;
pub use measure::{Measure, Parts, Passed, measure, passed};
pub use requests::{Op, Request, requests};
pub use rows::{Row, is_reference, rows};

use crate::engine::{Flow, Issuer};
use crate::ir::{PeId, Transfer};
use crate::topology::Machine;

/// A contiguous transfer of `bytes` that begins at time 0 in the HBM channel `channel` of a slice.
fn flow(machine: &Machine, issuer: Issuer, home: PeId, bytes: u32, channel: u32) -> Flow {
    let addr = u64::from(channel % machine.hbm.channels) * machine.flit_bytes;
    let transfer = Transfer { addr, home, run_bytes: bytes, runs: 1, ..Transfer::default() };
    Flow { issuer, transfer, start_ps: 0 }
}
