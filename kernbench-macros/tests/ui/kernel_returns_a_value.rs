use kernbench::prelude::*;

#[kernel]
fn k(n: usize) -> Tile<'_, f32> {
    tl::zeros::<f32>([n, n])
}

fn main() {}
