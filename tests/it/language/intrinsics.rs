//! Every intrinsic of one PE against plain Rust.

use super::{ONE, compute, context, floats, ints};
use kernbench::ndarray::{Array2, Axis as Dim, Zip, array, concatenate};
use kernbench::prelude::*;

#[kernel]
fn float_step<T: Float>(a: In<T>, b: In<T>, o: Out<T>, f: &'static str) {
    let a = tl::load(a);
    let b = tl::load(b);
    let y = match f {
        "exp" => tl::exp(a),
        "log" => tl::log(a * a + 1.0),
        "sqrt" => tl::sqrt(a * a),
        "rsqrt" => tl::rsqrt(a * a + 1.0),
        "recip" => tl::recip(a * a + 1.0),
        "tanh" => tl::tanh(a),
        "abs" => tl::abs(a),
        "neg" => -a,
        "add" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        "div" => a / (b + 8.0),
        "scalar left" => 2.0 - a,
        "maximum" => tl::maximum(a, b),
        "minimum" => tl::minimum(a, b),
        "fma" => tl::fma(a, b, a),
        "clamp" => tl::clamp(a, -1.0, b),
        "select" => tl::select(tl::ge(a, b), a, 0.0),
        // The square root of a negative number in the arm that is not taken.
        _ => tl::select(tl::lt(a, 0.0), 0.0, tl::sqrt(a)),
    };
    tl::store(o, y);
}

/// The same in f32, rounded once.
fn float_step_in_rust(f: &str, a: f32, b: f32) -> f32 {
    match f {
        "exp" => a.exp(),
        "log" => (a * a + 1.0).ln(),
        "sqrt" => (a * a).sqrt(),
        "rsqrt" => (a * a + 1.0).sqrt().recip(),
        "recip" => (a * a + 1.0).recip(),
        "tanh" => a.tanh(),
        "abs" => a.abs(),
        "neg" => -a,
        "add" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        "div" => a / (b + 8.0),
        "scalar left" => 2.0 - a,
        "maximum" => a.max(b),
        "minimum" => a.min(b),
        "fma" => a.mul_add(b, a),
        "clamp" => a.max(-1.0).min(b),
        "select" => {
            if a >= b {
                a
            } else {
                0.0
            }
        }
        _ => {
            if a < 0.0 {
                0.0
            } else {
                a.sqrt()
            }
        }
    }
}

const EXACT: [&str; 13] = [
    "sqrt",
    "recip",
    "abs",
    "neg",
    "add",
    "sub",
    "mul",
    "div",
    "scalar left",
    "maximum",
    "minimum",
    "fma",
    "clamp",
];

/// `eps` is the distance from 1 to the next number of `T`.
fn float_steps<T: Float>(eps: f32) {
    let (a, b) = (floats::<T>([5, 9], 1), floats::<T>([5, 9], 2));
    let near = ["exp", "log", "rsqrt", "tanh"].map(|f| (f, eps));
    let exact = EXACT.into_iter().chain(["select", "not taken"]).map(|f| (f, 0.0));
    for (f, tolerance) in near.into_iter().chain(exact) {
        let got = compute(&a, &b, [5, 9], |a, b, o| float_step { a, b, o, f });
        Zip::from(&got).and(&a).and(&b).for_each(|&got, &a, &b| {
            let (a, b) = (a.to_f32(), b.to_f32());
            let want = T::from_f32(float_step_in_rust(f, a, b)).to_f32();
            let off = (got.to_f32() - want).abs();
            assert!(off <= tolerance * want.abs(), "{f}({a}, {b}) in {}: {got:?}, not {want}", T::TYPE);
        });
    }
}

#[test]
fn floating_point_steps() {
    float_steps::<f32>(1.2e-7 * 2.0);
    float_steps::<f16>(9.8e-4);
    float_steps::<bf16>(7.9e-3);
}

