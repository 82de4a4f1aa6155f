//! The reference's tests of short-context grouped-query attention, under their names, with numerics
//! checked against the oracle on random data on top of the counts.

use kernbench::host::{Context, LaunchOptions};
use kernbench::kernels::attention::{Gqa, gqa_decode_short, gqa_prefill_short};
use kernbench::kernels::oracle::{self, Problem};
use kernbench::kernels::{random, tolerance};
use kernbench::ndarray::Array2;
use kernbench::placement::Placement;
use kernbench::prelude::*;
use kernbench::topology::Topology;

const D_HEAD: usize = 64;
const P: usize = 8;

/// A finished run: its context, and how the result compares with the oracle.
pub struct Run {
    pub ctx: Context,
    pub check: tolerance::Check,
}

fn gqa(h_q: usize, h_kv: usize, kv_per_cube: usize, t_q: usize, s_kv: usize) -> Gqa {
    Gqa {
        h_q,
        h_kv,
        d: D_HEAD,
        t_q,
        s_kv,
        valid: s_kv,
        causal: false,
        scale: 0.125,
        kv_per_cube,
        pe_grid: [4, 2],
    }
}

fn array(name: &str, [m, n]: [usize; 2]) -> (Array2<f16>, Vec<f32>) {
    let values = random::normal::<f16>(7, name, m * n);
    (Array2::from_shape_fn((m, n), |(i, j)| f16::from_f32(values[i * n + j])), values)
}

/// The layouts of the seed: Q and O `(t_q, h_q * d)` replicated, K and V head-stacked, row-wise on both
/// axes. Keys and values past `valid` are NaN: padding must not be looked at.
fn run(a: Gqa, cubes: usize, decode: bool) -> Run {
    let ctx = Context::new(Topology::default_machine());
    let full = Placement::replicated().on(cubes, P);
    let kv = Placement::row_wise().on(cubes, P);
    let shape = [a.t_q, a.h_q * D_HEAD];
    let (aq, vq) = array("q", shape);
    let padded = |name| {
        let (mut array, mut values) = array(name, [a.h_kv * a.s_kv, D_HEAD]);
        for row in (0..array.nrows()).filter(|row| row % a.s_kv >= a.valid) {
            array.row_mut(row).fill(f16::NAN);
            values[row * D_HEAD..(row + 1) * D_HEAD].fill(f32::NAN);
        }
        (array, values)
    };
    let (ak, vk) = padded("k");
    let (av, vv) = padded("v");
    let q = ctx.from_array(&aq, full, "q").unwrap();
    let k = ctx.from_array(&ak, kv, "k").unwrap();
    let v = ctx.from_array(&av, kv, "v").unwrap();
    let mut o = ctx.empty::<f16>(shape, full, "o").unwrap();
    let options = LaunchOptions::default();
    if decode {
        let rows = [a.h_q, D_HEAD];
        let kernel = gqa_decode_short {
            q: q.input().reshape(rows),
            k: k.input(),
            v: v.input(),
            o: o.output().reshape(rows),
            a,
        };
        ctx.launch_with("decode", kernel, &options).unwrap();
    } else {
        let kernel = gqa_prefill_short { q: q.input(), k: k.input(), v: v.input(), o: o.output(), a };
        ctx.launch_with("prefill", kernel, &options).unwrap();
    }
    // Each group root wrote its head into its own replica: reading merges the newest ranges.
    let out: Vec<f32> = ctx.read(&o).unwrap().iter().map(|x| x.to_f32()).collect();
    let Gqa { h_q, h_kv, d, t_q, s_kv, valid, causal, scale, .. } = a;
    let problem = Problem { h_q, h_kv, d, t_q, s_kv, valid, causal, scale };
    let reference = oracle::attention(&problem, &vq, &vk, &vv);
    let low = oracle::plain::<f16>(&problem, &vq, &vk, &vv);
    let check = tolerance::check::<f16>(&out, &reference, &low);
    drop((q, k, v, o));
    Run { ctx, check }
}

fn run_decode_short(kv_per_cube: usize, cubes: usize) -> Run {
    run(gqa(8, 8, kv_per_cube, 1, 64), cubes, true)
}

fn run_prefill_short(kv_per_cube: usize, cubes: usize) -> Run {
    run(gqa(8, 8, kv_per_cube, 4, 64), cubes, false)
}

/// Messages whose sender named a direction between cubes.
fn inter_cube(run: &Run) -> usize {
    let log = run.ctx.op_log();
    log.records()
        .filter(|r| {
            r.name() == "ipcq_copy" && matches!(r.direction(), Some(Dir::E | Dir::W | Dir::N | Dir::S))
        })
        .count()
}

