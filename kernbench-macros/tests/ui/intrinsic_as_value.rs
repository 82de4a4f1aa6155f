use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let a = tl::zeros::<f32>([n, n]);
    let b = Some(a).map(tl::exp);
    tl::copy_to(a, b.unwrap());
}

fn main() {}
