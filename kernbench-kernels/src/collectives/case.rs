//! The bench of an all-reduce.

use super::oracle::{Collective, Element};
use super::{ALGORITHMS, Case};
use crate::bench::{Bench, Fill, HostArray, Outcome, Param, Params};
use crate::tolerance::Check;
use kernbench_core::ccl::Ccl;
use kernbench_core::diag::{Diagnostic, Failure, nearest};
use kernbench_core::host::{Backend, Context, LaunchOptions, Operation, ReduceOp};
use kernbench_core::ty::{ElementType, bf16, f16};

/// An all-reduce between all SIPs, of standard normal elements.
pub const ALL_REDUCE: Bench = Bench {
    name: "all-reduce",
    about: "an all-reduce between SIPs, one rank each",
    params: &[
        Param::new("algorithm", "auto", "one that ccl.yaml has, or the one it chooses for the size"),
        Param::new(
            "bytes",
            "4096",
            "bytes of each rank's tensor, of each cube for an algorithm on every cube",
        ),
        Param::new("dtype", "f32", "element type: f16, bf16 or f32"),
        Param::new("reduce", "sum", "sum, max, min or prod"),
    ],
    inputs,
    run,
};

/// The configuration that chooses the algorithm, and the case it is.
fn case(ctx: &Context, p: &Params) -> Result<(Ccl, Case), Failure> {
    let mut ccl = ctx.ccl();
    let bytes = p.count("bytes", 1)? as u64;
    let name = p.text("algorithm");
    if name != "auto" {
        if ccl.algorithm(name).is_none() {
            let names = || ccl.algorithms.iter().map(|a| a.name.as_str());
            let text = format!("the collectives configuration has no algorithm `{name}`");
            let help = match nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has `{}`", names().collect::<Vec<_>>().join("`, `")),
            };
            return Err(Diagnostic::error("KB0308", text).help(help).into());
        }
        (ccl.defaults.algorithm, ccl.defaults.large_algorithm) = (name.to_owned(), None);
    }
    let module = ccl.all_reduce(bytes).map_or("", |entry| &entry.module);
    let algorithm = ALGORITHMS.iter().find(|a| a.name == module && a.operation == Operation::AllReduce);
    let case = Case {
        // One that is not in the table is told of by the process group.
        algorithm: *algorithm.unwrap_or(&ALGORITHMS[0]),
        ty: p.float_type("dtype")?,
        bytes,
        reduce: p.choice("reduce", &ReduceOp::ALL.map(|op| (op.name(), op)))?,
    };
    Ok((ccl, case))
}

/// Ranks of the process group.
fn world(ctx: &Context, ccl: &Ccl) -> Result<usize, Failure> {
    let sips = ctx.topology().machine().sips;
    let entry = ccl.algorithm(&ccl.defaults.algorithm);
    Ok(entry.map_or(Ok(sips), |entry| entry.check_world(sips))? as usize)
}

fn inputs(ctx: &Context, p: &Params, fill: Fill) -> Result<Vec<HostArray>, Failure> {
    let (ccl, case) = case(ctx, p)?;
    let world = world(ctx, &ccl)?;
    let (given, _) = case.elements(ctx, world);
    Ok(vec![fill.array("x", case.ty, &[world, given])])
}

fn run(ctx: &Context, p: &Params, inputs: &[HostArray], options: &LaunchOptions) -> Result<Outcome, Failure> {
    match p.float_type("dtype")? {
        ElementType::F16 => run_in::<f16>(ctx, p, inputs, options),
        ElementType::Bf16 => run_in::<bf16>(ctx, p, inputs, options),
        _ => run_in::<f32>(ctx, p, inputs, options),
    }
}

fn run_in<T: Element>(
    ctx: &Context,
    p: &Params,
    inputs: &[HostArray],
    options: &LaunchOptions,
) -> Result<Outcome, Failure> {
    let [x] = inputs else { return Err(Diagnostic::error("KB0624", "the bench needs the input x").into()) };
    let (ccl, case) = case(ctx, p)?;
    ctx.configure_ccl(ccl)?;
    ctx.init_process_group_with(Backend::Ahbm(&[ALGORITHMS]), options)?;
    let values: Vec<T> = x.floats().into_iter().map(|x| T::of(x.into())).collect();
    let from = values.chunks(x.shape[1].max(1)).map(<[T]>::to_vec).collect();
    let moved = case.run(ctx, from)?;
    if !moved.launched.computed {
        return Ok(Outcome { launches: vec![moved.launched], outputs: vec![], check: None });
    }
    let correct = case.is_correct(ctx, &moved);
    let given: Vec<&[T]> = case.tiles(ctx, &moved.from);
    let got = case.tiles(ctx, &moved.to)[0];
    let c = Collective { operation: Operation::AllReduce, reduce: case.reduce, root: 0 };
    let mut check = Check { correct, max_error: 0.0, error_bound: 0.0, at: 0, got: 0.0, want: 0.0, nan: 0 };
    for (at, got) in got.iter().map(|x| x.exact()).enumerate() {
        let (want, bound) = c.element(&given, 0, at);
        let error = if got.is_nan() { f64::INFINITY } else { (got - want).abs() };
        // The element nearest to its own bound.
        if at == 0 || error * check.error_bound > check.max_error * bound || error > bound {
            check = Check { max_error: error, error_bound: bound, at, got, want, ..check };
        }
    }
    let output = HostArray::new("y", &[moved.to.len(), x.shape[1]], &moved.to.concat());
    Ok(Outcome { launches: vec![moved.launched], outputs: vec![output], check: Some(check) })
}
