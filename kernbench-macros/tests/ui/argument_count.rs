use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let a = tl::zeros::<f16>([n, n]);
    tl::dot(a);
    tl::exp(a, a);
    tl::pe(0);
}

fn main() {}
