use super::*;
use crate::ty::{bf16, f16};

#[derive(Clone, Copy, Debug)]
enum V {
    F(f32),
    I(i32),
}

/// A tile of the model: its values by row and column.
struct Model {
    tiles: Vec<(TileId, [u32; 2], Vec<V>)>,
}

fn round_to(ty: ElementType, x: f32) -> f32 {
    match ty {
        F16 => f16::from_f32(x).to_f32(),
        Bf16 => bf16::from_f32(x).to_f32(),
        _ => x,
    }
}

impl Model {
    /// The value of an expression at one element: a plain walk of the tree. Basic operations go through
    /// f64, where sum, product, quotient and root of f32 round to f32 as if they were exact.
    fn at(&self, e: &E, i: u32, j: u32) -> V {
        let (fun, ty, args) = match e {
            E::F(x) => return V::F(*x),
            E::I(x) => return V::I(*x),
            E::T(t) => {
                let (_, [rows, cols], v) = self.tiles.iter().find(|m| m.0 == *t).expect("known tile");
                let (i, j) = (if *rows == 1 { 0 } else { i }, if *cols == 1 { 0 } else { j });
                return v[(i * cols + j) as usize];
            }
            E::Op(fun, ty, args) => (*fun, *ty, args.iter().map(|a| self.at(a, i, j)).collect::<Vec<_>>()),
        };
        let wide = |k: usize| match args[k] {
            V::F(x) => f64::from(x),
            V::I(x) => f64::from(x),
        };
        let pick = |less: bool| match (args[0], args[1]) {
            (V::I(a), V::I(b)) => V::I(if less { a.min(b) } else { a.max(b) }),
            (V::F(a), V::F(b)) if a.is_nan() || b.is_nan() => V::F(f32::NAN),
            (V::F(a), V::F(b)) => {
                let first = a.total_cmp(&b)
                    == if less { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater };
                V::F(if first { a } else { b })
            }
            _ => unreachable!(),
        };
        let mask = |b: bool| V::I(i32::from(b));
        match (fun, &args[..]) {
            (Fun::Select, [m, a, b]) => {
                if matches!(m, V::I(0)) {
                    *b
                } else {
                    *a
                }
            }
            (Fun::Cast, [V::F(x)]) => match ty {
                I32 => V::I(*x as i32),
                I8 => V::I(i32::from(*x as i8)),
                U8 => V::I(i32::from(*x as u8)),
                ty => V::F(round_to(ty, *x)),
            },
            (Fun::Cast, [V::I(x)]) => match ty {
                I32 => V::I(*x),
                I8 => V::I(i32::from(*x as i8)),
                U8 => V::I(i32::from(*x as u8)),
                F32 => V::F(*x as f32),
                ty => V::F(nearest(ty, *x)),
            },
            (Fun::Ge, _) => mask(wide(0) >= wide(1)),
            (Fun::Gt, _) => mask(wide(0) > wide(1)),
            (Fun::Le, _) => mask(wide(0) <= wide(1)),
            (Fun::Lt, _) => mask(wide(0) < wide(1)),
            (Fun::Eq, _) => mask(wide(0) == wide(1)),
            (Fun::Ne, _) => mask(wide(0) != wide(1)),
            (Fun::And, [V::I(a), V::I(b)]) => mask(*a == 1 && *b == 1),
            (Fun::Or, [V::I(a), V::I(b)]) => mask(*a == 1 || *b == 1),
            (Fun::Not, [V::I(a)]) => mask(*a == 0),
            (Fun::Max, _) => pick(false),
            (Fun::Min, _) => pick(true),
            (_, [V::F(_), ..]) => V::F(match fun {
                Fun::Copy => wide(0) as f32,
                Fun::Add => (wide(0) + wide(1)) as f32,
                Fun::Sub => (wide(0) - wide(1)) as f32,
                Fun::Mul => (wide(0) * wide(1)) as f32,
                Fun::Div => (wide(0) / wide(1)) as f32,
                Fun::Neg => -wide(0) as f32,
                Fun::Abs => wide(0).abs() as f32,
                Fun::Fma => (wide(0) as f32).mul_add(wide(1) as f32, wide(2) as f32),
                Fun::Sqrt => wide(0).sqrt() as f32,
                Fun::Rsqrt => (1.0 / f64::from(wide(0).sqrt() as f32)) as f32,
                Fun::Recip => (1.0 / wide(0)) as f32,
                Fun::Exp => functions::exp(wide(0) as f32),
                Fun::Log => functions::log(wide(0) as f32),
                Fun::Tanh => functions::tanh(wide(0) as f32),
                _ => unreachable!(),
            }),
            (_, [V::I(a), rest @ ..]) => {
                let wide = |v: &V| if let V::I(x) = v { i64::from(*x) } else { unreachable!() };
                let a = i64::from(*a);
                V::I(match (fun, rest) {
                    (Fun::Add, [b]) => a + wide(b),
                    (Fun::Sub, [b]) => a - wide(b),
                    (Fun::Mul, [b]) => a.wrapping_mul(wide(b)),
                    (Fun::Div, [b]) => {
                        if wide(b) == 0 {
                            0
                        } else {
                            a / wide(b)
                        }
                    }
                    (Fun::Fma, [b, c]) => a.wrapping_mul(wide(b)).wrapping_add(wide(c)),
                    (Fun::Neg, _) => -a,
                    (Fun::Abs, _) => a.abs(),
                    _ => a,
                } as i32)
            }
            _ => unreachable!(),
        }
    }
}

