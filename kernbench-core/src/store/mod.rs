//! The bytes of the tensors and who wrote them.
//!
//! A tensor has one logical row-major array, however many replicas it has: a read always takes the
//! newest version, so the bytes of a stale replica can never be seen. Which replica holds the newest
//! version is told by the [`Version`](crate::store::Version) of each range.
//!
//! Invariant: without data no bytes are allocated but those of integers that the host writes; with data none
//! are before they are asked for.

mod changes;
mod versions;

pub use versions::{Version, Writer};

use crate::ir::{PeId, TensorId};
use crate::ty::ElementType;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use versions::Versions;

/// The tensors of a context: their bytes, if data is on, and their versions.
#[derive(Debug, Default)]
pub struct Store {
    data: bool,
    newest_launch: u32,
    /// By [`TensorId`].
    tensors: Vec<Option<Stored>>,
}

#[derive(Debug)]
struct Stored {
    ty: ElementType,
    shape: [usize; 2],
    /// Empty until asked for; poison then. The host may share what it wrote; a store copies it first.
    bytes: OnceLock<Arc<Vec<u8>>>,
    versions: Versions,
}

impl Stored {
    fn elements(&self) -> u64 {
        self.shape[0] as u64 * self.shape[1] as u64
    }

    fn len(&self) -> usize {
        self.shape[0] * self.shape[1] * self.ty.bytes() as usize
    }

    fn poisoned(&self) -> Vec<u8> {
        vec![poison_byte(self.ty); self.len()]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        if self.bytes.get().is_none() {
            self.bytes = OnceLock::from(Arc::new(self.poisoned()));
        }
        self.bytes.get_mut().map_or(&mut [], |b| Arc::make_mut(b).as_mut_slice())
    }
}

/// Every byte of memory that nobody wrote: all ones is a NaN of each floating-point type, and
/// `0xA5` marks integers.
#[must_use]
pub const fn poison_byte(ty: ElementType) -> u8 {
    match ty {
        ElementType::F16 | ElementType::Bf16 | ElementType::F32 => 0xFF,
        _ => 0xA5,
    }
}

impl Store {
    /// An empty store; with `data` off it tracks versions only.
    #[must_use]
    pub fn new(data: bool) -> Self {
        Store { data, ..Store::default() }
    }

    /// Whether it holds bytes.
    #[must_use]
    pub const fn has_data(&self) -> bool {
        self.data
    }

    /// Adds a tensor that nobody wrote yet.
    pub fn create(&mut self, id: TensorId, ty: ElementType, shape: [usize; 2]) {
        if self.tensors.len() <= id.at() {
            self.tensors.resize_with(id.at() + 1, || None);
        }
        self.tensors[id.at()] =
            Some(Stored { ty, shape, bytes: OnceLock::new(), versions: Versions::default() });
    }

    /// Forgets a tensor and frees its bytes.
    pub fn remove(&mut self, id: TensorId) {
        if let Some(slot) = self.tensors.get_mut(id.at()) {
            *slot = None;
        }
    }

    fn get(&self, id: TensorId) -> Option<&Stored> {
        self.tensors.get(id.at())?.as_ref()
    }

    fn get_mut(&mut self, id: TensorId) -> Option<&mut Stored> {
        self.tensors.get_mut(id.at())?.as_mut()
    }

    /// Whether what the host writes to a tensor is kept: integers also without data, since kernels read
    /// tables and lengths while they are recorded.
    #[must_use]
    pub fn keeps(&self, id: TensorId) -> bool {
        self.data || self.get(id).is_some_and(|t| !t.ty.is_float())
    }

    /// The bytes of a tensor as they are now, without a copy; `None` if they are not known: nobody has asked
    /// for any, or a launch without data has written some.
    #[must_use]
    pub fn snapshot(&self, id: TensorId) -> Option<Arc<Vec<u8>>> {
        self.get(id)?.bytes.get().cloned()
    }

    /// The ranges of elements that nobody has written, in order.
    #[must_use]
    pub fn holes(&self, id: TensorId) -> Vec<Range<u64>> {
        let Some(t) = self.get(id) else { return vec![] };
        let holes = t.versions.over(0..t.elements()).filter(|(_, version)| version.is_none());
        holes.map(|(range, _)| range).collect()
    }

