//! Laws of whole programs: all models agree where they must, DMA channels, double buffering.

use super::laws::{cases, random};
use super::model::Model;
use super::*;
use crate::ir::{Engine, OpKind, PeId, Transfer};
use crate::topology::{BufferKind, Topology};
use crate::units::{Ps, Rate};

/// The first op that differs in two timings.
fn difference(program: &Program, a: &Timing, b: &Timing) -> Option<String> {
    for (pe, (a, b)) in program.pes.iter().zip(a.pes.iter().zip(&b.pes)) {
        for (i, (x, y)) in a.ops.iter().zip(&b.ops).enumerate() {
            if x != y {
                return Some(format!("pe{} op {i} ({})\n{x:?}\n{y:?}", pe.pe, pe.op_name(&pe.ops[i].kind)));
            }
        }
    }
    (a.pes != b.pes || a.end_ps != b.end_ps).then(|| format!("{} and {} ps", a.end_ps, b.end_ps))
}

#[test]
fn exact_models_agree_on_random_programs() {
    for seed in 0..40 {
        let line = Line::new(2, 3);
        let program = random(seed, 6);
        let kind = [BufferKind::Tcm, BufferKind::Sram, BufferKind::Hbm][seed as usize % 3];
        let slots = SlotConfig { kind, n_slots: 1 + seed as u32 % 2, ..SlotConfig::default() };
        let options = Options { slots, ..options(&line) };
        let plain = Model::Plain.timing(&line, &program, &options);
        for model in Model::EXACT {
            let other = model.timing(&line, &program, &options);
            assert_eq!(difference(&program, &plain, &other), None, "seed {seed}, {model:?}");
        }
    }
}

/// The same on machines of two SIPs, of 2 cubes of 3 PEs each.
#[test]
fn exact_models_agree_on_random_programs_of_two_sips() {
    for (seed, policy) in (0..20).zip(["first", "striped"].into_iter().cycle()) {
        let t = machines::changed(&[
            ("sip.cube_mesh", "{w: 2, h: 1}".into()),
            ("sip.io.phys.count", "1".into()),
            ("cube.pes.grid", "{w: 3, h: 1}".into()),
            ("cube.pes.routers", "[r0c1, r5c0, r4c5]".into()),
            ("cube.noc.router_gbs", ["256", "100"][seed as usize / 2 % 2].into()),
            ("cube.ucie.policy", policy.into()),
        ]);
        let program = random(seed, 12);
        let options = Options::new(t.machine());
        let plain = Model::Plain.timing(&t, &program, &options);
        for model in Model::EXACT {
            let other = model.timing(&t, &program, &options);
            assert_eq!(difference(&program, &plain, &other), None, "seed {seed}, {model:?}");
        }
    }
}

#[test]
fn a_program_without_contention_takes_the_same_in_all_models() {
    let line = Line::new(1, 2);
    let mut b = Build::new(2);
    let mut pe = b.pe(0);
    let x = pe.load("x", [32, 64], 1);
    let w = pe.load("w", [64, 32], 0);
    let y = pe.dot("y", x, w);
    pe.send(crate::ty::Dir::E, x);
    pe.store(y, 1);
    b.pe(1).recv("z", crate::ty::Dir::W, [32, 64]);
    let program = b.finish();
    let plain = Model::Plain.timing(&line, &program, &options(&line));
    let message = Model::MESSAGE.timing(&line, &program, &options(&line));
    assert_eq!(difference(&program, &plain, &message), None);
}

