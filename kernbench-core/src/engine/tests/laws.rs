//! Laws that hold for any program, on pseudo-random ones.

use super::flits::FlitWires;
use super::model::Model;
use super::*;
use crate::engine::sim::Simulation;
use crate::engine::wires::Wires;
use crate::ir::{Engine, OpKind};
use crate::topology::IssueMode;
use crate::ty::Dir::{E, W};
use crate::ty::Group;

/// The same numbers for the same seed, everywhere.
pub(crate) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A program of balanced rounds: each PE loads, computes, passes a tile east, stores.
pub(crate) fn random(seed: u64, pes: u32) -> Program {
    let mut r = Random(seed);
    let mut b = Build::new(pes);
    for _ in 0..1 + r.below(4) {
        let barrier = r.below(4);
        let shape = [1 + r.below(40) as u32, 16 * (1 + r.below(8) as u32)];
        for p in 0..pes {
            let mut pe = b.pe(p as usize);
            let x = pe.load("x", shape, r.below(pes.into()) as u32);
            let w = pe.load("w", [shape[1], 32], r.below(pes.into()) as u32);
            let e = pe.exp("e", x, r.below(2) == 0);
            let y = pe.dot("y", x, w);
            if p + 1 < pes {
                pe.send(E, x);
            }
            if p > 0 {
                let z = pe.recv("z", W, shape);
                pe.exp("f", z, false);
            }
            pe.store(if r.below(2) == 0 { y } else { e }, r.below(pes.into()) as u32);
            match barrier {
                0 => _ = pe.barrier(Group::Cube),
                1 => _ = pe.barrier(Group::Sip),
                2 => _ = pe.fence(),
                _ => {}
            }
        }
    }
    b.finish()
}

pub(crate) fn cases() -> impl Iterator<Item = (Line, Program, Timing)> {
    (0..40).flat_map(|seed| Model::ALL.map(|model| (seed, model))).map(|(seed, model)| {
        let line = Line::new(2, 3);
        let program = random(seed, 6);
        let issue = if seed % 3 == 0 { IssueMode::Blocking } else { IssueMode::Dataflow };
        let options = Options { issue, start_ps: seed * 100, ..options(&line) };
        let timing = model.timing(&line, &program, &options);
        (line, program, timing)
    })
}

#[test]
fn an_op_takes_at_least_its_work_and_starts_after_its_edges() {
    for (line, program, timing) in cases() {
        for (pe, times) in program.pes.iter().zip(&timing.pes) {
            for (i, op) in pe.ops.iter().enumerate() {
                let t = times.ops[i];
                let least = match &op.kind {
                    OpKind::Load { .. } | OpKind::Store { .. } => pe.bytes_of(&op.kind) * 1000 / 256,
                    kind @ OpKind::Dot { a, .. } => {
                        let [m, k, n] = pe.mkn(kind).unwrap_or_default().map(u64::from);
                        line.machine.gemm.rate(pe.tile(*a).ty).time(2 * m * k * n)
                    }
                    _ => 0,
                };
                assert!(t.duration_ps() >= least, "{op:?}");
                assert!(
                    timing.start_ps < t.ready_ps && t.ready_ps <= t.start_ps && t.end_ps <= timing.end_ps
                );
                for edge in pe.edges_of(crate::ir::OpId(i as u32)) {
                    assert!(times.ops[edge.op().at()].end_ps <= t.start_ps);
                }
            }
        }
    }
}

#[test]
fn engines_serve_in_order_and_are_busy_at_most_all_the_time() {
    for (_, program, timing) in cases() {
        for (pe, times) in program.pes.iter().zip(&timing.pes) {
            assert!(times.busy_ps.iter().all(|&b| b <= timing.makespan_ps()));
            let accel = times.busy_ps[Engine::Math as usize] + times.busy_ps[Engine::Gemm as usize];
            assert!(accel <= timing.makespan_ps(), "one slot");
            for engine in Engine::ALL {
                let served = pe.ops.iter().zip(&times.ops).filter(|(o, _)| o.kind.engine() == engine);
                let mut free = 0;
                for (_, t) in served {
                    assert!(t.start_ps >= free);
                    free = t.end_ps;
                }
            }
        }
    }
}

fn begin<W: Wires>(mut sim: Simulation<'_, W>, order: [usize; 6]) -> Timing {
    sim.take_stamp(0);
    order.into_iter().for_each(|p| sim.begin(p));
    sim.drain().unwrap_or_else(|(_, s)| panic!("{s}")).remove(0)
}

#[test]
fn the_order_in_which_pes_begin_does_not_show() {
    for seed in 0..20 {
        let line = Line::new(2, 3);
        let program = random(seed, 6);
        let options = options(&line);
        let alone = [Submitted::alone(&program, &options)];
        let message = || MessageWires::new(&line.machine, program.op_count());
        let plain = || FlitWires::new(&line);
        let straight = [0, 1, 2, 3, 4, 5];
        let by_message =
            begin(Simulation::new(&line, &alone, Ids::new(program.pes.iter()), message()), straight);
        let by_flit = begin(Simulation::new(&line, &alone, Ids::new(program.pes.iter()), plain()), straight);
        for order in [[5, 4, 3, 2, 1, 0], [3, 0, 5, 1, 4, 2]] {
            assert_eq!(
                by_message,
                begin(Simulation::new(&line, &alone, Ids::new(program.pes.iter()), message()), order)
            );
            assert_eq!(
                by_flit,
                begin(Simulation::new(&line, &alone, Ids::new(program.pes.iter()), plain()), order)
            );
        }
        assert_eq!(by_message, Model::MESSAGE.timing(&line, &program, &options));
        assert_eq!(by_flit, Model::Plain.timing(&line, &program, &options));
    }
}

#[test]
fn a_later_launch_stamp_moves_everything_by_as_much() {
    for seed in 0..10 {
        let line = Line::new(2, 3);
        let program = random(seed, 6);
        let a = run(&line, &program);
        let b = run_with(&line, &program, &Options { start_ps: 12_345, ..options(&line) });
        assert_eq!(a.makespan_ps(), b.makespan_ps());
        for (a, b) in a.pes.iter().zip(&b.pes) {
            assert!(a.ops.iter().zip(&b.ops).all(|(a, b)| a.start_ps + 12_345 == b.start_ps));
        }
    }
}
