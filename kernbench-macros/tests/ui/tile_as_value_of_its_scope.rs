use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let x = scratch_scope!({ tl::zeros::<f32>([n, n]) });
    tl::copy_to(x, 1.0);
}

fn main() {}
