//! Shapes of neighbourhoods: rings, lines, grids and trees of cubes, PEs, SIPs or ranks.

use super::{Machine, PeAt, SipTopology};
use crate::diag::Diagnostic;
use crate::ir::{Link, PeId};
use crate::ty::Dir;
use std::fmt;

/// The neighbours of the ranks of a process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RankTopology {
    /// `global_E` and `global_W`, with wrap.
    Ring1d,
    /// `global_N`, `S`, `E` and `W` with wrap.
    Torus2d,
    /// `global_N`, `S`, `E` and `W` without wrap.
    Mesh2dNoWrap,
    /// `parent`, `child_left` and `child_right` of a binary tree in heap order: the children of rank
    /// `r` are `2r + 1` and `2r + 2`.
    Tree,
    /// `peer_n` of the ranks that differ in one bit.
    Hypercube,
    /// `peer_n` of every other rank.
    Full,
}

impl RankTopology {
    /// Every topology, in the order messages list them.
    pub const ALL: [RankTopology; 6] = {
        use RankTopology::*;
        [Ring1d, Torus2d, Mesh2dNoWrap, Tree, Hypercube, Full]
    };

    /// The name in `ccl.yaml`: `ring_1d`, `torus_2d`, `mesh_2d_no_wrap`, `tree`, `hypercube`, `full`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RankTopology::Ring1d => "ring_1d",
            RankTopology::Torus2d => "torus_2d",
            RankTopology::Mesh2dNoWrap => "mesh_2d_no_wrap",
            RankTopology::Tree => "tree",
            RankTopology::Hypercube => "hypercube",
            RankTopology::Full => "full",
        }
    }

    /// Width and height of the grid of `ranks` ranks, row by row: `[ranks, 1]` for a ring; for a torus
    /// or a mesh the machine's grid of SIPs if it has so many places, else a square. The one row of a
    /// machine whose SIPs are a ring counts only if there is no square.
    ///
    /// # Errors
    /// `KB0309` if there is no such grid.
    pub fn grid(self, machine: &Machine, ranks: u32) -> Result<[u32; 2], Diagnostic> {
        if !matches!(self, RankTopology::Torus2d | RankTopology::Mesh2dNoWrap) || ranks == 0 {
            return Ok([ranks, 1]);
        }
        let (sips, root) = (machine.sip_grid, ranks.isqrt());
        let fits = sips[0] * sips[1] == ranks;
        let row = machine.sip_topology == SipTopology::Ring1d && sips[1] == 1;
        if fits && !row {
            Ok(sips)
        } else if root * root == ranks {
            Ok([root, root])
        } else if fits {
            Ok(sips)
        } else {
            Err(no_grid(self, machine, ranks))
        }
    }

    /// All steps from a rank to a neighbour, by rank.
    pub(super) fn steps(self, machine: &Machine, ranks: u32) -> Result<Vec<Step>, Diagnostic> {
        match self {
            RankTopology::Ring1d | RankTopology::Torus2d | RankTopology::Mesh2dNoWrap => {
                let wrap = self != RankTopology::Mesh2dNoWrap;
                Ok(on_grid(self.grid(machine, ranks)?, wrap, GLOBAL))
            }
            RankTopology::Tree => Ok(tree(ranks)),
            RankTopology::Hypercube => self.peers(ranks, |a, b| (a ^ b).is_power_of_two()),
            RankTopology::Full => self.peers(ranks, |a, b| a != b),
        }
    }

    fn peers(self, ranks: u32, joined: impl Fn(u32, u32) -> bool) -> Result<Vec<Step>, Diagnostic> {
        if ranks > PEERS {
            let text = format!("`{self}` joins at most {PEERS} ranks, `peer_0` to `peer_15`, not {ranks}");
            return Err(Diagnostic::error("KB0316", text)
                .help(format!("use at most {PEERS} ranks, or a topology without peers such as `ring_1d`")));
        }
        let pairs = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
        let step = |(from, to)| Step { from, to, dir: Dir::Peer(to as u8), recv_dir: Dir::Peer(from as u8) };
        Ok(pairs.filter(|&(from, to)| joined(from, to)).map(step).collect())
    }
}

impl fmt::Display for RankTopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Neighbours over the whole machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Family {
    /// `N S E W` to the same PE of the neighbouring cube, without wrap.
    CubeMesh,
    /// `E` and `W` along the listed cubes of each SIP, to the same PE.
    Line(Vec<u32>),
    /// As a line, and the last cube is the first one's neighbour.
    Ring(Vec<u32>),
    /// `intra_*` on the grid of a cube's PEs, without wrap.
    PeGrid,
    /// `intra_E` and `intra_W` along all PEs of a cube, every other row backwards: on the default grid
    /// PE 0 1 2 3 7 6 5 4.
    PeLine,
    /// `global_*` to the same cube and PE of the neighbouring SIP.
    Sip(SipTopology),
    /// `parent`, `child_left` and `child_right` to the same cube and PE of a SIP; the children of SIP
    /// `s` are `2s + 1` and `2s + 2`.
    Tree,
}

