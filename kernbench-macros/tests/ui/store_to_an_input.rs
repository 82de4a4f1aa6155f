use kernbench::prelude::*;

#[kernel]
fn k(q: In<f32>) {
    let x = tl::load(q);
    tl::store(q, x);
}

fn main() {}
