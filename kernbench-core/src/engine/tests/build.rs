//! Programs by hand: each call adds one op, with data edges from the ops that wrote its operands.

use crate::ir::*;
use crate::ty::{Axis, Dir, ElementType, Group, Scalar};

/// A program for PEs in a line, with links `E` and `W` between neighbours.
pub(crate) struct Build {
    program: Program,
    line: u32,
}

impl Build {
    /// A program on the first `pes` PEs.
    pub fn new(pes: u32) -> Self {
        let names = [("x", ElementType::F16), ("y", ElementType::F16)];
        let tensors = names.map(|(n, ty)| TensorInfo { name: n.into(), ty, shape: [1 << 20, 64] });
        let mut links = vec![];
        for i in 1..pes {
            let (a, b) = (PeId(i - 1), PeId(i));
            links.push(Link { from: a, to: b, dir: Dir::E, recv_dir: Dir::W });
            links.push(Link { from: b, to: a, dir: Dir::W, recv_dir: Dir::E });
        }
        let program = Program {
            name: "test".into(),
            kernel: "by_hand",
            tensors: tensors.to_vec(),
            pes: (0..pes).map(|i| PeProgram { pe: PeId(i), ..PeProgram::default() }).collect(),
            links,
            sites: Sites::default(),
            scratch_bytes: 1 << 20,
        };
        Build { program, line: 0 }
    }

    pub fn finish(self) -> Program {
        self.program
    }

    pub fn pe(&mut self, pe: usize) -> On<'_> {
        On { build: self, pe }
    }
}

/// The program of one PE under construction.
pub(crate) struct On<'a> {
    build: &'a mut Build,
    pe: usize,
}

