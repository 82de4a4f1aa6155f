//! Mistakes in `topology.yaml`, as the user is told of them.

use super::*;
use crate::yaml::carets::render;

fn mistakes(changes: &[(&str, &str)]) -> String {
    let text = changed(changes);
    match Topology::from_yaml("topology.yaml", &text) {
        Ok(_) => "accepted".into(),
        Err(failure) => render(&text, &failure),
    }
}

fn with_edges(edges: &str) -> String {
    mistakes(&[("\n# edges:", &format!("\nedges:\n{edges}\n# edges:"))])
}

#[test]
fn syntax() {
    insta::assert_snapshot!(mistakes(&[("{w: 6, h: 6} ", "{w: 6, h: 6")]), @r"
    [KB0301] `topology.yaml` is not YAML: while parsing a flow mapping, did not find expected ',' or '}'
    topology.yaml:41:     missing: [r2c2, r2c3, r3c2, r3c3]   # R  where the HBM die is
                          ^
    help: check the indentation, the brackets and the quotes up to this place
    ");
    insta::assert_snapshot!(mistakes(&[("cube:\n  noc:", "cube:\n  noc: é: 3")]), @r"
    [KB0301] `topology.yaml` is not YAML: mapping values are not allowed in this context
    topology.yaml:39:   noc: é: 3
                              ^
    help: check the indentation, the brackets and the quotes up to this place
    ");
}

#[test]
fn repeated_key() {
    insta::assert_snapshot!(mistakes(&[("    router_mm: 0\n", "    router_mm: 0\n    router_gbs: 128\n")]), @r"
    [KB0302] key `cube.noc.router_gbs` is given twice
    topology.yaml:45:     router_gbs: 128
                          ^^^^^^^^^^ given again
    topology.yaml:43:     router_gbs: 256                 # D  router to router
                          ^^^^^^^^^^ first given here
    help: remove one of the two
    ");
}

#[test]
fn misspelt_key() {
    insta::assert_snapshot!(mistakes(&[("crossing_gbs", "crosing_gbs")]), @r"
    [KB0303] unknown key `cube.ucie.crosing_gbs`
    topology.yaml:56:     crosing_gbs: 512               # R  port to port, PHY to port
                          ^^^^^^^^^^^
    help: did you mean `crossing_gbs`?
    ");
    insta::assert_snapshot!(mistakes(&[("  cpu:\n", "  colour: red\n  cpu:\n")]), @r"
    [KB0303] unknown key `pe.colour`
    topology.yaml:84:   colour: red
                        ^^^^^^
    help: remove it; the keys here are `issue`, `shared_resource`, `cpu`, `tcm`, `gemm`, `math`, `mmu`, `ipcq`, `wire_mm`
    ");
}

#[test]
fn missing_key() {
    insta::assert_snapshot!(mistakes(&[("    channel_gbs: 32 ", "    ")]), @r"
    [KB0304] missing key `cube.hbm.channel_gbs`
    topology.yaml:74:   hbm:
                        ^^^
    help: add `channel_gbs: ..` here
    ");
    insta::assert_snapshot!(render("", &Topology::from_yaml("topology.yaml", "").unwrap_err()), @r"
    [KB0304] missing key `system`
    topology.yaml:1:
                     ^
    help: add `system: ..` here
    [KB0304] missing key `sip`
    topology.yaml:1:
                     ^
    help: add `sip: ..` here
    [KB0304] missing key `cube`
    topology.yaml:1:
                     ^
    help: add `cube: ..` here
    [KB0304] missing key `pe`
    topology.yaml:1:
                     ^
    help: add `pe: ..` here
    ");
}

#[test]
fn wrong_type() {
    insta::assert_snapshot!(mistakes(&[("router_gbs: 256", "router_gbs: fast"), ("missing: [r2c2, r2c3, r3c2, r3c3]", "missing: 3")]), @r"
    [KB0305] `cube.noc.missing` must be a list, not a whole number
    topology.yaml:41:     missing: 3   # R  where the HBM die is
                                   ^
    help: write a list
    [KB0305] `cube.noc.router_gbs` must be a number, not a text
    topology.yaml:43:     router_gbs: fast                 # D  router to router
                                      ^^^^
    help: write a number
    ");
    insta::assert_snapshot!(mistakes(&[("lanes: 128", "lanes: 12.5"), ("grid: {w: 6, h: 6}", "grid: 6")]), @r"
    [KB0305] `cube.noc.grid` must be a map of keys, not a whole number
    topology.yaml:40:     grid: 6              # R  routers, named r{row}c{column}
                                ^
    help: write a map of keys
    [KB0305] `pe.math.lanes` must be a whole number, not a fraction
    topology.yaml:99:     lanes: 12.5                      # R  elements of a step and cycle
                                 ^^^^
    help: write a whole number
    ");
}

#[test]
fn numbers_out_of_range() {
    insta::assert_snapshot!(mistakes(&[
        ("router_gbs: 256", "router_gbs: 0"),
        ("overhead_ns: 2 ", "overhead_ns: -2 "),
        ("size_gb: 48", "size_gb: 1e12"),
        ("count: 2 ", "count: 0 "),
    ]), @r"
    [KB0306] `system.sips.count` must be from 1 to 1000000000, not 0
    topology.yaml:15:     count: 0                        # R
                                 ^
    help: write a number from 1 to 1000000000
    [KB0306] `cube.noc.overhead_ns` must be from 0 to 1000000, not -2
    topology.yaml:42:     overhead_ns: -2                  # D  once per transaction and direction, at its first flit
                                       ^^
    help: write a number from 0 to 1000000
    [KB0306] `cube.noc.router_gbs` must be from 0.001 to 1000000, not 0
    topology.yaml:43:     router_gbs: 0                 # D  router to router
                                      ^
    help: write a number from 0.001 to 1000000
    [KB0306] `cube.hbm.size_gb` must be from 0.001 to 1000000, not 1000000000000
    topology.yaml:75:     size_gb: 1e12                     # R  of a cube; shared out evenly as one slice per PE
                                   ^^^^
    help: write a number from 0.001 to 1000000
    ");
}

#[test]
fn powers_of_two() {
    insta::assert_snapshot!(mistakes(&[("channels: 8", "channels: 6"), ("flit_bytes: 256", "flit_bytes: 200")]), @r"
    [KB0307] `system.flit_bytes` must be a power of two, not 200
    topology.yaml:12:   flit_bytes: 200                   # R  a flit and an HBM burst; a power of two
                                    ^^^
    help: write 128 or 256
    [KB0307] `cube.hbm.channels` must be a power of two, not 6
    topology.yaml:76:     channels: 6                     # R  pseudo-channels of a slice, by the address bits above the burst; a power of two
                                    ^
    help: write 4 or 8
    ");
}

#[test]
fn unknown_names() {
    insta::assert_snapshot!(mistakes(&[("topology: ring_1d", "topology: torus2d"), ("policy: first", "policy: best")]), @r"
    [KB0308] `system.sips.topology` cannot be `torus2d`
    topology.yaml:16:     topology: torus2d               # R  ring_1d, torus_2d or mesh_2d_no_wrap; the last two take w and h, else a square
                                    ^^^^^^^
    help: did you mean `torus_2d`?
    [KB0308] `cube.ucie.policy` cannot be `best`
    topology.yaml:47:     policy: best                   # O  first: connection 0; striped: half the PE's index
                                  ^^^^
    help: write one of `first`, `striped`
    ");
}

#[test]
fn sip_grids() {
    insta::assert_snapshot!(mistakes(&[("count: 2 ", "count: 6 "), ("topology: ring_1d", "topology: torus_2d")]), @r"
    [KB0309] 6 SIPs are no square grid, and `w` and `h` are not given
    topology.yaml:15:     count: 6                        # R
                                 ^
    help: add `w` and `h`, or take 4 or 9 SIPs
    ");
    insta::assert_snapshot!(mistakes(&[("count: 2 ", "count: 6\n    w: 2\n    h: 2 ")]), @r"
    [KB0309] `system.sips` has 6 SIPs, but w * h = 2 * 2 = 4
    topology.yaml:16:     w: 2
                             ^
    help: choose `w` and `h` so that their product is 6
    ");
    insta::assert_snapshot!(mistakes(&[("count: 2 ", "count: 6\n    w: 2 ")]), @r"
    [KB0304] missing key `system.sips.h`
    topology.yaml:14:   sips:
                        ^^^^
    help: add `h: ..` here
    ");
}

#[test]
fn places() {
    insta::assert_snapshot!(mistakes(&[("[r0c0, r0c1, r1c4,", "[r0c0, r2c3, r1c9,")]), @r"
    [KB0310] router `r2c3` is listed in `cube.noc.missing`
    topology.yaml:60:     routers: [r0c0, r2c3, r1c9, r1c5, r4c0, r4c1, r5c4, r5c5]   # R  of PE 0, 1, ..; its HBM slice is there too
                                          ^^^^
    help: choose a router that exists, or take it from the list
    [KB0310] there is no router `r1c9` in a grid of 6 x 6 routers
    topology.yaml:60:     routers: [r0c0, r2c3, r1c9, r1c5, r4c0, r4c1, r5c4, r5c5]   # R  of PE 0, 1, ..; its HBM slice is there too
                                                ^^^^
    help: did you mean `r1c0`?
    ");
    insta::assert_snapshot!(mistakes(&[("[r0c0, r0c1, r1c4,", "[r1c4,")]), @r"
    [KB0310] `cube.pes.routers` names 6 routers for 8 PEs
    topology.yaml:60:     routers: [r1c4, r1c5, r4c0, r4c1, r5c4, r5c5]   # R  of PE 0, 1, ..; its HBM slice is there too
                          ^^^^^^^
    help: name one router for each PE, in order
    ");
    insta::assert_snapshot!(mistakes(&[("rows: [0, 1, 4, 5]", "rows: [0, 1, 6, 5]"), ("columns: [0, 1, 4, 5]", "columns: [0, 1, 4]")]), @r"
    [KB0310] a connection of `cube.ucie.rows` meets `r6c0`, which does not exist
    topology.yaml:48:     rows: [0, 1, 6, 5]              # O  where connection k of E and W meets the outer column
                                       ^
    help: choose a place where the outer routers exist
    [KB0310] `cube.ucie.columns` has 3 entries for 4 connections
    topology.yaml:49:     columns: [0, 1, 4]           # O  where connection k of N and S meets the outer row
                          ^^^^^^^
    help: name one for each connection
    ");
    insta::assert_snapshot!(mistakes(&[("cube_mesh: {w: 4, h: 4}", "cube_mesh: {w: 2, h: 4}")]), @r"
    [KB0310] 4 PHYs for 2 columns of cubes: PHY k joins cube k of the first row
    topology.yaml:35:       count: 4                      # R
                                   ^
    help: write at most 2
    ");
}

#[test]
fn cut_off() {
    insta::assert_snapshot!(mistakes(&[("missing: [r2c2, r2c3, r3c2, r3c3]", "missing: [r1c1, r0c2, r2c1, r3c0, r1c3, r1c2, r2c0]"), ("router: r0c2", "router: r0c3"), ("router: r3c0", "router: r3c1")]), @r"
    [KB0311] router `r0c0` cannot be reached from `m_cpu` inside its cube
    topology.yaml:41:     missing: [r1c1, r0c2, r2c1, r3c0, r1c3, r1c2, r2c0]   # R  where the HBM die is
                          ^^^^^^^
    help: take a router between them from this list
    ");
}

#[test]
fn single_edges() {
    insta::assert_snapshot!(with_edges("  - {from: sip0.cube0.r0c0, to: sip0.cube0.r0c1, gbs: 128, mm: 0}\n"), @r"
    [KB0312] the link between `sip0.cube0.r0c0` and `sip0.cube0.r0c1` is asymmetric
    topology.yaml:116:   - {from: sip0.cube0.r0c0, to: sip0.cube0.r0c1, gbs: 128, mm: 0}
                                                                             ^^^ 128 GB/s, 0 mm this way
    help: list both directions with the same `gbs` and `mm`
    ");
    insta::assert_snapshot!(with_edges("  - {from: sip0.cube0.r0c0, to: sip0.cube0.r0c1, gbs: 128, mm: 0}\n  - {from: sip0.cube0.r0c1, to: sip0.cube0.r0c0, gbs: 64, mm: 0}\n"), @r"
    [KB0312] the link between `sip0.cube0.r0c0` and `sip0.cube0.r0c1` is asymmetric
    topology.yaml:116:   - {from: sip0.cube0.r0c0, to: sip0.cube0.r0c1, gbs: 128, mm: 0}
                                                                             ^^^ 128 GB/s, 0 mm this way
    topology.yaml:117:   - {from: sip0.cube0.r0c1, to: sip0.cube0.r0c0, gbs: 64, mm: 0}
                                                                             ^^ 64 GB/s, 0 mm the other way
    help: list both directions with the same `gbs` and `mm`
    ");
    let wrong = [
        "  - {from: sip0.cube0.r0c0, to: sip0.cube0.r00c1, gbs: 128, mm: 0}",
        "  - {from: sip0.cube0.r0c1, to: sip0.cube0.r1c0, gbs: 64, mm: 0}",
        "  - {from: sip0.cube0.m_cpu, to: sip0.cube0.r0c2, gbs: 64, mm: 0}",
    ];
    insta::assert_snapshot!(with_edges(&wrong.join("\n")), @r"
    [KB0313] there is no node `sip0.cube0.r00c1`
    topology.yaml:116:   - {from: sip0.cube0.r0c0, to: sip0.cube0.r00c1, gbs: 128, mm: 0}
                                                       ^^^^^^^^^^^^^^^^
    help: did you mean `sip0.cube0.r0c1`?
    [KB0313] there is no edge from `sip0.cube0.r0c1` to `sip0.cube0.r1c0`
    topology.yaml:117:   - {from: sip0.cube0.r0c1, to: sip0.cube0.r1c0, gbs: 64, mm: 0}
                                                       ^^^^^^^^^^^^^^^
    help: name two neighbouring nodes; `edges` adds no edges
    [KB0313] the edge from `sip0.cube0.m_cpu` to `sip0.cube0.r0c2` carries no bytes
    topology.yaml:118:   - {from: sip0.cube0.m_cpu, to: sip0.cube0.r0c2, gbs: 64, mm: 0}
                                                                              ^^
    help: choose an edge that carries data, or remove this entry
    ");
    let twice = [
        "  - {from: sip0.cube0.r0c0, to: sip0.cube0.r0c1, gbs: 64, mm: 0}",
        "  - {from: sip0.cube0.r0c1, to: sip0.cube0.r0c0, gbs: 64, mm: 0}",
        "  - {from: sip0.cube0.r0c0, to: sip0.cube0.r0c1, gbs: 64, mm: 0}",
    ];
    insta::assert_snapshot!(with_edges(&twice.join("\n")), @r"
    [KB0302] the edge from `sip0.cube0.r0c0` to `sip0.cube0.r0c1` is listed twice
    topology.yaml:118:   - {from: sip0.cube0.r0c0, to: sip0.cube0.r0c1, gbs: 64, mm: 0}
                                  ^^^^^^^^^^^^^^^ listed again
    topology.yaml:116:   - {from: sip0.cube0.r0c0, to: sip0.cube0.r0c1, gbs: 64, mm: 0}
                                  ^^^^^^^^^^^^^^^ first listed here
    help: remove one of the two
    ");
    insta::assert_snapshot!(with_edges("  - 3\n  - {from: 1}\n"), @r"
    [KB0305] `edges[0]` must be a map of keys, not a whole number
    topology.yaml:116:   - 3
                           ^
    help: write a map of keys
    [KB0304] missing key `edges[1].to`
    topology.yaml:117:   - {from: 1}
                            ^^^^
    help: add `to: ..` here
    [KB0304] missing key `edges[1].gbs`
    topology.yaml:117:   - {from: 1}
                            ^^^^
    help: add `gbs: ..` here
    [KB0304] missing key `edges[1].mm`
    topology.yaml:117:   - {from: 1}
                            ^^^^
    help: add `mm: ..` here
    [KB0305] `edges[1].from` must be a name, not a whole number
    topology.yaml:117:   - {from: 1}
                                  ^
    help: write a name
    ");
}

#[test]
fn sizes_that_do_not_fit() {
    insta::assert_snapshot!(mistakes(&[("scratch_mb: 1", "scratch_mb: 17"), ("size_gb: 48", "size_gb: 48.0001")]), @r"
    [KB0315] `cube.hbm.size_gb` shared out among 8 PEs is not a whole number of 2048 B rows
    topology.yaml:75:     size_gb: 48.0001                     # R  of a cube; shared out evenly as one slice per PE
                                   ^^^^^^^
    help: choose a size that is a multiple of 8 * 2048 B
    [KB0315] `pe.tcm.scratch_mb` is 17 MiB, but the TCM has 16 MiB
    topology.yaml:90:     scratch_mb: 17                   # R  of a launch, unless it says otherwise
                                      ^^
    help: choose a smaller scratch (and less than 4096 MiB)
    ");
    insta::assert_snapshot!(mistakes(&[("count: 2 ", "count: 2000 ")]), @r"
    [KB0314] the machine has 4462000 nodes, more than 4194304
    topology.yaml:11: system:
                      ^^^^^^
    help: lower `system.sips.count`, `sip.cube_mesh` or `cube.noc.grid`
    ");
}

/// Every key of the default text whose value stands on its line, with where it starts and ends.
fn keys() -> Vec<(usize, usize, &'static str)> {
    let text = Topology::DEFAULT_YAML;
    let mut at = 0;
    let mut keys = vec![];
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or_default();
        if let Some((key, value)) = code.split_once(':')
            && !value.trim().is_empty()
        {
            let key = key.trim_start();
            let start = at + code.len() - code.trim_start().len();
            keys.push((start, at + line.len(), &text[start..start + key.len()]));
        }
        at += line.len();
    }
    keys
}

#[test]
fn one_misspelt_key_gives_one_message_at_the_key() {
    assert!(keys().len() > 60);
    for (start, _, key) in keys() {
        let mut text = Topology::DEFAULT_YAML.to_owned();
        text.insert(start + 1, 'q');
        let failure = Topology::from_yaml("topology.yaml", &text).unwrap_err();
        let [d] = failure.0.as_slice() else { panic!("{key}: {failure}") };
        let span = start..start + key.len() + 1;
        assert_eq!(
            (d.code, &d.labels[0].place),
            ("KB0303", &crate::diag::Place::Text { file: "topology.yaml".into(), span })
        );
        // A single letter may be nearer to nothing at all.
        assert!(key.len() < 3 || d.help == Some(format!("did you mean `{key}`?")), "{key}: {failure}");
    }
}

#[test]
fn one_missing_key_gives_one_message() {
    for (start, end, key) in keys().into_iter().filter(|(.., key)| *key != "shared_resource") {
        let mut text = Topology::DEFAULT_YAML.to_owned();
        text.replace_range(start..end, "\n");
        let failure = Topology::from_yaml("topology.yaml", &text).unwrap_err();
        let [d] = failure.0.as_slice() else { panic!("{key}: {failure}") };
        assert_eq!((d.code, d.help.clone()), ("KB0304", Some(format!("add `{key}: ..` here"))));
    }
}

#[test]
fn one_wrong_value_gives_one_message() {
    for (start, end, key) in keys() {
        let mut text = Topology::DEFAULT_YAML.to_owned();
        text.replace_range(start + key.len()..end, ": true\n");
        let failure = Topology::from_yaml("topology.yaml", &text).unwrap_err();
        let [d] = failure.0.as_slice() else { panic!("{key}: {failure}") };
        let Some(crate::diag::Place::Text { span, .. }) = d.labels.first().map(|l| &l.place) else {
            panic!()
        };
        assert_eq!((d.code, &text[span.clone()]), ("KB0305", "true"));
    }
}
