use super::*;

/// A product of slices of random shape, each operand maybe transposed, against the plain loop.
#[test]
fn a_dot_is_the_plain_chain_of_fused_multiply_adds() {
    let mut r = Random(11);
    for case in 0..300 {
        let size =
            |r: &mut Random| [1 + r.below(9), 1 + r.below(40), 1 + r.below(140)][r.below(3) as usize] as u32;
        let (m, n) = (size(&mut r), size(&mut r));
        let k = if case % 17 == 0 { 300 + r.below(300) as u32 } else { size(&mut r) };
        let [a_t, b_t, accumulate, pad] = [0; 4].map(|_| r.below(2) == 1);
        let mut b = Build::new(0);
        let mut input: Vec<f32> = vec![];
        let mut operand = |b: &mut Build, shape: [u32; 2]| {
            let at = if pad { [1, 2] } else { [0, 0] };
            let whole = [shape[0] + at[0], shape[1] + at[1] + at[0]];
            let base = b.tile(F32, whole);
            let first = input.len();
            // Of widely different size, so that order and rounding show.
            input.extend(
                (0..whole[0] * whole[1])
                    .map(|_| (r.below(2001) as f32 - 1000.0) * 2f32.powi(r.below(24) as i32 - 12)),
            );
            b.load(0, first as u64, whole[1], base);
            let tile = b.slice(base, at, shape);
            let value = input[first..].to_vec();
            (tile, move |i: u32, j: u32| value[((i + at[0]) * whole[1] + j + at[1]) as usize])
        };
        let (at, a) = operand(&mut b, if a_t { [k, m] } else { [m, k] });
        let (bt, bv) = operand(&mut b, if b_t { [n, k] } else { [k, n] });
        let (dst, c) = operand(&mut b, [m, n]);
        b.op(OpKind::Dot { dst, a: at, b: bt, a_t, b_t, accumulate });
        let got = run_one::<f32>(b, Some(bytes(&input)), F32, dst);
        for i in 0..m {
            for j in 0..n {
                let term = |l| (if a_t { a(l, i) } else { a(i, l) }, if b_t { bv(j, l) } else { bv(l, j) });
                let from = if accumulate { c(i, j) } else { 0.0 };
                let want = (0..k).map(term).fold(from, |acc, (x, y)| x.mul_add(y, acc));
                let got = got[(i * n + j) as usize];
                assert_eq!(got.to_bits(), want.to_bits(), "case {case} {m}x{k}x{n} {a_t} {b_t} ({i}, {j})");
            }
        }
    }
}

/// Long chains pass through many blocks of k and keep their order.
#[test]
fn a_long_dot_is_the_plain_chain_too() {
    let mut r = Random(17);
    let (m, k, n) = (9, 8192, 35);
    for (a_t, b_t) in [(false, false), (true, true)] {
        let mut b = Build::new(0);
        let [x, y] = [m * k, k * n].map(|len| {
            (0..len)
                .map(|_| (r.below(2001) as f32 - 1000.0) * 2f32.powi(r.below(24) as i32 - 12))
                .collect::<Vec<_>>()
        });
        let (at, bt) =
            (b.tile(F32, if a_t { [k, m] } else { [m, k] }), b.tile(F32, if b_t { [n, k] } else { [k, n] }));
        b.load(0, 0, if a_t { m } else { k }, at);
        b.load(0, u64::from(m * k), if b_t { k } else { n }, bt);
        let dst = b.tile(F32, [m, n]);
        b.op(OpKind::Dot { dst, a: at, b: bt, a_t, b_t, accumulate: false });
        let got = run_one::<f32>(b, Some(bytes(&[x.clone(), y.clone()].concat())), F32, dst);
        for (at, got) in got.iter().enumerate() {
            let (i, j) = (at as u32 / n, at as u32 % n);
            let a = |l| x[(if a_t { l * m + i } else { i * k + l }) as usize];
            let b = |l| y[(if b_t { j * k + l } else { l * n + j }) as usize];
            let want = (0..k).fold(0.0f32, |acc, l| a(l).mul_add(b(l), acc));
            assert_eq!(got.to_bits(), want.to_bits(), "{a_t} {b_t} ({i}, {j})");
        }
    }
}

