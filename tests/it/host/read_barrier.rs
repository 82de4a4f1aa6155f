//! The reference's tests of the host-read barrier (its T5.a to T5.g), under their names. A worker's pending
//! launches, what it waits for and how often it gives way are looked at before and after each read.

use super::{ONE, add, machine, machine_with};
use kernbench::ccl::Ccl;
use kernbench::host::{Backend, HOST_READ_BARRIERS, ReduceOp, Worker};
use kernbench::kernels::collectives::ALGORITHMS;
use kernbench::ndarray::{Array2, arr2};
use kernbench::prelude::*;
use std::collections::BTreeSet;

/// The seed's text, as it writes it.
const CCL: &str = "\
defaults:
  algorithm: ring_allreduce_tcm
  buffer_kind: tcm
  backpressure: sleep
  n_slots: 4
  slot_size: 4096
  vc_chunk_size: 256
  ipcq_credit_size_bytes: 16

algorithms:
  ring_allreduce_tcm:
    module: kernbench.ccl.algorithms.ring_allreduce
    topology: ring_1d
    buffer_kind: tcm
    n_elem: 8
";

/// T5.g: the list of barriers is public, and it is what the methods do.
#[test]
fn test_host_read_barrier_registry_exists() {
    let expected = ["to_array", "data", "get", "slice", "to_text", "copy_from"];
    assert_eq!(BTreeSet::from(HOST_READ_BARRIERS), BTreeSet::from(expected));
    for name in HOST_READ_BARRIERS {
        let drained = machine(1).spawn(1, async |_, ctx: Worker| {
            let (t, y) = (ctx.zeros::<f32>([1, 8], ONE, "t")?, ctx.zeros::<f32>([1, 8], ONE, "y")?);
            let mut target = ctx.zeros::<f32>([1, 8], ONE, "target")?;
            let mut y = y;
            drop(ctx.launch("add", add { x: t.input(), y: y.output(), by: 1.0 })?);
            let before = ctx.pending();
            match name {
                "to_array" => drop(t.to_array().await?),
                "data" => drop(t.data().await?),
                "get" => drop(t.get(0, 0).await?),
                "slice" => drop(t.slice(0..1, 0..4).await?),
                "to_text" => drop(t.to_text().await?),
                _ => target.copy_from(&t).await?,
            }
            Ok([before, ctx.pending(), ctx.yields()])
        });
        assert_eq!(drained.unwrap(), [[1, 0, 1]], "{name}");
    }
}

/// T5.a: a read with work pending completes it first.
#[test]
fn test_numpy_triggers_drain_when_pending() {
    let ctx = machine(1);
    let seen = ctx.spawn(1, async |_, ctx: Worker| {
        let x = ctx.from_array(&arr2(&[[1.5f32; 8]]), ONE, "t5a_x")?;
        let mut y = ctx.empty::<f32>([1, 8], ONE, "t5a_y")?;
        drop(ctx.launch("add", add { x: x.input(), y: y.output(), by: 1.0 })?);
        let (pending, submitted_ps) = (ctx.pending(), ctx.now_ps());
        let values = y.to_array().await?;
        assert!(ctx.now_ps() > submitted_ps, "the read comes after the launch in simulated time");
        Ok((pending, ctx.pending(), ctx.yields(), values))
    });
    assert_eq!(seen.unwrap(), [(1, 0, 1, arr2(&[[2.5f32; 8]]))]);
}

/// T5.b: what is not in the list drains nothing.
#[test]
fn test_metadata_access_is_non_barrier() {
    let seen = machine(1).spawn(1, async |_, ctx: Worker| {
        let x = ctx.zeros::<f32>([1, 8], ONE, "t5b")?;
        let mut y = ctx.zeros::<f32>([1, 8], ONE, "y")?;
        drop(ctx.launch("add", add { x: x.input(), y: y.output(), by: 1.0 })?);
        let text = format!("{:?} {:?} {} {} {:?}", x.shape(), x.dtype(), x.name(), x.id(), x);
        Ok((text, ctx.pending(), ctx.yields()))
    });
    assert_eq!(seen.unwrap(), [("[1, 8] F32 t5b 0 t5b f32[1, 8]".to_owned(), 1, 0)]);
}

/// T5.c: with nothing pending a read does not give way.
#[test]
fn test_numpy_fast_path_when_pending_empty() {
    let seen = machine(1).spawn(1, async |rank, ctx: Worker| {
        let t = ctx.zeros::<f32>([1, 4], ONE, &format!("t5c_r{rank}"))?;
        let mut y = ctx.empty::<f32>([1, 4], ONE, "y")?;
        assert_eq!((ctx.pending(), ctx.yields()), (0, 0), "placing a tensor leaves nothing pending");
        t.to_array().await?;
        let fresh = ctx.yields();
        ctx.launch("add", add { x: t.input(), y: y.output(), by: 1.0 })?.await?;
        let awaited = ctx.yields();
        y.to_array().await?;
        Ok([fresh, awaited, ctx.yields()])
    });
    assert_eq!(seen.unwrap(), [[0, 1, 1]]);
}

