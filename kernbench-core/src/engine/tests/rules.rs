//! Issue, engines, the accelerator slot, formulas, barriers.

use super::*;
use crate::ir::{Engine, OpId, PeId, Transfer};
use crate::topology::IssueMode;
use crate::ty::{ElementType, Group};
use insta::assert_snapshot;

fn flow(issuer: u32, home: u32, bytes: u32) -> Flow {
    let transfer = Transfer {
        addr: 0,
        home: PeId(home),
        run_bytes: bytes,
        runs: 1,
        stride_bytes: 0,
        ..Transfer::default()
    };
    Flow { issuer: Issuer::Dma(PeId(issuer)), transfer, start_ps: 0 }
}

#[test]
fn uncontended_reads_take_what_the_machine_page_says() {
    let line = Line::new(1, 4);
    let alone = |f| traffic_on(&line, &[f], Fidelity::Message)[0];
    // 77, 141 and 82 ns, and 10 ps a wire there and back.
    assert_eq!(alone(flow(0, 0, 16 << 10)).end_ps, 77_000 + 4 * 10);
    assert_eq!(alone(flow(0, 0, 32 << 10)).end_ps, 141_000 + 4 * 10);
    assert_eq!(alone(flow(1, 0, 16 << 10)).end_ps, 82_000 + 6 * 10);
    assert_eq!(alone(flow(0, 0, 0)).end_ps, 0);
}

#[test]
fn readers_of_one_slice_share_its_edge() {
    let line = Line::new(1, 8);
    let flows: Vec<Flow> = (0..8).map(|pe| flow(pe, 0, 16 << 10)).collect();
    let ends: Vec<Ps> = traffic_on(&line, &flows, Fidelity::Message).iter().map(|p| p.end_ps).collect();
    let last = ends.iter().max().copied().unwrap_or(0);
    assert!(last >= 8 * 64_000, "8 x 16 KiB cannot pass 256 GB/s in {last} ps");
    assert!(last <= 8 * 64_000 + 100_000, "{ends:?}");
}

