//! Laws that hold for any machine and program, looked at after every run: where one does not hold, the
//! simulator is wrong, and says so instead of giving a wrong number.

use super::state::{ENGINES, Pe};
use super::timing::OpTiming;
use crate::ir::{OpId, OpKind, PeProgram};
use crate::topology::Machine;
use crate::units::Ps;

/// A law that an op breaks, as what a user is told of the op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub op: OpId,
    pub law: &'static str,
}

/// The first law that a PE breaks which has come to its end; `end` is that of the run, `start` its stamp.
pub(super) fn broken(machine: &Machine, program: &PeProgram, pe: &Pe, start: Ps, end: Ps) -> Option<Broken> {
    for (i, (op, t)) in program.ops.iter().zip(&pe.ops).enumerate() {
        if let Some(law) = law_of_op(machine, program, &op.kind, t, start, end) {
            return Some(Broken { op: OpId(i as u32), law });
        }
    }
    (0..ENGINES)
        .find(|e| pe.busy[*e] > end - start)
        .map(|e| Broken { op: pe.last[e], law: "ends a run in which its engine worked longer than it took" })
}

fn law_of_op(
    machine: &Machine,
    program: &PeProgram,
    kind: &OpKind,
    t: &OpTiming,
    start: Ps,
    end: Ps,
) -> Option<&'static str> {
    if t.start_ps < start.max(t.ready_ps) {
        return Some("started before it could");
    }
    if t.end_ps < t.start_ps || t.end_ps > end {
        return Some("ended before it started, or after the run");
    }
    if t.contention_ps > end - start {
        return Some("moved its bytes faster than alone on the machine");
    }
    let least = match kind {
        OpKind::Load { .. } | OpKind::Store { .. } => {
            // Each burst takes a channel of its slice for a time.
            let bursts = program.bytes_of(kind) / machine.flit_bytes;
            bursts / u64::from(machine.hbm.channels) * machine.hbm.burst_ps
        }
        OpKind::Dot { a, .. } => {
            let [m, k, n] = program.mkn(kind)?.map(u64::from);
            machine.gemm.rate(program.tile(*a).ty).time(2 * m * k * n)
        }
        _ => 0,
    };
    (t.end_ps - t.start_ps < least).then_some("took less time than its bytes or operations need")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::state::Pe;
    use crate::engine::tests::build::Build;
    use crate::engine::tests::{fake::Line, run};

    /// What is said of a run of a load and a dot after `edit`.
    fn said(edit: impl FnOnce(&mut Pe)) -> Option<(u32, &'static str)> {
        let line = Line::new(1, 1);
        let mut b = Build::new(1);
        let x = b.pe(0).load("x", [64, 64], 0);
        b.pe(0).dot("y", x, x);
        let program = b.finish();
        let timing = run(&line, &program);
        let mut pe = Pe::new(&program.pes[0], 0, line.machine.issue);
        (pe.ops, pe.busy) = (timing.pes[0].ops.clone(), timing.pes[0].busy_ps);
        edit(&mut pe);
        broken(&line.machine, &program.pes[0], &pe, timing.start_ps, timing.end_ps).map(|b| (b.op.0, b.law))
    }

    #[test]
    fn each_broken_law_is_found() {
        assert_eq!(said(|_| ()), None);
        let early = said(|pe| pe.ops[1].start_ps = pe.ops[1].ready_ps - 1);
        assert_eq!(early, Some((1, "started before it could")));
        let late = said(|pe| pe.ops[1].end_ps += 1);
        assert_eq!(late, Some((1, "ended before it started, or after the run")));
        let fast = said(|pe| pe.ops[0].contention_ps = Ps::MAX);
        assert_eq!(fast, Some((0, "moved its bytes faster than alone on the machine")));
        let short = said(|pe| pe.ops[0].end_ps = pe.ops[0].start_ps + 1);
        assert_eq!(short, Some((0, "took less time than its bytes or operations need")));
        let short = said(|pe| pe.ops[1].start_ps = pe.ops[1].end_ps);
        assert_eq!(short, Some((1, "took less time than its bytes or operations need")));
        let busy = said(|pe| pe.busy[0] = 1 << 40);
        assert_eq!(busy.map(|b| b.1), Some("ends a run in which its engine worked longer than it took"));
    }
}
