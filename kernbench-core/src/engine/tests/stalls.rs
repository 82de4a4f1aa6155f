//! One test for each way to die.

use super::*;
use crate::ty::Dir::{E, W};
use crate::ty::Group;
use insta::assert_snapshot;
use std::sync::atomic::AtomicBool;

fn stall(b: Build, edit: impl FnOnce(&mut Options<'static>)) -> Stall {
    let line = Line::new(2, 4);
    let mut options = options(&line);
    edit(&mut options);
    *simulate_on(&line, &b.finish(), &options).expect_err("it stalls")
}

#[test]
fn two_pes_that_receive_first() {
    let mut b = Build::new(2);
    for (p, dir) in [(0, E), (1, W)] {
        let mut pe = b.pe(p);
        let x = pe.load("x", [1, 128], 0);
        pe.recv("y", dir, [1, 128]);
        pe.send(dir, x);
    }
    assert_snapshot!(stall(b, |_| ()), @"
    error[KB0401]: deadlock at 28.05 ns: 2 PEs wait for each other, 4 of 6 ops are not complete
      --> kernel.rs:2:9: sip0.cube0.pe0: `y = recv` waits for message 0 from E, sip0.cube0.pe1, to be sent by `send` at kernel.rs:6, behind its `y = recv` at kernel.rs:5
      --> kernel.rs:5:9: sip0.cube0.pe1: `y = recv` waits for message 0 from W, sip0.cube0.pe0, to be sent by `send` at kernel.rs:3, behind its `y = recv` at kernel.rs:2
      help: let one PE of the cycle send before it receives, or give its link more slots
    ");
}

#[test]
fn a_composite_that_waits_is_shown_once() {
    let mut b = Build::new(2);
    let mut pe = b.pe(0);
    let w = pe.recv("w", E, [64, 32]);
    let c = pe.composite("y", [32, 64, 32], [Ok(0), Err(w), Ok(0)], &[]);
    pe.join(c);
    assert_snapshot!(stall(b, |_| ()), @"
    error[KB0402]: deadlock at 0 ns: ops wait for what never comes, 3 of 3 ops are not complete
      --> kernel.rs:1:9: sip0.cube0.pe0: `w = recv` waits for message 0 from E, sip0.cube0.pe1, which sends nothing more
      --> kernel.rs:2:9: sip0.cube0.pe0: `y = composite` waits for `w = recv` at kernel.rs:1
      --> kernel.rs:3:9: sip0.cube0.pe0: `wait` waits for `y = composite` at kernel.rs:2
      help: give every `recv` its `send`, and let every PE of a group come to its barriers
    ");
}

#[test]
fn blocking_issue_hides_what_comes_after() {
    let mut b = Build::new(2);
    for (p, dir) in [(0, E), (1, W)] {
        let mut pe = b.pe(p);
        let y = pe.recv("y", dir, [1, 128]);
        pe.send(dir, y);
    }
    assert_snapshot!(stall(b, |o| o.issue = crate::topology::IssueMode::Blocking), @"
    error[KB0401]: deadlock at 0 ns: 2 PEs wait for each other, 4 of 4 ops are not complete
      --> kernel.rs:1:9: sip0.cube0.pe0: `y = recv` waits for message 0 from E, sip0.cube0.pe1, to be sent by `send` at kernel.rs:4, behind its `y = recv` at kernel.rs:3
      --> kernel.rs:3:9: sip0.cube0.pe1: `y = recv` waits for message 0 from W, sip0.cube0.pe0, to be sent by `send` at kernel.rs:2, behind its `y = recv` at kernel.rs:1
      help: let one PE of the cycle send before it receives, or give its link more slots
    ");
}

#[test]
fn a_ring_that_has_too_few_slots() {
    let mut b = Build::new(2);
    for (p, dir) in [(0, E), (1, W)] {
        let mut pe = b.pe(p);
        let x = pe.fill("x", [1, 128]);
        (0..3).for_each(|_| _ = pe.send(dir, x));
        (0..3).for_each(|_| _ = pe.recv("y", dir, [1, 128]));
    }
    assert_snapshot!(stall(b, |o| o.slots.n_slots = 2), @"
    error[KB0401]: deadlock at 15.52 ns: 2 PEs wait for each other, 8 of 14 ops are not complete
      --> kernel.rs:4:9: sip0.cube0.pe0: `send` waits for one of 2 slots towards E of sip0.cube0.pe1, to be freed by `y = recv` at kernel.rs:12, behind its `send` at kernel.rs:11
      --> kernel.rs:11:9: sip0.cube0.pe1: `send` waits for one of 2 slots towards W of sip0.cube0.pe0, to be freed by `y = recv` at kernel.rs:5, behind its `send` at kernel.rs:4
      help: let one PE of the cycle send before it receives, or give its link more slots
    ");
}

#[test]
fn a_message_that_nobody_sends() {
    let mut b = Build::new(8);
    for p in 1..8 {
        let mut pe = b.pe(p);
        let y = pe.recv("y", W, [1, 128]);
        pe.store(y, 0);
        if p < 7 {
            pe.send(E, y);
        }
    }
    assert_snapshot!(stall(b, |_| ()), @"
    error[KB0402]: deadlock at 0 ns: ops wait for what never comes, 20 of 20 ops are not complete
      --> kernel.rs:1:9: sip0.cube0.pe1: `y = recv` waits for message 0 from W, sip0.cube0.pe0, which sends nothing more
      --> kernel.rs:4:9: sip0.cube0.pe2: `y = recv` waits for message 0 from W, sip0.cube0.pe1, to be sent by `send` at kernel.rs:3, behind its `y = recv` at kernel.rs:1
      --> kernel.rs:7:9: sip0.cube0.pe3: `y = recv` waits for message 0 from W, sip0.cube0.pe2, to be sent by `send` at kernel.rs:6, behind its `y = recv` at kernel.rs:4
      --> kernel.rs:10:9: sip0.cube1.pe0: `y = recv` waits for message 0 from W, sip0.cube0.pe3, to be sent by `send` at kernel.rs:9, behind its `y = recv` at kernel.rs:7; and 10 more
      help: give every `recv` its `send`, and let every PE of a group come to its barriers
    ");
}

#[test]
fn a_barrier_that_one_pe_does_not_reach() {
    let mut b = Build::new(3);
    b.pe(0).barrier(Group::Cube);
    b.pe(2).barrier(Group::Cube);
    assert_snapshot!(stall(b, |_| ()), @"
    error[KB0402]: deadlock at 0 ns: ops wait for what never comes, 2 of 2 ops are not complete
      --> kernel.rs:1:9: sip0.cube0.pe0: `barrier` waits for the cube's sip0.cube0.pe1
      --> kernel.rs:2:9: sip0.cube0.pe2: `barrier` waits for the cube's sip0.cube0.pe1
      help: give every `recv` its `send`, and let every PE of a group come to its barriers
    ");
}

#[test]
fn a_time_limit() {
    let mut b = Build::new(1);
    let x = b.pe(0).load("x", [512, 128], 0);
    b.pe(0).store(x, 0);
    assert_snapshot!(stall(b, |o| o.max_ps = Some(50_500)), @"
    error[KB0403]: the time limit of 50.5 ns is reached, 2 of 2 ops are not complete
      --> kernel.rs:1:9: sip0.cube0.pe0: `x = load` is under way
      --> kernel.rs:2:9: sip0.cube0.pe0: `store` waits for `x = load` at kernel.rs:1
      help: raise the limit, or look at the ops that hold the run up
    ");
}

#[test]
fn a_cancelled_run() {
    static CANCEL: AtomicBool = AtomicBool::new(true);
    let mut b = Build::new(1);
    (0..2000).for_each(|_| _ = b.pe(0).fill("x", [1, 128]));
    let stall = stall(b, |o| o.cancel = Some(&CANCEL));
    assert_eq!(stall.reason, Reason::Cancelled);
    assert_snapshot!(stall, @"
    error[KB0404]: cancelled at 0 ns, 2000 of 2000 ops are not complete
      --> kernel.rs:1:9: sip0.cube0.pe0: `x = full` is under way
      help: start it again
    ");
}

#[test]
fn every_code_has_a_page() {
    for code in ["KB0401", "KB0402", "KB0403", "KB0404", "KB0405"] {
        let page = format!("{}/../docs/diagnostics/{code}.md", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(page).unwrap_or_default();
        assert!(text.starts_with(&format!("# {code}: ")), "{code}");
    }
}

#[test]
fn a_broken_law() {
    let mut b = Build::new(1);
    let x = b.pe(0).load("x", [512, 128], 0);
    b.pe(0).store(x, 0);
    let mut stall = stall(b, |o| o.max_ps = Some(50_500));
    stall.reason = Reason::BrokenLaw;
    stall.blocked.truncate(1);
    stall.blocked[0].waits_for = WaitsFor::Law("took less time than its bytes or operations need");
    assert_snapshot!(stall, @"
    error[KB0405]: internal error: the times of this run are wrong
      --> kernel.rs:1:9: sip0.cube0.pe0: `x = load` took less time than its bytes or operations need
      help: report it with the command and the files it reads; another `fidelity` may do meanwhile
    ");
}
