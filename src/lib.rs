//! kernbench: a kernel language for AI accelerators and a simulator of the machine it runs on.
