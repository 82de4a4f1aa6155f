use super::*;
use crate::diag::Failure;
use crate::ir::Link;
use crate::ty::Dir;

fn to(t: &Topology, links: &Links, from: PeId, dir: Dir) -> Option<PeAt> {
    links.send(from, dir).map(|l| t.machine().at(links.links[l.at()].to))
}

fn sips(count: &str, topology: &str) -> Topology {
    machine(&[("count: 2 ", count), ("topology: ring_1d", topology)])
}

#[test]
fn counts_and_tables_of_the_default_families() {
    let t = Topology::default_machine();
    let links = Links::default_for(t.machine());
    let family = |dirs: [Dir; 4]| links.links.iter().filter(|l| dirs.contains(&l.dir)).count();
    let [cubes, pes_of_cube, sips] = Machine::families();
    assert_eq!(family(cubes), 2 * 48 * 8);
    assert_eq!(family(pes_of_cube), 32 * 20);
    assert_eq!(family(sips), 256 * 2);
    for (i, link) in links.links.iter().enumerate() {
        assert_eq!(links.send(link.from, link.dir).map(|l| l.at()), Some(i));
        assert_eq!(links.recv(link.to, link.recv_dir).map(|l| l.at()), Some(i));
        // Every link has its opposite.
        let back = links.send(link.to, link.recv_dir).map(|l| links.links[l.at()]);
        assert_eq!(back.map(|b| (b.to, b.recv_dir)), Some((link.from, link.dir)));
    }
    assert_eq!(Links::from_list(t.machine(), links.links.clone()), Ok(links));
}

#[test]
fn neighbours() {
    let t = Topology::default_machine();
    let links = Links::default_for(t.machine());
    let at = |sip, cube, pe| Some(PeAt { sip, cube, pe });
    assert_eq!(to(&t, &links, pe(&t, 0, 5, 3), Dir::N), at(0, 1, 3));
    assert_eq!(to(&t, &links, pe(&t, 0, 5, 3), Dir::E), at(0, 6, 3));
    assert_eq!(to(&t, &links, pe(&t, 0, 3, 0), Dir::E), None);
    assert_eq!(to(&t, &links, pe(&t, 0, 0, 3), Dir::IntraS), at(0, 0, 7));
    assert_eq!(to(&t, &links, pe(&t, 0, 0, 3), Dir::IntraE), None);
    assert_eq!(to(&t, &links, pe(&t, 1, 2, 3), Dir::GlobalN), None);
    let dirs: Vec<&str> = links.directions(pe(&t, 0, 0, 0)).map(Dir::name).collect();
    assert_eq!(dirs.join(" "), "S E intra_S intra_E global_E global_W");
}

#[test]
fn in_a_ring_of_two_east_arrives_from_west() {
    let t = Topology::default_machine();
    let links = Links::default_for(t.machine());
    let (a, b) = (pe(&t, 0, 0, 0), pe(&t, 1, 0, 0));
    assert_eq!((to(&t, &links, a, Dir::GlobalE), to(&t, &links, a, Dir::GlobalW)).0, Some(t.machine().at(b)));
    assert_eq!(links.send(a, Dir::GlobalE), links.recv(b, Dir::GlobalW));
    assert_eq!(links.send(a, Dir::GlobalW), links.recv(b, Dir::GlobalE));
    assert_ne!(links.send(a, Dir::GlobalE), links.send(a, Dir::GlobalW));
}

#[test]
fn tori_wrap_and_meshes_do_not() {
    for (topology, wraps) in [("topology: torus_2d", true), ("topology: mesh_2d_no_wrap", false)] {
        let t = sips("count: 6 \n    w: 2\n    h: 3", topology);
        let links = Links::default_for(t.machine());
        let sip = |from: u32, dir| to(&t, &links, pe(&t, from, 0, 0), dir).map(|at| at.sip);
        assert_eq!(sip(0, Dir::GlobalE), Some(1));
        assert_eq!(sip(0, Dir::GlobalS), Some(2));
        assert_eq!(sip(0, Dir::GlobalN), wraps.then_some(4));
        assert_eq!(sip(0, Dir::GlobalW), wraps.then_some(1));
    }
    let one = sips("count: 1 ", "topology: torus_2d");
    assert!(Links::default_for(one.machine()).links.iter().all(|l| !l.dir.name().starts_with("global")));
    let four = sips("count: 4 ", "topology: ring_1d");
    let links = Links::default_for(four.machine());
    assert_eq!(to(&four, &links, pe(&four, 3, 0, 0), Dir::GlobalE).map(|at| at.sip), Some(0));
}

