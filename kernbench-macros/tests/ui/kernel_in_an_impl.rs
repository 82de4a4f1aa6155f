use kernbench::prelude::*;

struct Decode;

impl Decode {
    #[kernel]
    fn k(&self, n: usize) {
        tl::zeros::<f32>([n, n]);
    }
}

fn main() {}
