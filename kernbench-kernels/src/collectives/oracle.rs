//! What collectives must give, computed from all ranks' elements at once.

use kernbench_core::host::{Operation, ReduceOp};
use kernbench_core::ty::ElementType;

/// What every rank must have at the end, if the ranks give `from`, each as in the table of
/// [`Ranks`](kernbench_core::host::Ranks); sums and products in f64.
#[must_use]
pub fn collective(operation: Operation, op: ReduceOp, root: usize, from: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let world = from.len();
    let reduced = || -> Vec<f64> {
        let count = from.first().map_or(0, Vec::len);
        (0..count).map(|i| from.iter().map(|x| x[i]).reduce(|a, b| two(op, a, b)).unwrap_or(0.0)).collect()
    };
    let part = |x: &[f64], r: usize| x[r * x.len() / world..(r + 1) * x.len() / world].to_vec();
    match operation {
        Operation::AllReduce => vec![reduced(); world],
        Operation::Broadcast => vec![from.get(root).cloned().unwrap_or_default(); world],
        Operation::AllGather => vec![from.concat(); world],
        Operation::ReduceScatter => {
            let all = reduced();
            (0..world).map(|r| part(&all, r)).collect()
        }
        Operation::AllToAll => (0..world).map(|r| from.iter().flat_map(|x| part(x, r)).collect()).collect(),
        Operation::Barrier => vec![vec![]; world],
    }
}

fn two(op: ReduceOp, a: f64, b: f64) -> f64 {
    match op {
        ReduceOp::Sum => a + b,
        ReduceOp::Prod => a * b,
        ReduceOp::Max => a.max(b),
        ReduceOp::Min => a.min(b),
    }
}

/// How far an element may be from [`collective`]'s: 0 where nothing is rounded. `terms` are the magnitudes of the
/// elements that were reduced, whose number is `n`. In any order a sum is off by at most gamma(n-1) times the sum of
/// magnitudes, a product by gamma(n-1) times its own (Higham, Accuracy and Stability of Numerical Algorithms, 2002,
/// sections 3.1 and 4.2), gamma(k) = k u / (1 - k u), u half a rounding step; and by the smallest step of the type for
/// each reduction where results are that small.
#[must_use]
pub fn bound(ty: ElementType, operation: Operation, op: ReduceOp, terms: &[f64]) -> f64 {
    let reduces = matches!(operation, Operation::AllReduce | Operation::ReduceScatter);
    let (u, least): (f64, f64) = match ty {
        ElementType::F16 => (1.0 / 2048.0, 2f64.powi(-24)),
        ElementType::Bf16 => (1.0 / 256.0, 2f64.powi(-133)),
        ElementType::F32 => (1.0 / 16_777_216.0, 2f64.powi(-149)),
        _ => return 0.0,
    };
    let k = terms.len().saturating_sub(1) as f64;
    let gamma = k * u / (1.0 - k * u);
    let magnitude = match op {
        _ if !reduces => return 0.0,
        ReduceOp::Max | ReduceOp::Min => return 0.0,
        ReduceOp::Sum => terms.iter().map(|x| x.abs()).sum::<f64>(),
        ReduceOp::Prod => terms.iter().map(|x| x.abs()).product::<f64>(),
    };
    gamma * magnitude + k * least
}
