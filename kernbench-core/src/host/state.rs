//! What a context holds: memory, tensors, clock, log.

use super::alloc::FreeList;
use super::crew::Crew;
use super::flight::Flights;
use super::group::Group;
use super::transfer;
use crate::ccl::Ccl;
use crate::diag::{Diagnostic, Failure};
use crate::ir::{PeId, TensorId, TensorInfo};
use crate::log::OpLog;
use crate::placement::{Placement, Shards};
use crate::store::Store;
use crate::tl::{Newest, TensorState, Values};
use crate::topology::{BufferKind, Links, PeAt, Topology};
use crate::ty::{Dir, ElementType};
use crate::units::Ps;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Tell contexts, and tensors with their views, from each other; they appear in no output.
static CONTEXTS: AtomicU32 = AtomicU32::new(0);
static TENSORS: AtomicU64 = AtomicU64::new(1);

#[derive(Debug)]
struct Owned {
    serial: u64,
    info: TensorInfo,
    shards: Rc<Shards>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) number: u32,
    pub(super) topology: Rc<Topology>,
    pub(super) links: Rc<Links>,
    pub(super) ccl: Ccl,
    pub(super) store: Store,
    pub(super) data: bool,
    pub(super) threads: Option<usize>,
    pub(super) device: u32,
    pub(super) log: OpLog,
    pub(super) now: Ps,
    pub(super) deploy: Ps,
    pub(super) launches: u32,
    pub(super) flights: Flights,
    /// When the round of workers began, while there are workers.
    pub(super) round_ps: Option<Ps>,
    pub(super) crew: Option<Crew>,
    /// How many `spawn`s there were.
    pub(super) spawns: u32,
    pub(super) group: Option<Group>,
    /// By number; a number that is free is given again.
    tensors: Vec<Option<Owned>>,
    unused: Vec<TensorId>,
    slices: Vec<FreeList>,
}

impl State {
    pub(super) fn new(topology: Topology, ccl: Ccl) -> State {
        let links = Links::default_for(topology.machine());
        let machine = topology.machine();
        let rings = |pe: u32| match ccl.defaults.buffer_kind {
            BufferKind::Hbm => ring_bytes(&links, &ccl, PeId(pe)),
            BufferKind::Tcm | BufferKind::Sram => 0,
        };
        let slices = (0..machine.pe_count())
            .map(|pe| FreeList::new(machine.hbm.slice_bytes.saturating_sub(rings(pe))))
            .collect();
        let log = OpLog::new(Arc::new(machine.clone()));
        State {
            number: CONTEXTS.fetch_add(1, Ordering::Relaxed),
            topology: Rc::new(topology),
            links: Rc::new(links),
            ccl,
            store: Store::new(true),
            data: true,
            threads: None,
            device: 0,
            log,
            now: 0,
            deploy: 0,
            launches: 0,
            flights: Flights::default(),
            round_ps: None,
            crew: None,
            spawns: 0,
            group: None,
            tensors: vec![],
            unused: vec![],
            slices,
        }
    }

    pub(super) fn set_data(&mut self, data: bool) {
        self.data = data;
        if self.tensors.is_empty() {
            self.store = Store::new(data);
        }
    }

    /// Places and allocates a tensor; gives its number and the shape of a shard.
    pub(super) fn create(
        &mut self,
        shape: [usize; 2],
        ty: ElementType,
        placement: Placement,
        name: &str,
    ) -> Result<(TensorId, [usize; 2]), Failure> {
        if shape.iter().any(|&n| n > u32::MAX as usize) {
            return Err(Diagnostic::error(
                "KB0609",
                format!(
                    "tensor `{name}` of shape [{}, {}] has a dimension past {}",
                    shape[0],
                    shape[1],
                    u32::MAX
                ),
            )
            .help("split it into several tensors")
            .into());
        }
        let elements = shape[0] as u64 * shape[1] as u64;
        if elements > u64::MAX >> 8 {
            return Err(Diagnostic::error(
                "KB0609",
                format!("tensor `{name}` of shape [{}, {}] has {elements} elements", shape[0], shape[1]),
            )
            .help("split it into several tensors")
            .into());
        }
        let machine = self.topology.machine();
        let mut shards = Shards::new(machine, self.device, placement, shape, ty, name)?;
        let bytes = shards.shard_bytes();
        let pes: Vec<PeId> = holders(&shards).map(|at| machine.pe(at)).collect();
        for (i, pe) in pes.iter().enumerate() {
            match self.slices[pe.at()].take(bytes) {
                Ok(addr) => shards.addr[i] = addr,
                Err(largest) => {
                    for (pe, addr) in pes.iter().zip(&shards.addr).take(i) {
                        self.slices[pe.at()].give(*addr, bytes);
                    }
                    let at = machine.at(*pe);
                    return Err(Diagnostic::error(
                        "KB0604",
                        format!(
                            "tensor `{name}` needs {bytes} bytes in the HBM slice of PE {} of cube {} of SIP {}, where the largest free block has {largest} bytes",
                            at.pe, at.cube, at.sip
                        ),
                    )
                    .help("drop tensors that are no longer needed, or split this one over more PEs")
                    .into());
                }
            }
        }
        let id = self.unused.pop().unwrap_or(TensorId(self.tensors.len() as u32));
        self.store.create(id, ty, shape);
        let shard = shards.shard;
        let owned = Owned {
            serial: TENSORS.fetch_add(1, Ordering::Relaxed),
            info: TensorInfo { name: name.to_owned(), ty, shape },
            shards: Rc::new(shards),
        };
        if id.at() == self.tensors.len() {
            self.tensors.push(None);
        }
        self.tensors[id.at()] = Some(owned);
        Ok((id, shard))
    }

