//! The law of empty rows: a row whose keys are all masked gives 0 through every step of the softmax.

use super::{context, floats};
use kernbench::kernels::attention::Softmax;
use kernbench::ndarray::{Array2, arr2};
use kernbench::placement::Placement;
use kernbench::prelude::*;

const D: usize = 4;

/// PEs 0 and 1 each hold 5 keys; row `i` sees the first `seen[i, pe]` keys of a PE.
#[kernel]
fn attend(s: In<f32>, v: In<f32>, seen: In<i32>, o: Out<f32>) {
    let rows = s.nrows();
    let acc = Softmax::empty(tl, rows, D);
    let seen = tl::load(seen.cols(tl::pe()..tl::pe() + 1));
    for keys in Block::new(0, 5).blocks(3) {
        scratch_scope!(buffers = 2, {
            let s = tl::load(s.cols(Block::new(tl::pe() * 5 + keys.start, keys.len)));
            let v = tl::load(v.rows(Block::new(tl::pe() * 5 + keys.start, keys.len)));
            let k_pos = tl::arange(keys, Axis::Cols);
            acc.update(tl, tl::select(tl::lt(k_pos, seen), s, f32::NEG_INFINITY), v);
        });
    }
    if tl::pe() == 1 {
        acc.send_partial(tl, Dir::IntraW);
    } else {
        acc.merge_partial(tl, Dir::IntraE);
        tl::store(o, acc.output::<f32>(tl));
    }
}

#[test]
fn a_row_without_keys_is_zero_and_never_nan() {
    // Nothing at all; nothing here; nothing there; a part of a block; everything.
    let seen = arr2(&[[0, 0], [0, 5], [5, 0], [2, 4], [5, 5]]);
    let (s, v) = (floats::<f32>([5, 10], 1), floats::<f32>([10, D], 2));
    let ctx = context();
    let place = Placement::replicated().on(1, 2);
    let a = ctx.from_array(&s, place, "s").unwrap();
    let b = ctx.from_array(&v, place, "v").unwrap();
    let c = ctx.from_array(&seen, place, "seen").unwrap();
    let mut o = ctx.empty([5, D], place, "o").unwrap();
    ctx.launch("attend", attend { s: a.input(), v: b.input(), seen: c.input(), o: o.output() }).unwrap();
    let got = ctx.read(&o).unwrap();
    let want = Array2::from_shape_fn((5, D), |(i, j)| {
        let keys: Vec<usize> = (0..10).filter(|k| ((k % 5) as i32) < seen[[i, k / 5]]).collect();
        let total: f64 = keys.iter().map(|&k| f64::from(s[[i, k]]).exp()).sum();
        let sum: f64 = keys.iter().map(|&k| f64::from(s[[i, k]]).exp() * f64::from(v[[k, j]])).sum();
        if keys.is_empty() { 0.0 } else { sum / total }
    });
    assert_eq!(got.row(0).to_vec(), [0.0; D]);
    for (got, want) in got.iter().zip(&want) {
        assert!((f64::from(*got) - want).abs() < 1e-5, "{got}, not {want}");
    }
}
