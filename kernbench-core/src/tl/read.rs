//! Values that a kernel looks at while it is recorded.

use super::recorder::State;
use super::scope::At;
use super::tile::POISON;
use super::view::Readable;
use crate::diag::Diagnostic;
use crate::ir::{OpId, OpKind, SiteId, TensorId};
use crate::ty::Dtype;
use std::ops::Range;

impl At<'_> {
    pub fn read<T: Dtype>(self, view: impl Readable<T>) -> Vec<T> {
        /// How many values stand for those of a view that cannot be read.
        const INSTEAD: usize = 1 << 16;
        let tile = self.load::<T>(view);
        let rec = self.rec();
        rec.with(self.source, |s, site| {
            let read = match s.program.ops.last().map(|op| &op.kind) {
                Some(&OpKind::Load { access, .. }) if tile.id != POISON => {
                    let access = s.program.access(access);
                    self.values(s, site, access.tensor, &access.runs().collect::<Vec<_>>())
                }
                _ => None,
            };
            if read.is_some() {
                let load = OpId(s.program.ops.len() as u32 - 1);
                s.program.reads.push(load);
                s.push(OpKind::Fence, site);
            }
            // After a mistake, zeros let code that counts values go on.
            let count = tile.shape.map(|n| n as usize).iter().product::<usize>().min(INSTEAD);
            read.unwrap_or_else(|| vec![T::read(&[0; 4][..T::TYPE.bytes() as usize]); count])
        })
    }

    /// The values of element ranges of a tensor; files a mistake and gives `None` if they are not known.
    fn values<T: Dtype>(
        self,
        s: &mut State,
        site: SiteId,
        tensor: TensorId,
        runs: &[Range<u64>],
    ) -> Option<Vec<T>> {
        let rec = self.rec();
        let tensor = rec.launch.tensors.get(tensor.at())?.as_ref()?;
        let (name, width) = (&tensor.info.name, tensor.info.shape[1].max(1) as u64);
        let values = tensor.values.as_ref();
        let is_hole = |run: &Range<u64>| {
            let holes = values.map_or(&[][..], |v| &v.unwritten);
            let i = holes.partition_point(|hole| hole.end <= run.start);
            holes.get(i).filter(|hole| hole.start < run.end).map(|hole| hole.start.max(run.start))
        };
        if let Some(at) = runs.iter().find_map(is_hole) {
            s.mistake(rec.pe, site, "KB0205", || {
                Diagnostic::error(
                    "KB0205",
                    format!(
                        "`tl::read` of `{name}`, but nobody has written it from row {}, column {} on",
                        at / width,
                        at % width
                    ),
                )
                .help("fill the tensor with `from_array` or `zeros` before the launch")
            });
            return None;
        }
        let Some(bytes) = values.and_then(|v| v.bytes.as_ref()) else {
            s.mistake(rec.pe, site, "KB0121", || {
                Diagnostic::error("KB0121", format!("`tl::read` of `{name}`, whose values are not known"))
                    .help("take the tensor as an argument of its own, and write it with data, or by the host as integers")
            });
            return None;
        };
        let size = T::TYPE.bytes() as usize;
        let of = |run: &Range<u64>| &bytes[run.start as usize * size..run.end as usize * size];
        Some(runs.iter().flat_map(|run| of(run).chunks_exact(size).map(T::read)).collect())
    }
}
