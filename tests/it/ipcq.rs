//! Messages between PEs as kernels and `ccl.yaml` meet them: neighbour tables, slots, credits.

use kernbench::ccl::Ccl;
use kernbench::host::Context;
use kernbench::ir::{OpKind, PeId};
use kernbench::ndarray::Array2;
use kernbench::prelude::*;
use kernbench::topology::{Family, Links, Machine, SipTopology};

/// Each PE sends its own elements where `plan` says, by PE of the machine, and stores what it receives.
#[kernel]
fn pass(x: Vec<In<i32>>, y: Vec<Out<i32>>, plan: Vec<[Option<Dir>; 2]>) {
    let pe = (tl::sip() * tl::num_programs(1) + tl::cube()) * tl::num_programs(0) + tl::pe();
    let [to, from] = plan[pe];
    let x = tl::load(x[tl::sip()].local());
    if let Some(to) = to {
        tl::send(to, x);
    }
    if let Some(from) = from {
        tl::store(y[tl::sip()].local(), tl::recv::<i32>(from, x.shape()));
    }
}

fn machine(sips: [u32; 2], topology: SipTopology) -> Topology {
    Topology::from_yaml_with_sips("topology.yaml", Topology::DEFAULT_YAML, sips, topology).unwrap()
}

/// Whoever a link joins gets the sender's elements, whatever the two call each other: for each direction of each family.
#[test]
fn every_family_delivers_along_its_links() {
    let cubes = vec![5, 6, 10, 9];
    let families = [
        Family::CubeMesh,
        Family::Line(cubes.clone()),
        Family::Ring(cubes),
        Family::PeGrid,
        Family::PeLine,
        Family::Sip(SipTopology::Torus2d),
        Family::Sip(SipTopology::Mesh2dNoWrap),
        Family::Tree,
    ];
    for family in families {
        let (ctx, tables) = with_family([2, 2], SipTopology::Torus2d, &family);
        check(&ctx, &tables, &format!("{family:?}"));
    }
    // Two ranks in a ring are each other's E and W: what one sends E arrives from W.
    let (ctx, tables) = with_family([2, 1], SipTopology::Ring1d, &Family::Sip(SipTopology::Ring1d));
    check(&ctx, &tables, "ring of two");
}

fn with_family(sips: [u32; 2], topology: SipTopology, family: &Family) -> (Context, Links) {
    let topology = machine(sips, topology);
    let links = Links::of_family(topology.machine(), family).unwrap();
    let ctx = Context::new(topology);
    ctx.configure_neighbours(links.clone());
    (ctx, links)
}

fn check(ctx: &Context, links: &Links, what: &str) {
    let topology = ctx.topology();
    let machine: &Machine = topology.machine();
    let per_sip = (machine.cubes() * machine.pes()) as usize;
    let place = Placement::row_wise().on(machine.cubes() as usize, machine.pes() as usize);
    let mut dirs: Vec<(Dir, Dir)> = links.links.iter().map(|l| (l.dir, l.recv_dir)).collect();
    dirs.sort_by_key(|(a, b)| (a.index(), b.index()));
    dirs.dedup();
    for (dir, recv_dir) in dirs {
        let of_dir = || links.links.iter().filter(|l| (l.dir, l.recv_dir) == (dir, recv_dir));
        let mut plan = vec![[None; 2]; machine.pe_count() as usize];
        let mut want = vec![-1; plan.len()];
        for link in of_dir() {
            plan[link.from.at()][0] = Some(dir);
            plan[link.to.at()][1] = Some(recv_dir);
            want[link.to.at()] = link.from.0 as i32;
        }
        let (mut x, mut y) = (vec![], vec![]);
        for sip in 0..machine.sips as usize {
            ctx.set_device(sip).unwrap();
            let mine = Array2::from_shape_fn([per_sip, 1], |(pe, _)| (sip * per_sip + pe) as i32);
            x.push(ctx.from_array(&mine, place, "x").unwrap());
            y.push(ctx.from_array(&Array2::from_elem([per_sip, 1], -1), place, "y").unwrap());
        }
        let (from, to) = (x.iter().map(Tensor::input).collect(), y.iter_mut().map(Tensor::output).collect());
        let everywhere = LaunchOptions {
            grid: Some([machine.cubes() as usize, machine.pes() as usize]),
            sips: Some((0..machine.sips as usize).collect()),
            ..LaunchOptions::default()
        };
        ctx.launch_with("pass", pass { x: from, y: to, plan }, &everywhere).unwrap();
        let got: Vec<i32> = y.iter().flat_map(|y| ctx.read(y).unwrap()).collect();
        assert_eq!(got, want, "{what}, {dir}");
        let sent =
            ctx.op_log().launch(ctx.op_log().launches.len() - 1).filter(|r| r.name() == "ipcq_copy").count();
        assert_eq!(sent, of_dir().count(), "{what}, {dir}");
    }
}

