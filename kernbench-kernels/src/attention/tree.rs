//! The way of partials over a grid: west along its rows, then north along the first column, to its first place.

use kernbench_core::prelude::*;

/// A PE or a cube of a grid whose places are counted row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its place.
    pub at: usize,
    /// Columns of the grid.
    pub columns: usize,
    /// Places in use, the first ones.
    pub count: usize,
}

impl Node {
    /// Where partials come from: the neighbour to the east and, in the first column, the one to the south. Merged in
    /// this order, partials are in the order of places.
    pub fn sources(self, [east, south]: [Dir; 2]) -> impl Iterator<Item = Dir> {
        let Node { at, columns, count } = self;
        let right = at % columns + 1 < columns && at + 1 < count;
        let below = at.is_multiple_of(columns) && at + columns < count;
        [right.then_some(east), below.then_some(south)].into_iter().flatten()
    }

    /// Where its own partial goes: `None` for the first place.
    #[must_use]
    pub const fn parent(self, [west, north]: [Dir; 2]) -> Option<Dir> {
        match (self.at, self.at % self.columns) {
            (0, _) => None,
            (_, 0) => Some(north),
            _ => Some(west),
        }
    }
}

/// A PE of several cubes that share a sum: partials go to PE 0 of each cube, and from there to the first cube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The PE in its cube.
    pub pe: Node,
    /// Its cube.
    pub cube: Node,
}

impl Tree {
    /// Its place among all PEs, in the order in which partials are merged.
    #[must_use]
    pub const fn rank(self) -> usize {
        self.cube.at * self.pe.count + self.pe.at
    }

    /// Where partials come from: east and south within the cube, and at its PE 0 east and south of the cube.
    pub fn sources(self) -> impl Iterator<Item = Dir> {
        let of_cubes = self.cube.sources([Dir::E, Dir::S]).filter(move |_| self.pe.at == 0);
        self.pe.sources([Dir::IntraE, Dir::IntraS]).chain(of_cubes)
    }

    /// Where its own partial goes: `None` for the root, PE 0 of the first cube.
    #[must_use]
    pub fn parent(self) -> Option<Dir> {
        self.pe.parent([Dir::IntraW, Dir::IntraN]).or_else(|| self.cube.parent([Dir::W, Dir::N]))
    }
}
