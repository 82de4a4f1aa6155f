use kernbench::prelude::*;

#[device]
fn scale(x: Tile<f32>, by: f32) {
    tl::copy_to(x, x * by);
}

fn main() {}
