//! The two text views of the log: logical, which changes only if programs do, and timed.

use super::{OpLog, Record};
use crate::engine::pe_name;
use crate::units::Ps;
use std::fmt::Write;

impl OpLog {
    /// One line for each op, without times, by launch and PE:
    ///
    /// ```text
    /// launch 0 "decode" gqa_decode on 2 PEs, 6 ops
    /// sip0.cube0.pe0
    ///   %0 dma_read f16[16, 64] q = q[0..16, 0..64]  kernel.rs:12
    /// ```
    #[must_use]
    pub fn logical(&self) -> String {
        let mut out = String::new();
        for (i, launch) in self.launches.iter().enumerate() {
            let p = &launch.program;
            let (pes, ops) = (p.pes.len(), p.op_count());
            let plural = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
            let (pes, ops) = (plural(pes, "PE"), plural(ops, "op"));
            let _ = writeln!(out, "launch {i} {:?} {} on {pes}, {ops}", p.name, p.kernel);
            let mut pe = None;
            for record in self.launch(i) {
                if pe != Some(record.pe()) {
                    pe = Some(record.pe());
                    let _ = writeln!(out, "{}", pe_name(&self.machine, record.pe()));
                }
                let _ = writeln!(out, "  {}", record.line());
            }
        }
        out
    }

    /// One line for each op in order of start, with times in ns:
    ///
    /// ```text
    ///      start       end
    ///      4.000    33.040  sip0.cube0.pe0 %0 dma_read f16[16, 64] q = q[0..16, 0..64]  kernel.rs:12
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
    /// `%4 gemm_f16 f32[16, 64] s = dot(%0, %2.t)  kernel.rs:14`
    #[must_use]
    pub fn line(&self) -> String {
        let mut out = format!("%{} {}", self.op, self.name());
        if let Some([rows, cols]) = self.shape() {
            let _ = write!(out, " {}[{rows}, {cols}]", self.element_type());
        }
        if self.binding() != "_" {
            let _ = write!(out, " {} =", self.binding());
        }
        match self.expression() {
            text if text.is_empty() => {}
            text => _ = write!(out, " {text}"),
        }
        let site = self.site();
        let _ = write!(out, "  {}:{}", site.file, site.line);
        out
    }

    fn element_type(&self) -> &'static str {
        use crate::ir::OpKind::{RecvAsync, Send, Store};
        let tile = match self.op_kind() {
            Store { src, .. } | Send { src, .. } => Some(*src),
            RecvAsync { dst, .. } => Some(*dst),
            kind => self.program.written(kind),
        };
        tile.map_or("", |t| self.program.tile(t).ty.name())
    }
}

fn ns(ps: Ps) -> String {
    format!("{}.{:03}", ps / 1000, ps % 1000)
}
