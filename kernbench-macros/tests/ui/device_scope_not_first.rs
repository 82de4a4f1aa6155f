use kernbench::prelude::*;

#[device]
fn scale(x: Tile<f32>, by: f32, tl: &Scope) {
    tl::copy_to(x, x * by);
}

fn main() {}
