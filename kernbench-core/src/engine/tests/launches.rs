//! Launches that share a machine: rule 5.

use super::laws::random;
use super::model::Model;
use super::*;
use crate::ir::{LinkId, OpKind, PeId};
use crate::ty::Dir::{E, W};
use crate::ty::Group;
use std::sync::atomic::AtomicBool;

const OVERHEAD: Ps = 70_000;

/// A launch submitted at a time, after others.
fn submitted<'a>(line: &Line, program: &'a Program, submitted_ps: Ps, after: &[usize]) -> Submitted<'a> {
    Submitted { program, options: options(line), submitted_ps, overhead_ps: OVERHEAD, after: after.to_vec() }
}

/// The same program on PEs further along the line, with the memories it uses where they were.
fn moved(mut program: Program, by: u32) -> Program {
    program.pes.iter_mut().for_each(|pe| pe.pe = PeId(pe.pe.0 + by));
    for link in &mut program.links {
        (link.from, link.to) = (PeId(link.from.0 + by), PeId(link.to.0 + by));
    }
    program
}

/// One program that does what two do on PEs of their own.
fn joined(mut a: Program, b: &Program) -> Program {
    let links = a.links.len() as u32;
    a.links.extend(b.links.iter().copied());
    for pe in &b.pes {
        let mut pe = pe.clone();
        for op in &mut pe.ops {
            if let OpKind::Send { link, .. } | OpKind::Recv { link, .. } | OpKind::RecvAsync { link, .. } =
                &mut op.kind
            {
                *link = LinkId(link.0 + links);
            }
        }
        a.pes.push(pe);
    }
    a
}

fn meets_in_the_sip(program: &Program) -> bool {
    let mut ops = program.pes.iter().flat_map(|pe| &pe.ops);
    ops.any(|op| op.kind == OpKind::Barrier { group: Group::Sip })
}

#[test]
fn two_launches_at_one_time_are_one_on_all_their_pes() {
    let line = Line::new(2, 3);
    let mut tried = 0;
    for seed in 0..60 {
        let (a, b) = (random(seed, 3), moved(random(seed + 1000, 3), 3));
        if meets_in_the_sip(&a) || meets_in_the_sip(&b) {
            continue;
        }
        tried += 1;
        let launches = [submitted(&line, &a, 500, &[]), submitted(&line, &b, 500, &[])];
        let both = joined(a.clone(), &b);
        for model in Model::ALL {
            let apart = model.timings(&line, &launches).unwrap();
            let options = Options { start_ps: 500 + OVERHEAD, ..options(&line) };
            let together = model.timing(&line, &both, &options);
            assert_eq!(together.end_ps, apart[0].end_ps.max(apart[1].end_ps));
            for (one, other) in together.pes.iter().zip(apart.iter().flat_map(|t| &t.pes)) {
                let mut other = other.clone();
                // Of the second launch, peers are named by their position there.
                let shift = if other.pe.0 < 3 { 0 } else { 3 };
                other.ops.iter_mut().filter_map(|t| t.peer.as_mut()).for_each(|peer| peer.pe += shift);
                assert_eq!(*one, other, "{model:?}, seed {seed}");
            }
        }
    }
    assert!(tried > 10, "{tried}");
}

#[test]
fn a_later_launch_changes_nothing_of_what_was_before_it() {
    let line = Line::new(2, 3);
    for seed in 0..20 {
        let (a, b) = (random(seed, 3), moved(random(seed + 1000, 3), 3));
        for model in Model::ALL {
            let alone = model.timings(&line, &[submitted(&line, &a, 0, &[])]).unwrap().remove(0);
            let middle = (alone.start_ps + alone.end_ps) / 2;
            let launches =
                [submitted(&line, &a, 0, &[]), submitted(&line, &b, middle.saturating_sub(OVERHEAD), &[])];
            let with = model.timings(&line, &launches).unwrap();
            let ops = |t: &Timing| -> Vec<OpTiming> { t.pes.iter().flat_map(|pe| pe.ops.clone()).collect() };
            for (x, y) in ops(&alone).iter().zip(&ops(&with[0])) {
                assert!(x == y || x.end_ps >= with[1].start_ps || x.data_ps >= with[1].start_ps);
            }
        }
    }
}

