use kernbench::prelude::*;

#[kernel]
fn k([m, n]: [usize; 2]) {
    tl::zeros::<f32>([m, n]);
}

fn main() {}
