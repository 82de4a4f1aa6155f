//! Composite GEMMs: closed forms of their pipeline, an oracle, bounds, and their place in program order.

use super::laws::Random;
use super::*;
use crate::ir::{Composite, Engine, EpilogueFun, EpilogueStep, Level, OpId, OpKind, Operand, TileId};
use crate::topology::IssueMode;
use crate::ty::ElementType;

/// Fetch of two f16 tiles (32 x 64 and 64 x 32), a product of them, store of an f16 tile.
const F: Ps = 16_000;
const G: Ps = 16_384;
const ST: Ps = 4_000;

fn relu(level: Level) -> EpilogueStep {
    EpilogueStep { fun: EpilogueFun::Relu, level, operand: Operand::None }
}

/// One step of MATH over an output tile.
const M: Ps = 8_000;

/// What a DMA of a tile of 4 KiB to the own slice takes alone.
fn tile_ps(line: &Line) -> Ps {
    let mut b = Build::new(1);
    b.pe(0).load("x", [32, 64], 0);
    run(line, &b.finish()).pes[0].ops[0].duration_ps()
}

/// A composite alone, its operands and output made in no time before.
fn alone(line: &Line, mkn: [u32; 3], hbm: [bool; 3], epilogue: &[EpilogueStep]) -> (Program, Timing) {
    let mut b = Build::new(1);
    let mut pe = b.pe(0);
    let tiles = [pe.tile([mkn[0], mkn[1]], ElementType::F16), pe.tile([mkn[1], mkn[2]], ElementType::F16)];
    let tiles = [tiles[0], tiles[1], pe.tile([mkn[0], mkn[2]], ElementType::F16)];
    let places = [0, 1, 2].map(|i| if hbm[i] { Ok(0) } else { Err(tiles[i]) });
    pe.composite("c", mkn, places, epilogue);
    let program = b.finish();
    let timing = run(line, &program);
    (program, timing)
}

fn took(line: &Line, mkn: [u32; 3], hbm: [bool; 3], epilogue: &[EpilogueStep]) -> Ps {
    alone(line, mkn, hbm, epilogue).1.pes[0].ops[0].duration_ps()
}

#[test]
fn with_everything_in_tcm_the_slowest_stage_sets_the_pace() {
    let mut line = Line::new(1, 1);
    for [i, k, j] in [[1, 1, 1], [1, 5, 1], [2, 3, 4]] {
        let (mkn, steps) = ([32 * i, 64 * k, 32 * j], Ps::from(i * k * j));
        assert_eq!(took(&line, mkn, [false; 3], &[]), F + steps * G + ST);
    }
    // With MATH for each output tile in one slot with GEMM, the slot is never free in between.
    let mkn = [32, 64, 32 * 6];
    assert_eq!(took(&line, mkn, [false; 3], &[relu(Level::OutputTile)]), F + 6 * (G + M) + ST);
    // Each on its own, or with eight K tiles to an output tile, MATH hides.
    line.machine.accel_slot = false;
    assert_eq!(took(&line, mkn, [false; 3], &[relu(Level::OutputTile)]), F + 6 * G + M + ST);
    // A step on the whole output comes after all tiles; what it works on is stored at 4 bytes an element.
    assert_eq!(took(&line, mkn, [false; 3], &[relu(Level::Kernel)]), F + 6 * G + 2 * ST + 6 * M);
}

#[test]
fn reading_n_tiles_with_two_buffers_takes_l_and_n_less_one_times_the_larger_and_c() {
    let mut line = Line::new(1, 1);
    let tile = tile_ps(&line);
    for n in [1, 2, 3, 9] {
        let mkn = [32, 64 * n, 32];
        // Both operands: L is two transfers, C a fetch, a product and, once, the store.
        let (l, n) = (2 * tile, Ps::from(n));
        assert!(l > F + G);
        assert_eq!(took(&line, mkn, [true, true, false], &[]), l + (n - 1) * l.max(F + G) + F + G + ST);
    }
    // A slow matrix engine: reading hides behind it.
    line.machine.gemm.half = crate::units::Rate::tflops(1.0);
    let slow = 131_072;
    for n in [1, 2, 3, 9] {
        let mkn = [32, 64 * n, 32];
        let (l, n) = (2 * tile, Ps::from(n));
        assert_eq!(took(&line, mkn, [true, true, false], &[]), l + F + n * slow + ST);
    }
}

