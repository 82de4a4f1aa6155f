use kernbench::prelude::*;

#[device]
fn square(tl: &Scope, x: Tile<f32>) -> Tile<'_, f32> {
    scratch_scope!({
        let y = tl::eval(x * x);
        return y;
    })
}

fn main() {}
