//! The macros of kernbench.
