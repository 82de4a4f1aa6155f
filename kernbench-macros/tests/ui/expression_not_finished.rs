#![deny(unused_must_use)]
use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let x = tl::zeros::<f32>([n, n]);
    tl::exp(x);
    x * 2.0;
}

fn main() {}
