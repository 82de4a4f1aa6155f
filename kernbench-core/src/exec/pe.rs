//! One PE: runs its ops in program order until it needs what is not there yet.

mod composite;

use super::Options;
use super::dot::{Output, dot_floats, dot_ints};
use super::expr::{self, Evaluator};
use super::findings::{Finding, Rectangle, STALE, UNWRITTEN};
use super::packing::Packing;
use super::round::{self, is_float};
use super::steps;
use super::tiles::{Lanes, Scratch, Values};
use crate::ir::{Access, AccessId, LinkId, OpId, OpKind, PeProgram, TileId};
use crate::store::{Store, Version, Writer};
use crate::ty::{Axis, ElementType, Group, Scalar};
use rustc_hash::FxHashMap;

/// Bytes a PE stores in one round before it yields, so that what waits to be applied stays small.
const PENDING_BYTES: usize = 1 << 20;

/// Why a PE does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It can run in the next round.
    Ready,
    /// It needs a message.
    Receives(LinkId, u32),
    /// It stands at a barrier.
    Meets(Group),
    /// It has no ops left.
    Done,
}

/// A store that is applied at the end of the round.
#[derive(Debug)]
pub(super) struct Pending {
    pub op: OpId,
    pub access: AccessId,
    pub bytes: Vec<u8>,
}

/// A PE and everything it owns.
#[derive(Debug)]
pub(super) struct Pe<'p> {
    pub program: &'p PeProgram,
    pub status: Status,
    /// The next op.
    pub next: OpId,
    pub inbox: FxHashMap<(LinkId, u32), Lanes>,
    pub outbox: Vec<(LinkId, u32, Lanes)>,
    pub stores: Vec<Pending>,
    pub findings: Vec<Finding>,
    pending_bytes: usize,
    scratch: Scratch,
    evaluator: Evaluator,
    packing: Packing,
}

impl<'p> Pe<'p> {
    pub fn new(program: &'p PeProgram) -> Self {
        Pe {
            program,
            status: Status::Ready,
            next: OpId(0),
            inbox: FxHashMap::default(),
            outbox: vec![],
            stores: vec![],
            findings: vec![],
            pending_bytes: 0,
            scratch: Scratch::default(),
            evaluator: Evaluator::default(),
            packing: Packing::default(),
        }
    }

    /// Whether a round would get it further.
    pub fn can_run(&self) -> bool {
        match self.status {
            Status::Ready => true,
            Status::Receives(link, seq) => self.inbox.contains_key(&(link, seq)),
            Status::Meets(_) | Status::Done => false,
        }
    }

    /// Lets it past the barrier it stands at.
    pub fn release(&mut self) {
        self.next.0 += 1;
        self.status = Status::Ready;
    }

    /// One round: it sees the store as of the round's start.
    pub fn run(&mut self, store: &Store, launch: u32, options: &Options) {
        self.pending_bytes = 0;
        self.status = loop {
            let Some(op) = self.program.ops.get(self.next.at()) else {
                // Other PEs take the memory.
                (self.scratch, self.packing) = Default::default();
                self.evaluator = Evaluator::default();
                break Status::Done;
            };
            if let Some(status) = self.op(&op.kind, store, launch, options) {
                break status;
            }
            self.next.0 += 1;
        };
    }

