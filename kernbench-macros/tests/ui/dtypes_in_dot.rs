use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let a = tl::zeros::<f16>([n, n]);
    let b = tl::zeros::<f32>([n, n]);
    tl::dot(a, b);
}

fn main() {}
