//! Programs made by hand, and the laws that executing them obeys.

mod dots;
mod elements;
mod reductions;
mod rounds;

use super::*;
use crate::ir::*;
use crate::ty::{Axis, Dir, Dtype, ElementType, Scalar};
use ElementType::*;

/// An expression as a tree.
#[derive(Clone, Debug)]
pub enum E {
    T(TileId),
    F(f32),
    I(i32),
    Op(Fun, ElementType, Vec<E>),
}

/// The program of one PE in the making: tiles follow each other in scratch and are never freed.
pub struct Build {
    pub p: PeProgram,
    top: u32,
}

impl Build {
    pub fn new(pe: u32) -> Self {
        Build { p: PeProgram { pe: PeId(pe), ..PeProgram::default() }, top: 0 }
    }

    pub fn tile(&mut self, ty: ElementType, shape: [u32; 2]) -> TileId {
        let addr = self.top;
        self.top += (shape[0] * shape[1] * ty.bytes()).next_multiple_of(64);
        self.tile_at(addr, ty, shape)
    }

    pub fn tile_at(&mut self, addr: u32, ty: ElementType, shape: [u32; 2]) -> TileId {
        let id = TileId(self.p.tiles.len() as u32);
        let def = OpId(self.p.ops.len() as u32);
        self.p.tiles.push(Tile { addr, shape, stride: shape[1], base: id, def, turn: 0, ty });
        id
    }

    pub fn slice(&mut self, of: TileId, at: [u32; 2], shape: [u32; 2]) -> TileId {
        let t = *self.p.tile(of);
        let addr = t.addr + (at[0] * t.stride + at[1]) * t.ty.bytes();
        self.p.tiles.push(Tile { addr, shape, ..t });
        TileId(self.p.tiles.len() as u32 - 1)
    }

    pub fn reshape(&mut self, of: TileId, shape: [u32; 2]) -> TileId {
        let t = *self.p.tile(of);
        self.p.tiles.push(Tile { shape, stride: shape[1], ..t });
        TileId(self.p.tiles.len() as u32 - 1)
    }

    /// Adds an op; its line is its number from 1.
    pub fn op(&mut self, kind: OpKind) -> OpId {
        let id = OpId(self.p.ops.len() as u32);
        self.p.ops.push(Op { kind, site: SiteId(id.0), edge_end: 0 });
        id
    }

    /// The access of all of a tensor or of `shape` at `offset` with `stride`.
    fn access(&mut self, tensor: u32, offset: u64, shape: [u32; 2], stride: u32) -> AccessId {
        self.p.accesses.push(Access { offset, tensor: TensorId(tensor), shape, stride, first: 0, len: 0 });
        AccessId(self.p.accesses.len() as u32 - 1)
    }

    pub fn load(&mut self, tensor: u32, offset: u64, stride: u32, dst: TileId) -> OpId {
        let shape = self.p.tile(dst).shape;
        let access = self.access(tensor, offset, shape, stride);
        self.op(OpKind::Load { access, dst })
    }

    pub fn store(&mut self, tensor: u32, offset: u64, stride: u32, src: TileId) -> OpId {
        let shape = self.p.tile(src).shape;
        let access = self.access(tensor, offset, shape, stride);
        self.op(OpKind::Store { access, src })
    }

    pub fn fill(&mut self, ty: ElementType, shape: [u32; 2], value: Scalar) -> TileId {
        let dst = self.tile(ty, shape);
        self.op(OpKind::Fill { dst, value });
        dst
    }

    pub fn expr(&mut self, e: &E) -> Expr {
        let first = self.p.steps.len() as u32;
        let root = self.steps(e).0;
        Expr { first, len: self.p.steps.len() as u32 - first, root }
    }

    fn steps(&mut self, e: &E) -> (Operand, [u32; 2]) {
        match e {
            E::T(t) => (Operand::Tile(*t), self.p.tile(*t).shape),
            E::F(x) => (Operand::F32(*x), [1, 1]),
            E::I(x) => (Operand::I32(*x), [1, 1]),
            E::Op(fun, ty, args) => {
                let args: Vec<_> = args.iter().map(|a| self.steps(a)).collect();
                let shape = [0, 1].map(|d| args.iter().map(|a| a.1[d]).max().unwrap_or(1));
                let mut operands = [Operand::None; 3];
                args.iter().zip(&mut operands).for_each(|(a, o)| *o = a.0);
                self.p.steps.push(Step { fun: *fun, ty: *ty, shape, args: operands });
                (Operand::Step(self.p.steps.len() as u32 - 1), shape)
            }
        }
    }

