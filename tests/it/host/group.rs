//! Process groups: what ranks may do wrong, and an algorithm of one's own.

#[path = "../../../examples/own_all_reduce.rs"]
mod own_all_reduce;

use super::{ONE, machine_with, told};
use kernbench::ccl::Ccl;
use kernbench::diag::Failure;
use kernbench::host::{Algorithm, Backend, Operation, Ranks, ReduceOp, SpawnError, Worker};
use kernbench::prelude::*;
use own_all_reduce::{CCL, STAR};

#[test]
fn an_algorithm_of_ones_own() {
    insta::assert_snapshot!(own_all_reduce::run(4).unwrap(), @"
    rank 0: [[10, 10, 10, 10]] after 266.332 ns
    rank 1: [[10, 10, 10, 10]] after 266.332 ns
    rank 2: [[10, 10, 10, 10]] after 266.332 ns
    rank 3: [[10, 10, 10, 10]] after 266.332 ns
    ");
}

/// A group of two ranks over the example's algorithm.
fn group(sips: usize) -> Context {
    let ctx = machine_with(sips, Ccl::from_yaml("ccl.yaml", CCL).unwrap());
    ctx.init_process_group(Backend::Ahbm(&[&[STAR]])).unwrap();
    ctx
}

fn ranks<R>(
    n: usize,
    work: impl AsyncFn(usize, Worker, &mut Tensor<f32>) -> Result<R, Failure>,
) -> Result<Vec<R>, SpawnError> {
    group(n).spawn(n, async |rank, ctx: Worker| {
        let mut t = ctx.zeros::<f32>([1, 8], ONE, "t")?;
        work(rank, ctx, &mut t).await
    })
}

#[test]
fn a_rank_that_returns_without_entering() {
    let result = ranks(3, async |rank, ctx, t| {
        if rank != 1 {
            ctx.all_reduce(t, ReduceOp::Sum).await?;
        }
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0406]: the workers wait for what never comes
      --> group.rs `all_reduce(t, ReduceOp::Sum).await?;`: rank 0 waits in collective 0 for rank 1, which has returned
      --> group.rs `all_reduce(t, ReduceOp::Sum).await?;`: rank 2 waits in collective 0 for rank 1, which has returned
      help: let every rank enter the same collectives in the same order
    ");
}

#[test]
fn a_rank_that_is_killed() {
    let result = ranks(3, async |rank, ctx, t| {
        assert!(rank != 1, "killed");
        ctx.all_reduce(t, ReduceOp::Sum).await?;
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0656]: rank 1: the worker panicked: killed
      help: the message above says where; return an error instead for what can go wrong
    ");
}

#[test]
fn a_rank_that_was_not_spawned() {
    let result = group(3).spawn(2, async |_, ctx: Worker| {
        let mut t = ctx.zeros::<f32>([1, 8], ONE, "t")?;
        ctx.all_reduce(&mut t, ReduceOp::Sum).await?;
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0406]: the workers wait for what never comes
      --> group.rs `all_reduce(&mut t, ReduceOp::Sum).await?;`: rank 0 waits in collective 0 for rank 2, which was not spawned
      --> group.rs `all_reduce(&mut t, ReduceOp::Sum).await?;`: rank 1 waits in collective 0 for rank 2, which was not spawned
      help: let every rank enter the same collectives in the same order
    ");
}

#[test]
fn ranks_in_different_operations() {
    let result = ranks(2, async |rank, ctx, t| {
        match rank {
            0 => ctx.all_reduce(t, ReduceOp::Sum).await?,
            _ => ctx.broadcast(t, 0).await?,
        };
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0651]: rank 1: ranks 0 and 1 differ in collective 0
      --> group.rs `broadcast(t, 0).await?,`: rank 1 enters `broadcast` of 8 f32 elements from rank 0
      --> group.rs `all_reduce(t, ReduceOp::Sum).await?,`: rank 0 has entered `all_reduce` of 8 f32 elements by sum
      help: let all ranks enter the same collectives in the same order, with equal sizes
    ");
}

#[test]
fn ranks_that_differ_in_size_or_reduction() {
    let differ = |other: [usize; 2], op| {
        let result = group(2).spawn(2, async |rank, ctx: Worker| {
            let mut t = ctx.zeros::<f32>(if rank == 0 { [1, 8] } else { other }, ONE, "t")?;
            ctx.all_reduce(&mut t, if rank == 0 { ReduceOp::Sum } else { op }).await?;
            Ok(())
        });
        told(result)
    };
    insta::assert_snapshot!(differ([1, 1], ReduceOp::Sum), @"
    error[KB0651]: rank 1: ranks 0 and 1 differ in collective 0
      --> group.rs `all_reduce(&mut t, if rank == 0 { ReduceOp::Sum } else { op }).await?;`: rank 1 enters `all_reduce` of 1 f32 element by sum
      --> group.rs `all_reduce(&mut t, if rank == 0 { ReduceOp::Sum } else { op }).await?;`: rank 0 has entered `all_reduce` of 8 f32 elements by sum
      help: let all ranks enter the same collectives in the same order, with equal sizes
    ");
    insta::assert_snapshot!(differ([8, 1], ReduceOp::Max), @"
    error[KB0651]: rank 1: ranks 0 and 1 differ in collective 0
      --> group.rs `all_reduce(&mut t, if rank == 0 { ReduceOp::Sum } else { op }).await?;`: rank 1 enters `all_reduce` of 8 f32 elements by max
      --> group.rs `all_reduce(&mut t, if rank == 0 { ReduceOp::Sum } else { op }).await?;`: rank 0 has entered `all_reduce` of 8 f32 elements by sum
      help: let all ranks enter the same collectives in the same order, with equal sizes
    ");
}

#[test]
fn a_collective_that_is_not_awaited() {
    let result = ranks(2, async |rank, ctx, t| {
        let entered = ctx.all_reduce(t, ReduceOp::Sum);
        if rank == 0 {
            drop(entered);
        } else {
            entered.await?;
        }
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0652]: rank 0: collective 0 was entered and not awaited
      --> group.rs `all_reduce(t, ReduceOp::Sum);`: entered here
      help: write `.await` behind it: the other ranks count on this one
    ");
}

#[test]
fn a_pending_collective_is_not_waited_for() {
    let shared: std::cell::Cell<Option<In<f32>>> = Default::default();
    let result = group(2).spawn(2, async |rank, ctx: Worker| {
        let mut t = ctx.zeros::<f32>([1, 8], ONE, "t")?;
        if rank == 0 {
            shared.set(Some(t.input()));
            ctx.all_reduce(&mut t, ReduceOp::Sum).await?;
        } else if let Some(x) = shared.get() {
            ctx.launch("add", super::add { x, y: t.output(), by: 1.0 })?.await?;
        }
        Ok(())
    });
    insta::assert_snapshot!(told(result), @r#"
    error[KB0655]: rank 1: `t` is in use by `all_reduce` of 8 f32 elements by sum of rank 0, for which nobody may wait here
      --> group.rs `launch("add", super::add { x, y: t.output(), by: 1.0 })?.await?;`: used here
      --> group.rs `all_reduce(&mut t, ReduceOp::Sum).await?;`: rank 0 is in this collective
      help: await the collective first, or use another tensor
    "#);
}

/// A receive that nobody sends to, in the kernel of a collective.
#[kernel]
fn deaf_allreduce<T: Num>(c: Ranks<T>) {
    if tl::program_id(2) == 0 {
        let x = tl::recv::<T>(Dir::peer(1), [1, c.to[0].ncols()]);
        tl::store(c.to[0], x);
    }
}

#[test]
fn a_receive_that_nobody_sends_to() {
    let ctx = machine_with(2, Ccl::from_yaml("ccl.yaml", &CCL.replace("star", "deaf")).unwrap());
    const DEAF: Algorithm =
        Algorithm { name: "deaf_allreduce", launch: kernbench::launch_by_type!(deaf_allreduce), ..STAR };
    ctx.init_process_group(Backend::Ahbm(&[&[DEAF]])).unwrap();
    let result = ctx.spawn(2, async |_, ctx: Worker| {
        let mut t = ctx.zeros::<f32>([1, 8], ONE, "t")?;
        ctx.all_reduce(&mut t, ReduceOp::Sum).await?;
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0201]: PE 0 of cube 0 of SIP 1 sends 0 messages in direction `peer_0` to PE 0 of cube 0, which receives 1: message 0 is never sent
      --> group.rs `tl::recv::<T>(Dir::peer(1), [1, c.to[0].ncols()]);`: `x` is received here
      help: add a `tl::send(Dir::Peer(0), ..)` on PE 0 of cube 0 of SIP 1, or take this one out
    ");
}

#[test]
fn tensors_that_do_not_fit() {
    let result = ranks(2, async |_, ctx, t| {
        let mut y = ctx.zeros::<f32>([1, 12], ONE, "y")?;
        ctx.all_gather(t, &mut y).await?;
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0654]: rank 0: `all_gather` of 2 ranks takes 8 elements of `t` and gives 12 of `y`
      --> group.rs `all_gather(t, &mut y).await?;`: entered here
      help: make `y` 2 times as large as `t`
    error[KB0654]: rank 1: `all_gather` of 2 ranks takes 8 elements of `t` and gives 12 of `y`
      --> group.rs `all_gather(t, &mut y).await?;`: entered here
      help: make `y` 2 times as large as `t`
    ");
    let result = ranks(2, async |_, ctx, t| ctx.broadcast(t, 2).await.map(|_| ()));
    insta::assert_snapshot!(told(result), @"
    error[KB0654]: rank 0: there is no rank 2 to broadcast from: the group has 2 ranks
      --> group.rs `broadcast(t, 2).await.map(|_| ()));`: entered here
      help: use a root from 0 to 1
    error[KB0654]: rank 1: there is no rank 2 to broadcast from: the group has 2 ranks
      --> group.rs `broadcast(t, 2).await.map(|_| ()));`: entered here
      help: use a root from 0 to 1
    ");
    let result = ranks(2, async |_, ctx, _| {
        ctx.set_device(0)?;
        let mut t = ctx.zeros::<f32>([1, 8], ONE, "t")?;
        ctx.all_reduce(&mut t, ReduceOp::Sum).await?;
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0654]: rank 1: `t` of rank 1 is on SIP 0
      --> group.rs `all_reduce(&mut t, ReduceOp::Sum).await?;`: entered here
      help: call `set_device(1)` before it is made
    ");
    let result = ranks(2, async |_, ctx, t| ctx.broadcast(t, 1).await.map(|_| ()));
    insta::assert_snapshot!(told(result), @"
    error[KB0653]: no algorithm is registered for `broadcast`
      --> group.rs `broadcast(t, 1).await.map(|_| ()));`: entered here
      help: add one to the tables given to `init_process_group`
    ");
}

/// In place, a tensor has to have a part for every rank; and tensors are those of the context.
#[test]
fn tensors_that_ranks_cannot_share() {
    let told = |n: usize, scatter: bool| {
        let result = group(2).spawn(2, async |_, ctx: Worker| {
            let mut t = ctx.zeros::<f32>([1, n], ONE, "t")?;
            match scatter {
                true => ctx.reduce_scatter_in_place(&mut t, ReduceOp::Sum).await,
                false => ctx.all_gather_in_place(&mut t).await,
            }
        });
        told(result).lines().next().unwrap().to_owned()
    };
    assert_eq!(told(5, false), "error[KB0654]: rank 0: `t` has 5 elements, which 2 ranks cannot share");
    assert_eq!(told(7, true), "error[KB0654]: rank 0: `t` has 7 elements, which 2 ranks cannot share");
    let other = super::machine(1);
    let mut foreign = [0, 1].map(|_| other.zeros::<f32>([1, 8], ONE, "foreign").unwrap());
    let [a, b] = &mut foreign;
    let taken = std::cell::RefCell::new(vec![a, b]);
    let result = group(2).spawn(2, async |_, ctx: Worker| {
        let t = taken.borrow_mut().pop().unwrap();
        ctx.all_reduce(t, ReduceOp::Sum).await.map(|_| ())
    });
    let first = super::told(result).lines().next().unwrap().to_owned();
    assert_eq!(first, "error[KB0654]: rank 0: a tensor of another context is given to `all_reduce`");
}

#[test]
fn no_process_group() {
    let ctx = machine_with(1, Ccl::from_yaml("ccl.yaml", CCL).unwrap());
    assert_eq!(ctx.world_size().unwrap_err().0[0].code, "KB0653");
    let result = ctx.spawn(1, async |_, ctx: Worker| ctx.barrier().await.map(|_| ()));
    insta::assert_snapshot!(told(result), @"
    error[KB0653]: rank 0: there is no process group
      --> group.rs `barrier().await.map(|_| ()));`: entered here
      help: call `ctx.init_process_group(..)` before `spawn`
    ");
}

#[test]
fn mistakes_of_the_configuration_name_key_and_file() {
    let init = |from: &str, to: &str| {
        assert!(CCL.contains(from), "{from}");
        let ctx = machine_with(2, Ccl::from_yaml("ccl.yaml", &CCL.replace(from, to)).unwrap());
        ctx.init_process_group(Backend::Ahbm(&[&[STAR, MEET]])).unwrap_err().to_string()
    };
    insta::assert_snapshot!(init("mine.star_allreduce", "mine.star_all_reduce"), @"
    error[KB0308]: no algorithm is registered as `star_all_reduce`
      --> ccl.yaml, byte 66
      help: did you mean `star_allreduce`?
    ");
    insta::assert_snapshot!(init("topology: full", "topology: tree"), @"
    error[KB0321]: `star_allreduce` does not run on `tree`
      --> ccl.yaml, byte 100
      help: write `full`
    ");
    insta::assert_snapshot!(init("    topology", "    world_size: 3\n    topology"), @"
    error[KB0322]: `world_size` is 3 for `my_star`, but the machine has 2 SIPs, one for each rank
      --> ccl.yaml, byte 102
      help: write at most 2, or raise `system.sips.count` in topology.yaml
    ");
    let two =
        "large_algorithm: two\nalgorithms:\n  two: {module: star_allreduce, topology: full, world_size: 1}\n";
    insta::assert_snapshot!(init("algorithms:\n", &format!("  {two}")), @"
    error[KB0322]: `world_size` is 1 for `two`, but the process group has 2, those of `my_star`
      --> ccl.yaml, byte 126
      help: give all algorithms of a process group the same, or leave it out
    ");
    let meet = "  meet: {module: meet, topology: tree}\n  my_star:\n    module";
    insta::assert_snapshot!(init("  my_star:\n    module", meet), @"
    error[KB0321]: `meet` does not run on `tree`
      --> ccl.yaml, byte 76
      help: write `full`
    ");
    insta::assert_snapshot!(init("algorithm: my_star\n", "algorithm: my_star\n  slot_size: 8388608\n"), @"
    error[KB0658]: the rings of PE 0 of cube 0 of SIP 0 take 33554432 bytes, but the TCM of a PE has 16777216 bytes
      help: lower `slot_size` or `n_slots` in ccl.yaml, or take another `buffer_kind`
    ");
}

/// However a rank gets rid of a collective it does not await, it is told.
#[test]
fn a_collective_that_is_forgotten_or_kept() {
    let result = ranks(2, async |rank, ctx, t| {
        let entered = ctx.all_reduce(t, ReduceOp::Sum);
        if rank == 0 {
            std::mem::forget(entered);
        } else {
            entered.await?;
        }
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0652]: rank 0: collective 0 was entered and not awaited
      --> group.rs `all_reduce(t, ReduceOp::Sum);`: entered here
      help: write `.await` behind it: the other ranks count on this one
    ");
    let ctx = group(2);
    let mut tensors = [0, 1].map(|sip| {
        ctx.set_device(sip).unwrap();
        ctx.zeros::<f32>([1, 8], ONE, "t").unwrap()
    });
    let given = std::cell::RefCell::new(tensors.iter_mut().rev().collect::<Vec<_>>());
    let kept = std::cell::RefCell::new(vec![]);
    let result = ctx.spawn(2, async |_, ctx: Worker| {
        let t = given.borrow_mut().pop().unwrap();
        kept.borrow_mut().push(ctx.all_reduce(t, ReduceOp::Sum));
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0652]: rank 0: collective 0 was entered and not awaited
      --> group.rs `all_reduce(t, ReduceOp::Sum));`: entered here
      help: write `.await` behind it: the other ranks count on this one
    error[KB0652]: rank 1: collective 0 was entered and not awaited
      --> group.rs `all_reduce(t, ReduceOp::Sum));`: entered here
      help: write `.await` behind it: the other ranks count on this one
    ");
    let result = ctx.spawn(2, async |rank, ctx: Worker| {
        ctx.set_device(rank)?;
        let mut t = ctx.zeros::<f32>([1, 8], ONE, "u")?;
        let old = kept.borrow_mut().pop();
        ctx.all_reduce(&mut t, ReduceOp::Sum).await?;
        match old {
            Some(old) => old.await.map(|_| ()),
            None => Ok(()),
        }
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0652]: rank 0: collective 0 was entered and not awaited
      --> group.rs `all_reduce(t, ReduceOp::Sum));`: entered here
      help: write `.await` behind it: the other ranks count on this one
    error[KB0652]: rank 1: collective 0 was entered and not awaited
      --> group.rs `all_reduce(t, ReduceOp::Sum));`: entered here
      help: write `.await` behind it: the other ranks count on this one
    ");
}

/// A barrier that waits for nobody.
#[kernel]
fn meet<T: Num>(c: Ranks<T>) {
    assert_eq!(c.to[0].ncols(), 0);
}

const MEET: Algorithm = Algorithm {
    name: "meet",
    operation: Operation::Barrier,
    launch: kernbench::launch_by_type!(meet),
    ..STAR
};

#[test]
fn a_rank_that_is_not_in_the_group() {
    let result = group(2).spawn(3, async |_, ctx: Worker| {
        let mut t = ctx.zeros::<f32>([1, 8], ONE, "t")?;
        ctx.all_reduce(&mut t, ReduceOp::Sum).await?;
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0654]: rank 2: rank 2 is not in the process group, which has 2 ranks
      --> group.rs `all_reduce(&mut t, ReduceOp::Sum).await?;`: entered here
      help: spawn as many workers as `world_size()`, or leave the others out with an `if`
    ");
}

#[test]
fn the_configuration_is_not_for_workers() {
    let ctx = group(2);
    let result = ctx.spawn(1, async |_, _: Worker| ctx.configure_ccl(ctx.ccl()));
    insta::assert_snapshot!(told(result), @"
    error[KB0650]: rank 0: `configure_ccl` of the context inside a worker: it would stop all workers
      --> group.rs `configure_ccl(ctx.ccl()));`: called here
      help: use what `spawn` gives the worker, and `.await` it
    ");
}
