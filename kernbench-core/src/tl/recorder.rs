//! The recording of one PE: intrinsics append typed ops to its arenas.

use super::expr::Node;
use super::findings::Findings;
use super::launch::Launch;
use super::tile::POISON;
use super::turns::Turns;
use super::view::{Mistake, Window};
use crate::diag::{Code, Diagnostic};
use crate::ir::{
    Expr, Fun, Op, OpId, OpKind, Operand, PeId, PeProgram, SiteId, Sites, Source, Step, Tile, TileId,
};
use crate::placement::Holders;
use crate::topology::PeAt;
use crate::ty::{Dir, ElementType};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::panic::Location;
use std::rc::Rc;

/// What the PEs of a launch share while they are recorded.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// How many more ops the launch may have.
    pub(crate) ops_left: u64,
    pub(crate) sites: Sites,
    pub(crate) findings: Findings,
    /// The holders nearest to another SIP, by who holds: there they do not depend on the PE that asks.
    pub(crate) nearest_abroad: FxHashMap<Holders, PeId>,
    /// Places of operators and slices that were wrong; only mistakes get here.
    pub(crate) places: FxHashMap<(&'static str, u32, u32), &'static Source>,
}

/// Records the ops of one PE.
#[derive(Debug)]
pub struct Recorder {
    pub(crate) launch: Rc<Launch>,
    pub(crate) pe: PeId,
    pub(crate) at: PeAt,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) program: PeProgram,
    pub(crate) shared: Shared,
    pub(crate) turns: Turns,
    /// The innermost call of a device function around the current op.
    caller: Option<SiteId>,
    /// Calls about to be entered: arguments of a call may be calls themselves.
    called: Vec<SiteId>,
    /// For each device function that runs: the caller outside of it, and how many calls were pending there.
    frames: Vec<(Option<SiteId>, usize)>,
    sent: [u32; Dir::ALL.len()],
    received: [u32; Dir::ALL.len()],
}

impl Recorder {
    pub(crate) fn new(launch: Rc<Launch>, pe: PeId, shared: Shared, like: Option<&PeProgram>) -> Recorder {
        let at = launch.topology.machine().at(pe);
        let mut state = State { shared, ..State::default() };
        // The PE before this one is the best guess of how much there will be to record.
        if let Some(like) = like {
            state.program = PeProgram {
                ops: Vec::with_capacity(like.ops.len()),
                edges: Vec::with_capacity(like.edges.len()),
                tiles: Vec::with_capacity(like.tiles.len()),
                steps: Vec::with_capacity(like.steps.len()),
                accesses: Vec::with_capacity(like.accesses.len()),
                transfers: Vec::with_capacity(like.transfers.len()),
                composites: Vec::with_capacity(like.composites.len()),
                ..PeProgram::default()
            };
        }
        state.program.pe = pe;
        Recorder { launch, pe, at, state: RefCell::new(state) }
    }

    /// Lays the scratch out, adds the edges and hands the arenas over.
    pub(crate) fn finish(&self) -> (PeProgram, Shared) {
        let mut state = self.state.take();
        let tcm = self.launch.topology.machine().tcm.bytes;
        super::layout::lay_out(&mut state, self.launch.scratch_bytes, tcm);
        (state.program, state.shared)
    }

    pub(crate) fn open_root(&self) -> u32 {
        self.state.borrow_mut().turns.open_root()
    }

    pub(crate) fn open(&self, parent: u32, source: &'static Source, buffers: u32) -> u32 {
        let mut s = self.state.borrow_mut();
        let site = s.site(source);
        if buffers == 0 {
            s.mistake(self.pe, site, "KB0112", || {
                Diagnostic::error("KB0112", "a scratch scope with 0 buffers holds nothing")
                    .help("write `buffers = 1` or more, or leave it out")
            });
        }
        s.turns.open(parent, site, buffers.max(1))
    }

    pub(crate) fn close(&self, turn: u32) {
        self.state.borrow_mut().turns.close(turn);
    }

    #[inline]
    pub(crate) fn call(&self, source: &'static Source) {
        let mut s = self.state.borrow_mut();
        let site = s.site(source);
        s.called.push(site);
    }

    #[inline]
    pub(crate) fn push_frame(&self) {
        let mut s = self.state.borrow_mut();
        let (caller, called) = (s.caller, s.called.pop());
        let pending = s.called.len();
        s.frames.push((caller, pending));
        s.caller = called.or(caller);
    }

    #[inline]
    pub(crate) fn pop_frame(&self) {
        let mut s = self.state.borrow_mut();
        if let Some((caller, pending)) = s.frames.pop() {
            s.caller = caller;
            s.called.truncate(pending);
        }
    }

