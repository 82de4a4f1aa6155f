use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let a = tl::zeros::<f16>([n, n]);
    tl::dot(a * 2.0, a);
}

fn main() {}
