//! Attention of one head over the places of an open line: each holds a part of the keys.
//!
//! Work: `2 * 2 * queries * keys * d` flop in all. In `attention_mesh_kv` keys and values travel and queries stay, as in
//! ring attention (Liu et al., 2023) on a line that is not closed; in `attention_mesh_mlo` partials travel.

use super::{Line, Softmax};
use kernbench_core::prelude::*;
use kernbench_macros::{device, kernel};

/// What the places of a line are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankAxis {
    /// The PEs of a cube.
    Pe,
    /// PE 0 of each cube.
    Cube,
}

/// The place of this PE on the line of a launch; `columns` are those of the grid of PEs, or of the mesh of cubes.
#[device]
fn line_of(tl: &Scope, axis: RankAxis, columns: usize) -> Line {
    match axis {
        RankAxis::Pe => Line::of_pes(tl::pe(), tl::num_programs(0), columns),
        RankAxis::Cube => Line::of_cubes(tl::cube(), tl::num_programs(1), columns),
    }
}

/// Prefill: each place owns the queries of its shard and gets the keys of all. A shard of keys is cut into blocks that
/// fit a slot; with one block there are `2 n^2` GEMMs at `n` places. Not causal.
#[kernel]
pub fn attention_mesh_kv<T: Float>(
    /// (queries, d), row-wise over the places.
    q: In<T>,
    /// (keys, d), row-wise over the places.
    k: In<T>,
    /// Laid out like `k`.
    v: In<T>,
    /// Laid out like `q`.
    o: Out<T>,
    axis: RankAxis,
    columns: usize,
    scale: f32,
) {
    let (q, k, v, o) = (tl::load(q.local()), k.local(), v.local(), o.local());
    let line = line_of(tl, axis, columns);
    let acc = Softmax::empty(tl, q.nrows(), q.ncols());
    let fits = tl::slot_size() / (T::TYPE.bytes() as usize * q.ncols()).max(1);
    for keys in Block::new(0, k.nrows()).blocks(fits.max(1)) {
        scratch_scope!(buffers = 2, {
            let (kt, vt) = (tl::load(k.rows(keys)), tl::load(v.rows(keys)));
            for (_, [kt, vt]) in line.share(tl, [kt, vt]) {
                let s = tl::dot(q, kt.t());
                acc.update(tl, s * scale, vt);
            }
        });
    }
    tl::store(o, acc.output::<T>(tl));
}

/// Decode: each place folds its keys into one partial of all queries; all partials go to all places, which merge them
/// in order of rank, so that all have the same bits. `2 n` GEMMs at `n` places.
#[kernel]
pub fn attention_mesh_mlo<T: Float>(
    /// (queries, d), replicated.
    q: In<T>,
    /// (keys, d), row-wise over the places.
    k: In<T>,
    /// Laid out like `k`.
    v: In<T>,
    /// (places * queries, d), row-wise: every place writes all outputs.
    o: Out<T>,
    axis: RankAxis,
    columns: usize,
    scale: f32,
) {
    let (q, kt, vt) = (tl::load(q), tl::load(k.local()), tl::load(v.local()));
    let line = line_of(tl, axis, columns);
    let own = Softmax::empty(tl, q.nrows(), q.ncols());
    let s = tl::dot(q, kt.t());
    own.update(tl, s * scale, vt);
    let acc = Softmax::empty(tl, q.nrows(), q.ncols());
    for rows in own.messages(tl) {
        scratch_scope!({
            let mut all = line.share(tl, own.rows(rows).tiles());
            all.sort_by_key(|(rank, _)| *rank);
            for (_, tiles) in all {
                acc.rows(rows).merge(tl, Softmax::from(tiles));
            }
        });
    }
    tl::store(o.local(), acc.output::<T>(tl));
}
