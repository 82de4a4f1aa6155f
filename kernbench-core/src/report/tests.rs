//! Sums are exact, paths have no gaps, and parts are named after what they are.

use super::*;
use crate::engine::tests::build::Build;
use crate::engine::tests::composites::mixed;
use crate::engine::tests::fake::Line;
use crate::engine::tests::laws::random;
use crate::engine::tests::{options, run_with};
use crate::engine::{OpRef, Options};
use crate::ir::{OpId, Program};
use crate::ty::Dir::{E, W};
use crate::ty::Group;
use insta::assert_snapshot;
use std::fmt::Write;
use std::sync::Arc;

fn log(line: &Line, program: Program, options: &Options) -> OpLog {
    let timing = run_with(line, &program, options);
    let mut log = OpLog::new(Arc::new(line.machine.clone()));
    log.launches.push(Arc::new(LaunchLog {
        program: Arc::new(program),
        timing,
        submitted_ps: 0,
        issue: options.issue,
        slots: options.slots.kind,
        fidelity: options.fidelity,
    }));
    log
}

fn rows(report: &Report) -> String {
    let mut out = String::new();
    for r in &report.time {
        let what = format!("{:?}", r.what).to_lowercase();
        let _ = writeln!(
            out,
            "{:>7} ps {:>6} ppm x{} {what} {} {} {}:{}",
            r.ps, r.share_ppm, r.count, r.name, r.binding, r.file, r.line
        );
    }
    out
}

#[test]
fn the_parts_of_the_path_join_and_sum_to_the_makespan() {
    for seed in 0..60 {
        let line = Line::new(2, 3);
        let mut options = Options { start_ps: 500, ..options(&line) };
        options.slots.n_slots = 1 + (seed % 2) as u32;
        options.slots.poll_ps = (seed % 5 == 0).then_some(4000);
        if seed % 3 == 0 {
            options.issue = IssueMode::Blocking;
        }
        let log = log(&line, random(seed, 6), &options);
        let launch = &log.launches[0];
        let path = critical_path(&line.machine, &launch.program, &launch.timing, launch.issue);
        assert_eq!(path.first().map(|s| s.start_ps), Some(500));
        assert_eq!(path.last().map(|s| s.end_ps), Some(launch.timing.end_ps));
        assert!(path.windows(2).all(|w| w[0].end_ps == w[1].start_ps));
        let report = Report::of(&log, 0);
        assert_eq!(report.time.iter().map(|r| r.ps).sum::<Ps>(), report.makespan_ps);
        assert!(report.hbm.share_ppm() <= 1_000_000 && report.gemm.share_ppm() <= 1_000_000);
        assert!(report.engines.iter().all(|e| e.share_ppm <= 1_000_000));
    }
}

#[test]
fn a_path_through_composites_has_no_gap_either() {
    for seed in 0..60 {
        let line = Line::new(1, 2);
        let mut options = Options { start_ps: 500, ..options(&line) };
        if seed % 3 == 0 {
            options.issue = IssueMode::Blocking;
        }
        let log = log(&line, mixed(seed), &options);
        let launch = &log.launches[0];
        let path = critical_path(&line.machine, &launch.program, &launch.timing, launch.issue);
        assert_eq!(path.first().map(|s| s.start_ps), Some(500));
        assert_eq!(path.last().map(|s| s.end_ps), Some(launch.timing.end_ps));
        assert!(path.windows(2).all(|w| w[0].end_ps == w[1].start_ps));
        let report = Report::of(&log, 0);
        assert_eq!(report.time.iter().map(|r| r.ps).sum::<Ps>(), report.makespan_ps);
        assert!(report.hbm.share_ppm() <= 1_000_000 && report.gemm.share_ppm() <= 1_000_000);
        assert!(report.engines.iter().all(|e| e.share_ppm <= 1_000_000));
    }
}

