//! The reference's tests of short-context grouped-query attention, under their names, with numerics
//! checked against the oracle on random data on top of the counts.

use kernbench::core::host::{Context, LaunchOptions};
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

/// The layouts of the seed: Q and O `(t_q, h_q * d)` replicated, K and V head-stacked, row-wise on both axes.
fn run(a: Gqa, cubes: usize, decode: bool) -> Run {
    let ctx = Context::new(Topology::default_machine());
    let full = Placement::replicated().on(cubes, P);
    let kv = Placement::row_wise().on(cubes, P);
    let shape = [a.t_q, a.h_q * D_HEAD];
    let (aq, vq) = array("q", shape);
    let (ak, vk) = array("k", [a.h_kv * a.s_kv, D_HEAD]);
    let (av, vv) = array("v", [a.h_kv * a.s_kv, D_HEAD]);
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

#[test]
fn short_decode_smoke_kv_per_cube_2_c_4() {
    let run = run_decode_short(2, 4);
    assert!(run.check.correct, "{:?}", run.check);
}

#[test]
fn short_decode_smoke_kv_per_cube_4_c_2() {
    let run = run_decode_short(4, 2);
    assert!(run.check.correct, "{:?}", run.check);
}

#[test]
fn short_decode_smoke_kv_per_cube_8_c_1() {
    let run = run_decode_short(8, 1);
    assert!(run.check.correct, "{:?}", run.check);
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
}

#[test]
fn short_prefill_no_ring_kv_traffic() {
    let run = run_prefill_short(2, 4);
    assert!(run.check.correct, "{:?}", run.check);
    assert_eq!(inter_cube(&run), 0);
    assert_eq!(run.ctx.op_log().count("dma_write"), 8);
}

#[test]
fn peek() {
    let run = run_decode_short(2, 4);
    let log = run.ctx.op_log();
    let topo = run.ctx.topology();
    let name = |pe| {
        let at = topo.machine().at(pe);
        [at.sip, at.cube, at.pe]
    };
    println!("{}", log.launches[0].program.listing(&name));
    println!("{}", log.logical().lines().take(60).collect::<Vec<_>>().join("\n"));
    println!("{}", log.timed_text().lines().take(30).collect::<Vec<_>>().join("\n"));
    let run = run_prefill_short(2, 4);
    let log = run.ctx.op_log();
    println!("{}", log.launches[0].program.listing(&name));
    println!("{:#?}", kernbench::core::report::Report::of(&log, 0));
}