#[kernel]
fn int_step(a: In<i32>, b: In<i32>, o: Out<i32>, f: &'static str) {
    let a = tl::load(a);
    let b = tl::load(b);
    let y = match f {
        "add" => a + b,
        "wraps" => a * i32::MAX + b,
        "sub" => 3 - a,
        "mul" => a * b,
        "div" => a / (b + 40),
        "neg" => -a,
        "abs" => tl::abs(a),
        "maximum" => tl::maximum(a, b),
        "minimum" => tl::minimum(a, b),
        "fma" => tl::fma(a, b, 7),
        "clamp" => tl::clamp(a, -5, 5),
        "ge" => tl::select(tl::ge(a, b), 1, 0),
        "gt" => tl::select(tl::gt(a, b), 1, 0),
        "le" => tl::select(tl::le(a, b), 1, 0),
        "lt" => tl::select(tl::lt(a, b), 1, 0),
        "eq" => tl::select(tl::eq(a, b), 1, 0),
        "ne" => tl::select(tl::ne(a, b), 1, 0),
        "and" => tl::select(tl::and(tl::gt(a, 0), tl::gt(b, 0)), a, b),
        "or" => tl::select(tl::or(tl::gt(a, 0), tl::gt(b, 0)), a, b),
        _ => tl::select(tl::not(tl::gt(a, 0)), a, b),
    };
    tl::store(o, y);
}

#[test]
fn integer_steps() {
    type Want = fn(i32, i32) -> i32;
    let (a, b) = (ints([4, 10], 1), ints([4, 10], 3));
    let cases: [(&str, Want); 20] = [
        ("add", |a, b| a + b),
        ("wraps", |a, b| a.wrapping_mul(i32::MAX).wrapping_add(b)),
        ("sub", |a, _| 3 - a),
        ("mul", |a, b| a * b),
        ("div", |a, b| a / (b + 40)),
        ("neg", |a, _| -a),
        ("abs", |a, _| a.abs()),
        ("maximum", i32::max),
        ("minimum", i32::min),
        ("fma", |a, b| a * b + 7),
        ("clamp", |a, _| a.clamp(-5, 5)),
        ("ge", |a, b| (a >= b).into()),
        ("gt", |a, b| (a > b).into()),
        ("le", |a, b| (a <= b).into()),
        ("lt", |a, b| (a < b).into()),
        ("eq", |a, b| (a == b).into()),
        ("ne", |a, b| (a != b).into()),
        ("and", |a, b| if a > 0 && b > 0 { a } else { b }),
        ("or", |a, b| if a > 0 || b > 0 { a } else { b }),
        ("not", |a, b| if a > 0 { b } else { a }),
    ];
    for (f, want) in cases {
        let got = compute(&a, &b, [4, 10], |a, b, o| int_step { a, b, o, f });
        assert_eq!(got, Zip::from(&a).and(&b).map_collect(|&a, &b| want(a, b)), "{f}");
    }
}

#[kernel]
fn reduce<T: Num>(a: In<T>, b: In<T>, o: Out<T>, f: &'static str) {
    let a = tl::load(a);
    let b = tl::load(b);
    let (axis, name) = f.split_at(4);
    let axis = if axis == "cols" { Axis::Cols } else { Axis::Rows };
    let y = match name {
        " sum" => tl::sum(a, axis),
        " max" => tl::max(a + b, axis),
        _ => tl::min(a, axis),
    };
    tl::store(o, y);
}

#[test]
fn reductions_name_the_index_that_runs() {
    fn check<T: Num + PartialOrd>(a: &Array2<T>, b: &Array2<T>, add: fn(T, T) -> T) {
        let both = Zip::from(a).and(b).map_collect(|&a, &b| add(a, b));
        let most = |x: T, y: T| if y > x { y } else { x };
        let least = |x: T, y: T| if y < x { y } else { x };
        for axis in ["rows", "cols"] {
            let (dim, shape) = if axis == "cols" { (Dim(1), [6, 1]) } else { (Dim(0), [1, 7]) };
            let fold = |x: &Array2<T>, f: &dyn Fn(T, T) -> T| {
                let lane = |l: kernbench::ndarray::ArrayView1<T>| l.iter().copied().reduce(f).unwrap();
                x.map_axis(dim, lane).into_shape_with_order((shape[0], shape[1])).unwrap()
            };
            let run = |f| compute(a, b, shape, |a, b, o| reduce { a, b, o, f });
            let name = |f: &str| format!("{axis} {f}").leak();
            assert_eq!(run(name("sum")), fold(a, &add), "{axis}");
            assert_eq!(run(name("max")), fold(&both, &most), "{axis}");
            assert_eq!(run(name("min")), fold(a, &least), "{axis}");
        }
    }
    check(&floats::<f32>([6, 7], 1), &floats([6, 7], 2), |x, y| x + y);
    check(&floats::<f16>([6, 7], 1), &floats([6, 7], 2), |x, y| x + y);
    check(&ints([6, 7], 1), &ints([6, 7], 2), |x, y| x + y);
}

