use kernbench::prelude::*;

#[kernel]
fn k<T: Float>(n: usize) {
    tl::zeros::<T>([n, n]);
}

fn main() {}