#[test]
fn a_tile_that_is_in_scratch_already_is_not_read() {
    let line = Line::new(1, 1);
    let tile = tile_ps(&line);
    // One K tile: the left operand stays for all output tiles of a row, the only right one for all rows.
    let l = |reads: Ps| reads * tile + F + G + ST;
    assert_eq!(took(&line, [32, 64, 128], [true, true, false], &[]), l(5));
    assert_eq!(took(&line, [128, 64, 32], [true, true, false], &[]), l(5));
    assert_eq!(took(&line, [32, 64, 128], [false, true, false], &[]), l(4));
    let c = |mkn| alone(&line, mkn, [true; 3], &[]).0.pes[0].composites[0].clone();
    let reads = |c: &Composite| {
        let tiles = (0..c.steps()).flat_map(|s| [c.read(0, s), c.read(1, s)]);
        tiles.flatten().count() as u64
    };
    for mkn in [[32, 64, 128], [128, 64, 32], [64, 128, 96], [32, 128, 32]] {
        let c = c(mkn);
        assert_eq!(c.read_bytes(), reads(&c) * 4096, "{mkn:?}");
    }
}

/// When a composite alone ends, by the recurrence that its documentation states, if GEMM and MATH do not
/// share a slot and no transfers meet.
fn by_recurrence(line: &Line, c: &Composite, tile_read: &dyn Fn(u64) -> Ps, write: Ps) -> Ps {
    let (steps, k, outputs) = (c.steps() as usize, c.tiles()[1] as usize, c.output_tiles() as usize);
    let (by_k, tile) = (c.has(Level::KTile), c.has(Level::OutputTile));
    let size = |s: usize| {
        let [i, l, j] = c.step(s as u32);
        [c.extent(0, i), c.extent(1, l), c.extent(2, j)].map(u64::from)
    };
    let lanes = |elements: u64| elements.div_ceil(128) * 1000;
    let before = |v: &[Ps], i: usize, n: usize| if i >= n { v[i - n] } else { 0 };
    let [mut read, mut fetch, mut gemm, mut math] = [const { Vec::<Ps>::new() }; 4];
    let (mut store, mut written): (Vec<Ps>, Vec<Ps>) = (vec![], vec![]);
    for s in 0..steps {
        let [m, d, n] = size(s);
        let mut at = before(&read, s, 1);
        let needed = [(0, m * d), (1, d * n)].into_iter().filter(|(x, _)| c.read(*x, s as u32).is_some());
        for (x, _) in needed.clone() {
            at = at.max(before(&fetch, s, 1 + c.run(x) as usize));
        }
        read.push(at + needed.map(|(_, elements)| tile_read(elements * 2)).sum::<Ps>());
        let at = read[s];
        fetch.push(
            at.max(before(&fetch, s, 1)).max(before(&gemm, s, 2))
                + line.machine.tcm.read.time((m * d + d * n) * 2),
        );
        let o = s / k;
        let free = if by_k { before(&math, s, 2) } else { before(&store, o, 2) };
        gemm.push(fetch[s].max(before(&gemm, s, 1)).max(free) + G);
        let last = s % k + 1 == k;
        if by_k || (tile && last) {
            let weight = if by_k { 2 } else { 0 } + u64::from(tile && last);
            let at = gemm[s].max(math.last().copied().unwrap_or(0));
            math.push(at.max(before(&store, o, 2)) + weight * lanes(m * n));
        }
        if last {
            let ready = if by_k || tile { math.last().copied().unwrap_or(0) } else { gemm[s] };
            let at = ready.max(before(&store, o, 1));
            let at = if written.is_empty() { at } else { at.max(before(&written, o, 2)) };
            store.push(at + line.machine.tcm.write.time(m * n * 2));
            if c.out.access().is_some() {
                written.push(store[o].max(before(&written, o, 1)) + write);
            }
        }
    }
    assert_eq!(store.len(), outputs);
    written.last().or(store.last()).copied().unwrap_or(0)
}

