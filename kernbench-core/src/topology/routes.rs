//! Routes, computed from coordinates: what lies on the way from one node to another.
//!
//! Inside a cube along the row, then the column; if that meets a missing router, the column first; if
//! that does too, the first shortest path in the order E, W, N, S. Between cubes X first, then Y,
//! with the same UCIe connection at every crossing. To and from the IO chiplet by the PHY of the
//! cube's column, or the nearest one.

use std::collections::VecDeque;

use super::layout::{Layout, Noc, Part, Side, Spot};

/// Where a node that takes part in routed traffic sits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    Router { cube: u32, router: u32 },
    Io { sip: u32 },
}

fn gate(layout: &Layout, spot: Spot) -> Option<Gate> {
    let noc = &layout.noc;
    let (cube, router) = match spot {
        Spot::Router(cube, router) => (cube, router),
        Spot::Hbm(cube, pe) | Spot::Pe(cube, pe, Part::Dma | Part::Cpu) => (cube, noc.pe_router[pe as usize]),
        Spot::MCpu(cube) => (cube, noc.m_cpu_router),
        Spot::Sram(cube) => (cube, noc.sram_router),
        Spot::PcieEp(sip) | Spot::IoCpu(sip) => return Some(Gate::Io { sip }),
        _ => return None,
    };
    Some(Gate::Router { cube, router })
}

/// Calls `visit` with every node after `from` up to `to`, using UCIe connection `conn`. False, with
/// nothing visited, if one of the two takes no part in routed traffic.
pub(super) fn walk(layout: &Layout, from: Spot, to: Spot, conn: u32, visit: &mut dyn FnMut(Spot)) -> bool {
    let (Some(start), Some(end)) = (gate(layout, from), gate(layout, to)) else { return false };
    if from == to {
        return true;
    }
    let mut walk = Walk { layout, conn, at: from, visit };
    match (start, end) {
        (Gate::Router { cube, router }, Gate::Router { cube: target, router: last }) => {
            walk.go(Spot::Router(cube, router));
            let (sip, target_sip) = (cube / layout.cubes(), target / layout.cubes());
            let entry = if sip == target_sip {
                walk.mesh(cube, router, target)
            } else {
                walk.up(cube, router);
                walk.over(sip, target_sip);
                walk.down(target)
            };
            walk.noc(target, entry, last);
        }
        (Gate::Router { cube, router }, Gate::Io { sip }) => {
            walk.go(Spot::Router(cube, router));
            walk.up(cube, router);
            walk.over(cube / layout.cubes(), sip);
        }
        (Gate::Io { sip }, Gate::Router { cube, router }) => {
            walk.over(sip, cube / layout.cubes());
            let entry = walk.down(cube);
            walk.noc(cube, entry, router);
        }
        (Gate::Io { sip }, Gate::Io { sip: target }) => walk.over(sip, target),
    }
    if let Gate::Io { sip } = end
        && walk.at != to
    {
        walk.go(Spot::IoNoc(sip));
    }
    walk.go(to);
    true
}

struct Walk<'a> {
    layout: &'a Layout,
    conn: u32,
    at: Spot,
    visit: &'a mut dyn FnMut(Spot),
}

impl Walk<'_> {
    fn go(&mut self, spot: Spot) {
        if self.at != spot {
            self.at = spot;
            (self.visit)(spot);
        }
    }

    /// Inside a cube, from one router to another.
    fn noc(&mut self, cube: u32, from: u32, to: u32) {
        let layout = self.layout;
        in_cube(&layout.noc, from, to, &mut |router| self.go(Spot::Router(cube, router)));
    }

    /// From the router `from` of a cube over a side into the neighbour; gives cube and router there.
    fn cross(&mut self, cube: u32, from: u32, side: Side) -> (u32, u32) {
        let (k, w) = (self.conn, self.layout.mesh[0]);
        let next = match side {
            Side::N => cube - w,
            Side::S => cube + w,
            Side::E => cube + 1,
            Side::W => cube - 1,
        };
        self.noc(cube, from, self.layout.noc.attachment(side, k));
        self.go(Spot::Conn(cube, side, k));
        self.go(Spot::Port(cube, side));
        self.go(Spot::Port(next, side.opposite()));
        self.go(Spot::Conn(next, side.opposite(), k));
        let router = self.layout.noc.attachment(side.opposite(), k);
        self.go(Spot::Router(next, router));
        (next, router)
    }

    /// Through the mesh of one SIP; gives the router where the target cube is entered.
    fn mesh(&mut self, mut cube: u32, mut router: u32, target: u32) -> u32 {
        let w = self.layout.mesh[0];
        let local = |cube: u32| cube % self.layout.cubes();
        let (x, y) = (local(target) % w, local(target) / w);
        while cube != target {
            let (here_x, here_y) = (local(cube) % w, local(cube) / w);
            let side = if here_x < x {
                Side::E
            } else if here_x > x {
                Side::W
            } else if here_y < y {
                Side::S
            } else {
                Side::N
            };
            (cube, router) = self.cross(cube, router, side);
        }
        router
    }

    /// The PHY of a cube's column; the nearest if there are fewer.
    fn phy(&self, cube: u32) -> u32 {
        (cube % self.layout.cubes() % self.layout.mesh[0]).min(self.layout.phys - 1)
    }

    /// From a router of a cube to the io_noc of its SIP.
    fn up(&mut self, cube: u32, router: u32) {
        let (sip, phy, k) = (cube / self.layout.cubes(), self.phy(cube), self.conn);
        let top = sip * self.layout.cubes() + phy;
        let router = self.mesh(cube, router, top);
        self.noc(top, router, self.layout.noc.attachment(Side::N, k));
        self.go(Spot::Conn(top, Side::N, k));
        self.go(Spot::Port(top, Side::N));
        self.go(Spot::Phy(sip, phy));
        self.go(Spot::PhyConn(sip, phy, k));
        self.go(Spot::IoNoc(sip));
    }

    /// From one IO chiplet to another, if they differ.
    fn over(&mut self, sip: u32, target: u32) {
        if sip != target {
            if matches!(self.at, Spot::IoCpu(_)) {
                self.go(Spot::IoNoc(sip));
            }
            self.go(Spot::PcieEp(sip));
            self.go(Spot::Switch);
            self.go(Spot::PcieEp(target));
        }
    }

    /// From an IO chiplet down to a cube; gives the router where it is entered.
    fn down(&mut self, cube: u32) -> u32 {
        let (sip, phy, k) = (cube / self.layout.cubes(), self.phy(cube), self.conn);
        let top = sip * self.layout.cubes() + phy;
        self.go(Spot::IoNoc(sip));
        self.go(Spot::PhyConn(sip, phy, k));
        self.go(Spot::Phy(sip, phy));
        self.go(Spot::Port(top, Side::N));
        self.go(Spot::Conn(top, Side::N, k));
        let router = self.layout.noc.attachment(Side::N, k);
        self.go(Spot::Router(top, router));
        self.mesh(top, router, cube)
    }
}

