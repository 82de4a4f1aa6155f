//! From a view to transfers: which bytes of which HBM slices a load or store touches.

use super::launch::{Newest, TensorState};
use super::recorder::{Recorder, State};
use super::view::Raw;
use crate::diag::Diagnostic;
use crate::ir::{Access, AccessId, PeId, SiteId};
use crate::placement::{Piece, Rect, rects};

impl Recorder {
    /// Records the access of a view; files a mistake and gives `None` if it is not one.
    pub(crate) fn access(&self, s: &mut State, site: SiteId, raw: Raw, writing: bool) -> Option<AccessId> {
        let known = self.launch.tensors.get(raw.tensor.at()).and_then(Option::as_ref);
        let Some(tensor) = known.filter(|tensor| tensor.serial == raw.serial) else {
            s.mistake(self.pe, site, "KB0110", || {
                Diagnostic::error(
                    "KB0110",
                    "the view belongs to a tensor that was freed, or to one of another context",
                )
                .help("keep the tensor until the launch, and launch on the context that made it")
            });
            return None;
        };
        let name = &tensor.info.name;
        if let Some(mistake) = raw.mistake {
            s.mistake(self.pe, site, "KB0104", || {
                Diagnostic::error("KB0104", mistake.message(&format!("`{name}`"))).help(mistake.help())
            });
            return None;
        }
        let mut offset = raw.offset;
        let width = tensor.info.shape[1];
        let mut stride = raw.stride;
        if raw.local {
            if !tensor.shards.has(self.at) {
                s.mistake(self.pe, site, "KB0109", || {
                    Diagnostic::error(
                        "KB0109",
                        format!("`{name}` has no shard on PE {} of cube {}", self.at.pe, self.at.cube),
                    )
                    .help("launch on the PEs that hold the tensor, or leave `local()` out and take `rows` of all of it")
                });
                return None;
            }
            let [row, col] = tensor.shards.origin(self.at.cube, self.at.pe);
            let sc = tensor.shards.shard[1].max(1) as u64;
            let (r, c) = (offset / sc + row as u64, offset % sc + col as u64);
            // A local view counts in the shard. If that has whole rows of the tensor, its elements follow
            // each other there too; else its rows are a tensor row apart, and no run may cross them.
            let whole_rows = sc == width as u64;
            let in_rows = offset % sc + u64::from(raw.shape[1]) <= sc
                && (raw.shape[0] <= 1 || u64::from(raw.stride) == sc);
            if !whole_rows && !in_rows {
                s.mistake(self.pe, site, "KB0109", || {
                    let [m, n] = tensor.shards.shard;
                    Diagnostic::error(
                        "KB0109",
                        format!(
                            "a reshaped view of a shard of `{name}`: its [{m}, {n}] elements are columns of the tensor, with its other columns between the rows"
                        ),
                    )
                    .help("load the shard, then `reshape` the tile")
                });
                return None;
            }
            offset = r * width as u64 + c;
            if !whole_rows {
                stride = width as u32;
            }
        }
        let first = s.program.transfers.len() as u32;
        rects(offset, raw.shape, stride, width, |rect| {
            tensor.shards.pieces(rect, |piece| self.transfers(s, tensor, piece, width, writing));
        });
        let len = s.program.transfers.len() as u32 - first;
        let access = Access { offset, tensor: raw.tensor, shape: raw.shape, stride, first, len };
        s.program.accesses.push(access);
        Some(AccessId(s.program.accesses.len() as u32 - 1))
    }

    /// Adds the transfers of a piece: from or to the own replica, else the nearest holder of the newest
    /// version (fewest hops, then the lowest PE).
    fn transfers(&self, s: &mut State, tensor: &TensorState, piece: Piece, width: usize, writing: bool) {
        let ranges = match &tensor.newest {
            Newest::Ranges(ranges) if piece.replicas() > 1 && !writing => ranges,
            _ => {
                let home = self.nearest(s, &piece);
                return self.push(s, tensor, &piece, home);
            }
        };
        // Row by row, cut where the holder changes; equal rows join again below.
        let mut parts: Vec<(Rect, PeId)> = vec![];
        let everywhere = self.nearest(s, &piece);
        let rect = piece.rect;
        for row in rect.row..rect.row + rect.rows {
            let (mut at, end) =
                ((row * width + rect.col) as u64, (row * width + rect.col + rect.cols) as u64);
            let mut i = ranges.partition_point(|(r, _)| r.end <= at);
            while at < end {
                let (until, holder) = match ranges.get(i) {
                    Some((r, holders)) if r.start <= at => (r.end, self.nearest_of(holders.iter().copied())),
                    Some((r, _)) => (r.start, everywhere),
                    None => (end, everywhere),
                };
                i += usize::from(ranges.get(i).is_some_and(|(r, _)| r.start <= at));
                let until = until.min(end);
                let (col, cols) = ((at % width as u64) as usize, (until - at) as usize);
                let above =
                    parts.iter_mut().rev().take(ranges.len() + 2).find(|(r, h)| {
                        r.row + r.rows == row && r.col == col && r.cols == cols && *h == holder
                    });
                match above {
                    Some((r, _)) => r.rows += 1,
                    None => parts.push((Rect { row, col, rows: 1, cols }, holder)),
                }
                at = until;
            }
        }
        for (rect, holder) in parts {
            self.push(s, tensor, &Piece { rect, ..piece }, holder);
        }
    }

    fn push(&self, s: &mut State, tensor: &TensorState, piece: &Piece, home: PeId) {
        let machine = self.launch.topology.machine();
        let at = machine.at(home);
        let transfer = tensor.shards.transfer(machine, piece, at.cube, at.pe);
        s.program.transfers.push(transfer);
    }

    /// The own replica if there is one, else the holder with the fewest hops, then the lowest PE.
    fn nearest(&self, s: &mut State, piece: &Piece) -> PeId {
        if piece.is_held_by(self.at) {
            return self.pe;
        }
        let holders = piece.holders;
        let find = || self.nearest_of(holders.iter().map(|at| self.launch.topology.machine().pe(at)));
        if holders.sip() == self.at.sip {
            return find();
        }
        *s.shared.nearest_abroad.entry(holders).or_insert_with(find)
    }

    fn nearest_of(&self, holders: impl Iterator<Item = PeId>) -> PeId {
        let topology = &self.launch.topology;
        holders.min_by_key(|&home| (home != self.pe, topology.hops(self.pe, home), home)).unwrap_or(self.pe)
    }
}