#[test]
fn a_launch_starts_when_the_host_knows_that_those_before_it_are_complete() {
    let line = Line::new(2, 3);
    let load = |pe: usize, rows: u32| {
        let mut b = Build::new(6);
        b.pe(pe).load("x", [rows, 128], pe as u32);
        b.finish()
    };
    let (short, long, nothing) = (load(0, 8), load(1, 64), Build::new(6).finish());
    let launches = [
        submitted(&line, &short, 0, &[]),
        submitted(&line, &long, 10_000, &[]),
        submitted(&line, &short, 20_000, &[0, 1, 0]),
        submitted(&line, &nothing, 20_000, &[2]),
        submitted(&line, &long, 0, &[3]),
        submitted(&line, &short, 9_000_000, &[4]),
    ];
    for model in Model::ALL {
        let t = model.timings(&line, &launches).unwrap();
        assert_eq!(t[0].start_ps, OVERHEAD);
        assert_eq!(t[1].start_ps, 10_000 + OVERHEAD);
        assert!(t[1].end_ps > t[0].end_ps);
        assert_eq!(t[2].start_ps, t[1].end_ps + 2 * OVERHEAD);
        assert_eq!(t[2].makespan_ps(), t[0].makespan_ps());
        assert_eq!([t[3].start_ps, t[3].end_ps], [t[2].end_ps + 2 * OVERHEAD; 2]);
        assert_eq!(t[4].start_ps, t[3].end_ps + 2 * OVERHEAD);
        assert_eq!(t[5].start_ps, 9_000_000 + OVERHEAD);
    }
    assert_eq!(Model::MESSAGE.timings(&line, &[]).unwrap(), []);
}

#[test]
fn the_launch_that_cannot_go_on_is_named() {
    static CANCEL: AtomicBool = AtomicBool::new(true);
    let line = Line::new(2, 3);
    let mut b = Build::new(6);
    (0..2000).for_each(|_| _ = b.pe(0).fill("x", [1, 128]));
    let busy = b.finish();
    let mut b = Build::new(6);
    b.pe(3).recv("x", W, [1, 8]);
    b.pe(4).recv("y", E, [1, 8]);
    let stuck = b.finish();
    let said = |launches: &[Submitted]| {
        let (l, stall) = Model::MESSAGE.timings(&line, launches).unwrap_err();
        format!("launch {l}: {stall}")
    };
    let mut launches = [submitted(&line, &busy, 0, &[]), submitted(&line, &stuck, 0, &[])];
    insta::assert_snapshot!(said(&launches), @"
    launch 1: error[KB0402]: deadlock at 70 ns: ops wait for what never comes, 2 of 2 ops are not complete
      --> kernel.rs:1:9: sip0.cube1.pe0: `x = recv` waits for message 0 from W, sip0.cube0.pe2, which sends nothing more
      --> kernel.rs:2:9: sip0.cube1.pe1: `y = recv` waits for message 0 from E, sip0.cube1.pe2, which sends nothing more
      help: give every `recv` its `send`, and let every PE of a group come to its barriers
    ");
    launches[0].options.max_ps = Some(100_000);
    launches[1].options.max_ps = Some(100_001);
    insta::assert_snapshot!(said(&launches).lines().next().unwrap(), @"launch 0: error[KB0403]: the time limit of 100 ns is reached, 1904 of 2000 ops are not complete");
    launches[0].options.max_ps = None;
    insta::assert_snapshot!(said(&launches).lines().next().unwrap(), @"launch 1: error[KB0403]: the time limit of 100.001 ns is reached, 2 of 2 ops are not complete");
    launches[1].options.cancel = Some(&CANCEL);
    launches[1].options.max_ps = None;
    insta::assert_snapshot!(said(&launches).lines().next().unwrap(), @"launch 1: error[KB0404]: cancelled at 70 ns, 2 of 2 ops are not complete");
}
