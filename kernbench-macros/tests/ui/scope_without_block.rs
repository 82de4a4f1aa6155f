use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    scratch_scope!(buffers = 2);
    tl::zeros::<f32>([n, n]);
}

fn main() {}
