//! The cache of keys, or values, of a sequence: new vectors are put behind those of the past.

use super::Layout;
use kernbench_core::prelude::*;
use kernbench_macros::kernel;

/// Vectors of a block.
const BLOCK: usize = 64;

/// Writes the past of each head, and new vectors behind it: heads are spread over all PEs of a SIP. Reads and
/// writes each element once.
#[kernel]
pub fn extend_cache<T: Dtype>(
    /// (batch, heads, past, d); left out, there is no past.
    past: Option<In<T>>,
    /// (batch, heads, new, d) in any layout.
    new: In<T>,
    /// (batch, heads, past + new, d).
    present: Out<T>,
    layout: Layout,
    batch: usize,
    heads: usize,
) {
    let (pes, all) = (tl::num_programs(0), tl::num_programs(0) * tl::num_programs(1));
    let d = present.ncols();
    let length = present.nrows() / (batch * heads).max(1);
    let old = past.map_or(0, |past| past.nrows() / (batch * heads).max(1));
    for i in (tl::cube() * pes + tl::pe()..batch * heads).step_by(all) {
        for at in Block::new(0, old).blocks(BLOCK) {
            scratch_scope!(buffers = 2, {
                if let Some(past) = past {
                    let x = tl::load(past.rows(Block::new(i * old + at.start, at.len)));
                    tl::store(present.rows(Block::new(i * length + at.start, at.len)), x);
                }
            });
        }
        for at in Block::new(0, length - old).blocks(BLOCK) {
            scratch_scope!(buffers = 2, {
                let head = Block::new(i % heads, 1);
                let [rows, cols] = layout.part(i / heads, [heads, length - old, d], head, at);
                let x = tl::load(new.rows(rows).cols(cols));
                tl::store(present.rows(Block::new(i * length + old + at.start, at.len)), x);
            });
        }
    }
}
