//! Every intrinsic of the table, with the types that its documentation gives.
#![deny(warnings)]
use kernbench::prelude::*;

#[kernel]
fn every<T: Float>(input: In<T>, output: Out<T>, inout: InOut<T>, group: Group, to: Dir) {
    let x: Tile<T> = tl::load(input);
    let y: Tile<T> = tl::load(inout);
    tl::store(output, x);
    tl::store(inout, x * 2.0);
    let z: Tile<T> = tl::zeros(x.shape());
    let n: Tile<i32> = tl::full([4, 4], 1);
    let rows: Tile<i32> = tl::arange(0..4, Axis::Rows);
    tl::copy_to(z, x + y);
    let steps: [Expr<T>; 7] =
        [tl::exp(x), tl::log(x), tl::sqrt(x), tl::rsqrt(x), tl::recip(x), tl::tanh(x), tl::abs(x)];
    for step in steps {
        let _: Tile<T> = tl::eval(step);
    }
    let two: [Expr<i32>; 3] = [tl::maximum(n, rows), tl::minimum(n, 3), tl::clamp(n, 0, rows)];
    for step in two {
        tl::copy_to(n, step);
    }
    tl::copy_to(z, tl::fma(x, y, 1.0));
    let ordered: Expr<Mask> = tl::and(tl::ge(n, rows), tl::le(n, 7));
    let strict: Expr<Mask> = tl::or(tl::gt(n, rows), tl::lt(n, 7));
    let equal: Expr<Mask> = tl::not(tl::and(tl::eq(n, rows), tl::ne(n, 7)));
    tl::copy_to(n, tl::select(tl::and(ordered, tl::or(strict, equal)), n, 0));
    let sums: [Tile<T>; 3] = [tl::sum(x, Axis::Rows), tl::max(x, Axis::Cols), tl::min(x * y, Axis::Rows)];
    let product: Tile<f32> = tl::dot(x, y.t());
    tl::dot_add(product, x, y.t());
    tl::send(to, product);
    let partial: Tile<f32> = tl::recv(to, product.shape());
    let pending: Pending<Tile<f32>> = tl::recv_async(to, product.shape());
    let other: Tile<f32> = tl::wait(pending);
    tl::copy_to(product, partial + other);
    let written: Pending<()> = tl::composite(Gemm::new(input, y, output).relu(Level::OutputTile));
    let () = tl::wait(written);
    let [_, _, _]: [usize; 3] = tl::gemm_tile();
    tl::fence();
    tl::barrier(group);
    let numbers: [usize; 5] = [tl::sip(), tl::cube(), tl::pe(), tl::program_id(0), tl::num_programs(1)];
    let _: [usize; 2] = [tl::slot_size(), tl::scratch_size()];
    assert!(numbers[2] < 8 && sums[0].nrows() == 1);
}

fn main() {}