    pub fn map(&mut self, dst: TileId, e: &E) -> OpId {
        let expr = self.expr(e);
        self.op(OpKind::Map { dst, expr })
    }

    pub fn reduce(&mut self, dst: TileId, e: &E, reduction: Reduction, axis: Axis) -> OpId {
        let expr = self.expr(e);
        self.op(OpKind::Reduce { dst, expr, reduction, axis })
    }
}

/// A program of PEs in a line of links: link `i` goes from PE `i` to PE `i + 1`, the last to PE 0.
pub fn program(tensors: &[(&str, ElementType, [usize; 2])], pes: Vec<Build>) -> Program {
    let mut sites = Sites::default();
    let count = pes.len() as u32;
    let ops = pes.iter().map(|b| b.p.ops.len()).max().unwrap_or(0);
    for line in 1..=ops as u32 {
        let source = Source { file: "k.rs", line, column: 5, name: "x" };
        sites.intern(Box::leak(Box::new(source)), None);
    }
    let tensor = |(name, ty, shape): &(&str, ElementType, [usize; 2])| TensorInfo {
        name: (*name).to_owned(),
        ty: *ty,
        shape: *shape,
    };
    Program {
        name: "test".to_owned(),
        kernel: "test",
        tensors: tensors.iter().map(tensor).collect(),
        links: (0..count)
            .map(|i| Link { from: PeId(i), to: PeId((i + 1) % count), dir: Dir::E, recv_dir: Dir::W })
            .collect(),
        pes: pes.into_iter().map(|b| b.p).collect(),
        sites,
        scratch_bytes: 1 << 20,
    }
}

/// A store with the tensors of a program, those with bytes written by the host.
pub fn store(program: &Program, bytes: &[Option<Vec<u8>>]) -> Store {
    let mut store = Store::new(true);
    for (i, info) in program.tensors.iter().enumerate() {
        let id = TensorId(i as u32);
        store.create(id, info.ty, info.shape);
        if let Some(Some(bytes)) = bytes.get(i) {
            store.write_host(id, bytes.clone());
        }
    }
    store
}

pub fn options(threads: usize, replicated: &(dyn Fn(TensorId) -> bool + Sync)) -> Options<'_> {
    Options { threads: Some(threads), cubes: 2, pes: 4, replicated }
}

pub fn bytes<T: Dtype>(values: &[T]) -> Vec<u8> {
    let mut out = vec![];
    values.iter().for_each(|v| v.write(&mut out));
    out
}

pub fn values<T: Dtype>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(T::read).collect()
}

/// Runs a program on one PE that has `fill` as tensor 0 and stores `dst` to tensor 1; its elements.
pub fn run_one<T: Dtype>(mut b: Build, input: Option<Vec<u8>>, in_ty: ElementType, dst: TileId) -> Vec<T> {
    let shape = b.p.tile(dst).shape;
    b.store(1, 0, shape[1], dst);
    let n = input.as_ref().map_or(0, |v| v.len() / in_ty.bytes() as usize);
    let p = program(&[("in", in_ty, [1, n]), ("out", T::TYPE, shape.map(|n| n as usize))], vec![b]);
    let mut s = store(&p, &[input]);
    execute(&p, &mut s, 1, &options(1, &|_| false)).expect("runs");
    values(s.bytes(TensorId(1)))
}

/// Numbers from a seed (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.bits() >> 33) % n
    }

    /// Mostly between -4 and 4; now and then special.
    pub fn float(&mut self) -> f32 {
        const SPECIAL: [f32; 8] =
            [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-42, 3.0e38, -65520.0];
        match self.below(40) {
            n @ 0..8 => SPECIAL[n as usize],
            _ => (self.below(1 << 20) as f32 / (1 << 17) as f32) - 4.0,
        }
    }

    pub fn int(&mut self) -> i32 {
        const SPECIAL: [i32; 5] = [0, 1, -1, i32::MIN, i32::MAX];
        match self.below(20) {
            n @ 0..5 => SPECIAL[n as usize],
            _ => self.bits() as i32 >> 8,
        }
    }
}