/// The listing and the logical log of a run.
fn texts(run: &Run) -> String {
    let log = run.ctx.op_log();
    format!("{}\n{}", run.ctx.listing(&log.launches[0].program), log.logical())
}

/// Listing and log hold no line numbers of the kernels: an edit above must not touch snapshots.
fn assert_texts(name: &str, run: &Run) {
    insta::with_settings!({ filters => vec![(r"kernbench-kernels/src/attention/(\w+\.rs):\d+", "$1")] }, {
        insta::assert_snapshot!(name, texts(run));
    });
}

#[test]
fn short_decode_smoke_kv_per_cube_2_c_4() {
    let run = run_decode_short(2, 4);
    assert!(run.check.correct, "{:?}", run.check);
    assert_texts("decode_kv_2", &run);
}

#[test]
fn short_decode_smoke_kv_per_cube_4_c_2() {
    let run = run_decode_short(4, 2);
    assert!(run.check.correct, "{:?}", run.check);
    assert_texts("decode_kv_4", &run);
}

#[test]
fn short_decode_smoke_kv_per_cube_8_c_1() {
    let run = run_decode_short(8, 1);
    assert!(run.check.correct, "{:?}", run.check);
    assert_texts("decode_kv_8", &run);
}

#[test]
fn short_decode_dma_write_count_equals_h_kv() {
    let run = run_decode_short(2, 4);
    assert!(run.check.correct, "{:?}", run.check);
    assert_eq!(run.ctx.op_log().count("dma_write"), 8);
}

#[test]
fn short_decode_no_inter_cube_traffic() {
    let run = run_decode_short(2, 4);
    assert!(run.check.correct, "{:?}", run.check);
    assert_eq!(inter_cube(&run), 0);
    assert_eq!(run.ctx.op_log().count("ipcq_copy"), 72, "3 tiles a hop, 3 hops a group, 8 groups");
}

#[test]
fn short_prefill_smoke_kv_per_cube_2_c_4() {
    let run = run_prefill_short(2, 4);
    assert!(run.check.correct, "{:?}", run.check);
    assert_texts("prefill_kv_2", &run);
}

#[test]
fn short_prefill_no_ring_kv_traffic() {
    let run = run_prefill_short(2, 4);
    assert!(run.check.correct, "{:?}", run.check);
    assert_eq!(inter_cube(&run), 0);
    assert_eq!(run.ctx.op_log().count("dma_write"), 8);
}

#[test]
fn short_decode_kv_per_cube_1_uses_the_row_chain_and_the_column_bridge() {
    let run = run_decode_short(1, 8);
    assert!(run.check.correct, "{:?}", run.check);
    let log = run.ctx.op_log();
    let count = |dir| log.records().filter(|r| r.name() == "ipcq_copy" && r.direction() == Some(dir)).count();
    assert_eq!((count(Dir::IntraW), count(Dir::IntraN), log.count("ipcq_copy")), (144, 24, 168));
    assert_eq!(log.count("dma_write"), 8);
    drop(log);
    assert_texts("decode_kv_1", &run);
}

#[test]
fn prefill_is_right_for_grouped_queries_causal_or_not_and_odd_sizes() {
    for (h_q, h_kv, kv, t_q, s_kv) in
        [(8, 4, 1, 5, 40), (12, 4, 2, 33, 44), (4, 2, 2, 100, 72), (40, 8, 8, 7, 65), (6, 6, 1, 1, 8)]
    {
        for causal in [false, true] {
            let a = Gqa { causal, ..gqa(h_q, h_kv, kv, t_q, s_kv) };
            let run = run(a, h_kv / kv, false);
            assert!(run.check.correct, "{a:?} {:?}", run.check);
            assert_eq!(run.ctx.op_log().count("dma_write"), h_kv, "{a:?}");
        }
    }
}

#[test]
fn padded_keys_do_not_count_down_to_none() {
    for valid in [0, 1, 7, 8, 63, 64, 65, 199, 200] {
        let decode = run(Gqa { valid, ..gqa(8, 2, 2, 1, 200) }, 1, true);
        let prefill = run(Gqa { valid, causal: valid % 2 == 0, ..gqa(8, 2, 2, 9, 200) }, 1, false);
        for run in [decode, prefill] {
            assert!(run.check.correct && run.check.nan == 0, "{valid} {:?}", run.check);
        }
    }
}
