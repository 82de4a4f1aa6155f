//! Workers: rounds, handles, what ends them.

use super::{ONE, add, machine, told};
use kernbench::diag::{Diagnostic, Failure};
use kernbench::host::{LaunchOptions, Worker};
use kernbench::ndarray::arr2;
use kernbench::prelude::*;
use std::cell::RefCell;

#[test]
fn workers_take_turns_in_order_of_rank() {
    let turns = RefCell::new(vec![]);
    let ctx = machine(2);
    let results = ctx.spawn(3, async |rank, ctx: Worker| {
        let x = ctx.zeros::<f32>([1, 8], ONE, "x")?;
        let mut y = ctx.empty::<f32>([1, 8], ONE, "y")?;
        for turn in 0..=rank {
            turns.borrow_mut().push((rank, turn));
            ctx.launch("add", add { x: x.input(), y: y.output(), by: 1.0 })?.await?;
        }
        turns.borrow_mut().push((rank, 9));
        Ok(rank * 10)
    });
    assert_eq!(results.unwrap(), [0, 10, 20]);
    assert_eq!(*turns.borrow(), [(0, 0), (1, 0), (2, 0), (0, 9), (1, 1), (2, 1), (1, 9), (2, 2), (2, 9)]);
    assert_eq!(ctx.op_log().launches.len(), 6);
    assert_eq!(machine(1).spawn(0, async |_, _: Worker| Ok(())).unwrap(), []);
}

#[test]
fn a_worker_places_on_the_sip_of_its_rank_until_it_sets_another() {
    let ctx = machine(2);
    ctx.set_device(1).unwrap();
    let seen = ctx.spawn(3, async |rank, ctx: Worker| {
        let first = ctx.zeros::<f32>([1, 8], ONE, "first")?;
        ctx.set_device(1 - rank.min(1))?;
        let second = ctx.zeros::<f32>([1, 8], ONE, "second")?;
        Ok([first, second])
    });
    let sip = |t: &Tensor<f32>| ctx.shards(t.id()).unwrap().sip;
    let sips: Vec<_> = seen.unwrap().iter().map(|[a, b]| [sip(a), sip(b)]).collect();
    assert_eq!(
        sips,
        [[0, 1], [1, 0], [1, 0]],
        "rank 2 has no SIP of its own: it begins where the context was"
    );
    assert_eq!(sip(&ctx.zeros([1, 8], ONE, "after").unwrap()), 1, "the context goes on where it was");
}

/// Two ranks deploy and launch at once; a rank's host work costs the other nothing.
#[test]
fn ranks_of_two_sips_run_at_one_time() {
    let ctx = machine(2);
    ctx.spawn(2, async |_, ctx: Worker| {
        let x = ctx.from_array(&arr2(&[[1.0f32; 64]]), ONE, "x")?;
        let mut y = ctx.empty::<f32>([1, 64], ONE, "y")?;
        ctx.launch("add", add { x: x.input(), y: y.output(), by: 1.0 })?.await?;
        Ok(())
    })
    .unwrap();
    let log = ctx.op_log();
    let spans: Vec<_> = log.launches.iter().map(|l| (l.timing.start_ps, l.timing.end_ps)).collect();
    assert_eq!(spans[0], spans[1]);
}

#[test]
fn handles_that_nobody_awaits_are_completed_at_the_end() {
    let ctx = machine(1);
    let ys = ctx.spawn(1, async |_, ctx: Worker| {
        let x = ctx.from_array(&arr2(&[[1.0f32; 8]]), ONE, "x")?;
        let mut y = ctx.empty::<f32>([1, 8], ONE, "y")?;
        let dry = LaunchOptions { dry_run: true, ..LaunchOptions::default() };
        let kernel = add { x: x.input(), y: y.output(), by: 1.0 };
        let recorded = ctx.launch_with("add", kernel.clone(), &dry)?;
        assert_eq!((recorded.id(), ctx.pending()), (None, 0));
        assert_eq!(recorded.await?.program.op_count(), 3);
        drop(ctx.launch("add", kernel)?);
        Ok(y)
    });
    assert_eq!(ctx.read(&ys.unwrap()[0]).unwrap(), arr2(&[[2.0f32; 8]]));
    assert_eq!(ctx.op_log().launches.len(), 1);
}

/// A tensor that is dropped while a launch uses it keeps its memory until that has completed.
#[test]
fn memory_of_a_dropped_tensor_is_free_after_its_launches() {
    let seen = machine(1).spawn(1, async |_, ctx: Worker| {
        let x = ctx.zeros::<f32>([1, 64], ONE, "x")?;
        let mut y = ctx.empty::<f32>([1, 64], ONE, "y")?;
        let handle = ctx.launch("add", add { x: x.input(), y: y.output(), by: 1.0 })?;
        drop(x);
        let meanwhile = ctx.zeros::<f32>([1, 64], ONE, "meanwhile")?;
        handle.await?;
        let after = ctx.zeros::<f32>([1, 64], ONE, "after")?;
        Ok([y, meanwhile, after])
    });
    let [y, meanwhile, after] = &seen.unwrap()[0];
    let _ = (y, meanwhile, after);
}