/// T5.d: element, slice and whole data are barriers, too.
#[test]
fn test_getitem_and_data_are_barriers() {
    let seen = machine(2).spawn(2, async |rank, ctx: Worker| {
        let src = Array2::from_elem([1, 8], rank as f32 + 1.0);
        let mut t = ctx.zeros::<f32>([1, 8], ONE, &format!("t5d_r{rank}"))?;
        ctx.write(&mut t, &src).await?;
        let mut y = ctx.empty::<f32>([1, 8], ONE, "y")?;
        let mut seen = vec![];
        for read in 0..3 {
            drop(ctx.launch("add", add { x: t.input(), y: y.output(), by: read as f32 })?);
            seen.push((ctx.pending(), 0.0));
            let value = match read {
                0 => y.get(0, 3).await?,
                1 => {
                    let slice = y.slice(0..1, 0..4).await?;
                    assert_eq!(slice.dim(), (1, 4));
                    slice[[0, 3]]
                }
                _ => {
                    let data = y.data().await?;
                    assert_eq!(data.len(), 8);
                    data[3]
                }
            };
            seen.push((ctx.pending(), value));
        }
        Ok((seen, ctx.yields()))
    });
    let want =
        |first: f32| (vec![(1, 0.0), (0, first), (1, 0.0), (0, first + 1.0), (1, 0.0), (0, first + 2.0)], 3);
    assert_eq!(seen.unwrap(), [want(1.0), want(2.0)]);
}

/// T5.e: after an all-reduce a read sees the reduced values; the all-reduce itself has given way, the read does not.
#[test]
fn test_numpy_drains_collective_pending() {
    let ctx = machine_with(2, Ccl::from_yaml("ccl.yaml", CCL).unwrap());
    ctx.init_process_group(Backend::Ahbm(&[ALGORITHMS])).unwrap();
    let ws = ctx.world_size().unwrap();
    let seen = ctx.spawn(ws, async |rank, ctx: Worker| {
        ctx.set_device(rank)?;
        let src = Array2::from_elem([1, 8], f16::from_f32(rank as f32 + 1.0));
        let mut t = ctx.zeros::<f16>([1, 8], ONE, &format!("t5e_r{rank}"))?;
        ctx.write(&mut t, &src).await?;
        let before = ctx.yields();
        ctx.all_reduce(&mut t, ReduceOp::Sum).await?;
        let reduced = ctx.yields();
        let out = t.to_array().await?;
        Ok((reduced - before, ctx.yields() - reduced, out))
    });
    let expected = f16::from_f32((1..=ws).sum::<usize>() as f32);
    assert_eq!(seen.unwrap(), vec![(1, 0, Array2::from_elem([1, 8], expected)); 2]);
}

/// T5.f: `copy_from` is a barrier on its source, and takes what the pending work has written there.
#[test]
fn test_copy_from_deployed_source_drains_source() {
    let seen = machine(1).spawn(1, async |rank, ctx: Worker| {
        let x = ctx.zeros::<f32>([1, 8], ONE, "x")?;
        let mut source = ctx.zeros::<f32>([1, 8], ONE, &format!("src_r{rank}"))?;
        let mut target = ctx.zeros::<f32>([1, 8], ONE, &format!("tgt_r{rank}"))?;
        drop(ctx.launch("add", add { x: x.input(), y: source.output(), by: 7.0 })?);
        let before = ctx.pending();
        target.copy_from(&source).await?;
        let after = (ctx.pending(), ctx.yields());
        let out = target.to_array().await?;
        assert_eq!(out.dim(), (1, 8));
        Ok((before, after, out[[0, 5]]))
    });
    assert_eq!(seen.unwrap(), [(1, (0, 1), 7.0)]);
}

/// The target's side of `copy_from` waits for launches that use the target and for nothing else of the worker.
#[test]
fn copy_from_waits_for_users_of_its_target() {
    let seen = machine(1).spawn(1, async |_, ctx: Worker| {
        let (x, source) = (ctx.zeros::<f32>([1, 8], ONE, "x")?, ctx.zeros::<f32>([1, 8], ONE, "source")?);
        let mut target = ctx.zeros::<f32>([1, 8], ONE, "target")?;
        ctx.launch("add", add { x: x.input(), y: target.output(), by: 7.0 })?.await?;
        let written_ps = ctx.now_ps();
        target.copy_from(&source).await?;
        Ok((ctx.yields(), ctx.now_ps() > written_ps, target.get(0, 0).await?))
    });
    assert_eq!(seen.unwrap(), [(1, true, 0.0)]);
}
