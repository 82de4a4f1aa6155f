//! Collective algorithms: kernels over IPCQ, each a file with its entry for the table.

use kernbench_core::host::Algorithm;

/// All algorithms of the library, for [`Backend::Ahbm`](kernbench_core::host::Backend).
pub const ALGORITHMS: &[Algorithm] = &[];
