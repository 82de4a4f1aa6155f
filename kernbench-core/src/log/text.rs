//! The two text views of the log: logical, which changes only if programs do, and timed.

use super::{OpLog, Record};
use crate::engine::pe_name;
use crate::ir::{OpId, pe_names};
use crate::units::Ps;
use std::fmt::Write;

impl OpLog {
    /// One line for each op, without times, by launch; PEs whose lines differ only in the ranges they
    /// access are shown once:
    ///
    /// ```text
    /// launch 0 "decode" gqa_decode on 2 PEs, 6 ops
    /// sip0.cube0.pe{0,1}
    ///   %0 dma_read q = load q[{0,16}+16, 0:64] : f16[16, 64]  kernel.rs:12
    /// ```
    #[must_use]
    pub fn logical(&self) -> String {
        let mut out = String::new();
        let position = |pe| {
            let at = self.machine.at(pe);
            [at.sip, at.cube, at.pe]
        };
        for (i, launch) in self.launches.iter().enumerate() {
            let p = &launch.program;
            let plural = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
            let (pes, ops) = (plural(p.pes.len(), "PE"), plural(p.op_count(), "op"));
            let _ = writeln!(out, "launch {i} {:?} {} on {pes}, {ops}", p.name, p.kernel);
            for group in p.alike() {
                let first = group.members[0];
                let _ = writeln!(out, "{}", pe_names(group.members.iter().map(|m| position(m.pe))));
                for op in (0..first.ops.len() as u32).map(OpId) {
                    let text = p.text_in(&group, op, &position);
                    let _ = writeln!(out, "  {}", line(p, first, op, &text));
                }
            }
        }
        out
    }

    /// One line for each op in order of start, with times in ns:
    ///
    /// ```text
    ///      start       end
    ///      4.000    33.040  sip0.cube0.pe0 %0 dma_read q = load q[0:16, 0:64] : f16[16, 64]  kernel.rs:12
    /// ```
    #[must_use]
    pub fn timed_text(&self) -> String {
        let mut out = format!("{:>10} {:>10}\n", "start", "end");
        for record in self.timed() {
            let (start, end) = (ns(record.start_ps()), ns(record.end_ps()));
            let pe = pe_name(&self.machine, record.pe());
            let _ = writeln!(out, "{start:>10} {end:>10}  {pe} {}", record.line());
        }
        out
    }
}

impl Record<'_> {
    /// The record without PE and times: `%4 gemm_f16 s = dot %0, %2.t : f32[16, 64]  kernel.rs:14`.
    #[must_use]
    pub fn line(&self) -> String {
        line(&self.log.program, self.program, self.op, &self.expression())
    }
}

fn line(program: &crate::ir::Program, pe: &crate::ir::PeProgram, op: OpId, text: &str) -> String {
    let ir = &pe.ops[op.at()];
    let name = pe.op_name(&ir.kind);
    // The text of a fence or barrier begins with its name.
    let mut out = if text.starts_with(name) { format!("%{op} ") } else { format!("%{op} {name} ") };
    if program.binding(ir.site) != "_" {
        let _ = write!(out, "{} = ", program.binding(ir.site));
    }
    out.push_str(text);
    let ty = pe.type_text(&ir.kind);
    if !ty.is_empty() {
        let _ = write!(out, " : {ty}");
    }
    let source = program.sites.get(ir.site).source;
    let _ = write!(out, "  {}:{}", source.file, source.line);
    out
}

fn ns(ps: Ps) -> String {
    format!("{}.{:03}", ps / 1000, ps % 1000)
}
