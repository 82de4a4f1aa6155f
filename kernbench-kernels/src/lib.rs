//! Attention kernels.
