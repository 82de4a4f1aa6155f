use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let twice;
    scratch_scope!({
        let x = tl::zeros::<f32>([n, n]);
        twice = x * 2.0;
    });
    tl::eval(twice);
}

fn main() {}
