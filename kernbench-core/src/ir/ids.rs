//! Typed indices into the arenas of a program.

use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);
        impl $name {
            /// The index as a position in its arena.
            #[must_use]
            pub const fn at(self) -> usize { self.0 as usize }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) }
        }
    )* };
}

ids! {
    /// A PE of the machine: `(sip * cubes + cube) * pes + pe`.
    PeId;
    /// An op of one PE, in program order.
    OpId;
    /// A tile or a slice of one, of one PE.
    TileId;
    /// A memory access of one PE.
    AccessId;
    /// A composite GEMM of one PE.
    CompositeId;
    /// A tensor of the context.
    TensorId;
    /// A source place with its chain of callers.
    SiteId;
    /// A directed IPCQ link.
    LinkId;
}
