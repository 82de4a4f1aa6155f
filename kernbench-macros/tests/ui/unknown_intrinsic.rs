use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let a = tl::zero::<f32>([n, n]);
    let b = tl::matmul(a, a);
    tl::frobnicate(b);
}

fn main() {}