    /// Executes an op, or tells why it cannot yet.
    fn op(&mut self, kind: &OpKind, store: &Store, launch: u32, options: &Options) -> Option<Status> {
        let p = self.program;
        p.for_each_read(kind, |t| self.scratch.ensure(p, t, false));
        match *kind {
            OpKind::Load { access, dst } => {
                let access = p.access(access);
                if self.overlaps_pending(access) {
                    return Some(Status::Ready);
                }
                self.check_load(access, store, launch, options);
                self.load(access, dst, store);
            }
            OpKind::Store { access, src } => {
                let bytes = self.bytes(src);
                self.pending_bytes += bytes.len();
                self.stores.push(Pending { op: self.next, access, bytes });
                if self.pending_bytes > PENDING_BYTES {
                    self.next.0 += 1;
                    return Some(Status::Ready);
                }
            }
            OpKind::Fill { dst, value } => {
                let n = p.tile(dst).elements() as usize;
                let out = &mut self.evaluator.out;
                match value {
                    Scalar::F32(x) => renew(&mut out.f, n, x),
                    Scalar::I32(x) => renew(&mut out.i, n, x),
                }
                self.write(dst, matches!(value, Scalar::F32(_)));
            }
            OpKind::Arange { dst, start, axis } => {
                let [rows, cols] = p.tile(dst).shape.map(|n| n as i32);
                let out = &mut self.evaluator.out.i;
                out.clear();
                let index = |i, j| if axis == Axis::Rows { i } else { j };
                out.extend((0..rows).flat_map(|i| (0..cols).map(move |j| start.wrapping_add(index(i, j)))));
                self.write(dst, false);
            }
            OpKind::Map { dst, ref expr } => {
                let shape = p.tile(dst).shape.map(|n| n as usize);
                if shape[0] * shape[1] > 0 {
                    let float = self.evaluator.eval(p, &self.scratch, expr, shape);
                    self.write(dst, float);
                }
            }
            OpKind::Reduce { dst, ref expr, reduction, axis } => {
                let float = is_float(p.tile(dst).ty);
                let float = self.evaluator.reduce(p, &self.scratch, expr, (reduction, axis), float);
                self.write(dst, float);
            }
            OpKind::Dot { dst, a, b, a_t, b_t, accumulate } => {
                self.dot(dst, (a, a_t), (b, b_t), accumulate);
            }
            OpKind::Composite { composite } => {
                let c = p.composite(composite);
                if [c.a, c.b].iter().filter_map(|s| s.access()).any(|a| self.overlaps_pending(p.access(a))) {
                    return Some(Status::Ready);
                }
                for access in [c.a, c.b].iter().filter_map(|s| s.access()) {
                    self.check_load(p.access(access), store, launch, options);
                }
                self.composite(c, store);
                if self.pending_bytes > PENDING_BYTES {
                    self.next.0 += 1;
                    return Some(Status::Ready);
                }
            }
            OpKind::Send { link, seq, src } => {
                let payload = self.dense(src);
                self.outbox.push((link, seq, payload));
            }
            OpKind::Recv { link, seq, dst } => return self.receive(link, seq, dst),
            OpKind::Wait { recv } => {
                if let OpKind::RecvAsync { link, seq, dst } = p.ops[recv.at()].kind {
                    return self.receive(link, seq, dst);
                }
            }
            OpKind::Barrier { group } => return Some(Status::Meets(group)),
            OpKind::RecvAsync { .. } | OpKind::Join { .. } | OpKind::Fence => {}
        }
        None
    }

    fn receive(&mut self, link: LinkId, seq: u32, dst: TileId) -> Option<Status> {
        let Some(payload) = self.inbox.remove(&(link, seq)) else {
            return Some(Status::Receives(link, seq));
        };
        let out = &mut self.evaluator.out;
        let float = matches!(payload, Lanes::F(_));
        match payload {
            Lanes::F(v) => out.f = v,
            Lanes::I(v) => out.i = v,
        }
        self.write_exact(dst, float);
        None
    }

