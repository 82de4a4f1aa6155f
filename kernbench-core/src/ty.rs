//! Element types, axes, directions, ranges: the small words of the language.

mod convert;

use std::fmt;
use std::ops::Range;

pub use half::{bf16, f16};

/// An element type as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ElementType {
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE single precision.
    F32,
    /// Two's complement 32 bit, wrapping.
    I32,
    /// Two's complement 8 bit, storage only.
    I8,
    /// Unsigned 8 bit, storage only.
    U8,
    /// The result of a comparison; lives only inside an expression.
    Mask,
}

impl ElementType {
    /// Whether it is a floating-point type.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, ElementType::F16 | ElementType::Bf16 | ElementType::F32)
    }

    /// Bytes of one element in memory.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            ElementType::F16 | ElementType::Bf16 => 2,
            ElementType::F32 | ElementType::I32 => 4,
            ElementType::I8 | ElementType::U8 | ElementType::Mask => 1,
        }
    }

    /// The name as users write it: `f16`, `bf16`, `f32`, `i32`, `i8`, `u8`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ElementType::F16 => "f16",
            ElementType::Bf16 => "bf16",
            ElementType::F32 => "f32",
            ElementType::I32 => "i32",
            ElementType::I8 => "i8",
            ElementType::U8 => "u8",
            ElementType::Mask => "mask",
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// An element type of a tensor or tile: f16, bf16, f32, i32, i8, u8.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type",
    note = "element types are f16, bf16, f32, i32, i8, u8"
)]
pub trait Dtype:
    sealed::Sealed + Copy + fmt::Debug + fmt::Display + PartialEq + Send + Sync + 'static
{
    /// The type as a value.
    const TYPE: ElementType;
    /// What a `dot` of this type accumulates in: f32 for floats, i32 for integers.
    type Acc: Dtype;
    /// Appends the element's little-endian bytes.
    fn write(self, out: &mut Vec<u8>);
    /// Reads an element from exactly [`ElementType::bytes`] little-endian bytes.
    fn read(bytes: &[u8]) -> Self;
}

/// An element type with arithmetic: f16, bf16, f32, i32.
#[diagnostic::on_unimplemented(
    message = "no arithmetic on tiles of `{Self}`",
    note = "cast first: `x.cast::<i32>()` or `x.cast::<f32>()`"
)]
pub trait Num: Dtype {
    /// The value as a constant of an expression.
    fn scalar(self) -> Scalar;
}

/// A floating-point element type: f16, bf16, f32. Expressions over it compute in f32.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point element type",
    note = "floating-point element types are f16, bf16, f32"
)]
pub trait Float: Num + Dtype<Acc = f32> {
    /// Rounds to nearest even.
    fn from_f32(x: f32) -> Self;
    /// Exact.
    fn to_f32(self) -> f32;
}

/// The element type of comparisons; it has no values of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mask {}

/// A constant inside an expression.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// Beside floating-point tiles.
    F32(f32),
    /// Beside i32 tiles.
    I32(i32),
}

impl PartialEq for Scalar {
    /// By bits, so that programs with NaN constants compare equal to themselves.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Scalar::F32(a), Scalar::F32(b)) => a.to_bits() == b.to_bits(),
            (Scalar::I32(a), Scalar::I32(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::F32(x) => write!(f, "{x:?}"),
            Scalar::I32(x) => write!(f, "{x}"),
        }
    }
}

macro_rules! dtypes {
    ($($t:ty, $variant:ident, $acc:ty;)*) => { $(
        impl sealed::Sealed for $t {}
        impl Dtype for $t {
            const TYPE: ElementType = ElementType::$variant;
            type Acc = $acc;
            fn write(self, out: &mut Vec<u8>) { out.extend_from_slice(&self.to_le_bytes()); }
            fn read(bytes: &[u8]) -> Self {
                let mut raw = [0; size_of::<$t>()];
                raw.copy_from_slice(bytes);
                <$t>::from_le_bytes(raw)
            }
        }
    )* };
}
dtypes! {
    f16, F16, f32;
    bf16, Bf16, f32;
    f32, F32, f32;
    i32, I32, i32;
    i8, I8, i32;
    u8, U8, i32;
}

macro_rules! floats {
    ($($t:ty: $from:expr, $to:expr;)*) => { $(
        impl Num for $t { fn scalar(self) -> Scalar { Scalar::F32(self.to_f32()) } }
        impl Float for $t {
            fn from_f32(x: f32) -> Self { $from(x) }
            fn to_f32(self) -> f32 { $to(self) }
        }
    )* };
}
floats! {
    f16: f16::from_f32, f16::to_f32;
    bf16: bf16::from_f32, bf16::to_f32;
    f32: std::convert::identity, std::convert::identity;
}
impl Num for i32 {
    fn scalar(self) -> Scalar {
        Scalar::I32(self)
    }
}

/// Names the index that runs: a sum over `Axis::Cols` adds along the columns and gives `[m, 1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The row index runs.
    Rows,
    /// The column index runs.
    Cols,
}

