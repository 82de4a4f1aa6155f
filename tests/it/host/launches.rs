//! Launches of one context that are under way at the same time: which follow each other, and which overlap.

use super::{ONE, add, machine, places};
use kernbench::diag::Failure;
use kernbench::engine::Fidelity;
use kernbench::host::{LaunchId, LaunchOptions, Worker};
use kernbench::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Adds one to a tensor a number of times.
#[kernel]
fn work(x: InOut<f32>, times: usize) {
    let t = tl::load(x);
    for _ in 0..times {
        tl::copy_to(t, t + 1.0);
    }
    tl::store(x, t);
}

/// Start and end of every launch of the log, in ns, and when it was submitted.
fn spans(ctx: &Context) -> Vec<(u64, u64)> {
    let log = ctx.op_log();
    log.launches.iter().map(|l| (l.timing.start_ps, l.timing.end_ps)).collect()
}

fn overlap(a: (u64, u64), b: (u64, u64)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

/// Submits `work` on a tensor of each cube given; each launch with `after`, of those before it.
fn submit(cubes: &[usize], after: &[Option<Range<usize>>]) -> Result<Context, Failure> {
    let ctx = machine(1);
    ctx.spawn(1, async |_, ctx: Worker| {
        // Row c is on PE 0 of cube c.
        let mut x = ctx.zeros::<f32>([4, 64], Placement::row_wise().on(4, 1), "x")?;
        let mut ids: Vec<LaunchId> = vec![];
        for (cube, after) in cubes.iter().zip(after) {
            let view = x.inout().rows(*cube..*cube + 1);
            let after = after.clone().map(|range| ids[range].to_vec());
            let options = LaunchOptions { after, ..LaunchOptions::default() };
            let kernel = on_cube { x: view, cube: *cube };
            ids.extend(ctx.launch_with("work", kernel, &options)?.id());
        }
        Ok(())
    })?;
    Ok(ctx)
}

/// `work` of one PE; the others have nothing to do.
#[kernel]
fn on_cube(x: InOut<f32>, cube: usize) {
    if tl::cube() == cube {
        let t = tl::load(x);
        for _ in 0..100 {
            tl::copy_to(t, t + 1.0);
        }
        tl::store(x, t);
    }
}

#[test]
fn launches_of_two_sips_overlap_and_of_one_pe_do_not() {
    let ctx = machine(2);
    ctx.spawn(2, async |_, ctx: Worker| {
        let mut x = ctx.zeros::<f32>([1, 64], ONE, "x")?;
        drop(ctx.launch("first", work { x: x.inout(), times: 50 })?);
        drop(ctx.launch("second", work { x: x.inout(), times: 50 })?);
        Ok(())
    })
    .unwrap();
    let [a0, a1, b0, b1] = spans(&ctx)[..] else { panic!("four launches") };
    assert_eq!((a0, a1), (b0, b1), "the SIPs share nothing");
    let overhead = ctx.topology().launch_ps();
    assert_eq!(
        a1.0,
        a0.1 + 2 * overhead,
        "completion goes back to the host, the next stamp comes from there"
    );
}

/// By rule 5, launches that share PEs follow each other though their bytes are apart.
#[test]
fn launches_that_share_pes_follow_each_other() {
    let ctx = submit(&[0, 1], &[None, None]).unwrap();
    let [a, b] = spans(&ctx)[..] else { panic!("two launches") };
    assert!(!overlap(a, b));
    assert_eq!(b.0, a.1 + 2 * ctx.topology().launch_ps());
}

/// Launches on PEs of their own that use the same bytes follow each other, in order of submission, unless both only
/// read; the last value is that of the last.
#[test]
fn launches_that_use_the_same_bytes_follow_each_other() {
    let ctx = machine(2);
    let seen = ctx.spawn(1, async |_, ctx: Worker| {
        let x = ctx.zeros::<f32>([1, 64], ONE, "x")?;
        let mut near = ctx.empty::<f32>([1, 64], ONE, "near")?;
        let mut far = ctx.empty::<f32>([1, 64], ONE, "far")?;
        let on =
            |sip| LaunchOptions { sips: Some(vec![sip]), grid: Some([1, 1]), ..LaunchOptions::default() };
        drop(ctx.launch_with("a", add { x: x.input(), y: near.output(), by: 1.0 }, &on(0))?);
        drop(ctx.launch_with("b", add { x: x.input(), y: far.output(), by: 2.0 }, &on(1))?);
        drop(ctx.launch_with("c", add { x: near.input(), y: far.output(), by: 3.0 }, &on(1))?);
        far.get(0, 0).await
    });
    assert_eq!(seen.unwrap(), [4.0]);
    let [a, b, c] = spans(&ctx)[..] else { panic!("three launches") };
    assert!(overlap(a, b), "both only read `x`");
    assert!(!overlap(a, c) && !overlap(b, c) && c.0 > a.1 && c.0 > b.1);
}

#[test]
fn an_explicit_list_adds_an_order() {
    let ctx = machine(2);
    for listed in [false, true] {
        ctx.spawn(1, async |_, ctx: Worker| {
            let mut x = ctx.zeros::<f32>([1, 64], ONE, "x")?;
            ctx.set_device(1)?;
            let mut y = ctx.zeros::<f32>([1, 64], ONE, "y")?;
            let first = ctx.launch("first", work { x: x.inout(), times: 50 })?;
            let after = Some(first.id().into_iter().filter(|_| listed).collect());
            let options = LaunchOptions { after, ..LaunchOptions::default() };
            ctx.launch_with("second", work { x: y.inout(), times: 5 }, &options)?.await?;
            first.await?;
            Ok(())
        })
        .unwrap();
    }
    let [a, b, c, d] = spans(&ctx)[..] else { panic!("four launches") };
    assert!(overlap(a, b));
    assert_eq!(d.0, c.1 + 2 * ctx.topology().launch_ps());
}

#[test]
fn an_explicit_list_must_hold_launches_that_use_the_same_bytes() {
    let result = submit(&[2, 2], &[None, Some(0..0)]);
    insta::assert_snapshot!(places(&result.unwrap_err().to_string()), @r#"
    error[KB0648]: rank 0: launch `work` uses bytes of `x` that launch `work` uses, too, and its `after` leaves that one out
      --> launches.rs `launch_with("work", kernel, &options)?.id());`: launched here
      --> launches.rs `launch_with("work", kernel, &options)?.id());`: under way since here
      help: add that launch to `after`, or leave `after` out
    "#);
    // By way of another launch is enough.
    submit(&[2, 2, 2], &[None, None, Some(1..2)]).unwrap();
}

#[test]
fn an_explicit_list_is_of_one_context() {
    let id = std::cell::Cell::new(None);
    for _ in 0..2 {
        let result = machine(1).spawn(1, async |_, ctx: Worker| {
            let mut x = ctx.zeros::<f32>([1, 8], ONE, "x")?;
            let options = LaunchOptions { after: id.get().map(|id| vec![id]), ..LaunchOptions::default() };
            let handle = ctx.launch_with("first", work { x: x.inout(), times: 1 }, &options)?;
            id.set(handle.id());
            handle.await
        });
        if let Err(error) = result {
            let text =
                "error[KB0648]: rank 0: the `after` of launch `first` names a launch of another context";
            assert_eq!(error.to_string().lines().next(), Some(text));
            return;
        }
    }
    panic!("the second context takes a launch of the first one");
}

/// A launch that does not complete takes those behind it along; what others have stored since stays.
#[test]
fn what_follows_a_launch_that_fails() {
    let told = machine(1).spawn(1, async |_, ctx: Worker| {
        let x = ctx.zeros::<f32>([1, 8], ONE, "x")?;
        let mut y = ctx.zeros::<f32>([1, 8], ONE, "y")?;
        let mut z = ctx.zeros::<f32>([1, 8], ONE, "z")?;
        let limit = LaunchOptions { max_ps: Some(1), ..LaunchOptions::default() };
        let a = ctx.launch_with("a", add { x: x.input(), y: y.output(), by: 1.0 }, &limit)?;
        let b = ctx.launch("b", add { x: y.input(), y: z.output(), by: 1.0 })?;
        let told = [a.await.unwrap_err(), b.await.unwrap_err()].map(|failure| places(&failure.to_string()));
        assert!(told[0].starts_with("error[KB0403]"), "{}", told[0]);
        assert!(y.get(0, 0).await.is_err() && z.get(0, 0).await.is_err(), "nobody has written them");
        ctx.launch("c", add { x: x.input(), y: y.output(), by: 5.0 })?.await?;
        assert_eq!(y.get(0, 0).await?, 5.0);
        Ok(told[1].clone())
    });
    insta::assert_snapshot!(told.unwrap()[0], @r#"
    error[KB0660]: launch `b` cannot start: launch `a`, which comes before it, does not complete
      --> launches.rs `launch("b", add { x: y.input(), y: z.output(), by: 1.0 })?;`: launched here
      --> launches.rs `launch_with("a", add { x: x.input(), y: y.output(), by: 1.0 }, &limit)?;`: this one does not complete
      help: see why that one fails; it says so where it is awaited
    "#);
}

/// A replica is brought up to date when the launches that use the tensor have completed.
#[test]
fn replicas_are_synced_after_launches_under_way() {
    let ctx = machine(1);
    let ends = ctx.spawn(1, async |_, ctx: Worker| {
        let x = ctx.zeros::<f32>([1, 64], ONE, "x")?;
        let mut y = ctx.zeros::<f32>([1, 64], Placement::replicated().on(1, 2), "y")?;
        let one = LaunchOptions { grid: Some([1, 1]), ..LaunchOptions::default() };
        drop(ctx.launch_with("add", add { x: x.input(), y: y.output(), by: 2.0 }, &one)?);
        ctx.sync_replicas(&mut y).await?;
        assert_eq!((ctx.yields(), ctx.pending()), (1, 0));
        assert_eq!(y.get(0, 63).await?, 2.0);
        Ok(ctx.now_ps())
    });
    // The log can be kept while the context goes on.
    let log = ctx.op_log();
    let x = ctx.zeros::<f32>([1, 8], ONE, "x").unwrap();
    assert!(ends.unwrap()[0] > log.launches[0].timing.end_ps);
    assert_eq!(ctx.read(&x).unwrap().sum(), 0.0);
}

/// The host reads and writes a range when the launches that use it have completed, whoever submitted them; others go on.
#[test]
fn host_reads_and_writes_wait_for_launches_that_use_the_range() {
    let ctx = machine(2);
    let shared: std::cell::RefCell<Vec<Tensor<f32>>> = Default::default();
    let times = ctx
        .spawn(2, async |rank, ctx: Worker| {
            if rank == 0 {
                let mut x = ctx.zeros::<f32>([2, 64], ONE, "x")?;
                drop(ctx.launch("work", work { x: x.inout().rows(0..1), times: 1000 })?);
                shared.borrow_mut().push(x);
                return Ok(0);
            }
            let x = shared.borrow_mut().pop().unwrap();
            let before = ctx.now_ps();
            assert_eq!(x.get(1, 0).await?, 0.0);
            assert_eq!((ctx.now_ps(), ctx.yields()), (before, 0), "row 1 is in nobody's use");
            assert_eq!(x.get(0, 0).await?, 1000.0);
            assert_eq!(ctx.yields(), 1);
            Ok(ctx.now_ps() - before)
        })
        .unwrap();
    assert!(times[1] > 1_000_000, "the launch takes more than a microsecond: {times:?}");
}

/// The spans of launches at one time that load from one slice of SIP 0: a SIP loads more than one further away, whose
/// bytes come late.
fn loads_of_one_slice(sips: &[usize], fidelity: &[Fidelity]) -> Vec<(u64, u64)> {
    let ctx = machine(2);
    ctx.spawn(1, async |_, ctx: Worker| {
        let x = ctx.zeros::<f32>([256, 256], ONE, "x")?;
        for (sip, fidelity) in sips.iter().zip(fidelity) {
            ctx.set_device(*sip)?;
            let rows = if *sip == 0 { 256 } else { 64 };
            let mut y = ctx.empty::<f32>([rows, 256], ONE, "y")?;
            let x = x.input().rows(0..rows);
            let options = LaunchOptions {
                sips: Some(vec![*sip]),
                fidelity: Some(*fidelity),
                ..LaunchOptions::default()
            };
            drop(ctx.launch_with("add", add { x, y: y.output(), by: 1.0 }, &options)?);
        }
        Ok(())
    })
    .unwrap();
    let logged: Vec<Fidelity> = ctx.op_log().launches.iter().map(|l| l.fidelity).collect();
    assert_eq!(logged, fidelity);
    spans(&ctx)
}

#[test]
fn launches_that_overlap_share_the_wires() {
    let alone = [0, 1].map(|sip| loads_of_one_slice(&[sip], &[Fidelity::Flit])[0]);
    let both = loads_of_one_slice(&[0, 1], &[Fidelity::Flit; 2]);
    assert_eq!([both[0].0, both[1].0], [alone[0].0, alone[1].0], "both start as if alone");
    let later: Vec<u64> = alone.iter().zip(&both).map(|(alone, both)| both.1 - alone.1).collect();
    // While the bytes of the far one come, at half the rate of the slice, the near one gets the other half.
    assert!((50_000..300_000).contains(&later.iter().sum::<u64>()), "later by {later:?} ps");
}

/// Wires of two fidelities are not shared: such launches follow each other.
#[test]
fn a_launch_of_another_fidelity_follows_all_others() {
    let both = loads_of_one_slice(&[0, 1], &[Fidelity::Flit, Fidelity::Message]);
    let alone = loads_of_one_slice(&[1], &[Fidelity::Message]);
    assert!(both[1].0 > both[0].1, "{both:?}");
    assert_eq!(both[1].1 - both[1].0, alone[0].1 - alone[0].0);
}

/// A launch of another fidelity follows all others; the host still waits for those.
#[test]
fn the_host_waits_for_launches_of_another_fidelity() {
    let ctx = machine(1);
    ctx.spawn(1, async |_, ctx: Worker| {
        let x = ctx.zeros::<f32>([1, 4096], ONE, "x")?;
        let mut y = ctx.zeros::<f32>([1, 4096], ONE, "y")?;
        let first = ctx.launch("add", add { x: x.input(), y: y.output(), by: 1.0 })?;
        let u = ctx.zeros::<f32>([1, 8], ONE, "u")?;
        let mut v = ctx.zeros::<f32>([1, 8], ONE, "v")?;
        let options = LaunchOptions { fidelity: Some(Fidelity::Message), ..LaunchOptions::default() };
        drop(ctx.launch_with("add", add { x: u.input(), y: v.output(), by: 1.0 }, &options)?);
        ctx.write(&mut y, &kernbench::ndarray::Array2::ones([1, 4096])).await?;
        assert_eq!(ctx.yields(), 1, "the first launch writes what the host writes");
        let now = ctx.now_ps();
        first.await?;
        assert_eq!((ctx.yields(), ctx.now_ps()), (1, now), "it has completed");
        Ok(())
    })
    .unwrap();
}

/// A flag that is set before a launch cancels it, one that is set after its end does not.
#[test]
fn what_has_come_to_its_end_is_not_cancelled() {
    let flag = Arc::new(AtomicBool::new(false));
    machine(2)
        .spawn(1, async |_, ctx: Worker| {
            let mut long = ctx.zeros::<f32>([1, 4096], ONE, "long")?;
            ctx.set_device(1)?;
            let mut short = ctx.zeros::<f32>([1, 64], ONE, "short")?;
            let options = LaunchOptions { cancel: Some(flag.clone()), ..LaunchOptions::default() };
            let under_way = ctx.launch("work", work { x: long.inout(), times: 20_000 })?;
            ctx.launch_with("work", work { x: short.inout(), times: 100 }, &options)?.await?;
            flag.store(true, Ordering::Relaxed);
            let next = ctx.launch_with("work", work { x: short.inout(), times: 1 }, &options)?;
            assert_eq!(next.await.unwrap_err().0[0].code, "KB0404");
            under_way.await?;
            Ok(())
        })
        .unwrap();
}
