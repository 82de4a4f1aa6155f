use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let s = tl::zeros::<f32>([n, n]);
    if s > 0.0 {}
    if s == s {}
}

fn main() {}
