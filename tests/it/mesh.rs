//! Attention over an open line of PEs or cubes: how many products there are, where tiles travel, and results.

use kernbench::kernels::attention::{RankAxis, Spec, attention_mesh_kv, attention_mesh_mlo};
use kernbench::kernels::bench::HostArray;
use kernbench::kernels::oracle::{Inputs, general, plain_general};
use kernbench::kernels::{random, tolerance};
use kernbench::prelude::*;

/// Runs one of the kernels and checks what every place has written. The numbers of products and of messages.
fn run<T: Float>(
    kernel: &str,
    (axis, places): (RankAxis, usize),
    [queries, keys, d]: [usize; 3],
) -> [usize; 2] {
    let ctx = Context::new(Topology::default_machine());
    let grid = if axis == RankAxis::Pe { [1, places] } else { [places, 1] };
    let (split, everywhere) =
        (Placement::row_wise().on(grid[0], grid[1]), Placement::replicated().on(grid[0], grid[1]));
    let a = Spec::new(1, [1, 1], [queries, keys], [d, d]);
    let values = |name: &str, rows: usize| random::normal::<T>(3, name, rows * d);
    let [q, k, v] = [values("q", queries), values("k", keys), values("v", keys)];
    let place = |name: &str, x: &[f32], at| {
        let x: Vec<T> = x.iter().map(|x| T::from_f32(*x)).collect();
        HostArray::new(name, &[x.len() / d, d], &x).tensor::<T>(&ctx, at).unwrap()
    };
    let (tk, tv) = (place("k", &k, split), place("v", &v, split));
    let mlo = kernel == "mlo";
    let tq = place("q", &q, if mlo { everywhere } else { split });
    let copies = if mlo { places } else { 1 };
    let mut to = ctx.empty::<T>([copies * queries, d], split, "o").unwrap();
    let (q_in, k_in, v_in, o, scale) = (tq.input(), tk.input(), tv.input(), to.output(), a.scale);
    // Both grids are 4 columns wide: that of PEs and that of cubes.
    let columns = 4;
    if mlo {
        ctx.launch(kernel, attention_mesh_mlo { q: q_in, k: k_in, v: v_in, o, axis, columns, scale })
            .unwrap();
    } else {
        ctx.launch(kernel, attention_mesh_kv { q: q_in, k: k_in, v: v_in, o, axis, columns, scale }).unwrap();
    }
    let out: Vec<f32> = ctx.read(&to).unwrap().iter().map(|x| x.to_f32()).collect();
    let inputs = Inputs { q: &q, k: &k, v: &v, mask: None, lengths: None, sinks: None };
    let (exact, low) = (general(&a, &inputs).y, plain_general::<T>(&a, &inputs).y);
    for copy in out.chunks_exact(queries * d) {
        let check = tolerance::check::<T>(copy, &exact, &low);
        assert!(check.correct, "{kernel} {axis:?} {places} {queries} {keys} {d}: {check:?}");
        assert_eq!(copy, &out[..queries * d], "all places have the same bits");
    }
    let log = ctx.op_log();
    let gemms = log.records().filter(|r| r.name().starts_with("gemm")).count();
    [gemms, log.count("ipcq_copy")]
}

const PES: (RankAxis, usize) = (RankAxis::Pe, 8);
const CUBES: (RankAxis, usize) = (RankAxis::Cube, 4);

/// Two products for each pair of places where keys travel, two for each place where partials do. A block of keys
/// makes two messages for each other place, a partial three.
#[test]
fn counts() {
    for (kernel, line, gemms, messages) in [
        ("kv", PES, 128, 2 * 8 * 7),
        ("kv", CUBES, 32, 2 * 4 * 3),
        ("mlo", PES, 16, 3 * 8 * 7),
        ("mlo", CUBES, 8, 3 * 4 * 3),
    ] {
        let rows = line.1 * 16;
        let sizes = if kernel == "mlo" { [8, rows, 64] } else { [rows, rows, 64] };
        assert_eq!(run::<f16>(kernel, line, sizes), [gemms, messages], "{kernel} {line:?}");
    }
}

/// Any number of places, shards of several blocks, partials of several messages.
#[test]
fn any_line_is_right() {
    for axis in [RankAxis::Pe, RankAxis::Cube] {
        for places in 1..=8 {
            let line = (axis, places);
            run::<f16>("kv", line, [places * 3, places * 40, 72]);
            run::<bf16>("kv", line, [places, places, 16]);
            run::<f32>("mlo", line, [19, places * 7, 72]);
            run::<bf16>("mlo", line, [1, places, 128]);
        }
    }
    for places in 9..=16 {
        run::<f32>("kv", (RankAxis::Cube, places), [places, places * 5, 40]);
        run::<f16>("mlo", (RankAxis::Cube, places), [4, places * 5, 40]);
    }
}
