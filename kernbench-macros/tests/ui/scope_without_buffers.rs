use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    scratch_scope!(buffers = 0, {
        tl::zeros::<f32>([n, n]);
    });
}

fn main() {}
