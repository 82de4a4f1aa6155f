use kernbench::prelude::*;

#[kernel]
fn k(rows: impl Fn() -> usize + Clone + std::fmt::Debug + Sync) {
    tl::zeros::<f32>([rows(), 1]);
}

fn main() {}
