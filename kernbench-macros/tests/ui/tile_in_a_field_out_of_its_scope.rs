use kernbench::prelude::*;

struct Softmax<'s> {
    m: Tile<'s, f32>,
}

#[kernel]
fn k(n: usize) {
    let mut acc = Softmax { m: tl::zeros([n, 1]) };
    scratch_scope!({
        let m = tl::eval(acc.m * 2.0);
        acc.m = m;
    });
    tl::copy_to(acc.m, 0.0);
}

fn main() {}