#[kernel]
fn product<T: Dtype>(a: In<T>, b: In<T>, o: Out<T::Acc>) {
    let a = tl::load(a);
    let b = tl::load(b);
    let y = tl::dot(a, b.t());
    tl::dot_add(y, a.reshape([5, 3]).t(), b.reshape([5, 3]));
    tl::store(o, y);
}

/// `a bT + a'T b'`, where `a'` and `b'` have the elements of `a` and `b` as `[5, 3]`; exact in f64.
fn product_in_rust(a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
    let turn = |x: &Array2<f64>| x.to_shape((5, 3)).unwrap().to_owned();
    a.dot(&b.t()) + turn(a).t().dot(&turn(b))
}

#[test]
fn products_accumulate_in_f32_and_i32() {
    fn check<T: Dtype>(a: Array2<T>, b: Array2<T>, value: fn(T) -> f64, sum: fn(T::Acc) -> f64) {
        let got = compute(&a, &b, [3, 3], |a, b, o| product { a, b, o });
        assert_eq!(got.mapv(sum), product_in_rust(&a.mapv(value), &b.mapv(value)), "{}", T::TYPE);
    }
    fn of<T: Float>() {
        check::<T>(floats([3, 5], 1), floats([3, 5], 2), |x| x.to_f32().into(), f64::from);
    }
    of::<f32>();
    of::<f16>();
    of::<bf16>();
    check::<i32>(ints([3, 5], 1), ints([3, 5], 2), f64::from, f64::from);
    let bytes = |seed| ints([3, 5], seed).mapv(|x| x as i8 * 7);
    check::<i8>(bytes(1), bytes(2), f64::from, f64::from);
    let bytes = |seed| ints([3, 5], seed).mapv(|x| (x + 16) as u8 * 7);
    check::<u8>(bytes(1), bytes(2), f64::from, f64::from);
}

#[kernel]
fn convert<T: Dtype, U: Dtype>(a: In<T>, o: Out<U>) {
    let a = tl::load(a);
    tl::store(o, a.cast::<U>());
}

#[test]
fn casts_round_to_even_and_saturate_as_rust_does() {
    fn cast<T: Dtype, U: Dtype>(from: &[T]) -> Vec<U> {
        let a = Array2::from_shape_vec((1, from.len()), from.to_vec()).unwrap();
        compute(&a, &a, [1, from.len()], |a, _, o| convert { a, o }).into_raw_vec_and_offset().0
    }
    let odd = [2049.0f32, 2051.0, -2.5, 65520.0, 1e-9, f32::NEG_INFINITY];
    assert_eq!(cast::<f32, f16>(&odd), odd.map(f16::from_f32));
    assert_eq!(cast::<f32, bf16>(&odd), odd.map(bf16::from_f32));
    assert_eq!(
        cast::<f32, i32>(&[2.9, -2.9, 1e10, f32::NAN]),
        [2.9f32, -2.9, 1e10, f32::NAN].map(|x| x as i32)
    );
    assert_eq!(cast::<i32, f32>(&[16_777_217, -3]), [16_777_217i32, -3].map(|x| x as f32));
    assert_eq!(cast::<i32, i8>(&[127, 128, -129]), [127i32, 128, -129].map(|x| x as i8));
    assert_eq!(cast::<i32, u8>(&[255, 256, -1]), [255i32, 256, -1].map(|x| x as u8));
    assert_eq!(cast::<i8, i32>(&[-128, 127]), [-128, 127]);
    assert_eq!(cast::<u8, f32>(&[0, 255]), [0.0, 255.0]);
    assert_eq!(cast::<i8, f16>(&[-3]), [f16::from_f32(-3.0)]);
}