impl Family {
    /// The links of a machine.
    pub(super) fn links(&self, machine: &Machine) -> Result<Vec<Link>, Diagnostic> {
        let [w, h] = machine.pe_grid;
        let (steps, level) = match self {
            Family::CubeMesh => (on_grid(machine.cube_mesh, false, CUBES), Level::Cube),
            Family::Line(cubes) => (listed(machine, cubes, "line", false)?, Level::Cube),
            Family::Ring(cubes) => (listed(machine, cubes, "ring", true)?, Level::Cube),
            Family::PeGrid => (on_grid(machine.pe_grid, false, INTRA), Level::Pe),
            Family::PeLine => {
                let column = |i: u32| if (i / w).is_multiple_of(2) { i % w } else { w - 1 - i % w };
                let pes: Vec<u32> = (0..w * h).map(|i| i / w * w + column(i)).collect();
                (along(&pes, false, INTRA), Level::Pe)
            }
            Family::Sip(topology) => {
                let topology = match topology {
                    SipTopology::Ring1d => RankTopology::Ring1d,
                    SipTopology::Torus2d => RankTopology::Torus2d,
                    SipTopology::Mesh2dNoWrap => RankTopology::Mesh2dNoWrap,
                };
                (topology.steps(machine, machine.sips)?, Level::Sip)
            }
            Family::Tree => (tree(machine.sips), Level::Sip),
        };
        let mut links = vec![];
        for from in (0..machine.pe_count()).map(PeId) {
            let at = machine.at(from);
            let (place, to): (u32, &dyn Fn(u32) -> PeAt) = match level {
                Level::Sip => (at.sip, &|sip| PeAt { sip, ..at }),
                Level::Cube => (at.cube, &|cube| PeAt { cube, ..at }),
                Level::Pe => (at.pe, &|pe| PeAt { pe, ..at }),
            };
            let first = steps.partition_point(|s| s.from < place);
            let here = steps[first..].iter().take_while(|s| s.from == place);
            links.extend(here.map(|s| Link {
                from,
                to: machine.pe(to(s.to)),
                dir: s.dir,
                recv_dir: s.recv_dir,
            }));
        }
        Ok(links)
    }
}

/// One place, cube, PE or SIP, and what it is called by a neighbour and calls it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub from: u32,
    pub to: u32,
    pub dir: Dir,
    pub recv_dir: Dir,
}

/// What the places of a family are.
#[derive(Clone, Copy)]
enum Level {
    Sip,
    Cube,
    Pe,
}

const PEERS: u32 = Dir::PEERS as u32;
const CUBES: [Dir; 4] = Machine::families()[0];
const INTRA: [Dir; 4] = Machine::families()[1];
const GLOBAL: [Dir; 4] = Machine::families()[2];

/// The steps on a grid, row by row, by place; `dirs` are N, S, E and W.
fn on_grid([w, h]: [u32; 2], wrap: bool, dirs: [Dir; 4]) -> Vec<Step> {
    let next = |i: u32, n: u32, up: bool| match up {
        true if i + 1 < n => Some(i + 1),
        false if i > 0 => Some(i - 1),
        true if wrap && n > 1 => Some(0),
        false if wrap && n > 1 => Some(n - 1),
        _ => None,
    };
    let mut steps = vec![];
    for from in 0..w * h {
        let (x, y) = (from % w, from / w);
        let row = |y: u32| y * w + x;
        let column = |x: u32| y * w + x;
        let sides = [
            next(y, h, false).map(row),
            next(y, h, true).map(row),
            next(x, w, true).map(column),
            next(x, w, false).map(column),
        ];
        for (side, to) in sides.into_iter().enumerate() {
            // N and S, E and W stand next to each other in a family.
            let (dir, recv_dir) = (dirs[side], dirs[side ^ 1]);
            steps.extend(to.map(|to| Step { from, to, dir, recv_dir }));
        }
    }
    steps
}

/// The steps along a list of places, by place.
fn along(places: &[u32], wrap: bool, dirs: [Dir; 4]) -> Vec<Step> {
    let steps = on_grid([places.len() as u32, 1], wrap, dirs).into_iter();
    let place = |i: u32| places[i as usize];
    let mut steps: Vec<Step> = steps.map(|s| Step { from: place(s.from), to: place(s.to), ..s }).collect();
    steps.sort_by_key(|s| s.from);
    steps
}

/// The steps of a binary tree in heap order, by place.
fn tree(count: u32) -> Vec<Step> {
    let side = |child: u32| if child % 2 == 1 { Dir::ChildLeft } else { Dir::ChildRight };
    let mut steps = vec![];
    for from in 0..count {
        if from > 0 {
            steps.push(Step { from, to: (from - 1) / 2, dir: Dir::Parent, recv_dir: side(from) });
        }
        let children = (2 * from + 1..=2 * from + 2).filter(|child| *child < count);
        steps.extend(children.map(|to| Step { from, to, dir: side(to), recv_dir: Dir::Parent }));
    }
    steps
}

/// The steps along listed cubes.
fn listed(machine: &Machine, cubes: &[u32], shape: &str, wrap: bool) -> Result<Vec<Step>, Diagnostic> {
    let count = machine.cubes();
    for (i, cube) in cubes.iter().enumerate() {
        if *cube >= count {
            let text = format!("the {shape} of cubes names cube {cube}, but a SIP has {count} cubes");
            let help = format!("use cubes from 0 to {}", count.saturating_sub(1));
            return Err(Diagnostic::error("KB0316", text).help(help));
        }
        if cubes[..i].contains(cube) {
            let text = format!("the {shape} of cubes names cube {cube} twice");
            return Err(Diagnostic::error("KB0316", text).help("list each cube once"));
        }
    }
    Ok(along(cubes, wrap, CUBES))
}

fn no_grid(topology: RankTopology, machine: &Machine, ranks: u32) -> Diagnostic {
    let [w, h] = machine.sip_grid;
    let root = ranks.isqrt();
    Diagnostic::error(
        "KB0309",
        format!("{ranks} ranks of `{topology}` are neither the {w} x {h} grid of SIPs nor a square"),
    )
    .help(format!(
        "use {} or {} ranks, or give `system.sips` in topology.yaml a `w` and `h` of {ranks} places",
        root * root,
        (root + 1) * (root + 1)
    ))
}
