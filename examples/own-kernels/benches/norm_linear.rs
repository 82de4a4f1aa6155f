//! How fast the kernel is recorded and simulated on this computer; simulated times are in reports.

use criterion::{Criterion, criterion_group, criterion_main};
use kernbench::host::{Context, LaunchOptions};
use kernbench::kernels::bench::{Fill, Params};
use kernbench::topology::Topology;
use own_kernels::norm_linear::NORM_LINEAR;

fn norm_linear(c: &mut Criterion) {
    let params = Params::parse(NORM_LINEAR.name, NORM_LINEAR.params, []).unwrap();
    let options = LaunchOptions::default();
    c.bench_function("norm-linear, 512 rows", |b| {
        b.iter(|| {
            let ctx = Context::new(Topology::default_machine()).data(false);
            let inputs = (NORM_LINEAR.inputs)(&ctx, &params, Fill::Nothing).unwrap();
            (NORM_LINEAR.run)(&ctx, &params, &inputs, &options).unwrap()
        });
    });
}

criterion_group!(benches, norm_linear);
criterion_main!(benches);