#[test]
fn a_rank_that_fails_ends_its_siblings() {
    let ended = RefCell::new(vec![]);
    let result = machine(2).spawn(3, async |rank, ctx: Worker| {
        let x = ctx.zeros::<f32>([1, 8], ONE, "x")?;
        if rank == 1 {
            return Err::<(), Failure>(Diagnostic::error("KB0605", "my own mistake").into());
        }
        let mut y = ctx.empty::<f32>([1, 8], ONE, "y")?;
        ctx.launch("add", add { x: x.input(), y: y.output(), by: 1.0 })?.await?;
        ended.borrow_mut().push(rank);
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"error[KB0605]: rank 1: my own mistake");
    assert!(ended.borrow().is_empty(), "the others were dropped where they waited");
}

#[test]
fn two_ranks_that_fail_in_one_round_are_both_told() {
    let result = machine(2).spawn(3, async |rank, _: Worker| {
        assert!(rank == 1, "rank {rank} is killed");
        Ok(())
    });
    insta::assert_snapshot!(told(result), @r"
    error[KB0656]: rank 0: the worker panicked: rank 0 is killed
      help: the message above says where; return an error instead for what can go wrong
    error[KB0656]: rank 2: the worker panicked: rank 2 is killed
      help: the message above says where; return an error instead for what can go wrong
    ");
}

/// Both cubes receive before they send.
#[kernel]
fn never(y: Out<f32>) {
    let (there, back) = if tl::cube() == 0 { (Dir::E, Dir::E) } else { (Dir::W, Dir::W) };
    let got = tl::recv::<f32>(back, [1, 8]);
    tl::send(there, got);
    tl::store(y.local(), got);
}

/// Without data only the simulation finds it, and so the `.await`; with data the launch itself.
#[test]
fn a_launch_without_end_is_told_and_the_context_goes_on() {
    for data in [false, true] {
        let ctx = machine(1).data(data);
        let result = ctx.spawn(1, async |_, ctx: Worker| {
            let mut y = ctx.empty::<f32>([2, 8], Placement::row_wise().on(2, 1), "y")?;
            let handle = ctx.launch("never", never { y: y.output() })?;
            assert!(!data);
            handle.await?;
            Ok(())
        });
        insta::allow_duplicates! {
            insta::assert_snapshot!(told(result), @"
            error[KB0401]: rank 0: deadlock at 134 ns: 2 PEs wait for each other, 6 of 6 ops are not complete
              --> workers.rs `tl::recv::<f32>(back, [1, 8]);`: sip0.cube0.pe0: `got = recv` waits for message 0 from E, sip0.cube1.pe0, to be sent by `got = send` at workers.rs `tl::send(there, got);`, behind its `got = recv` at workers.rs `let got = tl::recv::<f32>(back, [1, 8]);`
              --> workers.rs `tl::recv::<f32>(back, [1, 8]);`: sip0.cube1.pe0: `got = recv` waits for message 0 from W, sip0.cube0.pe0, to be sent by `got = send` at workers.rs `tl::send(there, got);`, behind its `got = recv` at workers.rs `let got = tl::recv::<f32>(back, [1, 8]);`
              --> workers.rs `tl::store(y.local(), got);`: sip0.cube0.pe0: `y = store` waits for `got = recv` at workers.rs `let got = tl::recv::<f32>(back, [1, 8]);`
              --> workers.rs `tl::store(y.local(), got);`: sip0.cube1.pe0: `y = store` waits for `got = recv` at workers.rs `let got = tl::recv::<f32>(back, [1, 8]);`
              help: let one PE of the cycle send before it receives, or give its link more slots
            ");
        }
        let x = ctx.zeros::<f32>([1, 8], ONE, "x").unwrap();
        let mut y = ctx.empty::<f32>([1, 8], ONE, "y").unwrap();
        ctx.launch("add", add { x: x.input(), y: y.output(), by: 1.0 }).unwrap();
        assert_eq!(ctx.op_log().launches.len(), 1, "only what came to its end is in the log");
    }
}

/// A handle that is dropped is no way to lose a failure.
#[test]
fn a_failure_of_a_dropped_handle_is_told_at_the_next_read_or_the_end() {
    for read in [false, true] {
        let result = machine(1).spawn(1, async |_, ctx: Worker| {
            let x = ctx.zeros::<f32>([1, 8], ONE, "x")?;
            let mut y = ctx.empty::<f32>([1, 8], ONE, "y")?;
            let options = LaunchOptions { max_ps: Some(1), ..LaunchOptions::default() };
            drop(ctx.launch_with("add", add { x: x.input(), y: y.output(), by: 1.0 }, &options)?);
            if read {
                x.to_array().await?;
                unreachable!("the read tells it");
            }
            Ok(())
        });
        let told = told(result);
        assert!(told.starts_with("error[KB0403]: rank 0: the time limit of 0.001 ns is reached"), "{told}");
    }
}

#[test]
fn the_context_itself_is_not_for_workers() {
    let ctx = machine(1);
    let result = ctx.spawn(1, async |_, worker: Worker| {
        let x = worker.zeros::<f32>([1, 8], ONE, "x")?;
        ctx.read(&x)?;
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0650]: rank 0: `read` of the context inside a worker: it would stop all workers
      --> workers.rs `read(&x)?;`: called here
      help: use what `spawn` gives the worker, and `.await` it
    ");
    let nested = ctx.spawn(1, async |_, _: Worker| Ok(ctx.spawn(1, async |_, _: Worker| Ok(()))?));
    assert!(told(nested).contains("`spawn` of the context inside a worker"));
}

/// A worker is for its rank, and for the time of its `spawn`.
#[test]
fn workers_are_used_at_their_turns_only() {
    let ctx = machine(2);
    let kept: std::cell::RefCell<Vec<Worker>> = Default::default();
    let launch = |worker: &Worker| {
        let x = worker.zeros::<f32>([1, 8], ONE, "x")?;
        let mut y = worker.empty::<f32>([1, 8], ONE, "y")?;
        drop(worker.launch("add", add { x: x.input(), y: y.output(), by: 1.0 })?);
        Ok::<(), kernbench::diag::Failure>(())
    };
    let result = ctx.spawn(2, async |rank, worker: Worker| {
        if rank == 1 {
            launch(&kept.borrow()[0])?;
        }
        kept.borrow_mut().push(worker);
        Ok(())
    });
    let first = |text: String| text.lines().next().unwrap().to_owned();
    assert_eq!(first(told(result)), "error[KB0650]: rank 1: the worker of rank 0 is used by rank 1");
    let late = launch(&kept.borrow()[0]).unwrap_err().to_string();
    assert_eq!(first(late), "error[KB0650]: the worker of rank 0 is used after its `spawn` has returned");
}

#[test]
fn awaiting_what_is_not_of_the_context_is_a_stall() {
    let result = machine(1).spawn(2, async |rank, _: Worker| {
        if rank == 1 {
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0406]: the workers wait for what never comes; rank 1 awaits what is not of its context
      help: await only handles, reads and collectives of the worker
    ");
}

/// A view of a tensor that is gone is not one of the tensor that has its number now.
#[test]
fn a_view_outlives_no_tensor() {
    let ctx = machine(1);
    let zeros = || ctx.zeros::<f32>([1, 8], ONE, "x").unwrap();
    let (gone, number) = {
        let x = zeros();
        (x.input(), x.id())
    };
    let x = zeros();
    assert_eq!(x.id(), number);
    let mut y = ctx.empty::<f32>([1, 8], ONE, "y").unwrap();
    let error = ctx.launch("add", add { x: gone, y: y.output(), by: 1.0 }).unwrap_err();
    assert!(
        error.to_string().starts_with("error[KB0110]: the view belongs to a tensor that was freed"),
        "{error}"
    );
    ctx.launch("add", add { x: x.input(), y: y.output(), by: 1.0 }).unwrap();
}

#[test]
fn elements_that_are_not_there() {
    let result = machine(1).spawn(1, async |_, ctx: Worker| {
        let x = ctx.zeros::<f32>([2, 8], ONE, "x")?;
        x.slice(0..3, 0..8).await
    });
    insta::assert_snapshot!(told(result), @"
    error[KB0657]: rank 0: rows 0..3 and columns 0..8 are not all in `x f32[2, 8]`
      --> workers.rs `slice(0..3, 0..8).await`: read here
      help: read rows from 0..2 and columns from 0..8
    ");
    let read = machine(1).spawn(1, async |_, ctx: Worker| {
        let x = ctx.from_array(&arr2(&[[1, 2, 3], [4, 5, 6]]), ONE, "x")?;
        let none = x.slice(1..1, 0..3).await?;
        assert_eq!(none.dim(), (0, 3));
        Ok((x.get(1, 2).await?, x.slice(0..2, 1..2).await?, x.data().await?, x.to_text().await?))
    });
    let text = "x i32[2, 3]\n[[1, 2, 3],\n [4, 5, 6]]".to_owned();
    assert_eq!(read.unwrap(), [(6, arr2(&[[2], [5]]), vec![1, 2, 3, 4, 5, 6], text)]);
}
