//! The hierarchical all-reduce on 2 x 3 SIPs of the default machine's 4 x 4 cubes.

use super::Group;
use kernbench::host::{Context, Launched, Operation};
use kernbench::kernels::collectives::oracle::Collective;
use kernbench::prelude::*;

fn group(topology: &'static str, buffer_kind: &'static str, bytes: usize) -> Group {
    Group {
        default_machine: true,
        topology,
        buffer_kind,
        slot_size: bytes.max(256),
        ..Group { sips: [2, 3], ..Group::of("lrab_hierarchical_allreduce", 6) }
    }
}

/// Sums tiles of `n` elements of the 16 cubes of each SIP, element by element.
fn run(g: &Group, n: usize) -> (Context, Vec<Launched>) {
    let ctx = g.context();
    let value = |rank: usize, i: usize| (rank * 7 + i * i) as f32 % 11.0;
    let done = ctx.spawn(6, async |rank, ctx: Worker| {
        let place = Placement::row_wise().on(16, 1);
        let mine = kernbench::ndarray::Array2::from_shape_fn([16, n], |(cube, i)| value(rank, cube * n + i));
        let mut t = ctx.from_array(&mine, place, "t")?;
        let done = ctx.all_reduce(&mut t, ReduceOp::Sum).await?;
        let got = t.data().await?;
        for i in 0..n {
            let want: f32 = (0..6).flat_map(|r| (0..16).map(move |cube| value(r, cube * n + i))).sum();
            for cube in 0..16 {
                assert_eq!(got[cube * n + i], want, "rank {rank}, cube {cube}, element {i}");
            }
        }
        Ok(done)
    });
    (ctx, done.unwrap())
}

/// 30 messages within each SIP, and between them 18 on a torus (1 in each row, 2 in each column), 30 on a ring, 10 on a
/// mesh.
#[test]
fn messages_are_counted() {
    for (topology, between) in [("torus_2d", 18), ("ring_1d", 30), ("mesh_2d_no_wrap", 10)] {
        let (ctx, _) = run(&group(topology, "tcm", 256), 13);
        assert_eq!(ctx.op_log().count("ipcq_copy"), 6 * 30 + between, "{topology}");
    }
}

#[test]
fn tiles_larger_than_a_slot_and_empty_ones() {
    for (topology, n) in [("torus_2d", 300), ("mesh_2d_no_wrap", 64), ("ring_1d", 65), ("torus_2d", 0)] {
        run(&group(topology, "hbm", 256), n);
    }
}

/// All cubes and SIPs end at one time of one launch, so any rank's time is that of all.
fn simulated_ps(topology: &'static str, buffer_kind: &'static str, bytes: usize) -> u64 {
    run(&group(topology, buffer_kind, bytes), bytes / 4).1[0].simulated_ps
}

/// Row 9 of the machine's published results: 24 slot accesses lie on the critical path.
#[test]
fn kinds_of_slots_differ_by_24_accesses() {
    for bytes in [256, 2048, 16 << 10, 64 << 10] {
        let [tcm, sram, hbm] = ["tcm", "sram", "hbm"].map(|kind| simulated_ps("torus_2d", kind, bytes));
        let n = bytes as u64;
        // 24 (6 ns + 3 n / 512) and 24 (2 ns + 4 n / 512), n in bytes at 1 byte/ns.
        assert_eq!(hbm - tcm, 24 * (6000 + 3 * n * 1000 / 512), "{bytes} B");
        assert_eq!(sram - tcm, 24 * (2000 + 4 * n * 1000 / 512), "{bytes} B");
    }
}

/// Row 10: published by an older model of the wires, so compared and not fitted.
#[test]
fn times_beside_the_published_ones() {
    let published = [(256, 1678), (2048, 1957), (16 << 10, 4225), (64 << 10, 12001)];
    let lines = published.map(|(bytes, ns)| {
        let ours = simulated_ps("torus_2d", "tcm", bytes) as f64 / 1000.0;
        format!("{bytes:6} B  {ours:8.1} ns  published {ns:5} ns  {:.2}", ours / f64::from(ns))
    });
    insta::assert_snapshot!(lines.join("\n"), @"
      256 B    1785.6 ns  published  1678 ns  1.06
     2048 B    2085.6 ns  published  1957 ns  1.07
    16384 B    4837.6 ns  published  4225 ns  1.15
    65536 B   14341.6 ns  published 12001 ns  1.20
    ");
}

/// Ranks of another operation than a sum, on cubes of another shape, that meet in another cube.
#[test]
fn other_reductions_and_meshes() {
    for (cubes, reduce) in [([3, 2], ReduceOp::Max), ([1, 4], ReduceOp::Min), ([5, 1], ReduceOp::Prod)] {
        let g = Group {
            cubes: Some(cubes),
            ..Group { sips: [2, 2], ..Group::of("lrab_hierarchical_allreduce", 4) }
        };
        let count = cubes[0] * cubes[1];
        let tile =
            |rank: usize, cube: usize| (0..5).map(move |i| ((rank * 31 + cube * 7 + i * 3) % 5) as f64 - 1.5);
        let all: Vec<Vec<f32>> = (0..4)
            .flat_map(|rank| (0..count).map(move |cube| tile(rank, cube).map(|x| x as f32).collect()))
            .collect();
        let all: Vec<&[f32]> = all.iter().map(|x| &x[..]).collect();
        let got = g.context().spawn(4, async |rank, ctx: Worker| {
            let from: Vec<f32> = (0..count).flat_map(|cube| tile(rank, cube)).map(|x| x as f32).collect();
            let place = Placement::row_wise().on(count, 1);
            let mine = kernbench::ndarray::Array2::from_shape_vec([count, 5], from).unwrap();
            let x = ctx.from_array(&mine, place, "x")?;
            let mut y = ctx.empty::<f32>([count, 5], place, "y")?;
            ctx.all_reduce_into(&x, &mut y, reduce).await?;
            y.data().await
        });
        let got = got.unwrap();
        let got: Vec<&[f32]> = got.iter().flat_map(|x| x.chunks(5)).collect();
        let c = Collective { operation: Operation::AllReduce, reduce, root: 0 };
        assert_eq!(c.wrong(&all, &got), None, "{cubes:?} {reduce:?}");
    }
}
