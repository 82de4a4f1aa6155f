use kernbench::prelude::*;

#[device]
fn scale(scope: &Scope, x: Tile<f32>, by: f32) {
    tl::copy_to(x, x * by);
}

fn main() {}
