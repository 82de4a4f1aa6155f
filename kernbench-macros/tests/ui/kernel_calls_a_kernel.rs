use kernbench::prelude::*;

#[kernel]
fn inner<T: Float>(x: In<T>) {
    tl::load(x);
}

#[kernel]
fn outer<T: Float>(x: In<T>) {
    inner(x);
}

fn main() {}
