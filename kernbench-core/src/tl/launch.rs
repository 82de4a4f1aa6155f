//! What a recording knows of its launch: machine, links, tensors, grid.

use crate::ir::{PeId, TensorInfo};
use crate::placement::Shards;
use crate::topology::{Links, PeAt, Topology};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// The facts of one launch.
#[derive(Debug)]
pub struct Launch {
    /// The machine.
    pub topology: Rc<Topology>,
    /// Who is whose neighbour.
    pub links: Rc<Links>,
    /// The tensors of the context, by id; `None` where one was freed.
    pub tensors: Vec<Option<TensorState>>,
    /// The PEs that run.
    pub grid: Grid,
    /// Bytes of an IPCQ slot.
    pub slot_bytes: u64,
    /// The most ops of all PEs together.
    pub max_ops: u64,
    /// Scratch bytes of each PE.
    pub scratch_bytes: u32,
}

/// A tensor as a launch finds it.
#[derive(Clone, Debug)]
pub struct TensorState {
    /// That of its views.
    pub serial: u64,
    /// Name, type, shape.
    pub info: TensorInfo,
    /// Where its bytes are.
    pub shards: Rc<Shards>,
    /// Who holds the newest version.
    pub newest: Newest,
    /// Its values; only of the kernel's arguments.
    pub values: Option<Values>,
}

/// The values of a tensor when a launch begins.
#[derive(Clone, Debug)]
pub struct Values {
    /// Row-major, little-endian. `None` if they are not known: a launch without data wrote some.
    pub bytes: Option<Arc<Vec<u8>>>,
    /// Element ranges that nobody has written, in order.
    pub unwritten: Vec<Range<u64>>,
}

/// Which replica of each element is the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Newest {
    /// All of them.
    Everywhere,
    /// Element ranges, sorted and disjoint, with the PEs that hold the newest version;
    /// everywhere outside of them.
    Ranges(Vec<(Range<u64>, Vec<PeId>)>),
}

/// The PEs of a launch: the first PEs of the first cubes of some SIPs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// SIPs, sorted.
    pub sips: Vec<u32>,
    /// Cubes of each SIP.
    pub cubes: u32,
    /// PEs of each cube.
    pub pes: u32,
}

impl Grid {
    /// Its PEs in order.
    pub fn pes<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = PeId> + 'a {
        self.sips.iter().flat_map(move |&sip| {
            (0..self.cubes).flat_map(move |cube| {
                (0..self.pes).map(move |pe| topology.machine().pe(PeAt { sip, cube, pe }))
            })
        })
    }
}