/// PE 0 sends `count` tiles at once to PE 0 of the next cube, which takes its time over each.
#[kernel]
fn burst(x: In<f32>, y: Out<f32>, count: usize) {
    let x = tl::load(x.local());
    for i in 0..count {
        if tl::cube() == 0 {
            tl::send(Dir::E, x);
        } else {
            let z = tl::recv(Dir::W, x.shape());
            let z = tl::eval(tl::exp(tl::exp(z * 0.0)));
            if i + 1 == count {
                tl::store(y.local(), z);
            }
        }
    }
}

/// Start and end of every send, and the end of every receive, of a burst of 6 tiles of `n` elements.
fn times(ccl: &str, n: usize) -> (Vec<(u64, u64)>, Vec<u64>) {
    let text = format!(
        "defaults:\n  algorithm: a\n{ccl}\nalgorithms:\n  a: {{module: ring_allreduce, topology: ring_1d}}\n"
    );
    let ccl = Ccl::from_yaml("ccl.yaml", &text).unwrap();
    let ctx = Context::with_ccl(Topology::default_machine(), ccl);
    let x = ctx.zeros::<f32>([2, n], Placement::row_wise().on(2, 1), "x").unwrap();
    let mut y = ctx.empty::<f32>([2, n], Placement::row_wise().on(2, 1), "y").unwrap();
    let kernel = burst { x: x.input(), y: y.output(), count: 6 };
    ctx.launch("burst", kernel).unwrap();
    let log = ctx.op_log();
    let (program, timing) = (&log.launches[0].program, &log.launches[0].timing);
    let of = |pe: usize, wanted: fn(&OpKind) -> bool| {
        let ops = program.pes[pe].ops.iter().zip(&timing.pes[pe].ops);
        ops.filter(move |(op, _)| wanted(&op.kind)).map(|(_, t)| (t.start_ps, t.end_ps)).collect::<Vec<_>>()
    };
    assert_eq!(program.pes[1].pe, PeId(8));
    let receives = of(1, |kind| matches!(kind, OpKind::Recv { .. }));
    (of(0, |kind| matches!(kind, OpKind::Send { .. })), receives.into_iter().map(|r| r.1).collect())
}

/// A send that finds no free slot waits for the credit of the message so many before it: with `sleep` it goes on the
/// moment that is back, with `poll` at the next multiple of 4 ns after it began to wait.
#[test]
fn credits_come_back_one_for_each_message() {
    for slots in [1, 2, 4] {
        for (backpressure, poll) in [("sleep", 1), ("poll", 4000)] {
            let (sends, receives) =
                times(&format!("  n_slots: {slots}\n  backpressure: {backpressure}"), 512);
            for (j, (start, end)) in sends.iter().enumerate() {
                let Some(freed) = j.checked_sub(slots).map(|i| receives[i]) else { continue };
                let waited = freed.saturating_sub(*start).div_ceil(poll) * poll;
                assert!(freed > *start, "{slots} slots: send {j} waits");
                assert_eq!(*end, start + waited, "{slots} slots, {backpressure}, send {j}");
            }
        }
    }
}

/// A message takes two accesses to its slot, each setup + n / intrinsic + n / bank: rule 7 of the machine.
#[test]
fn kinds_of_slots_cost_what_the_table_says() {
    for n in [64, 512, 1024] {
        let first = |kind: &str| {
            let (sends, receives) = times(&format!("  buffer_kind: {kind}"), n);
            receives[0] - sends[0].0
        };
        let [tcm, sram, hbm] = ["tcm", "sram", "hbm"].map(first);
        let bytes = 4 * n as u64;
        let at = |gbs: u64| bytes * 1000 / gbs;
        assert_eq!(sram - tcm, 2 * (2000 + at(128)), "{bytes} B");
        assert_eq!(hbm - tcm, 2 * (6000 + at(256) + at(256) - at(512)), "{bytes} B");
    }
}