/// A direction of an IPCQ link, as its sender sees it. The default machine has links in the first three
/// families; its meshes do not wrap, its ring of SIPs does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dir {
    /// To the same PE of the cube to the north in the SIP's mesh of cubes.
    N,
    /// To the same PE of the cube to the south.
    S,
    /// To the same PE of the cube to the east.
    E,
    /// To the same PE of the cube to the west.
    W,
    /// To the PE to the north in the cube's grid of PEs (2 rows of 4: PE 0 to 3, then 4 to 7).
    IntraN,
    /// To the PE to the south in the cube.
    IntraS,
    /// To the PE to the east in the cube.
    IntraE,
    /// To the PE to the west in the cube.
    IntraW,
    /// To the same cube and PE of the SIP to the north.
    GlobalN,
    /// To the same cube and PE of the SIP to the south.
    GlobalS,
    /// To the same cube and PE of the SIP to the east.
    GlobalE,
    /// To the same cube and PE of the SIP to the west.
    GlobalW,
    /// To the parent in a tree of ranks.
    Parent,
    /// To the left child in a tree of ranks.
    ChildLeft,
    /// To the right child in a tree of ranks.
    ChildRight,
    /// To the rank of this number, below [`Dir::PEERS`], where every rank may talk to every other.
    Peer(u8),
}

const PEERS: [&str; Dir::PEERS] = [
    "peer_0", "peer_1", "peer_2", "peer_3", "peer_4", "peer_5", "peer_6", "peer_7", "peer_8", "peer_9",
    "peer_10", "peer_11", "peer_12", "peer_13", "peer_14", "peer_15",
];

impl Dir {
    /// How many ranks can be each other's peers.
    pub const PEERS: usize = 16;

    /// Every direction, in order of its index.
    pub const ALL: [Dir; 15 + Dir::PEERS] = {
        use Dir::*;
        let mut all = [N; 15 + Dir::PEERS];
        let named = [
            N, S, E, W, IntraN, IntraS, IntraE, IntraW, GlobalN, GlobalS, GlobalE, GlobalW, Parent,
            ChildLeft, ChildRight,
        ];
        let mut i = 0;
        while i < all.len() {
            all[i] = if i < 15 { named[i] } else { Peer((i - 15) as u8) };
            i += 1;
        }
        all
    };

    /// The direction to a rank, for kernels over ranks that are each other's peers. A rank there is no link to is a
    /// mistake where it is used.
    #[must_use]
    pub fn peer(rank: usize) -> Dir {
        Dir::Peer(u8::try_from(rank).unwrap_or(u8::MAX))
    }

    /// Its place in [`Dir::ALL`]; `None` for a peer that cannot be.
    #[must_use]
    pub const fn index(self) -> Option<usize> {
        use Dir::*;
        Some(match self {
            N => 0,
            S => 1,
            E => 2,
            W => 3,
            IntraN => 4,
            IntraS => 5,
            IntraE => 6,
            IntraW => 7,
            GlobalN => 8,
            GlobalS => 9,
            GlobalE => 10,
            GlobalW => 11,
            Parent => 12,
            ChildLeft => 13,
            ChildRight => 14,
            Peer(rank) if (rank as usize) < Dir::PEERS => 15 + rank as usize,
            Peer(_) => return None,
        })
    }

    /// The name in listings and logs: `N`, `intra_W`, `global_E`, `parent`, `child_left`, `peer_3`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Dir::N => "N",
            Dir::S => "S",
            Dir::E => "E",
            Dir::W => "W",
            Dir::IntraN => "intra_N",
            Dir::IntraS => "intra_S",
            Dir::IntraE => "intra_E",
            Dir::IntraW => "intra_W",
            Dir::GlobalN => "global_N",
            Dir::GlobalS => "global_S",
            Dir::GlobalE => "global_E",
            Dir::GlobalW => "global_W",
            Dir::Parent => "parent",
            Dir::ChildLeft => "child_left",
            Dir::ChildRight => "child_right",
            Dir::Peer(rank) if (rank as usize) < Dir::PEERS => PEERS[rank as usize],
            Dir::Peer(_) => "peer past 15",
        }
    }
}

impl fmt::Display for Dir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who meets at a `barrier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// The PEs of the launch in this cube.
    Cube,
    /// The PEs of the launch in this SIP.
    Sip,
}

/// A range of rows, columns or positions: `start`, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// The first index.
    pub start: usize,
    /// How many.
    pub len: usize,
}

impl Block {
    /// `len` indices from `start`.
    #[must_use]
    pub const fn new(start: usize, len: usize) -> Self {
        Block { start, len }
    }

    /// One past the last index; the largest `usize` if that is past it.
    #[must_use]
    pub const fn end(self) -> usize {
        self.start.saturating_add(self.len)
    }

    /// Cuts the range into blocks of `n`, the last one shorter if `n` does not divide; none if `n` is 0.
    ///
    /// ```
    /// use kernbench_core::ty::Block;
    /// let blocks: Vec<_> = Block::new(10, 5).blocks(2).map(|b| (b.start, b.len)).collect();
    /// assert_eq!(blocks, [(10, 2), (12, 2), (14, 1)]);
    /// ```
    pub fn blocks(self, n: usize) -> impl Iterator<Item = Block> {
        let count = if n == 0 { 0 } else { self.len.div_ceil(n) };
        (0..count).map(move |i| Block::new(self.start.saturating_add(i * n), n.min(self.len - i * n)))
    }
}

impl From<Range<usize>> for Block {
    /// An end before the start gives an empty block.
    fn from(r: Range<usize>) -> Self {
        Block::new(r.start, r.end.saturating_sub(r.start))
    }
}
