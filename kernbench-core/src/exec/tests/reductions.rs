use super::*;
use crate::ty::f16;

/// A matrix reduced, against the plain loop in index order.
#[test]
fn a_reduction_is_the_plain_loop_in_index_order() {
    let mut r = Random(3);
    for (rows, cols) in [(1, 1), (7, 5), (8, 1), (17, 33), (3, 3000), (40, 1)] {
        let x: Vec<f32> = (0..rows * cols).map(|_| r.float()).collect();
        for axis in [Axis::Rows, Axis::Cols] {
            for how in [Reduction::Sum, Reduction::Max, Reduction::Min] {
                let mut b = Build::new(0);
                let t = b.tile(F32, [rows as u32, cols as u32]);
                b.load(0, 0, cols as u32, t);
                let dst = b.tile(F32, if axis == Axis::Cols { [rows as u32, 1] } else { [1, cols as u32] });
                b.reduce(dst, &E::T(t), how, axis);
                let got = run_one::<f32>(b, Some(bytes(&x)), F32, dst);
                let lines: Vec<Vec<f32>> = match axis {
                    Axis::Cols => x.chunks(cols).map(<[f32]>::to_vec).collect(),
                    Axis::Rows => {
                        (0..cols).map(|j| x.iter().skip(j).step_by(cols).copied().collect()).collect()
                    }
                };
                for (got, line) in got.iter().zip(lines) {
                    let nan = line.iter().any(|x| x.is_nan());
                    let want = match how {
                        Reduction::Sum => line.iter().fold(0.0, |a, x| a + x),
                        _ if nan => f32::NAN,
                        Reduction::Max => line.iter().copied().fold(f32::NEG_INFINITY, f32::max),
                        Reduction::Min => line.iter().copied().fold(f32::INFINITY, f32::min),
                    };
                    assert!(
                        *got == want || got.is_nan() && want.is_nan(),
                        "{how:?} {axis:?}: {got}, not {want}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_half_sum_accumulates_in_f32_and_rounds_once() {
    // In f16, 2048 + 1 is 2048.
    let mut b = Build::new(0);
    let x = b.fill(F16, [1, 4096], Scalar::F32(1.0));
    let dst = b.tile(F16, [1, 1]);
    b.reduce(dst, &E::T(x), Reduction::Sum, Axis::Cols);
    assert_eq!(run_one::<f16>(b, None, F32, dst), [f16::from_f32(4096.0)]);
}

#[test]
fn an_expression_is_reduced_before_it_is_rounded() {
    // sum of exp(log 2) * ones: the products are not rounded to f16.
    let mut b = Build::new(0);
    let x = b.fill(F16, [2, 8], Scalar::F32(1.0));
    let dst = b.tile(F32, [2, 1]);
    let product = E::Op(Fun::Mul, F16, vec![E::T(x), E::F(1.0 + 2f32.powi(-12))]);
    b.reduce(dst, &product, Reduction::Sum, Axis::Cols);
    assert_eq!(run_one::<f32>(b, None, F32, dst), [8.0 + 2f32.powi(-9); 2]);
}

#[test]
fn nothing_reduces_to_the_neutral_element() {
    let (inf, how) = (f32::INFINITY, [Reduction::Sum, Reduction::Max, Reduction::Min]);
    for (how, want, int) in [(how[0], 0.0, 0), (how[1], -inf, i32::MIN), (how[2], inf, i32::MAX)] {
        for (shape, axis, to) in [([3, 0], Axis::Cols, [3, 1]), ([0, 3], Axis::Rows, [1, 3])] {
            let mut b = Build::new(0);
            let (x, dst) = (b.tile(F32, shape), b.tile(F32, to));
            b.reduce(dst, &E::T(x), how, axis);
            assert_eq!(run_one::<f32>(b, None, F32, dst), [want; 3]);
            let mut b = Build::new(0);
            let (x, dst) = (b.tile(I32, shape), b.tile(I32, to));
            b.reduce(dst, &E::T(x), how, axis);
            assert_eq!(run_one::<i32>(b, None, F32, dst), [int; 3]);
        }
    }
}

#[test]
fn an_integer_sum_wraps() {
    let mut b = Build::new(0);
    let x = b.fill(I32, [4, 3], Scalar::I32(i32::MAX));
    let dst = b.tile(I32, [1, 3]);
    b.reduce(dst, &E::T(x), Reduction::Sum, Axis::Rows);
    assert_eq!(run_one::<i32>(b, None, F32, dst), [i32::MAX.wrapping_mul(4); 3]);
}
