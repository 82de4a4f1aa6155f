use kernbench::prelude::*;

#[kernel]
async fn k(n: usize) {
    tl::zeros::<f32>([n, n]);
}

fn main() {}
