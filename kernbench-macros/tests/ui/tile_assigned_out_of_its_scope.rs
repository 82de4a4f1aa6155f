use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let mut keep = tl::zeros::<f32>([n, 1]);
    for _ in 0..n {
        scratch_scope!(buffers = 2, {
            let next = tl::eval(keep * 2.0);
            keep = next;
        });
    }
    tl::copy_to(keep, 0.0);
}

fn main() {}