    /// Keeps memory at the top of a PE's slice for rings; the largest free block if there is not enough.
    pub(super) fn reserve_slice(&mut self, pe: PeId, bytes: u64) -> Result<(), u64> {
        self.slices[pe.at()].take_top(bytes)
    }

    /// Frees a tensor, if a launch under way uses it then after that.
    pub(super) fn drop_tensor(&mut self, id: TensorId) {
        if !self.outlives_its_owner(id) {
            self.free(id);
        }
    }

    pub(super) fn free(&mut self, id: TensorId) {
        let Some(Owned { shards, .. }) = self.tensors.get_mut(id.at()).and_then(Option::take) else { return };
        let bytes = shards.shard_bytes();
        for (at, addr) in holders(&shards).zip(&shards.addr) {
            let pe = self.topology.machine().pe(at);
            self.slices[pe.at()].give(*addr, bytes);
        }
        self.store.remove(id);
        self.unused.push(id);
    }

    /// What tells a tensor from others; 0 if there is none of this number.
    pub(super) fn serial(&self, id: TensorId) -> u64 {
        self.tensors.get(id.at()).and_then(Option::as_ref).map_or(0, |owned| owned.serial)
    }

    pub(super) fn shards(&self, id: TensorId) -> Option<Rc<Shards>> {
        self.tensors.get(id.at())?.as_ref().map(|owned| owned.shards.clone())
    }

    pub(super) fn info(&self, id: TensorId) -> Option<&TensorInfo> {
        self.tensors.get(id.at())?.as_ref().map(|owned| &owned.info)
    }

    /// Writes a tensor from the host, one shard after another.
    pub(super) fn write(&mut self, id: TensorId, bytes: impl FnOnce() -> Arc<Vec<u8>>) {
        if self.store.keeps(id) {
            self.store.write_host(id, bytes());
        } else {
            self.store.mark_written(id);
        }
        self.pay_for_deploy(id);
    }

    pub(super) fn write_zeros(&mut self, id: TensorId) {
        self.store.write_zeros(id);
        self.pay_for_deploy(id);
    }

    fn pay_for_deploy(&mut self, id: TensorId) {
        let Some(shards) = self.shards(id) else { return };
        let machine = self.topology.machine();
        let bytes = shards.shard_bytes();
        let time: Ps = holders(&shards)
            .zip(&shards.addr)
            .map(|(at, &addr)| transfer::write_ps(&self.topology, machine.pe(at), addr, bytes))
            .sum();
        self.deploy += time;
        self.now += time;
    }

    pub(super) fn read(&self, id: TensorId) -> Result<&[u8], Failure> {
        let [m, n] = self.info(id).map_or([0, 0], |info| info.shape);
        self.read_rows(id, &(0..m), &(0..n))
    }

