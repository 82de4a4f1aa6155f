use kernbench::prelude::*;

#[kernel]
fn k(lens: In<i32>) {
    let table: Vec<i32> = tl::read(lens);
}

fn main() {}
