use kernbench::prelude::*;

fn helper(x: In<f32>) {
    let y = tl::load(x);
    tl::fence();
}

fn main() {}
