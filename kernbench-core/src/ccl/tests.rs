use super::*;
use crate::yaml::carets::render;

const SEED: &str = "\
defaults:
  algorithm: ring_allreduce_tcm
  buffer_kind: tcm
  backpressure: sleep
  n_slots: 4
  slot_size: 4096
  vc_chunk_size: 256
  ipcq_credit_size_bytes: 16

algorithms:
  ring_allreduce_tcm:
    module: kernbench.ccl.algorithms.ring_allreduce
    topology: ring_1d
    buffer_kind: tcm
    n_elem: 8
";

fn mistakes(changes: &[(&str, &str)]) -> String {
    let mut text = SEED.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    render(&text, &Ccl::from_yaml("ccl.yaml", &text).expect_err("a mistake"))
}

#[test]
fn the_seeds_text_is_accepted() {
    let ccl = Ccl::from_yaml("ccl.yaml", SEED).unwrap();
    let a = ccl.algorithm(&ccl.defaults.algorithm).unwrap();
    assert_eq!(a.module, "ring_allreduce");
    assert_eq!((a.topology, a.buffer_kind, a.n_elem), (RankTopology::Ring1d, BufferKind::Tcm, Some(8)));
    assert_eq!((a.check_world(2).unwrap(), a.check_root_cube(16).unwrap()), (2, None));
    assert!(a.check_module(&["ring_allreduce"]).is_ok());
}

#[test]
fn only_the_algorithm_has_no_default() {
    let short = "defaults: {algorithm: a}\nalgorithms: {a: {module: a, topology: ring_1d}}\n";
    let seed = Ccl::from_yaml("ccl.yaml", SEED).unwrap().defaults;
    let ccl = Ccl::from_yaml("ccl.yaml", short).unwrap();
    assert_eq!(Defaults { algorithm: seed.algorithm.clone(), ..ccl.defaults }, seed);
}

#[test]
fn world_size_of_the_entry_wins_over_the_default() {
    let text = SEED.replace("  n_slots: 4\n", "  world_size: 3\n").replace("n_elem: 8", "world_size: 4");
    let ccl = Ccl::from_yaml("ccl.yaml", &text).unwrap();
    assert_eq!(ccl.algorithms[0].check_world(4).unwrap(), 4);
    let ccl = Ccl::from_yaml("ccl.yaml", &text.replace("world_size: 4", "n_elem: 8")).unwrap();
    assert_eq!(ccl.algorithms[0].check_world(4).unwrap(), 3);
}