#[test]
fn lists_are_checked() {
    let t = Topology::default_machine();
    let link = |from, to, dir, recv_dir| Link { from: PeId(from), to: PeId(to), dir, recv_dir };
    let wrong = |links: &[Link]| {
        Failure(vec![Links::from_list(t.machine(), links.to_vec()).unwrap_err()]).to_string()
    };
    let parent = link(1, 0, Dir::Parent, Dir::ChildLeft);
    insta::assert_snapshot!(wrong(&[parent, link(1, 2, Dir::Parent, Dir::ChildLeft)]), @r"
    error[KB0316]: PE 1 sends to two neighbours `parent`
      help: give each link of a PE a direction of its own
    ");
    insta::assert_snapshot!(wrong(&[parent, link(2, 0, Dir::Parent, Dir::ChildLeft)]), @r"
    error[KB0316]: PE 0 receives from two neighbours `child_left`
      help: give each link of a PE a direction of its own
    ");
    insta::assert_snapshot!(wrong(&[link(3, 3, Dir::E, Dir::W)]), @r"
    error[KB0316]: PE 3 is its own neighbour `E`
      help: leave this link out
    ");
    insta::assert_snapshot!(wrong(&[link(0, 256, Dir::E, Dir::W)]), @r"
    error[KB0316]: a link names PE 256, but there are 256 PEs
      help: use PEs from 0 to 255
    ");
    assert!(Links::from_list(t.machine(), vec![parent]).is_ok());
}

/// The neighbour of each rank in a direction, on PEs that are not in order.
fn of_ranks(t: &Topology, topology: RankTopology, p: u32, dir: Dir) -> Vec<Option<u32>> {
    let pes: Vec<PeId> = (0..p).map(|r| PeId(250 - 3 * r)).collect();
    let links = Links::of_ranks(t.machine(), topology, &pes).unwrap();
    let rank = |pe: PeId| pes.iter().position(|p| *p == pe).unwrap() as u32;
    for link in &links.links {
        // What one sends to another, the other can answer, and it arrives from where the answer goes.
        let back = links.send(link.to, link.recv_dir).map(|l| links.links[l.at()]);
        assert_eq!(back.map(|b| (b.to, b.recv_dir)), Some((link.from, link.dir)), "{topology} of {p}");
        assert_ne!(link.from, link.to);
    }
    pes.iter().map(|pe| links.send(*pe, dir).map(|l| rank(links.links[l.at()].to))).collect()
}

#[test]
fn rings_of_ranks_close() {
    let t = Topology::default_machine();
    for p in 1..=16 {
        let east: Vec<_> = (0..p).map(|r| (p > 1).then_some((r + 1) % p)).collect();
        assert_eq!(of_ranks(&t, RankTopology::Ring1d, p, Dir::GlobalE), east);
        let west: Vec<_> = (0..p).map(|r| (p > 1).then_some((r + p - 1) % p)).collect();
        assert_eq!(of_ranks(&t, RankTopology::Ring1d, p, Dir::GlobalW), west);
    }
}

#[test]
fn trees_of_ranks_are_heaps() {
    let t = Topology::default_machine();
    for p in 1..=16 {
        let below = |child: u32| (child < p).then_some(child);
        let left: Vec<_> = (0..p).map(|r| below(2 * r + 1)).collect();
        let right: Vec<_> = (0..p).map(|r| below(2 * r + 2)).collect();
        let up: Vec<_> = (0..p).map(|r| r.checked_sub(1).map(|r| r / 2)).collect();
        assert_eq!(of_ranks(&t, RankTopology::Tree, p, Dir::ChildLeft), left);
        assert_eq!(of_ranks(&t, RankTopology::Tree, p, Dir::ChildRight), right);
        assert_eq!(of_ranks(&t, RankTopology::Tree, p, Dir::Parent), up);
    }
}

#[test]
fn peers_are_called_by_their_rank() {
    let t = Topology::default_machine();
    for p in 1..=16 {
        for n in 0..p {
            let to =
                |joined: &dyn Fn(u32) -> bool| (0..p).map(|r| joined(r).then_some(n)).collect::<Vec<_>>();
            let dir = Dir::Peer(n as u8);
            assert_eq!(of_ranks(&t, RankTopology::Full, p, dir), to(&|r| r != n));
            assert_eq!(of_ranks(&t, RankTopology::Hypercube, p, dir), to(&|r| (r ^ n).count_ones() == 1));
        }
    }
}

#[test]
fn grids_of_ranks_are_the_machines_or_square() {
    let t = Topology::default_machine();
    let of_six = sips("count: 6 \n    w: 2\n    h: 3", "topology: torus_2d");
    let grid = |t: &Topology, p| RankTopology::Torus2d.grid(t.machine(), p).ok();
    assert_eq!(
        [1, 2, 3, 4, 9].map(|p| grid(&t, p)),
        [Some([1, 1]), Some([2, 1]), None, Some([2, 2]), Some([3, 3])]
    );
    assert_eq!([4, 6].map(|p| grid(&of_six, p)), [Some([2, 2]), Some([2, 3])]);
    assert_eq!(grid(&sips("count: 4 ", "topology: ring_1d"), 4), Some([2, 2]));
    let some = |ranks: [u32; 4]| ranks.map(Some).to_vec();
    assert_eq!(of_ranks(&t, RankTopology::Torus2d, 4, Dir::GlobalE), some([1, 0, 3, 2]));
    assert_eq!(of_ranks(&t, RankTopology::Torus2d, 4, Dir::GlobalN), some([2, 3, 0, 1]));
    assert_eq!(of_ranks(&t, RankTopology::Mesh2dNoWrap, 4, Dir::GlobalS), [Some(2), Some(3), None, None]);
    assert!(of_ranks(&t, RankTopology::Torus2d, 1, Dir::GlobalN) == [None]);
}

#[test]
fn families_of_cubes_and_of_pes() {
    let t = Topology::default_machine();
    let m = t.machine();
    let cubes = vec![5, 1, 9];
    let line = Links::of_family(m, &Family::Line(cubes.clone())).unwrap();
    let ring = Links::of_family(m, &Family::Ring(cubes)).unwrap();
    assert_eq!((line.links.len(), ring.links.len()), (2 * 8 * 4, 2 * 8 * 6));
    for (sip, k) in [(0, 0), (1, 7)] {
        let east = |links: &Links, cube| to(&t, links, pe(&t, sip, cube, k), Dir::E);
        let at = |cube| Some(PeAt { sip, cube, pe: k });
        assert_eq!([5, 1, 9, 0].map(|c| east(&line, c)), [at(1), at(9), None, None]);
        assert_eq!([5, 1, 9, 0].map(|c| east(&ring, c)), [at(1), at(9), at(5), None]);
    }
    let two = Links::of_family(m, &Family::Ring(vec![0, 15])).unwrap();
    assert_eq!(two.send(PeId(0), Dir::E), two.recv(pe(&t, 0, 15, 0), Dir::W));
    assert_eq!(two.send(PeId(0), Dir::W), two.recv(pe(&t, 0, 15, 0), Dir::E));
    let snake = Links::of_family(m, &Family::PeLine).unwrap();
    let mut walk = vec![0];
    while let Some(at) = to(&t, &snake, pe(&t, 1, 3, walk[walk.len() - 1]), Dir::IntraE) {
        assert_eq!((at.sip, at.cube), (1, 3));
        walk.push(at.pe);
    }
    assert_eq!(walk, [0, 1, 2, 3, 7, 6, 5, 4]);
    let tree = Links::of_family(m, &Family::Tree).unwrap();
    assert_eq!(to(&t, &tree, pe(&t, 1, 4, 2), Dir::Parent), Some(PeAt { sip: 0, cube: 4, pe: 2 }));
    assert_eq!(tree.links.len(), 2 * 16 * 8);
}

#[test]
fn the_default_table_is_three_families() {
    for t in [Topology::default_machine(), odd(), holed()] {
        let m = t.machine();
        let family = |f| Links::of_family(m, &f).unwrap();
        let sips = family(Family::Sip(m.sip_topology));
        let joined = Links::join(m, vec![family(Family::CubeMesh), family(Family::PeGrid), sips]).unwrap();
        let mut links = joined.links;
        links.sort_by_key(|l| (l.from, l.dir));
        assert_eq!(links, Links::default_for(m).links);
    }
}

#[test]
fn tables_that_cannot_be() {
    let t = Topology::default_machine();
    let m = t.machine();
    let text =
        |outcome: Result<Links, crate::diag::Diagnostic>| Failure(vec![outcome.unwrap_err()]).to_string();
    let ranks = |topology, p| text(Links::of_ranks(m, topology, &(0..p).map(PeId).collect::<Vec<_>>()));
    insta::assert_snapshot!(ranks(RankTopology::Mesh2dNoWrap, 6), @"
    error[KB0309]: 6 ranks of `mesh_2d_no_wrap` are neither the 2 x 1 grid of SIPs nor a square
      help: use 4 or 9 ranks, or give `system.sips` in topology.yaml a `w` and `h` of 6 places
    ");
    insta::assert_snapshot!(ranks(RankTopology::Full, 17), @"
    error[KB0316]: `full` joins at most 16 ranks, `peer_0` to `peer_15`, not 17
      help: use at most 16 ranks, or a topology without peers such as `ring_1d`
    ");
    insta::assert_snapshot!(text(Links::of_ranks(m, RankTopology::Tree, &[PeId(4), PeId(2), PeId(4)])), @"
    error[KB0316]: PE 4 is rank 0 and rank 2
      help: give each rank a PE of its own
    ");
    insta::assert_snapshot!(text(Links::of_family(m, &Family::Ring(vec![0, 16]))), @"
    error[KB0316]: the ring of cubes names cube 16, but a SIP has 16 cubes
      help: use cubes from 0 to 15
    ");
    insta::assert_snapshot!(text(Links::of_family(m, &Family::Line(vec![3, 0, 3]))), @"
    error[KB0316]: the line of cubes names cube 3 twice
      help: list each cube once
    ");
    let mesh = || Links::of_family(m, &Family::CubeMesh).unwrap();
    insta::assert_snapshot!(text(Links::join(m, vec![mesh(), mesh()])), @"
    error[KB0316]: PE 0 sends to two neighbours `S`
      help: give each link of a PE a direction of its own
    ");
}