/// Calls `visit` with every router after `from` up to `to`.
fn in_cube(noc: &Noc, from: u32, to: u32, visit: &mut dyn FnMut(u32)) {
    let w = noc.grid[0];
    let row_first = from / w * w + to % w;
    let column_first = to / w * w + from % w;
    for corner in [row_first, column_first] {
        if straight(noc, from, corner, &mut |_| ()) && straight(noc, corner, to, &mut |_| ()) {
            straight(noc, from, corner, visit);
            straight(noc, corner, to, visit);
            return;
        }
    }
    around(noc, from, to).into_iter().for_each(visit);
}

/// Along one row or column; false if a router is missing.
fn straight(noc: &Noc, from: u32, to: u32, visit: &mut dyn FnMut(u32)) -> bool {
    let w = noc.grid[0];
    let step = if from / w == to / w { 1 } else { w };
    let mut at = from;
    while at != to {
        at = if at < to { at + step } else { at - step };
        if !noc.present[at as usize] {
            return false;
        }
        visit(at);
    }
    true
}

/// Breadth first in the order E, W, N, S; the graph was checked to be connected.
fn around(noc: &Noc, from: u32, to: u32) -> Vec<u32> {
    let [w, h] = noc.grid;
    let mut before = vec![None; noc.present.len()];
    let mut queue = VecDeque::from([from]);
    before[from as usize] = Some(from);
    while let Some(at) = queue.pop_front() {
        let (row, col) = (at / w, at % w);
        let east = (col + 1 < w).then(|| at + 1);
        let west = (col > 0).then(|| at - 1);
        let north = (row > 0).then(|| at - w);
        let south = (row + 1 < h).then(|| at + w);
        for next in [east, west, north, south].into_iter().flatten() {
            if noc.present[next as usize] && before[next as usize].is_none() {
                before[next as usize] = Some(at);
                queue.push_back(next);
            }
        }
    }
    let mut path = vec![];
    let mut at = to;
    while at != from {
        path.push(at);
        let Some(previous) = before[at as usize] else { return vec![] };
        at = previous;
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way over a grid drawn with `.` for routers and `#` for missing ones.
    fn way(drawing: &[&str], from: (u32, u32), to: (u32, u32)) -> String {
        let w = drawing[0].len() as u32;
        let present = drawing.concat().chars().map(|c| c == '.').collect();
        let noc = Noc { grid: [w, drawing.len() as u32], present, ..Noc::default() };
        let mut names = vec![];
        let index = |(row, column)| row * w + column;
        in_cube(&noc, index(from), index(to), &mut |router| names.push(noc.router_name(router)));
        names.join(" ")
    }

    #[test]
    fn row_first_then_column_first_then_around() {
        let open = ["...", "...", "..."];
        assert_eq!(way(&open, (0, 0), (2, 2)), "r0c1 r0c2 r1c2 r2c2");
        assert_eq!(way(&open, (2, 2), (0, 0)), "r2c1 r2c0 r1c0 r0c0");
        assert_eq!(way(&open, (1, 1), (1, 1)), "");
        let hole_in_row = ["..#", "...", "..."];
        assert_eq!(way(&hole_in_row, (0, 0), (2, 2)), "r1c0 r2c0 r2c1 r2c2");
        let hole_in_both = ["..#", "...", "#.."];
        assert_eq!(way(&hole_in_both, (0, 0), (2, 2)), "r0c1 r1c1 r1c2 r2c2");
    }

    #[test]
    fn ties_go_east_west_north_south() {
        let hole = ["...", ".#.", "..."];
        assert_eq!(way(&hole, (1, 0), (1, 2)), "r0c0 r0c1 r0c2 r1c2");
        assert_eq!(way(&hole, (0, 1), (2, 1)), "r0c2 r1c2 r2c2 r2c1");
    }
}