    /// Runs `f` on the arenas with the site of an intrinsic.
    #[inline]
    pub(crate) fn with<R>(&self, source: &'static Source, f: impl FnOnce(&mut State, SiteId) -> R) -> R {
        let mut s = self.state.borrow_mut();
        let site = s.site(source);
        f(&mut s, site)
    }

    #[inline]
    pub(crate) fn step<'s>(
        &'s self,
        fun: Fun,
        ty: ElementType,
        args: [Node<'s>; 3],
        location: &'static Location<'static>,
    ) -> Node<'s> {
        let mut s = self.state.borrow_mut();
        let node = Node { rec: Some(self), ..Node::NONE };
        // What a mistake gives has a likely shape, so that code which asks for it goes on sensibly.
        let likely = [0, 1].map(|i| args.iter().map(|a| a.shape[i]).max().unwrap_or(1));
        let poison = Node { root: Operand::Tile(POISON), shape: likely, ..node };
        if args.iter().any(Node::is_poison) {
            return poison;
        }
        let mut shape = args[0].shape;
        for arg in &args[1..] {
            match broadcast(shape, arg.shape) {
                Some(joined) => shape = joined,
                None => {
                    s.misplaced(self.pe, location, "KB0101", || {
                        Diagnostic::error(
                            "KB0101",
                            format!(
                                "`{}` of shapes {} and {}: they do not broadcast",
                                fun.name(),
                                text(shape),
                                text(arg.shape)
                            ),
                        )
                        .help("each dimension must be equal or 1; slice with `rows` or `cols`, or `reshape`")
                    });
                    return poison;
                }
            }
        }
        let (first, len, root) = s.append(fun, ty, shape, &args);
        Node { root, shape, first, len, ..node }
    }

    pub(crate) fn slice(
        &self,
        id: TileId,
        wanted: [u32; 2],
        f: impl FnOnce(Window) -> Result<Window, Mistake>,
        location: &'static Location<'static>,
    ) -> (TileId, [u32; 2]) {
        if id == POISON {
            return (POISON, wanted);
        }
        let mut s = self.state.borrow_mut();
        let tile = s.program.tiles[id.at()];
        match f((tile.shape, tile.stride, 0)) {
            Ok((shape, stride, offset)) => {
                let addr = tile.addr + offset as u32 * tile.ty.bytes();
                s.program.tiles.push(Tile { addr, shape, stride, ..tile });
                (TileId(s.program.tiles.len() as u32 - 1), shape)
            }
            Err(mistake) => {
                s.misplaced(self.pe, location, "KB0104", || {
                    Diagnostic::error("KB0104", mistake.message("the tile")).help(mistake.help())
                });
                (POISON, wanted)
            }
        }
    }
}

/// The common shape of two operands as NumPy broadcasts, if there is one.
pub(crate) fn broadcast(a: [u32; 2], b: [u32; 2]) -> Option<[u32; 2]> {
    let join = |x, y| match (x, y) {
        _ if x == y => Some(x),
        (_, 1) => Some(x),
        (1, _) => Some(y),
        _ => None,
    };
    Some([join(a[0], b[0])?, join(a[1], b[1])?])
}

pub(crate) fn bytes_of(ty: ElementType, [m, n]: [u32; 2]) -> u64 {
    // Two dimensions of 2^32 - 1 are past 64 bits together with the size of an element.
    (u64::from(m) * u64::from(n)).saturating_mul(u64::from(ty.bytes()))
}

pub(crate) fn text([m, n]: [u32; 2]) -> String {
    format!("[{m}, {n}]")
}

impl State {
    #[inline]
    fn site(&mut self, source: &'static Source) -> SiteId {
        self.shared.sites.intern(source, self.caller)
    }

    pub(crate) fn mistake(&mut self, pe: PeId, site: SiteId, code: Code, make: impl FnOnce() -> Diagnostic) {
        self.shared.findings.file(pe, site, make, code);
    }

    fn misplaced(
        &mut self,
        pe: PeId,
        location: &'static Location<'static>,
        code: Code,
        make: impl FnOnce() -> Diagnostic,
    ) {
        let key = (location.file(), location.line(), location.column());
        let source = *self.shared.places.entry(key).or_insert_with(|| {
            let (file, line, column) = key;
            Box::leak(Box::new(Source { file, line, column, name: "" }))
        });
        let site = self.site(source);
        self.mistake(pe, site, code, make);
    }

    #[inline]
    pub(crate) fn push(&mut self, kind: OpKind, site: SiteId) -> OpId {
        if self.shared.ops_left == 0 {
            self.too_many_ops(site);
        } else {
            self.shared.ops_left -= 1;
            self.program.ops.push(Op { kind, site, edge_end: 0 });
        }
        OpId(self.program.ops.len() as u32 - 1)
    }

