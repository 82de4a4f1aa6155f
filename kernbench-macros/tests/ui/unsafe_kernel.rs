use kernbench::prelude::*;

#[kernel]
unsafe fn k(n: usize) {
    tl::zeros::<f32>([n, n]);
}

fn main() {}
