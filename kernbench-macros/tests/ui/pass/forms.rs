//! The forms that functions, arguments, scopes and calls may have, without a warning.
#![deny(warnings, missing_docs, rust_2018_idioms)]
#![allow(elided_lifetimes_in_paths)]
use kernbench::prelude::*;

/// Slices, generics, a where clause, a const parameter, a mutable argument.
#[kernel]
#[allow(clippy::similar_names)]
pub fn paged<'t, T, const B: usize>(
    /** The query. */ q: In<T>,
    k: In<T>,
    table: &'t [u32],
    lens: &[usize],
    mut at: usize,
    o: Out<T>,
) where
    T: Float,
{
    let q = tl::load(q);
    for &page in table.iter().take(lens[0]) {
        scratch_scope! {
            let kt = tl::load(k.rows(page as usize * B..(page as usize + 1) * B));
            at += 1;
            if at > 3 {
                break;
            }
            let s = tl::dot(q, kt.t());
            tl::fence();
            let _ = s;
        }
    }
    let parts: Vec<Tile<'_, f32>> = (0..2).map(|_| tl::zeros::<f32>(q.shape())).collect();
    let more = vec![tl::zeros::<f32>([1, 1]), tl::full::<f32>([1, 1], 1.0)];
    assert!(tl::pe() < 8, "pe {}", tl::pe());
    let x = if at > 1 { tl::eval(parts[0] + parts[1]) } else { tl::eval(parts[0] * 2.0) };
    let n = scratch_scope!({
        let t = tl::zeros::<f32>([2, 2]);
        t.nrows() + more.len()
    });
    let depth = n.max(1);
    scratch_scope!(buffers = depth, {
        tl::fence();
    });
    let neg = tl::eval(-x + 2.0 * x - 1.0 / (x * x - 0.5));
    let g = tl::eval(neg.cast::<T>() * 2.0 + tl::exp(q));
    tl::copy_to(g, 0.0);
    tl::store(o, g);
}

/// A pair of tiles.
#[derive(Clone, Copy)]
pub struct Pair<'s> {
    /// The row maximum.
    pub m: Tile<'s, f32>,
}

impl<'s> Pair<'s> {
    /// The scope's lifetime given by name.
    #[device]
    pub fn new(tl: &'s Scope, n: usize) -> Self {
        Pair { m: tl::zeros([n, 1]) }
    }

    /// A `?` in a device function.
    #[device]
    pub fn checked(self, tl: &Scope, n: &str) -> Result<Tile<'_, f32>, std::num::ParseIntError> {
        scratch_scope!({
            let t = tl::eval(self.m + 1.0);
            let by = n.parse::<u8>()?;
            tl::copy_to(self.m, t * f32::from(by));
        });
        Ok(tl::eval(self.m + 1.0))
    }

    /// Without an intrinsic.
    #[device]
    pub fn twice(self, tl: &Scope) -> [Pair<'_>; 2] {
        const ROWS: usize = 4;
        [Pair::new(tl, ROWS), Pair::new(tl, self.m.nrows())]
    }
}

/// A device function that a trait declares.
pub trait Mask {
    /// The scores with the mask.
    #[device]
    fn apply<'e>(&self, tl: &'e Scope, s: Expr<'e, f32>) -> Expr<'e, f32>;
}

impl Mask for f32 {
    #[device]
    fn apply<'e>(&self, tl: &'e Scope, s: Expr<'e, f32>) -> Expr<'e, f32> {
        tl::maximum(s, *self)
    }
}

/// No argument, no intrinsic.
#[kernel]
pub fn nothing() {}

/// Helpers, closures, an early return, and a result that is not wanted.
#[kernel]
pub fn helpers(n: usize, text: String) {
    let Ok(by) = text.parse::<f32>() else { return };
    let pair = Pair::new(tl, n);
    let half = |x: Tile<'_, f32>| tl::eval(x * by);
    let y = half(pair.m);
    let _ = pair.checked(tl, &text);
    let [a, b] = pair.twice(tl);
    tl::copy_to(a.m, by.apply(tl, y * 1.0));
    let parse = || -> Result<usize, std::num::ParseIntError> { Ok(text.parse::<usize>()? + 1) };
    let _ = (parse(), b);
}

macro_rules! kernels {
    ($($name:ident: $body:block)*) => {
        $(
            /// Made by a macro.
            #[kernel]
            pub fn $name(n: usize) {
                let x = tl::zeros::<f32>([n, n]);
                scratch_scope!({
                    tl::copy_to(x, 1.0);
                });
                let _ = $body;
            }
        )*
    };
}

kernels! {
    first: { 1 }
    second: { 2 }
}

fn main() {}
