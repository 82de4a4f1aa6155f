use kernbench::prelude::*;

#[kernel(grid = 4)]
fn k(n: usize) {
    tl::zeros::<f32>([n, n]);
}

fn main() {}
