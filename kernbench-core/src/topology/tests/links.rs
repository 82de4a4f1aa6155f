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