/// The value of a half type nearest to an integer, ties to even, by looking at all of them.
fn nearest(ty: ElementType, x: i32) -> f32 {
    let distance = |y: f32| (f64::from(y) - f64::from(x)).abs();
    if ty == F16 {
        return f16::from_f32(x as f32).to_f32(); // integers that f16 holds at all are exact in f32
    }
    let guess = bf16::from_f32(x as f32).to_bits();
    let near =
        [guess.wrapping_sub(1), guess, guess.wrapping_add(1)].map(|b| (b & 1, bf16::from_bits(b).to_f32()));
    near.into_iter()
        .min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)).then(a.0.cmp(&b.0)))
        .map_or(0.0, |x| x.1)
}

const FLOAT_FUNS: [(Fun, usize); 16] = [
    (Fun::Add, 2),
    (Fun::Sub, 2),
    (Fun::Mul, 2),
    (Fun::Div, 2),
    (Fun::Neg, 1),
    (Fun::Abs, 1),
    (Fun::Max, 2),
    (Fun::Min, 2),
    (Fun::Fma, 3),
    (Fun::Exp, 1),
    (Fun::Log, 1),
    (Fun::Sqrt, 1),
    (Fun::Rsqrt, 1),
    (Fun::Recip, 1),
    (Fun::Tanh, 1),
    (Fun::Copy, 1),
];
const INT_FUNS: [(Fun, usize); 9] = [
    (Fun::Add, 2),
    (Fun::Sub, 2),
    (Fun::Mul, 2),
    (Fun::Div, 2),
    (Fun::Neg, 1),
    (Fun::Abs, 1),
    (Fun::Max, 2),
    (Fun::Min, 2),
    (Fun::Fma, 3),
];
const COMPARISONS: [Fun; 6] = [Fun::Ge, Fun::Gt, Fun::Le, Fun::Lt, Fun::Eq, Fun::Ne];

/// A random expression of a type over tiles of that type.
fn random(r: &mut Random, floats: &[TileId], ints: &[TileId], ty: ElementType, depth: u32) -> E {
    let float = ty != I32;
    if depth == 0 {
        return match r.below(4) {
            0 if float => E::F(r.float()),
            0 => E::I(r.int()),
            _ if float => E::T(floats[r.below(floats.len() as u64) as usize]),
            _ => E::T(ints[r.below(ints.len() as u64) as usize]),
        };
    }
    match r.below(8) {
        0 => {
            let m = random_mask(r, floats, ints, depth - 1);
            let [a, b] = [0; 2].map(|_| random(r, floats, ints, ty, depth - 1));
            E::Op(Fun::Select, ty, vec![m, a, b])
        }
        1 => {
            let from = [F32, I32][r.below(2) as usize];
            E::Op(Fun::Cast, ty, vec![random(r, floats, ints, from, depth - 1)])
        }
        _ => {
            let (fun, n) =
                if float { FLOAT_FUNS[r.below(16) as usize] } else { INT_FUNS[r.below(9) as usize] };
            E::Op(fun, ty, (0..n).map(|_| random(r, floats, ints, ty, depth - 1)).collect())
        }
    }
}

fn random_mask(r: &mut Random, floats: &[TileId], ints: &[TileId], depth: u32) -> E {
    match r.below(if depth == 0 { 1 } else { 4 }) {
        1 => E::Op(Fun::And, Mask, (0..2).map(|_| random_mask(r, floats, ints, depth - 1)).collect()),
        2 => E::Op(Fun::Or, Mask, (0..2).map(|_| random_mask(r, floats, ints, depth - 1)).collect()),
        3 => E::Op(Fun::Not, Mask, vec![random_mask(r, floats, ints, depth - 1)]),
        _ => {
            let ty = [F32, I32][r.below(2) as usize];
            let args = (0..2).map(|_| random(r, floats, ints, ty, depth.saturating_sub(1))).collect();
            E::Op(COMPARISONS[r.below(6) as usize], Mask, args)
        }
    }
}

