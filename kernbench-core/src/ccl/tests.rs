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
    assert_eq!(ccl.world_size(a, 2), 2);
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
    assert_eq!(ccl.world_size(&ccl.algorithms[0], 2), 4);
    let ccl = Ccl::from_yaml("ccl.yaml", &text.replace("world_size: 4", "n_elem: 8")).unwrap();
    assert_eq!(ccl.world_size(&ccl.algorithms[0], 2), 3);
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
