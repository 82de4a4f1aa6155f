//! IPCQ links: who is whose neighbour in which direction, as tables.

use super::{Machine, PeAt, SipTopology};
use crate::diag::Diagnostic;
use crate::ir::{Link, LinkId, PeId};
use crate::ty::Dir;

/// The directed links of a launch, and who sends and receives on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// All links, by [`LinkId`].
    pub links: Vec<Link>,
    /// The link of a PE and a direction as its sender or its receiver names it.
    send: Vec<Option<LinkId>>,
    recv: Vec<Option<LinkId>>,
}

const DIRS: usize = Dir::ALL.len();

impl Links {
    /// The default families, ordered by sender, then direction: `N S E W` to the same PE of the
    /// neighbouring cube, `intra_*` on the grid of a cube's PEs, `global_*` to the equal PE of the
    /// neighbouring SIP. Meshes do not wrap, rings and tori do; no PE is its own neighbour. In a
    /// ring of two, E and W both lead to the other SIP, and what one sends E arrives from W.
    #[must_use]
    pub fn default_for(machine: &Machine) -> Links {
        let mut links = vec![];
        let wrap = machine.sip_topology != SipTopology::Mesh2dNoWrap;
        let sip_grid = match machine.sip_topology {
            SipTopology::Ring1d => [machine.sips, 1],
            _ => machine.sip_grid,
        };
        for from in (0..machine.pe_count()).map(PeId) {
            let at = machine.at(from);
            for (family, dirs) in Machine::families().into_iter().enumerate() {
                for (side, dir) in dirs.into_iter().enumerate() {
                    let to = match family {
                        0 => beside(at.cube, side, machine.cube_mesh, false).map(|cube| PeAt { cube, ..at }),
                        1 => beside(at.pe, side, machine.pe_grid, false).map(|pe| PeAt { pe, ..at }),
                        _ => beside(at.sip, side, sip_grid, wrap).map(|sip| PeAt { sip, ..at }),
                    };
                    if let Some(to) = to {
                        // N and S, E and W stand next to each other in a family.
                        links.push(Link { from, to: machine.pe(to), dir, recv_dir: dirs[side ^ 1] });
                    }
                }
            }
        }
        let (send, recv) = tables(machine, &links);
        Links { links, send, recv }
    }

    /// A neighbour table given as a list; a link may join any two PEs.
    ///
    /// # Errors
    /// `KB0316` if a PE does not exist or is its own neighbour, or if a PE has two links of one
    /// direction to send on or to receive from.
    pub fn from_list(machine: &Machine, links: Vec<Link>) -> Result<Links, Diagnostic> {
        let count = machine.pe_count();
        for link in &links {
            if let Some(pe) = [link.from, link.to].into_iter().find(|pe| pe.0 >= count) {
                return Err(Diagnostic::error(
                    "KB0316",
                    format!("a link names PE {pe}, but there are {count} PEs"),
                )
                .help(format!("use PEs from 0 to {}", count.saturating_sub(1))));
            }
            if link.dir.index().is_none() || link.recv_dir.index().is_none() {
                return Err(Diagnostic::error(
                    "KB0316",
                    format!("a link of PE {} leads to a peer past rank {}", link.from, Dir::PEERS - 1),
                )
                .help(format!("use peers 0 to {}", Dir::PEERS - 1)));
            }
            if link.from == link.to {
                return Err(Diagnostic::error(
                    "KB0316",
                    format!("PE {} is its own neighbour `{}`", link.from, link.dir),
                )
                .help("leave this link out"));
            }
        }
        let (send, recv) = tables(machine, &links);
        for (i, link) in links.iter().enumerate() {
            let this = Some(LinkId(i as u32));
            let at = |table: &Table, pe, dir| slot(pe, dir).and_then(|slot| table[slot]);
            let (pe, dir, what) = if at(&send, link.from, link.dir) != this {
                (link.from, link.dir, "sends to")
            } else if at(&recv, link.to, link.recv_dir) != this {
                (link.to, link.recv_dir, "receives from")
            } else {
                continue;
            };
            return Err(Diagnostic::error("KB0316", format!("PE {pe} {what} two neighbours `{dir}`"))
                .help("give each link of a PE a direction of its own"));
        }
        Ok(Links { links, send, recv })
    }

    /// The link a PE sends on when it names a direction.
    #[must_use]
    pub fn send(&self, pe: PeId, dir: Dir) -> Option<LinkId> {
        self.send.get(slot(pe, dir)?).copied().flatten()
    }

    /// The link a PE receives from when it names a direction.
    #[must_use]
    pub fn recv(&self, pe: PeId, dir: Dir) -> Option<LinkId> {
        self.recv.get(slot(pe, dir)?).copied().flatten()
    }

    /// The directions a PE may send to.
    pub fn directions(&self, pe: PeId) -> impl Iterator<Item = Dir> {
        Dir::ALL.into_iter().filter(move |dir| self.send(pe, *dir).is_some())
    }
}

fn slot(pe: PeId, dir: Dir) -> Option<usize> {
    Some(pe.at() * DIRS + dir.index()?)
}

type Table = Vec<Option<LinkId>>;

fn tables(machine: &Machine, links: &[Link]) -> (Table, Table) {
    let size = machine.pe_count() as usize * DIRS;
    let (mut send, mut recv) = (vec![None; size], vec![None; size]);
    for (i, link) in links.iter().enumerate() {
        let id = LinkId(i as u32);
        for (table, slot) in
            [(&mut send, slot(link.from, link.dir)), (&mut recv, slot(link.to, link.recv_dir))]
        {
            if let Some(place) = slot.map(|slot| &mut table[slot]) {
                place.get_or_insert(id);
            }
        }
    }
    (send, recv)
}

/// The neighbour of position `at` on a grid; sides in the order N, S, E, W.
fn beside(at: u32, side: usize, [w, h]: [u32; 2], wrap: bool) -> Option<u32> {
    let (x, y) = (at % w, at / w);
    let step = |i: u32, n: u32, up: bool| match (up, wrap) {
        (true, _) if i + 1 < n => Some(i + 1),
        (false, _) if i > 0 => Some(i - 1),
        (true, true) if n > 1 => Some(0),
        (false, true) if n > 1 => Some(n - 1),
        _ => None,
    };
    match side {
        0 => step(y, h, false).map(|y| y * w + x),
        1 => step(y, h, true).map(|y| y * w + x),
        2 => step(x, w, true).map(|x| y * w + x),
        _ => step(x, w, false).map(|x| y * w + x),
    }
}