/// A tile that changes between products is packed anew.
#[test]
fn kept_operands_are_those_of_their_tile() {
    let mut b = Build::new(0);
    let mut input: Vec<f32> = (0..64 * 40).map(|i| i as f32).collect();
    let x = b.fill(F32, [64, 40], Scalar::F32(1.0));
    let y = b.tile(F32, [64, 40]);
    b.load(0, 0, 40, y);
    let sums = b.tile(F32, [64, 64]);
    for value in [2.0, 3.0] {
        b.op(OpKind::Dot { dst: sums, a: x, b: y, a_t: false, b_t: true, accumulate: false });
        let corner = b.slice(y, [5, 7], [1, 1]);
        b.op(OpKind::Fill { dst: corner, value: Scalar::F32(value) });
        input[5 * 40 + 7] = value;
    }
    b.op(OpKind::Dot { dst: sums, a: x, b: y, a_t: false, b_t: true, accumulate: false });
    let got = run_one::<f32>(b, Some(bytes(&(0..64 * 40).map(|i| i as f32).collect::<Vec<_>>())), F32, sums);
    let want: Vec<f32> = input.chunks(40).map(|row| row.iter().sum()).collect();
    assert!(got.chunks(64).all(|row| row == want), "{:?}", &got[..64]);
}

/// Hosts without vectors or without AVX-512 give the same bits.
#[test]
fn every_instruction_set_gives_the_same_bits() {
    for [m, k, n] in [[13, 37, 45], [40, 300, 70], [3, 9, 5]] {
        instruction_sets(m, k, n);
    }
}

fn instruction_sets(m: usize, k: usize, n: usize) {
    use super::super::dot::{Output, dot_floats};
    use super::super::packing::Packing;
    use super::super::tiles::View;
    let mut r = Random(13);
    let [a, b] = [m * k, k * n].map(|len| (0..len).map(|_| r.below(1000) as f32 / 7.0).collect::<Vec<_>>());
    let run = |arch| {
        let mut out = vec![0.0; m * n];
        let a = View { data: &a, rows: m, cols: k, row: k, col: 1 };
        let b = View { data: &b, rows: k, cols: n, row: n, col: 1 };
        let to = Output { data: &mut out, row: n, accumulate: false };
        dot_floats(arch, &mut Packing::default(), a, (b, 1), to);
        out
    };
    let best = run(pulp::Arch::new());
    assert_eq!(best, run(pulp::Arch::Scalar));
    #[cfg(target_arch = "x86_64")]
    if let Some(v3) = pulp::x86::V3::try_new() {
        assert_eq!(best, run(pulp::Arch::V3(v3)));
    }
}

#[test]
fn integers_accumulate_in_i32_and_wrap() {
    for (ty, input) in [(I8, vec![0x80u8, 0x80, 0x7F, 1]), (U8, vec![255, 254, 3, 1])] {
        let mut b = Build::new(0);
        let x = b.tile(ty, [2, 2]);
        b.load(0, 0, 2, x);
        let dst = b.fill(I32, [2, 2], Scalar::I32(i32::MAX));
        b.op(OpKind::Dot { dst, a: x, b: x, a_t: false, b_t: true, accumulate: true });
        let got = run_one::<i32>(b, Some(input.clone()), ty, dst);
        let v: Vec<i32> =
            input.iter().map(|b| if ty == I8 { i32::from(*b as i8) } else { i32::from(*b) }).collect();
        let want = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| {
            let sum: i64 = (0..2).map(|k| i64::from(v[2 * i + k]) * i64::from(v[2 * j + k])).sum();
            (i64::from(i32::MAX) + sum) as i32
        });
        assert_eq!(got, want);
    }
}

#[test]
fn a_dot_over_nothing_is_zero_or_what_was_there() {
    for (accumulate, want) in [(false, 0.0), (true, 3.0)] {
        let mut b = Build::new(0);
        let (x, y) = (b.tile(F32, [2, 0]), b.tile(F32, [0, 3]));
        let dst = b.fill(F32, [2, 3], Scalar::F32(3.0));
        b.op(OpKind::Dot { dst, a: x, b: y, a_t: false, b_t: false, accumulate });
        assert_eq!(run_one::<f32>(b, None, F32, dst), [want; 6]);
    }
}

#[test]
fn a_nan_reaches_exactly_its_row() {
    let mut b = Build::new(0);
    let x = b.fill(F32, [5, 9], Scalar::F32(1.0));
    let one = b.slice(x, [3, 4], [1, 1]);
    b.op(OpKind::Fill { dst: one, value: Scalar::F32(f32::NAN) });
    let y = b.fill(F32, [9, 4], Scalar::F32(0.0));
    let dst = b.tile(F32, [5, 4]);
    b.op(OpKind::Dot { dst, a: x, b: y, a_t: false, b_t: false, accumulate: false });
    let got = run_one::<f32>(b, None, F32, dst);
    assert!(got.iter().enumerate().all(|(i, x)| x.is_nan() == (i / 4 == 3)), "{got:?}");
}
