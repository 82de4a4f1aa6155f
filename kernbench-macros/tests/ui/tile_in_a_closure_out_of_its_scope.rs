use kernbench::prelude::*;

#[kernel]
fn k(n: usize) {
    let rows: Box<dyn Fn() -> usize>;
    scratch_scope!({
        let x = tl::zeros::<f32>([n, n]);
        rows = Box::new(move || x.nrows());
    });
    assert!(rows() == n);
}

fn main() {}
