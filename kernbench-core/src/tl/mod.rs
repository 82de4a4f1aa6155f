//! The kernel language: tiles, expressions, views and the intrinsics that record ops.
//!
//! A kernel is recorded, not compiled: its Rust function runs once for each PE at launch, and every
//! `tl::name(..)` appends a typed op to that PE's program. Loops, branches and helpers are plain Rust.

mod access;
mod composite;
mod expr;
mod findings;
mod gemm;
#[allow(missing_docs)] // Their documentation is on the twins that users see in `tl`.
mod intrinsics;
mod launch;
mod layout;
mod memory_map;
mod queues;
#[allow(missing_docs)] // As `intrinsics`.
mod read;
mod recorder;
mod scope;
#[allow(missing_docs)] // As `intrinsics`.
mod steps;
mod tile;
mod turns;
mod view;

pub use crate::ir::Level;
pub use expr::{Expr, Operand};
pub use gemm::{Factor, Gemm, GemmInput, GemmOutput, Side, StoredAs};
pub use launch::{Grid, Launch, Newest, TensorState, Values};
pub use recorder::Recorder;
pub use scope::{At, Frame, Scope};
pub use tile::{Matrix, Pending, Tile, Transposed};
pub use view::{In, InOut, Out, Raw, Readable, Writable};

use crate::diag::{Diagnostic, Failure};
use crate::ir::{Draft, PeProgram, Program, TensorId, TensorInfo};
use crate::ty::{Axis, Block, Dir, Dtype, Float, Group, Mask, Num};
use recorder::Shared;
use std::rc::Rc;

/// A kernel with its arguments; `#[kernel]` implements it.
pub trait Kernel: Sync {
    /// The function's name.
    const NAME: &'static str;
    /// Runs the function for one PE.
    fn record(&self, tl: &Scope);
    /// The tensors among its arguments, in order; they give a launch its grid.
    fn tensors(&self) -> Vec<TensorId>;
}

/// Records a kernel on every PE of a launch.
///
/// # Errors
/// Every mistake the recording finds, one for each source place.
pub fn record<K: Kernel>(kernel: &K, name: &str, launch: &Rc<Launch>) -> Result<Draft, Failure> {
    let mut shared = Shared { ops_left: launch.max_ops, ..Shared::default() };
    let mut pes: Vec<PeProgram> = vec![];
    for pe in launch.grid.pes(&launch.topology) {
        let recorder = Rc::new(Recorder::new(launch.clone(), pe, shared, pes.last()));
        let scope = Scope::root(recorder.clone());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| kernel.record(&scope)));
        drop(scope);
        let (program, rest) = recorder.finish();
        shared = rest;
        pes.push(program);
        if let Err(panic) = outcome {
            let mut d = panicked(panic.as_ref(), K::NAME, recorder.at);
            if let Some(op) = pes.last().and_then(|pe| pe.ops.last()) {
                d = shared.sites.label(d, op.site);
                d.labels[0].text = "the last op before it".to_owned();
            }
            // What was wrong before may be why.
            let mut found = shared.findings.finish(&shared.sites);
            found.push(d);
            return Err(Failure(found));
        }
    }
    let found = shared.findings.finish(&shared.sites);
    if !found.is_empty() {
        return Err(Failure(found));
    }
    Ok(Draft(Program {
        name: name.to_owned(),
        kernel: K::NAME,
        tensors: launch.tensors.iter().map(|t| t.as_ref().map_or_else(freed, |t| t.info.clone())).collect(),
        pes,
        links: launch.links.links.clone(),
        sites: shared.sites,
        scratch_bytes: launch.scratch_bytes,
    }))
}

/// What stands for a tensor that was freed: no view of it can be recorded.
fn freed() -> TensorInfo {
    TensorInfo { name: String::new(), ty: crate::ty::ElementType::U8, shape: [0, 0] }
}

fn panicked(panic: &(dyn std::any::Any + Send), kernel: &str, at: crate::topology::PeAt) -> Diagnostic {
    let why = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    Diagnostic::error(
        "KB0113",
        format!("kernel `{kernel}` panicked on PE {} of cube {} of SIP {}: {why}", at.pe, at.cube, at.sip),
    )
    .help("a kernel is ordinary Rust while it records: look for an index, an unwrap or an assertion")
}

/// What the macros' expansions name.
#[doc(hidden)]
pub mod __rt {
    pub use super::{Kernel, Scope};
    pub use crate::ir::{Source, TensorId};
    /// Keeps an import of `tl` counted as used.
    pub const USED: () = ();
}

/// Holds only inside a kernel: the documentation twins of the intrinsics require it.
#[diagnostic::on_unimplemented(
    message = "`tl` intrinsics only work inside a `#[kernel]` or `#[device]` function",
    label = "called outside a kernel",
    note = "mark the function `#[device]` and take `tl: &Scope` as its first argument"
)]
pub trait InsideKernel {}

/// The place of the code that is being compiled.
#[derive(Debug)]
pub struct Here;

/// Opens a scratch scope inside a kernel; the `#[kernel]` and `#[device]` macros expand it.
#[macro_export]
macro_rules! scratch_scope {
    ($($t:tt)*) => {
        compile_error!("`scratch_scope!` only works inside a `#[kernel]` or `#[device]` function")
    };
}

kernbench_macros::tl_twins! {}
