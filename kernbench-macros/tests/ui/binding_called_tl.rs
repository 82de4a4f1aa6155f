use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let tl = n + 1;
    tl::zeros::<f32>([n, n]);
}

fn main() {}