#[test]
fn unknown_names_come_with_the_nearest() {
    let text = mistakes(&[
        ("algorithm: ring_allreduce_tcm", "algorithm: ring_allredcue_tcm"),
        ("n_slots", "n_slot"),
        ("topology: ring_1d", "topology: ring1d"),
    ]);
    insta::assert_snapshot!(text, @r"
    [KB0308] `defaults.algorithm` is `ring_allredcue_tcm`, which `algorithms` does not have
    ccl.yaml:2:   algorithm: ring_allredcue_tcm
                             ^^^^^^^^^^^^^^^^^^
    help: did you mean `ring_allreduce_tcm`?
    [KB0303] unknown key `defaults.n_slot`
    ccl.yaml:5:   n_slot: 4
                  ^^^^^^
    help: did you mean `n_slots`?
    [KB0308] `algorithms.ring_allreduce_tcm.topology` cannot be `ring1d`
    ccl.yaml:13:     topology: ring1d
                               ^^^^^^
    help: did you mean `ring_1d`?
    ");
}

#[test]
fn sizes_must_fit() {
    insta::assert_snapshot!(mistakes(&[("n_slots: 4", "n_slots: 0")]), @r"
    [KB0306] `defaults.n_slots` must be from 1 to 1000000000, not 0
    ccl.yaml:5:   n_slots: 0
                           ^
    help: write a number from 1 to 1000000000
    ");
    insta::assert_snapshot!(mistakes(&[("slot_size: 4096", "slot_size: 128")]), @r"
    [KB0315] `defaults.slot_size` is 128 B, less than `vc_chunk_size`, 256 B
    ccl.yaml:6:   slot_size: 128
                             ^^^
    help: write at least 256, or a smaller `vc_chunk_size`
    ");
}

#[test]
fn missing_and_mistyped() {
    insta::assert_snapshot!(mistakes(&[("    topology: ring_1d\n", ""), ("n_elem: 8", "n_elem: eight")]), @r"
    [KB0304] missing key `algorithms.ring_allreduce_tcm.topology`
    ccl.yaml:11:   ring_allreduce_tcm:
                   ^^^^^^^^^^^^^^^^^^
    help: add `topology: ..` here
    [KB0305] `algorithms.ring_allreduce_tcm.n_elem` must be a whole number, not a text
    ccl.yaml:14:     n_elem: eight
                             ^^^^^
    help: write a whole number
    ");
}

#[test]
fn repeated_algorithm() {
    let again = "    n_elem: 8\n  ring_allreduce_tcm: {module: a, topology: tree}\n";
    insta::assert_snapshot!(mistakes(&[("    n_elem: 8\n", again)]), @r"
    [KB0302] key `algorithms.ring_allreduce_tcm` is given twice
    ccl.yaml:16:   ring_allreduce_tcm: {module: a, topology: tree}
                   ^^^^^^^^^^^^^^^^^^ given again
    ccl.yaml:11:   ring_allreduce_tcm:
                   ^^^^^^^^^^^^^^^^^^ first given here
    help: remove one of the two
    ");
}

#[test]
fn unregistered_module() {
    let ccl = Ccl::from_yaml("ccl.yaml", SEED).unwrap();
    let d = ccl.algorithms[0].check_module(&["ring_all_reduce", "tree"]).unwrap_err();
    insta::assert_snapshot!(render(SEED, &d.into()), @r"
    [KB0308] no algorithm is registered as `ring_allreduce`
    ccl.yaml:12:     module: kernbench.ccl.algorithms.ring_allreduce
                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    help: did you mean `ring_all_reduce`?
    ");
}

fn read(text: &str) -> Ccl {
    Ccl::from_yaml("ccl.yaml", text).unwrap()
}

#[test]
fn the_shipped_file_switches_algorithms_above_one_slot() {
    let ccl = Ccl::default_config();
    let name = |bytes| ccl.all_reduce(bytes).unwrap().name.as_str();
    assert_eq!(
        (name(0), name(4096), name(4097)),
        ("ring_allreduce", "ring_allreduce", "ring_rs_ag_allreduce")
    );
    assert_eq!(read(SEED).all_reduce(1 << 20).unwrap().name, "ring_allreduce_tcm");
    assert!(ccl.algorithms.iter().all(|a| a.check_root_cube(1).is_ok() && a.check_world(1).is_ok()));
}

#[test]
fn every_topology_has_its_name() {
    for topology in RankTopology::ALL {
        let ccl = read(&SEED.replace("ring_1d", topology.name()));
        assert_eq!(ccl.algorithms[0].topology, topology);
    }
}

#[test]
fn unknown_large_algorithm() {
    let changes = [("  buffer_kind: tcm\n", "  large_algorithm: ring_allreduce\n")];
    insta::assert_snapshot!(mistakes(&changes), @"
    [KB0308] `defaults.large_algorithm` is `ring_allreduce`, which `algorithms` does not have
    ccl.yaml:3:   large_algorithm: ring_allreduce
                                   ^^^^^^^^^^^^^^
    help: did you mean `ring_allreduce_tcm`?
    ");
}

#[test]
fn more_ranks_than_sips() {
    let text = SEED.replace("n_elem: 8", "world_size: 4");
    insta::assert_snapshot!(render(&text, &read(&text).algorithms[0].check_world(2).unwrap_err().into()), @"
    [KB0322] `world_size` is 4 for `ring_allreduce_tcm`, but the machine has 2 SIPs, one for each rank
    ccl.yaml:15:     world_size: 4
                                 ^
    help: write at most 2, or raise `system.sips.count` in topology.yaml
    ");
    let text = SEED.replace("  n_slots: 4\n", "  world_size: 3\n");
    insta::assert_snapshot!(render(&text, &read(&text).algorithms[0].check_world(1).unwrap_err().into()), @"
    [KB0322] `world_size` is 3 for `ring_allreduce_tcm`, but the machine has 1 SIP, one for each rank
    ccl.yaml:5:   world_size: 3
                              ^
    help: write at most 1, or raise `system.sips.count` in topology.yaml
    ");
}

#[test]
fn a_root_cube_that_is_not_there() {
    let text = SEED.replace("n_elem: 8", "root_cube: 16");
    assert_eq!(read(&text).algorithms[0].check_root_cube(17), Ok(Some(16)));
    insta::assert_snapshot!(render(&text, &read(&text).algorithms[0].check_root_cube(16).unwrap_err().into()), @"
    [KB0322] `root_cube` is 16 for `ring_allreduce_tcm`, but a SIP has 16 cubes
    ccl.yaml:15:     root_cube: 16
                                ^^
    help: write a cube from 0 to 15, or leave it out
    ");
}

#[test]
fn a_topology_the_module_does_not_run_on() {
    let check = |allowed: &[_]| read(SEED).algorithms[0].check_topology(allowed);
    assert!(check(&RankTopology::ALL).is_ok());
    let wrong = check(&[RankTopology::Torus2d, RankTopology::Mesh2dNoWrap]).unwrap_err();
    insta::assert_snapshot!(render(SEED, &wrong.into()), @"
    [KB0321] `ring_allreduce` does not run on `ring_1d`
    ccl.yaml:13:     topology: ring_1d
                               ^^^^^^^
    help: write one of `torus_2d`, `mesh_2d_no_wrap`
    ");
    insta::assert_snapshot!(render(SEED, &check(&[RankTopology::Tree]).unwrap_err().into()), @"
    [KB0321] `ring_allreduce` does not run on `ring_1d`
    ccl.yaml:13:     topology: ring_1d
                               ^^^^^^^
    help: write `tree`
    ");
}

/// A process group has the ranks of its default algorithm; another entry must not say otherwise.
#[test]
fn entries_of_one_group_have_one_world() {
    let text = SEED.replace("n_elem: 8", "world_size: 2")
        + "  other: {module: x, topology: ring_1d, world_size: 3}\n";
    let ccl = read(&text);
    let [first, other] = &ccl.algorithms[..] else { panic!("two entries") };
    assert!(first.check_same_world(first, 2).is_ok());
    let said = other.check_same_world(first, 2).unwrap_err().to_string();
    assert!(
        said.contains(
            "`world_size` is 3 for `other`, but the process group has 2, those of `ring_allreduce_tcm`"
        ),
        "{said}"
    );
}
