//! The rules of the simulator, one test each, on a small machine and programs by hand; its laws, on
//! random machines, traffic and programs; and the plain engine that moves every flit.

pub(crate) mod build;
pub(crate) mod composites;
pub(crate) mod fake;
mod error;
mod fifo;
mod launches;
pub(crate) mod flits;
pub(crate) mod laws;
pub(crate) mod machines;
pub(crate) mod model;
mod noc;
mod program_laws;
mod published;
mod queues;
pub(crate) mod random;
mod rules;
mod stalls;
mod star;
mod traffic_laws;
mod wire_laws;

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
