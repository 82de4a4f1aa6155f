use kernbench::prelude::*;

#[kernel]
fn k(a: In<f16>, b: In<f16>, bias: In<f32>, o: Out<f16>) {
    let p = tl::composite(Gemm::new(a, b, o).bias(bias, Level::OutputTile));
    tl::wait(p);
}

fn main() {}
