use kernbench::prelude::*;

#[kernel]
fn k(a: In<i8>, b: In<i8>, o: Out<f16>) {
    let p = tl::composite(Gemm::new(a, b, o).relu(Level::OutputTile));
    tl::wait(p);
}

fn main() {}