#[test]
fn a_composite_alone_equals_its_recurrence() {
    let mut line = Line::new(1, 1);
    line.machine.accel_slot = false;
    let mut r = Random(5);
    for case in 0..200 {
        let mkn = [1 + r.below(70) as u32, 1 + r.below(300) as u32, 1 + r.below(100) as u32];
        // Reads and writes share edges: not both.
        let out = case % 3 == 0;
        let hbm = [!out && r.below(2) == 0, !out && r.below(2) == 0, out];
        // Whole tiles where the output is in HBM, so that every write takes the same.
        let mkn = if out { [mkn[0].next_multiple_of(32), mkn[1], mkn[2].next_multiple_of(32)] } else { mkn };
        let levels = [Level::KTile, Level::OutputTile];
        let epilogue: Vec<EpilogueStep> = levels.into_iter().filter(|_| r.below(2) == 0).map(relu).collect();
        let (program, timing) = alone(&line, mkn, hbm, &epilogue);
        let transfer = |bytes: u64| {
            let mut b = Build::new(1);
            b.pe(0).load("x", [1, bytes as u32 / 2], 0);
            run(&line, &b.finish()).pes[0].ops[0].duration_ps()
        };
        let want = by_recurrence(&line, &program.pes[0].composites[0], &transfer, transfer(2048));
        let got = timing.pes[0].ops[0].duration_ps();
        assert_eq!(got, want, "{mkn:?} {hbm:?} {epilogue:?}");
    }
}

/// Composites among other ops, in order on every engine.
pub(crate) fn mixed(seed: u64) -> Program {
    let mut r = Random(seed);
    let mut b = Build::new(2);
    for p in 0..2 {
        let mut pe = b.pe(p);
        let mut last = None;
        for _ in 0..2 + r.below(5) {
            let mkn = [1 + r.below(70) as u32, 1 + r.below(150) as u32, 1 + r.below(70) as u32];
            let x = pe.load("x", [mkn[0], mkn[1]], r.below(2) as u32);
            let w = pe.fill("w", [mkn[1], mkn[2]]);
            let y = pe.fill("y", [mkn[0], mkn[2]]);
            match r.below(4) {
                0 => _ = pe.dot("d", x, w),
                1 => _ = pe.exp("e", x, true),
                _ => {}
            }
            let home = r.below(2) as u32;
            let place = |r: &mut Random, t: TileId| if r.below(2) == 0 { Ok(home) } else { Err(t) };
            let places = [place(&mut r, x), place(&mut r, w), place(&mut r, y)];
            let all = [Level::KTile, Level::OutputTile, Level::Kernel];
            let steps: Vec<EpilogueStep> = all.into_iter().filter(|_| r.below(3) == 0).map(relu).collect();
            let c = pe.composite("c", mkn, places, &steps);
            if places[2].is_err() {
                pe.store(y, 0);
            }
            match r.below(4) {
                0 => _ = pe.join(c),
                1 => _ = pe.fence(),
                _ => {}
            }
            last = Some(c);
        }
        if let Some(c) = last {
            pe.join(c);
        }
    }
    b.finish()
}

#[test]
fn among_other_ops_nothing_is_faster_than_its_work_and_the_slot_is_never_held_twice() {
    for seed in 0..60 {
        let mut line = Line::new(1, 2);
        line.machine.accel_slot = seed % 4 != 0;
        let program = mixed(seed);
        let issue = if seed % 5 == 0 { IssueMode::Blocking } else { IssueMode::Dataflow };
        let timing = run_with(&line, &program, &Options { issue, start_ps: 77, ..options(&line) });
        for (pe, times) in program.pes.iter().zip(&timing.pes) {
            assert!(times.busy_ps.iter().all(|&b| b <= timing.makespan_ps()));
            let accel = times.busy_ps[Engine::Math as usize] + times.busy_ps[Engine::Gemm as usize];
            assert!(accel <= timing.makespan_ps() || !line.machine.accel_slot, "one slot");
            for (i, op) in pe.ops.iter().enumerate() {
                let t = times.ops[i];
                assert!(t.ready_ps <= t.start_ps && t.start_ps <= t.end_ps && t.end_ps <= timing.end_ps);
                for edge in pe.edges_of(OpId(i as u32)) {
                    assert!(times.ops[edge.op().at()].end_ps <= t.start_ps, "{:?}", op.kind);
                }
                let OpKind::Composite { composite } = op.kind else { continue };
                let c = pe.composite(composite);
                let flop = 2 * c.mkn.map(u64::from).iter().product::<u64>();
                let bytes = c.read_bytes().max(c.written_bytes());
                let least = line.machine.gemm.half.time(flop).max(bytes * 1000 / 256);
                assert!(t.duration_ps() >= least, "{c:?}");
            }
        }
        // The same later, whoever begins first.
        let later = run_with(&line, &program, &Options { issue, start_ps: 1077, ..options(&line) });
        assert_eq!(timing.makespan_ps(), later.makespan_ps());
        let options = Options { issue, start_ps: 77, ..options(&line) };
        let ids = Ids::new(program.pes.iter());
        let wires = FlitWires::new(&line.machine, ids.len());
        let alone = [Submitted::alone(&program, &options)];
        let mut sim = Simulation::new(&line, &alone, ids, wires);
        sim.take_stamp(0);
        [1, 0].into_iter().for_each(|p| sim.begin(p));
        assert_eq!(timing, sim.drain().unwrap_or_else(|(_, s)| panic!("{s}"))[0]);
    }
}

