//! How long the compute engines take for an op, by closed formulas.

use crate::ir::{Expr, OpKind, Operand, PeProgram};
use crate::topology::Machine;
use crate::units::Ps;

/// M, K and N of a matrix product.
pub(crate) fn gemm_mkn(pe: &PeProgram, kind: &OpKind) -> Option<[u32; 3]> {
    let OpKind::Dot { a, b, a_t, b_t, .. } = kind else { return None };
    let ([r, c], [br, bc]) = (pe.tile(*a).shape, pe.tile(*b).shape);
    let [m, k] = if *a_t { [c, r] } else { [r, c] };
    Some([m, k, if *b_t { br } else { bc }])
}

/// GEMM: fetch the operands, multiply tile by tile, store the result. MATH: the steps, at least the
/// overhead. 0 for what no compute engine serves.
pub(super) fn compute_ps(machine: &Machine, pe: &PeProgram, kind: &OpKind) -> Ps {
    match kind {
        OpKind::Dot { dst, a, b, accumulate, .. } => {
            let (result, left) = (pe.tile(*dst).bytes(), pe.tile(*a));
            let fetched = left.bytes() + pe.tile(*b).bytes() + if *accumulate { result } else { 0 };
            let mkn = gemm_mkn(pe, kind).unwrap_or_default();
            machine.tcm.read.time(fetched) + machine.gemm.time(left.ty, mkn) + machine.tcm.write.time(result)
        }
        OpKind::Fill { dst, .. } | OpKind::Arange { dst, .. } => {
            math_ps(machine, steps_of(machine, pe.tile(*dst).shape))
        }
        OpKind::Map { expr, .. } => math_ps(machine, expr_steps(machine, pe, expr)),
        OpKind::Reduce { expr, .. } => {
            let reduction = steps_of(machine, expr_shape(pe, expr));
            math_ps(machine, expr_steps(machine, pe, expr) + reduction)
        }
        _ => 0,
    }
}

/// Steps of the vector engine for one pass over a shape.
fn steps_of(machine: &Machine, [rows, cols]: [u32; 2]) -> u64 {
    (u64::from(rows) * u64::from(cols)).div_ceil(u64::from(machine.math.lanes))
}

fn expr_steps(machine: &Machine, pe: &PeProgram, expr: &Expr) -> u64 {
    let weight = |slow: bool| if slow { u64::from(machine.math.slow_steps) } else { 1 };
    pe.steps_of(expr).iter().map(|s| weight(s.fun.is_slow()) * steps_of(machine, s.shape)).sum()
}

fn math_ps(machine: &Machine, steps: u64) -> Ps {
    (steps * machine.math.step_ps).max(machine.math.overhead_ps)
}

/// The shape of an expression's value.
fn expr_shape(pe: &PeProgram, expr: &Expr) -> [u32; 2] {
    match expr.root {
        Operand::Tile(t) => pe.tile(t).shape,
        Operand::Step(s) => pe.steps[s as usize].shape,
        _ => [1, 1],
    }
}
