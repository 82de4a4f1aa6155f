//! What is simulated, as `peer_traffic export` writes it, and the messages between models.

use serde::{Deserialize, Serialize};

/// The used part of a machine, and what is to be moved over it.
#[derive(Deserialize)]
pub struct Machine {
    pub flit_bytes: u32,
    pub channels: u32,
    pub burst_ps: u64,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    pub moves: Vec<Move>,
}

#[derive(Deserialize)]
pub struct Node {
    pub name: String,
    pub service: Service,
    pub overhead_ps: u64,
}

/// What a node does with flits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// One serial worker.
    Worker,
    /// Gathers all flits of a transfer and releases them in order.
    Gather,
    /// The source or the memory.
    End,
}

#[derive(Deserialize)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub bytes_per_us: u64,
    pub propagation_ps: u64,
}

#[derive(Deserialize)]
pub struct Move {
    pub start_ps: u64,
    pub bytes: u32,
    pub channel: u32,
    pub route: Vec<usize>,
    pub response_ps: u64,
}

/// A message between models. Flits are served in the order of their fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Flit {
    /// The transfer.
    pub number: u32,
    pub index: u32,
    /// Flits of the transfer.
    pub count: u32,
    pub bytes: u32,
    pub channel: u32,
}

/// The last flit of a transfer is in memory.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Done {
    pub number: u32,
    pub commit_ps: u64,
}

impl Machine {
    pub fn flits(&self, a: &Move) -> u32 {
        a.bytes.div_ceil(self.flit_bytes)
    }

    pub fn flit(&self, number: usize, index: u32) -> Flit {
        let a = &self.moves[number];
        let bytes = self.flit_bytes.min(a.bytes - index * self.flit_bytes);
        let channel = (a.channel + index) % self.channels;
        Flit { number: number as u32, index, count: self.flits(a), bytes, channel }
    }
}
