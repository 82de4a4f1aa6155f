//! The pass at the end of a recording: addresses for tiles, edges for ops.

use super::memory_map;
use super::recorder::State;
use crate::ir::{Edge, EdgeKind, Engine, OpId, OpKind, PeProgram, Tile};

const NONE: u32 = u32::MAX;
/// Engines that touch tiles: both DMA channels, MATH, GEMM, IPCQ; and composites, which several serve.
const ENGINES: usize = 6;
const COMPOSITE: usize = 5;

/// Gives tiles their addresses and ops their edges; files a diagnostic if the scratch is too small.
/// `tcm_bytes` is what there is for scratch at most.
pub(crate) fn lay_out(state: &mut State, scratch_bytes: u32, tcm_bytes: u64) {
    let peak = state.turns.lay_out();
    if peak > u64::from(scratch_bytes) {
        memory_map::report_overflow(state, peak, scratch_bytes, tcm_bytes);
        return;
    }
    state.program.peak_bytes = peak as u32;
    for tile in &mut state.program.tiles {
        tile.addr += state.turns.turns[tile.turn as usize].base as u32;
    }
    add_edges(&mut state.program);
}

/// Who last used a range of scratch bytes: its writer, and since then its last reader of each engine.
/// Engines serve in order, so the last one stands for all.
#[derive(Clone, Copy)]
struct Range {
    start: u32,
    end: u32,
    writer: u32,
    readers: [u32; ENGINES],
}

struct Builder {
    /// Sorted and disjoint.
    ranges: Vec<Range>,
    edges: Vec<Edge>,
    /// Where the edges of the current op begin, and its engine.
    first: usize,
    engine: usize,
    engines: Vec<usize>,
}

/// Adds data, anti and fence edges in one pass in program order.
fn add_edges(program: &mut PeProgram) {
    let mut ops = std::mem::take(&mut program.ops);
    let mut b = Builder {
        ranges: vec![],
        edges: std::mem::take(&mut program.edges),
        first: 0,
        engine: 0,
        engines: Vec::with_capacity(ops.len()),
    };
    let mut last = [NONE; 6];
    let mut last_composite = NONE;
    // The fence, barrier or wait after which the next op of each engine has to start.
    let mut fences = [NONE; 6];
    for i in 0..ops.len() {
        let me = i as u32;
        let kind = &ops[i].kind;
        let served_by = program.engines(kind);
        b.first = b.edges.len();
        b.engine = if matches!(kind, OpKind::Composite { .. }) { COMPOSITE } else { kind.engine() as usize };
        b.engines.push(b.engine);
        for (fence, _) in fences.iter_mut().zip(served_by).filter(|(_, serves)| *serves) {
            b.edge(EdgeKind::Fence, std::mem::replace(fence, NONE));
        }
        program.for_each_read(kind, |t| b.read(me, &program.tiles[t.at()]));
        let written = match kind {
            OpKind::Wait { recv } => match ops[recv.at()].kind {
                OpKind::RecvAsync { dst, .. } => Some(dst),
                _ => None,
            },
            OpKind::Composite { composite } => {
                let c = program.composite(*composite);
                b.write(me, &program.tiles[c.workspace.at()]);
                c.dst()
            }
            other => other.dst(),
        };
        if let Some(t) = written {
            b.write(me, &program.tiles[t.at()]);
        }
        match kind {
            OpKind::Fence | OpKind::Barrier { .. } => {
                for op in last.into_iter().chain([last_composite]) {
                    b.edge(EdgeKind::Fence, op);
                }
                fences = [me; 6];
                fences[Engine::Sync as usize] = NONE;
            }
            OpKind::Wait { .. } => {
                fences = [me; 6];
                fences[Engine::Ipcq as usize] = NONE;
            }
            OpKind::Join { composite } => {
                b.edge(EdgeKind::Fence, composite.0);
                fences = [me; 6];
                fences[Engine::Sync as usize] = NONE;
            }
            _ => {}
        }
        if b.engine == COMPOSITE {
            // Ops behind it on its engines may end before it does.
            last_composite = me;
        }
        for (last, _) in last.iter_mut().zip(served_by).filter(|(_, serves)| *serves) {
            *last = me;
        }
        b.edges[b.first..].sort_unstable_by_key(|e| e.op());
        ops[i].edge_end = b.edges.len() as u32;
    }
    program.ops = ops;
    program.edges = b.edges;
}

impl Builder {
    #[inline]
    fn edge(&mut self, kind: EdgeKind, op: u32) {
        if op == NONE {
            return;
        }
        for e in &mut self.edges[self.first..] {
            if e.op().0 == op {
                if kind < e.kind() {
                    *e = Edge::new(kind, OpId(op));
                }
                return;
            }
        }
        self.edges.push(Edge::new(kind, OpId(op)));
    }

    #[inline]
    fn anti(&mut self, me: u32, op: u32) {
        // An engine serves its ops in order: no edge is needed between two of the same. Composites
        // overlap each other.
        if op != NONE && op != me && (self.engines[op as usize] != self.engine || self.engine == COMPOSITE) {
            self.edge(EdgeKind::Anti, op);
        }
    }

    /// The first range that ends after `start`.
    #[inline]
    fn find(&self, start: u32) -> usize {
        self.ranges.partition_point(|r| r.end <= start)
    }

    #[inline]
    fn read(&mut self, me: u32, tile: &Tile) {
        let (start, end) = (tile.addr, tile.addr + tile.span());
        let mut i = self.find(start);
        while i < self.ranges.len() && self.ranges[i].start < end {
            let range = &mut self.ranges[i];
            range.readers[self.engine] = me;
            let writer = range.writer;
            self.edge(EdgeKind::Data, writer);
            i += 1;
        }
    }

    #[inline]
    fn write(&mut self, me: u32, tile: &Tile) {
        let (start, end) = (tile.addr, tile.addr + tile.span());
        if start == end {
            return;
        }
        let i = self.find(start);
        let new = Range { start, end, writer: me, readers: [NONE; ENGINES] };
        if let Some(range) = self.ranges.get_mut(i)
            && range.start == start
            && range.end == end
        {
            let old = std::mem::replace(range, new);
            self.displace(me, &old);
            return;
        }
        let mut j = i;
        let (mut before, mut after) = (None, None);
        while j < self.ranges.len() && self.ranges[j].start < end {
            let old = self.ranges[j];
            self.displace(me, &old);
            if old.start < start {
                before = Some(Range { end: start, ..old });
            }
            if old.end > end {
                after = Some(Range { start: end, ..old });
            }
            j += 1;
        }
        self.ranges.splice(i..j, before.into_iter().chain([new]).chain(after));
    }

    #[inline]
    fn displace(&mut self, me: u32, old: &Range) {
        self.anti(me, old.writer);
        for reader in old.readers {
            self.anti(me, reader);
        }
    }
}