/// Every function, broadcast, slice, reshape, cast and destination type, against the walk of the tree.
#[test]
fn random_expressions_equal_a_scalar_walk_bit_for_bit() {
    let mut r = Random(7);
    for case in 0..400 {
        let [rows, cols] = [1 + r.below(9) as u32, [1, 3, 16, 70, 2500][r.below(5) as usize]];
        let mut b = Build::new(0);
        let mut model = Model { tiles: vec![] };
        let mut input: (Vec<f32>, Vec<i32>) = (vec![], vec![]);
        let (mut floats, mut ints) = (vec![], vec![]);
        for k in 0..8u32 {
            let shape = [[rows, cols], [rows, 1], [1, cols], [1, 1]][(k % 4) as usize];
            // Half of them are slices of a larger tile; reshaping does not move anything.
            let (whole, at) =
                if r.below(2) == 0 { (shape, [0, 0]) } else { ([shape[0] + 2, shape[1] + 3], [1, 2]) };
            let float = k < 4;
            let base = b.tile(if float { F32 } else { I32 }, [whole[0] * whole[1], 1]);
            let n = u64::from(whole[0] * whole[1]);
            let mut v: Vec<V> = vec![];
            let offset = if float { input.0.len() } else { input.1.len() } as u64;
            for _ in 0..n {
                if float {
                    input.0.push(r.float());
                    v.push(V::F(input.0[input.0.len() - 1]));
                } else {
                    input.1.push(r.int());
                    v.push(V::I(input.1[input.1.len() - 1]));
                }
            }
            b.load(if float { 0 } else { 2 }, offset, 1, base);
            let matrix = b.reshape(base, whole);
            let tile = b.slice(matrix, at, shape);
            let index = |i: u32, j: u32| ((at[0] + i) * whole[1] + at[1] + j) as usize;
            let seen =
                (0..shape[0]).flat_map(|i| (0..shape[1]).map(move |j| (i, j))).map(|(i, j)| v[index(i, j)]);
            model.tiles.push((tile, shape, seen.collect()));
            if float { floats.push(tile) } else { ints.push(tile) }
        }
        let ty = [F16, Bf16, F32, I32][r.below(4) as usize];
        let e = random(&mut r, &floats, &ints, ty, 1 + (case % 4));
        let dst = b.tile(ty, [rows, cols]);
        b.map(dst, &e);
        b.store(1, 0, cols, dst);
        let tensors = [
            ("f", F32, [1, input.0.len()]),
            ("out", ty, [rows as usize, cols as usize]),
            ("i", I32, [1, input.1.len()]),
        ];
        let p = program(&tensors, vec![b]);
        let mut s = store(&p, &[Some(bytes(&input.0)), None, Some(bytes(&input.1))]);
        execute(&p, &mut s, 1, &options(1, &|_| false)).expect("runs");
        let out = s.bytes(TensorId(1));
        for i in 0..rows {
            for j in 0..cols {
                let n = ty.bytes() as usize;
                let got = &out[(i * cols + j) as usize * n..][..n];
                let (want, nan) = match model.at(&e, i, j) {
                    V::I(x) => (bytes(&[x]), false),
                    V::F(x) if ty == F16 => (bytes(&[f16::from_f32(x)]), x.is_nan()),
                    V::F(x) if ty == Bf16 => (bytes(&[bf16::from_f32(x)]), x.is_nan()),
                    V::F(x) => (bytes(&[x]), x.is_nan()),
                };
                let same = if nan {
                    match ty {
                        F16 => f16::read(got).is_nan(),
                        Bf16 => bf16::read(got).is_nan(),
                        _ => f32::read(got).is_nan(),
                    }
                } else {
                    got == want
                };
                assert!(same, "case {case} {ty} ({i}, {j}): {got:?}, not {want:?}\n{e:?}");
            }
        }
    }
}

/// Halfway between neighbours goes to the even one, a little to either side to the nearer.
#[test]
fn halves_round_to_nearest_even() {
    let check = |ty, value: fn(u16) -> f32, finite: u16| {
        for bits in 0..finite {
            let (lo, hi) = (f64::from(value(bits)), f64::from(value(bits + 1)));
            let middle = ((lo + hi) / 2.0) as f32; // exact: it has one bit more
            let even = if bits % 2 == 0 { lo } else { hi } as f32;
            let mut v = [middle, middle.next_down(), middle.next_up(), -middle, lo as f32];
            super::super::steps::round(pulp::Arch::new(), ty, &mut v);
            assert_eq!(v, [even, lo as f32, hi as f32, -even, lo as f32], "{ty} {bits:#x}");
        }
    };
    check(F16, |b| f16::from_bits(b).to_f32(), 0x7BFF);
    check(Bf16, |b| bf16::from_bits(b).to_f32(), 0x7F7F - 1);
}