#[kernel]
fn made(o: Out<i32>) {
    let zero = tl::zeros::<i32>([1, 4]);
    let five = tl::full([1, 4], 5);
    let up = tl::arange(3..7, Axis::Cols);
    let down = tl::arange(Block::new(10, 4), Axis::Rows);
    tl::store(o.rows(0..1), zero);
    tl::store(o.rows(1..2), five);
    tl::store(o.rows(2..3), up);
    // [4, 1] and [1, 4] broadcast to [4, 4].
    tl::store(o.rows(3..7), down * 100 + up);
    let dst = tl::eval(down * up);
    // All of the right side is read before anything is written.
    tl::copy_to(dst.rows(0..3), dst.rows(1..4));
    tl::copy_to(dst.cols(3..4), 7);
    tl::copy_to(dst.rows(3..4), up);
    tl::store(o.rows(7..11), dst);
}

#[test]
fn fills_ranges_broadcasts_and_overlapping_copies() {
    let none = ints([1, 1], 0);
    let got = compute(&none, &none, [11, 4], |_, _, o| made { o });
    let rows: Vec<Vec<i32>> = vec![vec![0; 4], vec![5; 4], (3..7).collect()]
        .into_iter()
        .chain((10..14).map(|i| (3..7).map(|j| i * 100 + j).collect()))
        .chain((11..14).map(|i| vec![i * 3, i * 4, i * 5, 7]))
        .chain([(3..7).collect()])
        .collect();
    let views: Vec<_> = rows.iter().map(|r| kernbench::ndarray::aview1(r).insert_axis(Dim(0))).collect();
    assert_eq!(got, concatenate(Dim(0), &views).unwrap());
}

#[kernel]
fn sliced(a: In<f32>, o: Out<f32>) {
    // A slice of columns of a view, and of a tile; a reshape of each.
    let part = tl::load(a.rows(1..5).cols(2..6));
    let wide = tl::load(a.reshape([6, 8]).rows(2..3));
    let tile = tl::load(a).rows(0..2).reshape([4, 4]);
    let corner = tl::eval(part.rows(1..3).cols(1..3) + tile.rows(2..4).cols(0..2));
    tl::store(o.cols(0..4), part);
    tl::store(o.cols(4..6).rows(0..2), corner);
    tl::store(o.cols(4..6).rows(2..4), wide.reshape([4, 2]).rows(1..3));
}

#[test]
fn slices_and_reshapes_of_views_and_tiles() {
    let a = floats::<f32>([6, 8], 3);
    let got = compute(&a, &a, [4, 6], |a, _, o| sliced { a, o });
    let at = |i: usize, j: usize| a[[i, j]];
    let want = Array2::from_shape_fn((4, 6), |(i, j)| match (i, j) {
        (_, 0..4) => at(1 + i, 2 + j),
        (0..2, _) => {
            // Row 2 + i, column j - 4 of the first two rows as [4, 4].
            let flat = (2 + i) * 4 + j - 4;
            at(2 + i, 3 + j - 4) + at(flat / 8, flat % 8)
        }
        _ => at(2, (i - 1) * 2 + j - 4),
    });
    assert_eq!(got, want);
}

/// Copies the rows that a table names.
#[kernel]
fn gather(table: In<i32>, x: In<f32>, y: Out<f32>) {
    for (i, row) in tl::read(table).into_iter().enumerate() {
        let row = row as usize;
        scratch_scope!({
            let x = tl::load(x.rows(row..row + 1));
            tl::store(y.rows(i..i + 1), x);
        });
    }
}

#[test]
fn a_kernel_reads_a_table() {
    let ctx = context();
    let table = ctx.from_array(&array![[3, 0, 3], [1, 2, 0]], ONE, "table").unwrap();
    let x = floats::<f32>([4, 8], 1);
    let from = ctx.from_array(&x, ONE, "x").unwrap();
    let mut y = ctx.empty::<f32>([4, 8], ONE, "y").unwrap();
    // Two columns of both rows: a strided view.
    let kernel = gather { table: table.input().cols(1..3), x: from.input(), y: y.output() };
    ctx.launch("gather", kernel).unwrap();
    let y = ctx.read(&y).unwrap();
    for (i, row) in [0, 3, 2, 0].into_iter().enumerate() {
        assert_eq!(y.row(i), x.row(row));
    }
    // Values are looked at before the loads that need them begin.
    let log = ctx.op_log();
    let read = log.records().find(|r| r.name() == "dma_read").unwrap().end_ps();
    assert!(log.records().skip(1).all(|r| r.start_ps() >= read));
}