    /// The bytes of a tensor, of which some rows and columns are looked at.
    pub(super) fn read_rows(
        &self,
        id: TensorId,
        rows: &Range<usize>,
        cols: &Range<usize>,
    ) -> Result<&[u8], Failure> {
        let name = self.info(id).map_or("?", |i| &i.name);
        if !self.data {
            return Err(Diagnostic::error(
                "KB0610",
                format!("`{name}` has no values: the context only keeps time"),
            )
            .help("make the context with `data(true)`, or do not read the tensor")
            .into());
        }
        let width = self.info(id).map_or(0, |i| i.shape[1]);
        let whole = cols.len() == width;
        let spans = if whole { 0..1 } else { rows.clone() };
        let gap = spans
            .map(|row| match whole {
                true => rows.start * width..rows.end * width,
                false => row * width + cols.start..row * width + cols.end,
            })
            .find_map(|span| self.store.unwritten(id, span.start as u64..span.end as u64));
        if let Some(gap) = gap {
            let width = width.max(1) as u64;
            return Err(Diagnostic::error(
                "KB0611",
                format!(
                    "`{name}` has no values from row {}, column {} on ({} elements): nobody has written them, or only a launch without data",
                    gap.start / width,
                    gap.start % width,
                    gap.end - gap.start
                ),
            )
            .help("let a kernel store the whole tensor with data on, or create it with `zeros`")
            .into());
        }
        Ok(self.store.bytes(id))
    }

    /// Writes the elements of one tensor to another of its type and shape.
    pub(super) fn copy(&mut self, to: TensorId, from: TensorId) -> Result<(), Failure> {
        match if self.data { Some(Arc::new(self.read(from)?.to_vec())) } else { self.store.snapshot(from) } {
            Some(bytes) => self.store.write_host(to, bytes),
            None => self.store.mark_written(to),
        }
        self.pay_for_deploy(to);
        Ok(())
    }

    /// Reads each range that one PE holds and writes it to the other replicas.
    pub(super) fn sync_replicas(&mut self, id: TensorId) {
        let Some(shards) = self.shards(id) else { return };
        if !shards.is_replicated() {
            return;
        }
        let Newest::Ranges(ranges) = self.newest(id, &shards) else { return };
        let machine = self.topology.machine();
        let element = u64::from(shards.ty.bytes());
        let mut time = 0;
        for (range, have) in ranges {
            let bytes = (range.end - range.start) * element;
            // Where in a shard the range lies moves its bursts to other channels, not its time.
            time += have.first().map_or(0, |&pe| transfer::read_ps(&self.topology, pe, 0, bytes));
            for home in holders(&shards).map(|at| machine.pe(at)).filter(|home| !have.contains(home)) {
                time += transfer::write_ps(&self.topology, home, 0, bytes);
            }
        }
        self.store.share(id);
        self.now += time;
    }

    /// Who holds the newest version of each element.
    fn newest(&self, id: TensorId, shards: &Shards) -> Newest {
        if !shards.is_replicated() {
            return Newest::Everywhere;
        }
        let ranges = self.store.holders(id);
        if ranges.is_empty() { Newest::Everywhere } else { Newest::Ranges(ranges) }
    }

    /// The tensors as a launch finds them.
    pub(super) fn tensor_states(&self, arguments: &[TensorId]) -> Vec<Option<TensorState>> {
        let state = |(i, t): (usize, &Option<Owned>)| {
            let id = TensorId(i as u32);
            t.as_ref().map(|Owned { serial, info, shards }| TensorState {
                serial: *serial,
                info: info.clone(),
                shards: shards.clone(),
                newest: self.newest(id, shards),
                values: arguments
                    .contains(&id)
                    .then(|| Values { bytes: self.store.snapshot(id), unwritten: self.store.holes(id) }),
            })
        };
        self.tensors.iter().enumerate().map(state).collect()
    }
}

/// Bytes of the rings of a PE's incoming links.
pub(super) fn ring_bytes(links: &Links, ccl: &Ccl, pe: PeId) -> u64 {
    let incoming = Dir::ALL.iter().filter(|&&dir| links.recv(pe, dir).is_some()).count() as u64;
    incoming * u64::from(ccl.defaults.n_slots) * u64::from(ccl.defaults.slot_size)
}

/// The positions of the holders of shards, in the order of their addresses.
fn holders(shards: &Shards) -> impl Iterator<Item = PeAt> + use<> {
    let (sip, [cubes, pes]) = (shards.sip, shards.grid);
    (0..cubes).flat_map(move |cube| (0..pes).map(move |pe| PeAt { sip, cube, pe }))
}

/// A SIP that is not there.
pub(super) fn no_sip(sip: usize, have: u32) -> Diagnostic {
    Diagnostic::error("KB0608", format!("the machine has no SIP {sip}: it has {have} SIPs"))
        .help(format!("use a SIP from 0 to {}", have - 1))
}