#[test]
fn dataflow_runs_ahead_and_blocking_does_not() {
    let line = Line::new(1, 1);
    let mut b = Build::new(1);
    let mut pe = b.pe(0);
    let x = pe.load("x", [32, 64], 0);
    let w = pe.load("w", [64, 32], 0);
    let y = pe.dot("y", x, w);
    pe.fill("z", [4, 128]);
    pe.store(y, 0);
    let program = b.finish();
    assert_snapshot!(table(&program, &run(&line, &program)), @"
    pe0 dma_read  ready   4000 start   4000 end  33040 Issue
    pe0 dma_read  ready   5000 start  33040 end  62080 Engine(OpId(0))
    pe0 gemm_f16  ready  62080 start  62080 end 102464 Edge(OpId(1))
    pe0 math      ready   7000 start   7000 end  11000 Issue
    pe0 dma_write ready 102464 start 102464 end 131504 Edge(OpId(2))
    ");
    let blocking = Options { issue: IssueMode::Blocking, start_ps: 1000, ..options(&line) };
    assert_snapshot!(table(&program, &run_with(&line, &program, &blocking)), @"
    pe0 dma_read  ready   5000 start   5000 end  34040 Issue
    pe0 dma_read  ready  36040 start  36040 end  65080 Issue
    pe0 gemm_f16  ready  67080 start  67080 end 107464 Issue
    pe0 math      ready 109464 start 109464 end 113464 Issue
    pe0 dma_write ready 115464 start 115464 end 144504 Issue
    ");
}

#[test]
fn compute_costs_are_the_formulas() {
    let line = Line::new(1, 1);
    let mut b = Build::new(1);
    let mut pe = b.pe(0);
    let x = pe.fill("x", [33, 64]);
    let w = pe.fill("w", [64, 32]);
    pe.exp("e", x, false);
    pe.exp("r", x, true);
    pe.dot("y", x, w);
    let program = b.finish();
    let timing = run(&line, &program);
    let took: Vec<Ps> = timing.pes[0].ops.iter().map(OpTiming::duration_ps).collect();
    let steps = (33 * 64_u64).div_ceil(128) * 1000;
    // Fetch 33 x 64 and 64 x 32 f16, two tiles of 16.384 ns, store 33 x 32 f32.
    let gemm = 16_250 + 2 * 16_384 + 8_250;
    assert_eq!(took, [steps, 16_000, 5 * steps, 6 * steps, gemm]);
}

#[test]
fn gemm_and_math_share_the_slot_and_the_first_ready_gets_it() {
    let mut line = Line::new(1, 1);
    let mut b = Build::new(1);
    let mut pe = b.pe(0);
    let x = pe.fill("x", [64, 128]);
    pe.fill("first", [64, 128]);
    let y = pe.dot("y", x, x);
    pe.fill("last", [64, 128]);
    pe.store(y, 0);
    let program = b.finish();
    let timing = run(&line, &program);
    // When `x` ends, `first` and `y` are ready at one instant: the lower op goes first. `last` is
    // ready only when `first` ends, after `y`.
    assert_snapshot!(table(&program, &timing), @"
    pe0 math      ready   4000 start   4000 end  68000 Issue
    pe0 math      ready   5000 start  68000 end 132000 Engine(OpId(0))
    pe0 gemm_f16  ready  68000 start 132000 end 522144 Slot(OpId(1))
    pe0 math      ready   7000 start 522144 end 586144 Slot(OpId(2))
    pe0 dma_write ready 522144 start 522144 end 663184 Edge(OpId(2))
    ");
    line.machine.accel_slot = false;
    let free = run(&line, &program);
    let first = &timing.pes[0].ops[1];
    assert_eq!(free.pes[0].ops[2].start_ps, first.start_ps);
}

#[test]
fn a_fence_waits_for_all_and_takes_no_time() {
    let line = Line::new(1, 2);
    let mut b = Build::new(2);
    let mut pe = b.pe(0);
    pe.load("x", [64, 128], 1);
    let fence = pe.fence();
    pe.fill("y", [1, 128]);
    let program = b.finish();
    let ops = &run(&line, &program).pes[0].ops;
    assert_eq!(ops[fence.at()].end_ps, ops[0].end_ps);
    assert_eq!(ops[fence.at()].duration_ps(), 0);
    assert_eq!(ops[2].start_ps, ops[0].end_ps);
    assert_eq!(ops[2].cause, Cause::Edge(fence));
}

#[test]
fn members_leave_a_barrier_together_after_the_last_and_the_longest_path_back() {
    let line = Line::new(2, 2);
    let mut b = Build::new(4);
    for p in 0..4 {
        let mut pe = b.pe(p);
        pe.fill("x", [1 + p as u32, 1280]);
        pe.barrier(Group::Cube);
        pe.barrier(Group::Sip);
    }
    let program = b.finish();
    let timing = run(&line, &program);
    let op = |p: usize, i: usize| timing.pes[p].ops[i];
    for cube in [[0, 1], [2, 3]] {
        let arrivals = cube.map(|p| op(p, 1).start_ps);
        let leave = (arrivals[0] + 2000).max(arrivals[1] + 4000) + 4000;
        assert_eq!(cube.map(|p| op(p, 1).end_ps), [leave; 2]);
    }
    let leave = op(3, 2).start_ps + 34_000 + 34_000;
    assert_eq!([0, 1, 2, 3].map(|p| op(p, 2).end_ps), [leave; 4]);
    assert_eq!(op(0, 2).peer, Some(OpRef { pe: 3, op: OpId(2) }));
}

#[test]
fn an_access_of_several_transfers_moves_one_after_another() {
    let line = Line::new(1, 2);
    let mut b = Build::new(2);
    let mut pe = b.pe(0);
    let dst = pe.tile([2, 4096], ElementType::F16);
    let near = pe.access(0, 0, 8192, 1, 0);
    pe.access(1, 0, 8192, 1, 0);
    let first = pe.op("x", crate::ir::OpKind::Load { access: near, dst });
    let mut program = b.finish();
    program.pes[0].accesses[near.at()].len = 2;
    let timing = run(&line, &program);
    let parts = [flow(0, 0, 8192), flow(0, 1, 8192)];
    let apart: Ps = parts.iter().map(|f| traffic_on(&line, &[*f], Fidelity::Message)[0].end_ps).sum();
    assert_eq!(timing.pes[0].ops[first.at()].duration_ps(), apart);
}

#[test]
fn nothing_takes_no_time() {
    let line = Line::new(1, 2);
    for pes in [0, 2] {
        let mut program = Build::new(2).finish();
        program.pes.truncate(pes);
        let timing = run_with(&line, &program, &Options { start_ps: 7, ..options(&line) });
        assert_eq!((timing.end_ps, timing.makespan_ps(), timing.pes.len()), (7, 0, pes));
    }
    let mut b = Build::new(1);
    let mut pe = b.pe(0);
    let x = pe.load("x", [0, 64], 0);
    let w = pe.fill("w", [64, 0]);
    pe.exp("e", x, true);
    pe.dot("y", x, w);
    pe.store(x, 0);
    let program = b.finish();
    let timing = run(&line, &program);
    assert!(timing.pes[0].ops.iter().all(|t| t.duration_ps() == 0));
    assert_eq!(timing.pes[0].busy_ps, [0; Engine::ALL.len()]);
}