    /// Whether the launch may have `n` more ops, which then are taken; a mistake if not.
    pub(crate) fn afford(&mut self, n: u64, site: SiteId) -> bool {
        let left = self.shared.ops_left.checked_sub(n);
        match left {
            Some(left) => self.shared.ops_left = left,
            None => self.too_many_ops(site),
        }
        left.is_some()
    }

    #[cold]
    fn too_many_ops(&mut self, site: SiteId) {
        self.mistake(self.program.pe, site, "KB0116", || {
            Diagnostic::error("KB0116", "the launch has more ops than it may have")
                .help("work on larger blocks, split the work into several launches, or raise `max_ops`")
        });
    }

    #[inline]
    pub(crate) fn next_op(&self) -> OpId {
        OpId(self.program.ops.len() as u32)
    }

    /// A tile in the scope of `turn`, first written by `def`.
    #[inline]
    pub(crate) fn alloc(
        &mut self,
        pe: PeId,
        turn: u32,
        site: SiteId,
        ty: ElementType,
        shape: [u32; 2],
        def: OpId,
    ) -> TileId {
        if self.shared.ops_left == 0 {
            self.too_many_ops(site);
            return POISON;
        }
        if !self.turns.is_innermost(turn) {
            let open = self.turns.innermost_site();
            let mut d = None;
            if let Some(open) = open {
                let place = self.shared.sites.get(open).source.place();
                d = Some(place);
            }
            self.mistake(pe, site, "KB0103", || {
                let e = Diagnostic::error(
                    "KB0103",
                    "a tile is made in an outer scratch scope while an inner one is open, so both would use the same bytes",
                )
                .help("make the tile before the inner `scratch_scope!` opens, or use the inner scope's `tl`");
                match d {
                    Some(place) => e.at(place, "the inner scope opens here"),
                    None => e,
                }
            });
            return POISON;
        }
        let bytes = bytes_of(ty, shape);
        match self.turns.alloc(turn, bytes) {
            Some(addr) => {
                let id = TileId(self.program.tiles.len() as u32);
                self.program.tiles.push(Tile { addr, shape, stride: shape[1], base: id, def, turn, ty });
                id
            }
            None => {
                self.mistake(pe, site, "KB0111", || {
                    Diagnostic::error(
                        "KB0111",
                        format!(
                            "a tile of {} {ty} needs {bytes} bytes: its scratch scope would exceed 4 GiB",
                            text(shape)
                        ),
                    )
                    .help("work on blocks: `Block::new(0, n).blocks(64)` with a `scratch_scope!` inside")
                });
                POISON
            }
        }
    }

    /// Appends a step whose expression operands become one contiguous run in post order.
    #[inline]
    fn append(
        &mut self,
        fun: Fun,
        ty: ElementType,
        shape: [u32; 2],
        args: &[Node<'_>; 3],
    ) -> (u32, u32, Operand) {
        let steps = &mut self.program.steps;
        let mut roots = args.map(|a| a.root);
        let len: u32 = args.iter().map(|a| a.len).sum();
        let mut first = steps.len() as u32 - len;
        let mut expected = first;
        let contiguous = args.iter().filter(|a| a.len > 0).all(|a| {
            let fits = a.first == expected;
            expected += a.len;
            fits
        });
        if !contiguous {
            // Built out of order, as in `let a = x * y; let b = z * w; b + a`: move the runs to the end.
            first = steps.len() as u32;
            for (arg, root) in args.iter().zip(&mut roots).filter(|(a, _)| a.len > 0) {
                let to = steps.len() as u32;
                let moved = |o: Operand| match o {
                    Operand::Step(i) => Operand::Step(i - arg.first + to),
                    other => other,
                };
                for i in arg.first..arg.first + arg.len {
                    let step = steps[i as usize];
                    steps.push(Step { args: step.args.map(moved), ..step });
                }
                *root = moved(*root);
            }
        }
        steps.push(Step { fun, ty, shape, args: roots });
        (first, len + 1, Operand::Step(steps.len() as u32 - 1))
    }

    /// The expression of a node; a bare operand becomes one copy step if `copy`.
    #[inline]
    pub(crate) fn expr(&mut self, node: Node<'_>, ty: ElementType, copy: bool) -> Expr {
        if node.len == 0 && copy {
            let (first, len, root) = self.append(Fun::Copy, ty, node.shape, &[node, Node::NONE, Node::NONE]);
            return Expr { first, len, root };
        }
        Expr { first: node.first, len: node.len, root: node.root }
    }

    /// The next message number of a link used in a direction.
    pub(crate) fn next_message(&mut self, dir: Dir, sending: bool) -> u32 {
        let counter = if sending { &mut self.sent } else { &mut self.received };
        // A direction with a link has an index.
        let counter = &mut counter[dir.index().unwrap_or(0)];
        *counter += 1;
        *counter - 1
    }
}
