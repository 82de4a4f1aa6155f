use kernbench::prelude::*;

#[kernel]
fn k(text: String) {
    let n: usize = text.parse()?;
    tl::zeros::<f32>([n, n]);
}

fn main() {}