    /// The host writes a whole tensor, little-endian and row-major. The caller has checked the length.
    /// Bytes given as an [`Arc`] are not copied.
    pub fn write_host(&mut self, id: TensorId, bytes: impl Into<Arc<Vec<u8>>>) {
        let (keeps, bytes) = (self.keeps(id), bytes.into());
        self.mark_written(id);
        if let Some(t) = self.get_mut(id).filter(|_| keeps) {
            debug_assert_eq!(bytes.len(), t.len(), "the host checks lengths");
            t.bytes = OnceLock::from(bytes);
        }
    }

    /// The host writes elements from `first` on; what lies past the end is ignored.
    pub fn write_host_at(&mut self, id: TensorId, first: u64, bytes: &[u8]) {
        let (keeps, launch) = (self.keeps(id), self.newest_launch);
        let Some(t) = self.get_mut(id) else { return };
        let size = u64::from(t.ty.bytes());
        let end = (first + bytes.len() as u64 / size).min(t.elements());
        if first >= end {
            return;
        }
        t.versions.host(first..end, launch);
        if keeps {
            let n = ((end - first) * size) as usize;
            t.bytes_mut()[(first * size) as usize..][..n].copy_from_slice(&bytes[..n]);
        }
    }

    /// The host writes zeros; costs nothing until they are looked at.
    pub fn write_zeros(&mut self, id: TensorId) {
        let keeps = self.keeps(id);
        self.mark_written(id);
        if let Some(t) = self.get_mut(id).filter(|_| keeps) {
            t.bytes = OnceLock::from(Arc::new(vec![0; t.len()]));
        }
    }

    /// Notes that the host wrote all of a tensor, of which the bytes are not known from then on.
    pub fn mark_written(&mut self, id: TensorId) {
        let launch = self.newest_launch;
        if let Some(t) = self.get_mut(id) {
            let all = 0..t.elements();
            t.versions.host(all, launch);
            t.bytes = OnceLock::new();
        }
    }

    /// The bytes of a tensor, row-major and little-endian, poison where nobody wrote. Empty without
    /// data or without such a tensor.
    #[must_use]
    pub fn bytes(&self, id: TensorId) -> &[u8] {
        match self.get(id) {
            Some(t) if self.data => t.bytes.get_or_init(|| Arc::new(t.poisoned())),
            _ => &[],
        }
    }

    /// The first part of a range of elements that nobody wrote.
    #[must_use]
    pub fn unwritten(&self, id: TensorId, range: Range<u64>) -> Option<Range<u64>> {
        let t = self.get(id)?;
        t.versions.over(range).find(|(_, version)| version.is_none()).map(|(range, _)| range)
    }

    /// The range cut by version, in order and without holes; `None` where nobody wrote. Nothing for a
    /// tensor that is not there.
    pub fn versions(
        &self,
        id: TensorId,
        range: Range<u64>,
    ) -> impl Iterator<Item = (Range<u64>, Option<Version>)> + '_ {
        self.get(id).into_iter().flat_map(move |t| t.versions.over(range.clone()))
    }

    /// Whether the replica of `pe` has the newest version of all of the range. Several replicas do
    /// after a host write, and where several PEs stored equal bytes in one launch;
    /// [`Writer::Op::holder`] then is the last of them.
    #[must_use]
    pub fn is_held(&self, id: TensorId, range: Range<u64>, pe: PeId) -> bool {
        self.get(id).is_some_and(|t| t.versions.is_held(range, pe))
    }

    /// Elements of a row of a tensor; 0 without such a tensor.
    pub(crate) fn row_len(&self, id: TensorId) -> u64 {
        self.get(id).map_or(0, |t| t.shape[1] as u64)
    }

    /// The bytes of a tensor for writing; empty as in [`Store::bytes`].
    pub(crate) fn bytes_mut(&mut self, id: TensorId) -> &mut [u8] {
        match self.tensors.get_mut(id.at()).and_then(Option::as_mut) {
            Some(t) if self.data => t.bytes_mut(),
            _ => &mut [],
        }
    }
}

#[cfg(test)]
mod tests;