#[test]
fn time_goes_to_lines_and_to_waits() {
    let line = Line::new(1, 2);
    let mut b = Build::new(2);
    let mut pe = b.pe(0);
    let q = pe.load("q", [32, 64], 0);
    let k = pe.load("k", [64, 32], 1);
    let s = pe.dot("s", q, k);
    let p = pe.exp("p", s, false);
    pe.fence();
    (0..3).for_each(|_| _ = pe.send(E, q));
    let _ = p;
    let mut pe = b.pe(1);
    pe.load("other", [64, 64], 1);
    (0..3).for_each(|_| _ = pe.recv("y", W, [32, 64]));
    pe.barrier(Group::Cube);
    b.pe(0).barrier(Group::Cube);
    let mut options = options(&line);
    options.slots.n_slots = 1;
    options.slots.poll_ps = Some(4000);
    let report = Report::of(&log(&line, b.finish(), &options), 0);
    assert_snapshot!(rows(&report), @"
    40384 ps 141397 ppm x1 work gemm_f16 s kernel.rs:3
    40000 ps 140052 ppm x1 work math p kernel.rs:4
    34060 ps 119254 ppm x1 work dma_read k kernel.rs:2
    30030 ps 105144 ppm x1 message ipcq_copy _ kernel.rs:6
    30030 ps 105144 ppm x1 message ipcq_copy _ kernel.rs:7
    30030 ps 105144 ppm x1 message ipcq_copy _ kernel.rs:8
    29040 ps 101678 ppm x1 work dma_read q kernel.rs:1
    12093 ps  42341 ppm x1 work ipcq_recv y kernel.rs:10
    12093 ps  42341 ppm x1 work ipcq_recv y kernel.rs:11
    12093 ps  42341 ppm x1 work ipcq_recv y kernel.rs:12
     8000 ps  28010 ppm x1 work barrier _ kernel.rs:14
     2000 ps   7002 ppm x1 launch   :0
     2000 ps   7002 ppm x1 issue   :0
     1877 ps   6571 ppm x1 credit ipcq_copy _ kernel.rs:7
     1877 ps   6571 ppm x1 credit ipcq_copy _ kernel.rs:8
    ");
    assert_snapshot!(serde_json::to_string(&Report { time: vec![], ..report }).unwrap_or_default(), @r#"{"launches":[{"name":"test","kernel":"by_hand","pes":2,"start_ps":0,"makespan_ps":285607}],"fidelity":"flit","issue":"dataflow","pes":[0,1],"makespan_ps":285607,"ops":{"barrier":2,"dma_read":3,"fence":1,"gemm_f16":1,"ipcq_copy":3,"ipcq_recv":3,"math":1},"messages":{"E":3},"bytes":{"hbm_read":16384,"hbm_write":0,"ipcq":12288,"remote":4096},"hbm":{"per_us":57365,"peak_per_us":512000},"flop":131072,"gemm":{"per_us":458924,"peak_per_us":16000000},"engines":[{"engine":"dma_read","busy_ps":108140,"share_ppm":189316},{"engine":"dma_write","busy_ps":0,"share_ppm":0},{"engine":"math","busy_ps":40000,"share_ppm":70026},{"engine":"gemm","busy_ps":40384,"share_ppm":70698},{"engine":"ipcq","busy_ps":36279,"share_ppm":63512},{"engine":"sync","busy_ps":0,"share_ppm":0}],"waits":{"credit_ps":88000,"message_ps":236328,"contention_ps":0,"engine_ps":482254},"time":[]}"#);
}

#[test]
fn nothing_has_no_path() {
    let line = Line::new(1, 2);
    let log = log(&line, Build::new(2).finish(), &options(&line));
    let report = Report::of(&log, 0);
    assert_eq!((report.makespan_ps, report.time.len(), report.pes.len()), (0, 0, 2));
}

#[test]
fn a_send_waits_for_the_send_before_it_or_for_a_slot() {
    let line = Line::new(1, 2);
    let mut b = Build::new(2);
    let mut pe = b.pe(0);
    let x = pe.fill("x", [1, 2048]);
    (0..3).for_each(|_| _ = pe.send(E, x));
    (0..3).for_each(|_| _ = b.pe(1).recv("y", W, [1, 2048]));
    let mut options = options(&line);
    options.slots.n_slots = 2;
    let log = log(&line, b.finish(), &options);
    let peers = [1, 2, 3].map(|op| log.launches[0].timing.op(OpRef { pe: 0, op: OpId(op) }).peer);
    let at = |pe, op| Some(OpRef { pe, op: OpId(op) });
    assert_eq!(peers, [None, at(0, 1), at(1, 0)]);
}

/// Launches that follow each other and overlap: the parts sum to the time from the first stamp to the last end.
#[test]
fn the_parts_of_several_launches_sum_to_their_time() {
    for seed in 0..20 {
        let line = Line::new(2, 3);
        let mut all = OpLog::new(Arc::new(line.machine.clone()));
        for (i, start_ps) in [500, 900, 400_000, 100_000 * seed].into_iter().enumerate() {
            let options = Options { start_ps, ..options(&line) };
            all.launches.extend(log(&line, random(seed + i as u64, 6), &options).launches);
        }
        let report = Report::of_all(&all, &[0, 1, 2, 3]);
        let spans = all.launches.iter().map(|l| (l.timing.start_ps, l.timing.end_ps));
        let first = spans.clone().map(|s| s.0).min().unwrap();
        let last = spans.clone().map(|s| s.1).max().unwrap();
        assert_eq!(report.makespan_ps, last - first);
        assert_eq!(report.time.iter().map(|r| r.ps).sum::<Ps>(), report.makespan_ps);
        assert_eq!(report.launches.len(), 4);
        let ops: u64 = (0..4).map(|i| Report::of(&all, i).ops.values().sum::<u64>()).sum();
        assert_eq!(report.ops.values().sum::<u64>(), ops);
    }
}
