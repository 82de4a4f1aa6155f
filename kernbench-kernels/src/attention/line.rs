//! An open line through a grid of PEs, or of cubes, along which tiles travel both ways to everybody.

use kernbench_core::prelude::*;
use kernbench_macros::device;

/// A place on an open line, from east to west and back through the rows of a grid, so that it also ends in a last
/// row that is not full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The place, from 0.
    pub rank: usize,
    /// All places.
    pub count: usize,
    columns: usize,
    before: Option<Dir>,
    after: Option<Dir>,
}

impl Line {
    /// The place of number `at` of the first `count` of a grid of `columns` columns, numbered row by row. Directions
    /// are those to the north, south, east and west of the grid.
    #[must_use]
    pub fn new(at: usize, count: usize, columns: usize, [north, south, east, west]: [Dir; 4]) -> Line {
        let rank = turned(at, count, columns);
        let (row, step, last) = (rank / columns, rank % columns, (count - 1) / columns);
        let length = if row == last { count - last * columns } else { columns };
        let (ahead, back) = if eastward(row, count, columns) { (east, west) } else { (west, east) };
        let before = if step > 0 { Some(back) } else { (row > 0).then_some(north) };
        let after = if step + 1 < length { Some(ahead) } else { (row < last).then_some(south) };
        Line { rank, count, columns, before, after }
    }

    /// The number in the grid of what has a rank.
    #[must_use]
    pub fn number(&self, rank: usize) -> usize {
        turned(rank, self.count, self.columns)
    }

    /// The cube's place among the first `count` cubes of a SIP.
    #[must_use]
    pub fn of_cubes(cube: usize, count: usize, columns: usize) -> Line {
        Line::new(cube, count, columns, [Dir::N, Dir::S, Dir::E, Dir::W])
    }

    /// The PE's place among the first `count` PEs of its cube.
    #[must_use]
    pub fn of_pes(pe: usize, count: usize, columns: usize) -> Line {
        Line::new(pe, count, columns, [Dir::IntraN, Dir::IntraS, Dir::IntraE, Dir::IntraW])
    }

    /// Gives tiles to all places and takes theirs, `count - 1` steps in both directions: what place `i` gives reaches
    /// place `j` at step `|i - j|`. The tiles of all places with their ranks, in the order in which they come here: the
    /// own ones first, of two at one step the one from before. Each must fit a slot and has one shape everywhere.
    /// Nothing that follows waits for a tile it does not use.
    #[device]
    pub fn share<'s, T: Dtype, const N: usize>(
        self,
        tl: &'s Scope,
        own: [Tile<'s, T>; N],
    ) -> Vec<(usize, [Tile<'s, T>; N])> {
        let mut all = vec![(self.rank, own)];
        // What goes on to the place after, and to the one before.
        let [mut onward, mut backward] = [Some(own); 2];
        for step in 1..self.count {
            for (to, tiles) in [(self.after, onward), (self.before, backward)] {
                if let (Some(to), Some(tiles)) = (to, tiles) {
                    tiles.into_iter().for_each(|tile| tl::send(to, tile));
                }
            }
            let take = |from: Option<Dir>, is_there: bool| {
                from.filter(|_| is_there).map(|from| own.map(|like| tl::recv(from, like.shape())))
            };
            onward = take(self.before, step <= self.rank);
            backward = take(self.after, self.rank + step < self.count);
            all.extend(onward.map(|tiles| (self.rank - step, tiles)));
            all.extend(backward.map(|tiles| (self.rank + step, tiles)));
        }
        all
    }
}

/// Whether the line goes east in a row: in the last one, so that it is entered at column 0, and in every other one.
fn eastward(row: usize, count: usize, columns: usize) -> bool {
    ((count - 1) / columns - row).is_multiple_of(2)
}

/// From a number in the grid to a rank, and back: rows that go west are turned around.
fn turned(at: usize, count: usize, columns: usize) -> usize {
    let (row, column) = (at / columns, at % columns);
    row * columns + if eastward(row, count, columns) { column } else { columns - 1 - column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_on_the_line_are_neighbours_in_the_grid() {
        for (columns, rows) in [(4, 4), (4, 2), (3, 3), (1, 5), (5, 1)] {
            for count in 1..=columns * rows {
                let line: Vec<Line> = (0..count).map(|at| Line::of_cubes(at, count, columns)).collect();
                let mut ranks: Vec<usize> = line.iter().map(|l| l.rank).collect();
                ranks.sort_unstable();
                assert_eq!(ranks, (0..count).collect::<Vec<_>>(), "{count} of {columns}");
                for (at, place) in line.iter().enumerate() {
                    assert_eq!(place.number(place.rank), at);
                    let at_dir = |dir| match dir {
                        Dir::N => at - columns,
                        Dir::S => at + columns,
                        Dir::E => at + 1,
                        _ => at - 1,
                    };
                    let rank = |dir: Option<Dir>| dir.map(|dir| line[at_dir(dir)].rank);
                    assert_eq!(rank(place.before), place.rank.checked_sub(1), "{count} of {columns}, {at}");
                    assert_eq!(rank(place.after), (place.rank + 1 < count).then_some(place.rank + 1));
                }
            }
        }
    }
}
