//! The rules of the simulator, one test each, on a small machine and programs by hand.

pub(crate) mod build;
pub(crate) mod fake;
pub(crate) mod laws;
mod machine;
mod queues;
mod rules;
mod stalls;

use super::traffic::traffic_on;
use super::*;
use crate::ir::PeProgram;
use build::Build;
use fake::Line;
use std::fmt::Write;

pub(crate) fn options(line: &Line) -> Options<'static> {
    Options::new(&line.machine)
}

/// Runs what must run.
pub(crate) fn run(line: &Line, program: &Program) -> Timing {
    run_with(line, program, &options(line))
}

pub(crate) fn run_with(line: &Line, program: &Program, options: &Options) -> Timing {
    match simulate_on(line, program, options) {
        Ok(timing) => timing,
        Err(stall) => panic!("{stall}"),
    }
}

/// One line for each op: its name, when it could have started, started, ended.
pub(crate) fn table(program: &Program, timing: &Timing) -> String {
    let mut out = String::new();
    let name = |pe: &PeProgram, i: usize| pe.op_name(&pe.ops[i].kind);
    for (pe, times) in program.pes.iter().zip(&timing.pes) {
        for (i, t) in times.ops.iter().enumerate() {
            let _ = writeln!(
                out,
                "pe{} {:9} ready {:6} start {:6} end {:6} {:?}",
                pe.pe,
                name(pe, i),
                t.ready_ps,
                t.start_ps,
                t.end_ps,
                t.cause
            );
        }
    }
    out
}

#[test]
#[ignore]
fn perf() {
    let line = Line::new(8, 8);
    let mut b = Build::new(64);
    let blocks = 16384 / 8;
    let base = {
        let mut b1 = Build::new(64);
        let _ = &mut b1;
    };
    let _ = base;
    for p in 0..1 {
        let mut pe = b.pe(p);
        for _ in 0..16 {
            let x = pe.load("x", [64, 128], 0);
            let w = pe.load("w", [128, 64], 0);
            let y = pe.dot("y", x, w);
            let e = pe.exp("e", y, false);
            let f = pe.exp("f", e, true);
            let g = pe.exp("g", f, true);
            pe.store(g, 0);
            pe.store(y, 0);
        }
    }
    let mut program = b.finish();
    let unit = program.pes[0].clone();
    let mut big = unit.clone();
    let reps = blocks / 16;
    for r in 1..reps {
        let off = (r * unit.ops.len()) as u32;
        let eoff = (r * unit.edges.len()) as u32;
        for op in &unit.ops {
            let mut op = op.clone();
            op.edge_end += eoff;
            big.ops.push(op);
        }
        for e in &unit.edges {
            big.edges.push(crate::ir::Edge::new(e.kind(), crate::ir::OpId(e.op().0 + off)));
        }
    }
    for p in 0..64 {
        program.pes[p] = PeProgram { pe: crate::ir::PeId(p as u32), ..big.clone() };
        for t in &mut program.pes[p].transfers {
            t.home = crate::ir::PeId(p as u32 / 2);
        }
    }
    for _ in 0..3 {
        let t = std::time::Instant::now();
        let timing = run(&line, &program);
        println!(
            "{} ops, {} events, {:?}, makespan {}",
            program.op_count(),
            timing.events,
            t.elapsed(),
            timing.makespan_ps()
        );
    }
}
