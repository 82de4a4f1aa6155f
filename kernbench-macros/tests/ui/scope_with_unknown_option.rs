use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    scratch_scope!(buffer = 2, {
        tl::zeros::<f32>([n, n]);
    });
}

fn main() {}
