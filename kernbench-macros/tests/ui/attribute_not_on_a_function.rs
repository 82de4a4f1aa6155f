use kernbench::prelude::*;

#[kernel]
struct Decode {
    rows: usize,
}

fn main() {}