    fn dot(&mut self, dst: TileId, (a, a_t): (TileId, bool), (b, b_t): (TileId, bool), accumulate: bool) {
        let p = self.program;
        let [m, n] = p.tile(dst).shape.map(|n| n as usize);
        let arch = self.evaluator.arch;
        let apart = !Scratch::overlap(p, dst, a) && !Scratch::overlap(p, dst, b);
        if apart
            && p.tile(dst).ty == ElementType::F32
            && let Some((mut values, at)) = self.scratch.take(p, dst)
        {
            if let (Values::F(a), Values::F(bv)) = (self.scratch.values(p, a), self.scratch.values(p, b)) {
                let out = Output { data: &mut values[at..], row: p.tile(dst).stride as usize, accumulate };
                let b = (if b_t { bv.t() } else { bv }, self.scratch.version(p, b));
                dot_floats(arch, &mut self.packing, if a_t { a.t() } else { a }, b, out);
            }
            return self.scratch.put(p, dst, values);
        }
        let out = &mut self.evaluator.out;
        out.f.clear();
        out.i.clear();
        if accumulate {
            gather(self.scratch.values(p, dst), out);
        }
        match (self.scratch.values(p, a), self.scratch.values(p, b)) {
            (Values::F(a), Values::F(bv)) => {
                out.f.resize(m * n, 0.0);
                let out = Output { data: &mut out.f, row: n, accumulate };
                let b = (if b_t { bv.t() } else { bv }, self.scratch.version(p, b));
                dot_floats(arch, &mut self.packing, if a_t { a.t() } else { a }, b, out);
                self.write(dst, true);
            }
            (Values::I(a), Values::I(b)) => {
                out.i.resize(m * n, 0);
                dot_ints(arch, if a_t { a.t() } else { a }, if b_t { b.t() } else { b }, &mut out.i);
                self.write(dst, false);
            }
            // A product of mixed kinds does not pass verification.
            _ => {}
        }
    }

    /// Writes the evaluator's result to a tile, rounded to its type.
    fn write(&mut self, dst: TileId, float: bool) {
        let ty = self.program.tile(dst).ty;
        let (arch, out) = (self.evaluator.arch, &mut self.evaluator.out);
        match (float, is_float(ty)) {
            (true, true) => steps::round(arch, ty, &mut out.f),
            (false, false) => round::wrap_ints(ty, &mut out.i),
            (true, false) => {
                out.i.resize(out.f.len(), 0);
                steps::floats_to_ints(arch, ty, &mut out.i, &out.f);
            }
            (false, true) => {
                out.f.resize(out.i.len(), 0.0);
                steps::ints_to_floats(arch, ty, &mut out.f, &out.i);
            }
        }
        self.write_exact(dst, is_float(ty));
    }

    /// Writes values that are already of the tile's type.
    fn write_exact(&mut self, dst: TileId, float: bool) {
        let p = self.program;
        let tile = *p.tile(dst);
        let out = &self.evaluator.out;
        match self.scratch.lanes_mut(p, dst) {
            Some((Lanes::F(lanes), at)) if float => {
                scatter(&out.f, tile.shape, tile.stride, &mut lanes[at..])
            }
            Some((Lanes::I(lanes), at)) if !float => {
                scatter(&out.i, tile.shape, tile.stride, &mut lanes[at..])
            }
            _ => {}
        }
    }

    /// A tile's values without gaps.
    fn dense(&self, src: TileId) -> Lanes {
        let mut out = expr::Buffer::default();
        match self.scratch.values(self.program, src) {
            v @ Values::F(_) => {
                gather(v, &mut out);
                Lanes::F(out.f)
            }
            v @ Values::I(_) => {
                gather(v, &mut out);
                Lanes::I(out.i)
            }
        }
    }

    /// A tile's bytes as they go to memory.
    fn bytes(&self, src: TileId) -> Vec<u8> {
        let tile = self.program.tile(src);
        let mut bytes = Vec::with_capacity(tile.bytes() as usize);
        if tile.elements() > 0 {
            match self.scratch.values(self.program, src) {
                Values::F(v) => {
                    bytes.resize(tile.bytes() as usize, 0);
                    let lines = bytes.chunks_exact_mut(v.cols * tile.ty.bytes() as usize);
                    lines.enumerate().for_each(|(i, line)| tile.ty.narrow(v.line(i), line));
                }
                Values::I(v) => (0..v.rows).for_each(|i| round::write_ints(tile.ty, v.line(i), &mut bytes)),
            }
        }
        bytes
    }

