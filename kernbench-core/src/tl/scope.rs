//! Scratch scopes: who may allocate, and where intrinsics are called.

use super::recorder::Recorder;
use crate::ir::Source;
use std::rc::Rc;

/// A scratch scope. Tiles made in it live until it closes. Inside a kernel it is called `tl`.
pub struct Scope {
    pub(crate) rec: Rc<Recorder>,
    pub(crate) turn: u32,
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "scratch scope {}", self.turn)
    }
}

/// A scope and the place of one intrinsic call in it.
#[derive(Clone, Copy, Debug)]
pub struct At<'s> {
    pub(crate) scope: &'s Scope,
    pub(crate) source: &'static Source,
}

impl Scope {
    /// The scope of a whole kernel.
    pub(crate) fn root(rec: Rc<Recorder>) -> Scope {
        let turn = rec.open_root();
        Scope { rec, turn }
    }

    /// Opens a scope inside this one; what `scratch_scope!` expands to.
    #[doc(hidden)]
    #[must_use]
    pub fn enter(&self, source: &'static Source, buffers: u32) -> Scope {
        let turn = self.rec.open(self.turn, source, buffers);
        Scope { rec: self.rec.clone(), turn }
    }

    /// The place of an intrinsic call; what `tl::name(..)` expands to.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn at(&self, source: &'static Source) -> At<'_> {
        At { scope: self, source }
    }

    /// Marks the place of a call of a `#[device]` function that is about to happen.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn here(&self, source: &'static Source) -> &Scope {
        self.rec.call(source);
        self
    }

    /// Enters the body of a `#[device]` function.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn frame(&self) -> Frame {
        self.rec.push_frame();
        Frame(self.rec.clone())
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.rec.close(self.turn);
    }
}

/// The body of a `#[device]` function while it runs.
#[doc(hidden)]
#[derive(Debug)]
pub struct Frame(Rc<Recorder>);

impl Drop for Frame {
    #[inline]
    fn drop(&mut self) {
        self.0.pop_frame();
    }
}
