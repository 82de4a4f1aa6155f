use kernbench::prelude::*;

#[kernel]
fn k(o: Out<f32>) {
    let x = tl::load(o);
    tl::store(o, x);
}

fn main() {}