#[test]
fn a_composite_keeps_each_engine_only_as_long_as_it_needs_it() {
    let line = Line::new(1, 1);
    let mut b = Build::new(1);
    let mut pe = b.pe(0);
    let mkn = [32, 256, 64];
    let (w, y) = (pe.tile([256, 64], ElementType::F16), pe.tile([32, 64], ElementType::F16));
    let first = pe.composite("c", mkn, [Ok(0), Err(w), Err(y)], &[relu(Level::OutputTile)]);
    let load = OpId(first.0 + 1);
    let x = pe.load("x", [32, 64], 0);
    let dot = OpId(load.0 + 1);
    pe.dot("d", x, w);
    let second = pe.composite("c2", mkn, [Ok(0), Err(w), Ok(0)], &[]);
    let join = pe.join(first);
    let program = b.finish();
    let timing = run(&line, &program);
    let op = |op: OpId| timing.pes[0].ops[op.at()];
    // The load follows the eighth tile, long before the composite's end; the dot waits for the load and
    // the last product, whichever is later; the second composite reads while the first multiplies.
    let tile = tile_ps(&line);
    assert_eq!(op(load).start_ps, op(first).start_ps + 8 * tile);
    assert_eq!(op(load).cause, Cause::Engine(first));
    assert!(op(dot).start_ps >= op(load).end_ps && op(dot).start_ps < op(second).end_ps);
    assert_eq!(op(second).start_ps, op(load).end_ps);
    assert_eq!((op(join).start_ps, op(join).end_ps), (op(first).end_ps, op(first).end_ps));
}

#[test]
fn the_mmu_translates_each_page_of_a_transfer_before_its_first_flit() {
    let mut line = Line::new(1, 1);
    let time = |line: &Line, addr: u64, run_bytes: u32, runs: u32, stride: u32| {
        let mut b = Build::new(1);
        let mut pe = b.pe(0);
        let dst = pe.tile([runs, run_bytes / 2], ElementType::F16);
        let access = pe.access(0, addr, run_bytes, runs, stride);
        pe.op("x", OpKind::Load { access, dst });
        run(line, &b.finish()).pes[0].ops[0].duration_ps()
    };
    let cases = [
        ((0, 4096, 1, 0), 1),
        (((2 << 20) - 2048, 4096, 1, 0), 2),
        ((0, 256, 4, 4096), 1),
        ((0, 256, 4, 2 << 20), 4),
        (((2 << 20) - 256, 256, 2, 256), 2),
        ((0, 5 << 20, 1, 0), 3),
    ];
    for ((addr, run_bytes, runs, stride), pages) in cases {
        line.machine.mmu.overhead_ps = 0;
        let free = time(&line, addr, run_bytes, runs, stride);
        line.machine.mmu.overhead_ps = 700;
        assert_eq!(time(&line, addr, run_bytes, runs, stride), free + 700 * pages);
    }
    // A composite's transfers, too.
    let with = took(&line, [32, 128, 32], [true, true, false], &[]);
    line.machine.mmu.overhead_ps = 0;
    assert_eq!(with, took(&line, [32, 128, 32], [true, true, false], &[]) + 4 * 700);
}