impl On<'_> {
    fn program(&mut self) -> &mut PeProgram {
        &mut self.build.program.pes[self.pe]
    }

    fn next(&mut self) -> OpId {
        OpId(self.program().ops.len() as u32)
    }

    pub fn tile(&mut self, shape: [u32; 2], ty: ElementType) -> TileId {
        let (def, p) = (self.next(), self.program());
        let base = TileId(p.tiles.len() as u32);
        p.tiles.push(Tile { addr: 0, shape, stride: shape[1], base, def, turn: 0, ty });
        base
    }

    pub fn op(&mut self, name: &'static str, kind: OpKind) -> OpId {
        self.build.line += 1;
        let line = self.build.line;
        let source = Box::leak(Box::new(Source { file: "kernel.rs", line, column: 9, name }));
        let site = self.build.program.sites.intern(source, None);
        let (id, p) = (self.next(), self.program());
        let mut edges = vec![];
        let writers = |tile: TileId, p: &PeProgram| {
            p.ops.iter().rposition(|o| p.written(&o.kind) == Some(tile)).map(|i| OpId(i as u32))
        };
        p.for_each_read(&kind, |t| edges.extend(writers(t, p).map(|o| Edge::new(EdgeKind::Data, o))));
        if let Some(tile) = p.written(&kind) {
            for (i, o) in p.ops.iter().enumerate() {
                let mut reads = false;
                p.for_each_read(&o.kind, |t| reads |= t == tile);
                if reads {
                    edges.push(Edge::new(EdgeKind::Anti, OpId(i as u32)));
                }
            }
        }
        let whole = matches!(kind, OpKind::Fence | OpKind::Barrier { .. });
        for (i, o) in p.ops.iter().enumerate() {
            let fence = matches!(
                o.kind,
                OpKind::Fence | OpKind::Barrier { .. } | OpKind::Wait { .. } | OpKind::Join { .. }
            ) || whole;
            if fence {
                edges.push(Edge::new(EdgeKind::Fence, OpId(i as u32)));
            }
        }
        p.edges.extend(edges);
        let edge_end = p.edges.len() as u32;
        p.ops.push(Op { kind, site, edge_end });
        id
    }

    /// An access of `runs` runs of `run_bytes` in the slice of `home`.
    pub fn access(&mut self, home: u32, addr: u64, run_bytes: u32, runs: u32, stride_bytes: u32) -> AccessId {
        let p = self.program();
        let first = p.transfers.len() as u32;
        p.transfers.push(Transfer {
            addr,
            home: PeId(home),
            run_bytes,
            runs,
            stride_bytes,
            ..Transfer::default()
        });
        p.accesses.push(Access {
            offset: addr / 2,
            tensor: TensorId(0),
            shape: [runs, run_bytes / 2],
            stride: stride_bytes / 2,
            first,
            len: 1,
        });
        AccessId(p.accesses.len() as u32 - 1)
    }

    /// Reads `[rows, cols]` f16, contiguous at address 0 of `home`'s slice.
    pub fn load(&mut self, name: &'static str, shape: [u32; 2], home: u32) -> TileId {
        let access = self.access(home, 0, shape[0] * shape[1] * 2, 1, 0);
        self.program().accesses[access.at()].shape = shape;
        self.program().accesses[access.at()].stride = shape[1];
        let dst = self.tile(shape, ElementType::F16);
        self.op(name, OpKind::Load { access, dst });
        dst
    }

    /// Reads into a tile that was in use: when all that read it have.
    pub fn reload(&mut self, dst: TileId, home: u32) {
        let tile = *self.program().tile(dst);
        let access = self.access(home, 0, tile.bytes() as u32, 1, 0);
        let a = &mut self.program().accesses[access.at()];
        (a.shape, a.stride) = (tile.shape, tile.shape[1]);
        self.op("x", OpKind::Load { access, dst });
    }

    pub fn store(&mut self, src: TileId, home: u32) -> OpId {
        let tile = *self.program().tile(src);
        let access = self.access(home, 1 << 20, tile.bytes() as u32, 1, 0);
        let a = &mut self.program().accesses[access.at()];
        (a.shape, a.stride, a.tensor) = (tile.shape, tile.shape[1], TensorId(1));
        self.op("", OpKind::Store { access, src })
    }

    pub fn fill(&mut self, name: &'static str, shape: [u32; 2]) -> TileId {
        let dst = self.tile(shape, ElementType::F16);
        self.op(name, OpKind::Fill { dst, value: Scalar::F32(0.0) });
        dst
    }

    pub fn step(&mut self, fun: Fun, shape: [u32; 2], args: [Operand; 3]) -> Operand {
        let p = self.program();
        p.steps.push(Step { fun, ty: ElementType::F32, shape, args });
        Operand::Step(p.steps.len() as u32 - 1)
    }

    /// `exp(x - 1)`, or its sum over the columns: five steps, or six.
    pub fn exp(&mut self, name: &'static str, x: TileId, reduce: bool) -> TileId {
        let shape = self.program().tile(x).shape;
        let first = self.program().steps.len() as u32;
        let s = self.step(Fun::Sub, shape, [Operand::Tile(x), Operand::F32(1.0), Operand::None]);
        let root = self.step(Fun::Exp, shape, [s, Operand::None, Operand::None]);
        let expr = Expr { first, len: 2, root };
        if reduce {
            let dst = self.tile([shape[0], 1], ElementType::F32);
            let reduction = Reduction::Sum;
            self.op(name, OpKind::Reduce { dst, expr, reduction, axis: Axis::Cols });
            return dst;
        }
        let dst = self.tile(shape, ElementType::F32);
        self.op(name, OpKind::Map { dst, expr });
        dst
    }

    pub fn dot(&mut self, name: &'static str, a: TileId, b: TileId) -> TileId {
        let shape = [self.program().tile(a).shape[0], self.program().tile(b).shape[1]];
        let dst = self.tile(shape, ElementType::F32);
        self.op(name, OpKind::Dot { dst, a, b, a_t: false, b_t: false, accumulate: false });
        dst
    }

    /// A composite of f16 operands: each place is the home of a view, its tiles one after another, or a
    /// tile. The output is f16.
    pub fn composite(
        &mut self,
        name: &'static str,
        mkn: [u32; 3],
        places: [Result<u32, TileId>; 3],
        epilogue: &[EpilogueStep],
    ) -> OpId {
        let workspace = self.tile([1, 0], ElementType::U8);
        let nowhere = Place::Tcm { tile: workspace, transposed: false };
        let mut c = Composite {
            a: nowhere,
            b: nowhere,
            out: nowhere,
            ty: ElementType::F16,
            out_ty: ElementType::F16,
            mkn,
            tile: [32, 64, 32],
            epilogue: epilogue.to_vec(),
            workspace,
        };
        let counts = c.tiles();
        let mut side = |place, [i, j]: [usize; 2]| match place {
            Err(tile) => Place::Tcm { tile, transposed: false },
            Ok(home) => {
                let access = self.access(home, 0, mkn[j] * 2, mkn[i], mkn[j] * 2);
                let tiles = AccessId(access.0 + 1);
                for (row, col) in (0..counts[i]).flat_map(|r| (0..counts[j]).map(move |c| (r, c))) {
                    let bytes = c.extent(i, row) * c.extent(j, col) * 2;
                    self.access(home, u64::from(row * counts[j] + col) * 4096, bytes, 1, 0);
                }
                Place::Hbm { access, tiles }
            }
        };
        let sides = [side(places[0], [0, 1]), side(places[1], [1, 2]), side(places[2], [0, 2])];
        [c.a, c.b, c.out] = sides;
        let p = self.program();
        p.composites.push(c);
        let composite = CompositeId(p.composites.len() as u32 - 1);
        self.op(name, OpKind::Composite { composite })
    }

    pub fn join(&mut self, composite: OpId) -> OpId {
        let op = self.op("", OpKind::Join { composite });
        let p = self.program();
        p.edges.push(Edge::new(EdgeKind::Fence, composite));
        p.ops[op.at()].edge_end += 1;
        op
    }

    fn link(&self, send: bool, dir: Dir) -> LinkId {
        let links = &self.build.program.links;
        let me = PeId(self.pe as u32);
        let mine =
            |l: &Link| if send { (l.from, l.dir) == (me, dir) } else { (l.to, l.recv_dir) == (me, dir) };
        LinkId(links.iter().position(mine).unwrap() as u32)
    }

    fn seq(&mut self, link: LinkId, send: bool) -> u32 {
        let is = |o: &&Op| match o.kind {
            OpKind::Send { link: l, .. } => send && l == link,
            OpKind::Recv { link: l, .. } | OpKind::RecvAsync { link: l, .. } => !send && l == link,
            _ => false,
        };
        self.program().ops.iter().filter(is).count() as u32
    }

    pub fn send(&mut self, to: Dir, src: TileId) -> OpId {
        let link = self.link(true, to);
        let seq = self.seq(link, true);
        self.op("", OpKind::Send { link, seq, src })
    }

    pub fn recv(&mut self, name: &'static str, from: Dir, shape: [u32; 2]) -> TileId {
        let link = self.link(false, from);
        let seq = self.seq(link, false);
        let dst = self.tile(shape, ElementType::F16);
        self.op(name, OpKind::Recv { link, seq, dst });
        dst
    }

    pub fn recv_async(&mut self, name: &'static str, from: Dir, shape: [u32; 2]) -> OpId {
        let link = self.link(false, from);
        let seq = self.seq(link, false);
        let dst = self.tile(shape, ElementType::F16);
        self.op(name, OpKind::RecvAsync { link, seq, dst })
    }

    pub fn wait(&mut self, recv: OpId) -> OpId {
        self.op("", OpKind::Wait { recv })
    }

    pub fn fence(&mut self) -> OpId {
        self.op("", OpKind::Fence)
    }

    pub fn barrier(&mut self, group: Group) -> OpId {
        self.op("", OpKind::Barrier { group })
    }
}
