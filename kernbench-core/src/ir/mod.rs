//! The typed op graph of one launch: flat arenas with typed indices.
//!
//! Invariant: nothing here knows time or data; the engine and the executor both read a program
//! and never each other.

mod access;
mod composite;
mod ids;
mod listing;
mod op;
mod program;
mod site;
mod text;

pub use access::*;
pub use composite::*;
pub use ids::*;
pub use listing::{Alike, PeName, pe_names};
pub use op::*;
pub use program::*;
pub use site::*;
