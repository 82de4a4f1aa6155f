use kernbench::prelude::*;

fn helper() {
    scratch_scope!({
        let x = 1;
    });
}

fn main() {}
