//! Laws of what the probe says, on several machines.