/// 1 + 2^-11 is no f16: with the intermediate rounded, the sum would be 0.
#[test]
fn a_half_expression_rounds_once_at_its_destination() {
    for (cast, want) in [(false, 2f32.powi(-11)), (true, 0.0)] {
        let mut b = Build::new(0);
        let one = b.fill(F16, [3, 5], Scalar::F32(1.0));
        let sum = E::Op(Fun::Add, F16, vec![E::T(one), E::F(2f32.powi(-11))]);
        let sum = if cast { E::Op(Fun::Cast, F16, vec![sum]) } else { sum };
        b.map(one, &E::Op(Fun::Sub, F16, vec![sum, E::T(one)]));
        let got: Vec<f16> = run_one(b, None, F32, one);
        assert!(got.iter().all(|x| x.to_f32() == want), "{got:?}");
    }
}

#[test]
fn transcendental_functions_are_near_those_of_f64() {
    for fun in [Fun::Exp, Fun::Log, Fun::Tanh] {
        let exact = match fun {
            Fun::Exp => f64::exp,
            Fun::Log => f64::ln,
            _ => f64::tanh,
        };
        let x: Vec<f32> = (1..2000).map(|i| i as f32 / 37.0).collect();
        let mut b = Build::new(0);
        let t = b.tile(F32, [1, 1999]);
        b.load(0, 0, 1999, t);
        b.map(t, &E::Op(fun, F32, vec![E::T(t)]));
        let got: Vec<f32> = run_one(b, Some(bytes(&x)), F32, t);
        for (x, y) in x.iter().zip(got) {
            let want = exact(f64::from(*x));
            assert!((f64::from(y) - want).abs() <= 2e-7 * want.abs(), "{fun:?}({x}) = {y}, not {want}");
        }
    }
}

#[test]
fn the_destination_may_be_an_operand_at_other_places() {
    // x[1..4] = x[0..3] + x[1..4]: all of the right side is read first.
    let mut b = Build::new(0);
    let x = b.tile(F32, [1, 4]);
    b.load(0, 0, 4, x);
    let (left, right) = (b.slice(x, [0, 0], [1, 3]), b.slice(x, [0, 1], [1, 3]));
    b.map(right, &E::Op(Fun::Add, F32, vec![E::T(left), E::T(right)]));
    assert_eq!(run_one::<f32>(b, Some(bytes(&[1f32, 2.0, 3.0, 4.0])), F32, x), [1.0, 3.0, 5.0, 7.0]);
}

#[test]
fn scratch_that_nobody_wrote_is_poison() {
    let mut b = Build::new(0);
    let t = b.tile(F16, [2, 2]);
    let first = b.slice(t, [0, 0], [1, 1]);
    b.op(OpKind::Fill { dst: first, value: Scalar::F32(2.0) });
    let got: Vec<f16> = run_one(b, None, F32, t);
    assert!(got[0].to_f32() == 2.0 && got[1..].iter().all(|x| x.is_nan()), "{got:?}");
    let mut b = Build::new(0);
    let t = b.tile(I32, [1, 2]);
    assert_eq!(
        run_one::<i32>(std::mem::replace(&mut b, Build::new(0)), None, F32, t),
        [0xA5A5_A5A5_u32 as i32; 2]
    );
}

#[test]
fn arange_counts_along_its_axis() {
    for (shape, axis) in [([3, 1], Axis::Rows), ([1, 3], Axis::Cols)] {
        let mut b = Build::new(0);
        let dst = b.tile(I32, shape);
        b.op(OpKind::Arange { dst, start: i32::MAX - 1, axis });
        assert_eq!(run_one::<i32>(b, None, F32, dst), [i32::MAX - 1, i32::MAX, i32::MIN]);
    }
}

#[test]
fn storage_types_pass_through_memory_unchanged() {
    fn pass<T: Dtype>(bytes_of: Vec<u8>) {
        let n = (bytes_of.len() / size_of::<T>()) as u32;
        let mut b = Build::new(0);
        let t = b.tile(T::TYPE, [1, n]);
        b.load(0, 0, n, t);
        assert_eq!(bytes(&run_one::<T>(b, Some(bytes_of.clone()), T::TYPE, t)), bytes_of);
    }
    let all: Vec<u8> = (0..=255).collect();
    pass::<i8>(all.clone());
    pass::<u8>(all.clone());
    pass::<i32>(all.clone());
    pass::<f32>(all.iter().map(|b| b & 0x7E).collect());
    pass::<f16>((0..0x7C00u16).flat_map(u16::to_le_bytes).collect());
    pass::<bf16>((0..0x7F80u16).flat_map(u16::to_le_bytes).collect());
}
