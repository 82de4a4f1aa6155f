//! IPCQ links: who is whose neighbour in which direction, as tables.

use super::neighbours::Step;
use super::{Family, Machine, RankTopology};
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
        let sips = Family::Sip(machine.sip_topology);
        let families = [Family::CubeMesh, Family::PeGrid, sips];
        // These families fit every machine: they list no cubes, and all SIPs do form the grid of SIPs.
        let links = families.iter().filter_map(|family| family.links(machine).ok()).flatten().collect();
        Links::sorted(machine, links)
    }

    /// A family of neighbours over the whole machine.
    ///
    /// # Errors
    /// `KB0316` if a listed cube does not exist or is listed twice.
    ///
    /// ```
    /// use kernbench_core::topology::{Family, Links, Topology};
    /// use kernbench_core::{ir::PeId, ty::Dir};
    /// let topology = Topology::default_machine();
    /// let links = Links::of_family(topology.machine(), &Family::PeLine)?;
    /// let link = links.send(PeId(3), Dir::IntraE).unwrap();
    /// assert_eq!(links.links[link.at()].to, PeId(7));
    /// # Ok::<(), kernbench_core::diag::Diagnostic>(())
    /// ```
    pub fn of_family(machine: &Machine, family: &Family) -> Result<Links, Diagnostic> {
        Ok(Links::sorted(machine, family.links(machine)?))
    }

    /// The neighbours of ranks, of which rank `r` is the PE `ranks[r]`. One rank has none.
    ///
    /// # Errors
    /// `KB0309` if a grid is wanted and there is none of so many ranks; `KB0316` if a PE does not exist
    /// or is two ranks, or if there are more ranks than `peer_n` directions for a topology that uses them.
    pub fn of_ranks(machine: &Machine, topology: RankTopology, ranks: &[PeId]) -> Result<Links, Diagnostic> {
        for (i, pe) in ranks.iter().enumerate() {
            if let Some(first) = ranks[..i].iter().position(|p| p == pe) {
                return Err(Diagnostic::error("KB0316", format!("PE {pe} is rank {first} and rank {i}"))
                    .help("give each rank a PE of its own"));
            }
        }
        let steps = topology.steps(machine, ranks.len() as u32)?;
        let pe = |rank: u32| ranks[rank as usize];
        let link = |s: Step| Link { from: pe(s.from), to: pe(s.to), dir: s.dir, recv_dir: s.recv_dir };
        Links::from_list(machine, steps.into_iter().map(link).collect())
    }

    /// Several tables in one, such as the cubes of every SIP and the root cubes of neighbouring SIPs.
    ///
    /// # Errors
    /// As [`Links::from_list`], if two tables give a PE two neighbours of one direction.
    pub fn join(machine: &Machine, tables: Vec<Links>) -> Result<Links, Diagnostic> {
        Links::from_list(machine, tables.into_iter().flat_map(|table| table.links).collect())
    }

    /// A table whose links are known to agree, ordered by sender, then direction.
    fn sorted(machine: &Machine, mut links: Vec<Link>) -> Links {
        links.sort_by_key(|link| (link.from, link.dir.index()));
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
