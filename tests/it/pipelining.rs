//! The loop of a long decode is as fast as its busier resource, and what other loops wait for.

#[path = "../../examples/pipelining.rs"]
#[expect(dead_code, reason = "its `main` is for `cargo run --example`")]
mod example;

use example::{Case, HOMES, LOOPS, Way};

#[test]
fn the_tables_and_their_page() {
    let text = example::text().unwrap();
    let page = std::fs::read_to_string("docs/pipelining.md").unwrap();
    assert!(page.contains(text.trim_end()), "docs/pipelining.md has other numbers:\n{text}");
    insta::assert_snapshot!(text);
}

/// DMA and accelerator slot overlap: together they take at most a tenth longer than the busier of them alone.
#[test]
fn a_long_decode_takes_as_long_as_its_busier_resource() {
    for d in [64, 128] {
        for group in [1, 4, 8] {
            let m = Case::own(d, group, Way::Shipped).measure().unwrap();
            assert!(m.ratio() <= 1100, "d {d}, {group} queries a key: {} thousandths", m.ratio());
        }
    }
}

/// The loops are the shipped kernel's but for how they are scheduled, so that times can be compared.
#[test]
fn all_loops_compute_the_same() {
    let shipped = Case::own(128, 4, Way::Shipped).measure().unwrap();
    for (cube, home) in HOMES {
        for (way, buffers, issue, name) in LOOPS.into_iter().filter(|l| l.0 != Way::Latent) {
            let case = Case { cube, buffers, issue, ..Case::own(128, 4, way) };
            assert_eq!(case.measure().unwrap().o, shipped.o, "{name}, K and V in {home}");
        }
    }
}