    fn load(&mut self, access: &Access, dst: TileId, store: &Store) {
        let p = self.program;
        let tile = *p.tile(dst);
        let size = tile.ty.bytes() as usize;
        let bytes = store.bytes(access.tensor);
        let stride = tile.stride as usize;
        // The tile has the shape of the access. Rows without gaps on both sides are one.
        let [rows, cols] = tile.shape.map(|n| n as usize);
        let dense = stride == cols && access.stride as usize == cols;
        let [rows, cols] = if dense { [1, rows * cols] } else { [rows, cols] };
        let Some((lanes, at)) = self.scratch.lanes_mut(p, dst) else { return };
        for i in 0..rows {
            let first = (access.offset as usize + i * access.stride as usize) * size;
            let line = bytes.get(first..first + cols * size).unwrap_or(&[]);
            let to = at + i * stride..at + i * stride + cols;
            match lanes {
                Lanes::F(v) => tile.ty.widen(line, &mut v[to]),
                Lanes::I(v) => round::read_ints(tile.ty, line, &mut v[to]),
            }
        }
    }

    /// Whether a store of this round may touch what the access reads.
    fn overlaps_pending(&self, access: &Access) -> bool {
        let span = |a: &Access| {
            let last = u64::from(a.shape[0].saturating_sub(1)) * u64::from(a.stride) + u64::from(a.shape[1]);
            a.offset..a.offset + last
        };
        let ours = span(access);
        self.stores.iter().any(|s| {
            let theirs = self.program.access(s.access);
            let range = span(theirs);
            theirs.tensor == access.tensor && range.start < ours.end && ours.start < range.end
        })
    }

    fn check_load(&mut self, access: &Access, store: &Store, launch: u32, options: &Options) {
        let (mut unwritten, mut stale, mut other) = (Rectangle::default(), Rectangle::default(), None);
        let replicated = (options.replicated)(access.tensor);
        let cols = store.row_len(access.tensor);
        for run in access.runs() {
            for (range, version) in store.versions(access.tensor, run) {
                match version {
                    None => unwritten.add(&range, cols),
                    Some(Version { launch: l, writer: Writer::Op { pe, op, .. } })
                        if replicated && l == launch && pe != self.program.pe =>
                    {
                        other = other.or(Some((pe, op)));
                        stale.add(&range, cols);
                    }
                    Some(_) => {}
                }
            }
        }
        for (code, place, other) in [(UNWRITTEN, unwritten, None), (STALE, stale, other)] {
            if !place.is_empty() {
                let (pe, op, tensor) = (self.program.pe, self.next, access.tensor);
                self.findings.push(Finding { code, pe, op, tensor, place, other });
            }
        }
    }

    /// Live base tiles.
    #[cfg(test)]
    pub fn live_tiles(&self) -> usize {
        self.scratch.count()
    }
}

fn renew<T: Copy>(v: &mut Vec<T>, n: usize, value: T) {
    v.clear();
    v.resize(n, value);
}

fn scatter<T: Copy>(from: &[T], [rows, cols]: [u32; 2], stride: u32, to: &mut [T]) {
    let (cols, stride) = (cols as usize, stride as usize);
    if cols == stride || rows == 1 {
        let n = from.len().min(rows as usize * cols);
        return to[..n].copy_from_slice(&from[..n]);
    }
    for (i, line) in from.chunks_exact(cols.max(1)).take(rows as usize).enumerate() {
        to[i * stride..][..cols].copy_from_slice(line);
    }
}

fn gather(from: Values, to: &mut expr::Buffer) {
    match from {
        Values::F(v) if !v.data.is_empty() => (0..v.rows).for_each(|i| to.f.extend_from_slice(v.line(i))),
        Values::I(v) if !v.data.is_empty() => (0..v.rows).for_each(|i| to.i.extend_from_slice(v.line(i))),
        _ => {}
    }
}
