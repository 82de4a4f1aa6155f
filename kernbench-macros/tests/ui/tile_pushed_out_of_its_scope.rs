use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let mut all = Vec::new();
    for _ in 0..n {
        scratch_scope!({
            all.push(tl::zeros::<f32>([4, 64]));
        });
    }
}

fn main() {}