/// Little's law: the time DMAs hold their channels is the integral of how many are outstanding, and
/// that is never more than a read and a write of each PE.
#[test]
fn outstanding_dmas_obey_littles_law() {
    for (_, program, timing) in cases() {
        let (mut changes, mut held) = (vec![], 0);
        for (pe, times) in program.pes.iter().zip(&timing.pes) {
            held += times.busy_ps[Engine::DmaRead as usize] + times.busy_ps[Engine::DmaWrite as usize];
            for (op, t) in pe.ops.iter().zip(&times.ops) {
                if matches!(op.kind, OpKind::Load { .. } | OpKind::Store { .. }) {
                    changes.extend([(t.start_ps, 1), (t.end_ps, -1_i64)]);
                }
            }
        }
        changes.sort_unstable();
        let (mut integral, mut outstanding, mut last) = (0, 0_i64, 0);
        for (time, change) in changes {
            integral += (time - last) * outstanding as Ps;
            (outstanding, last) = (outstanding + change, time);
            assert!((0..=2 * program.pes.len() as i64).contains(&outstanding));
        }
        assert_eq!((integral, outstanding), (held, 0));
    }
}

#[test]
fn engines_of_a_kind_are_busy_at_most_wall_time_by_their_number() {
    for (_, program, timing) in cases() {
        for e in 0..Engine::ALL.len() {
            let busy: Ps = timing.pes.iter().map(|pe| pe.busy_ps[e]).sum();
            assert!(busy <= timing.makespan_ps() * program.pes.len() as Ps);
        }
    }
}

/// With two buffers, tile `i + 2` is loaded when tile `i` has been computed on, so loads and
/// computations overlap but for the first load and the last computation.
#[test]
fn double_buffering_takes_l_plus_n_minus_1_times_the_longer_plus_c() {
    let line = Line::new(1, 2);
    for model in Model::ALL {
        // Loads from the own slice take less than computing on what they load, or as long, or more.
        for (shape, home) in [([32, 64], 0), ([8, 128], 1), ([1, 200], 1), ([100, 128], 1)] {
            for n in 1..12 {
                let mut b = Build::new(2);
                let mut pe = b.pe(0);
                let buffers = [pe.load("x", shape, home), pe.load("x", shape, home)];
                for i in 0..n {
                    pe.exp("e", buffers[i % 2], false);
                    if i + 2 < n {
                        pe.reload(buffers[i % 2], home);
                    }
                }
                let program = b.finish();
                let timing = model.timing(&line, &program, &options(&line));
                let times = &timing.pes[0].ops;
                let (load, compute) = (times[0].duration_ps(), times[2].duration_ps());
                let last = program.pes[0].ops.iter().rposition(|o| matches!(o.kind, OpKind::Map { .. }));
                let took = times[last.unwrap_or(0)].end_ps - times[0].start_ps;
                let n = n as Ps;
                assert_eq!(took, load + (n - 1) * load.max(compute) + compute, "{shape:?} {n} {model:?}");
            }
        }
    }
}

#[test]
fn a_message_takes_two_slot_accesses_and_a_credit_more_than_raw_dma_on_real_paths() {
    let t = Topology::default_machine();
    let slots = Options::new(t.machine()).slots;
    let me = PeId(0);
    // To cube 1, to PE 1, to SIP 1, with the bottlenecks on the way.
    for (to, gbs) in [(PeId(8), 128.0), (PeId(1), 256.0), (PeId(128), 128.0)] {
        let mut b = Build::new(2);
        let x = b.pe(0).fill("x", [16, 512]);
        let send = b.pe(0).send(crate::ty::Dir::E, x);
        b.pe(1).recv("y", crate::ty::Dir::W, [16, 512]);
        let mut program = b.finish();
        program.pes[1].pe = to;
        for link in &mut program.links {
            (link.from, link.to) = if link.from == me { (me, to) } else { (to, me) };
        }
        let transfer = Transfer { home: to, run_bytes: 16 << 10, runs: 1, ..Transfer::default() };
        let raw = Flow { issuer: Issuer::Dma(me), transfer, start_ps: 0 };
        let slot = t.machine().slot_cost(slots.kind).time(16 << 10);
        let credit = Rate::gbs(gbs).time(16);
        for model in Model::ALL {
            let timing = model.timing(&t, &program, &Options::new(t.machine()));
            let took = timing.pes[1].ops[0].end_ps - timing.pes[0].ops[send.at()].start_ps;
            let dma = model.traffic(&t, &[raw])[0].end_ps;
            assert_eq!(took, dma + 2 * slot + credit - 8000, "{model:?}");
        }
    }
}
