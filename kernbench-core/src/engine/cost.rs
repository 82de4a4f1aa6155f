//! How long the compute engines take for an op, by closed formulas.

use super::composite::Stage;
use crate::ir::{Composite, EpilogueStep, Expr, Level, OpKind, Operand, PeProgram};
use crate::topology::Machine;
use crate::units::Ps;

/// GEMM: fetch the operands, multiply tile by tile, store the result. MATH: the steps, at least the
/// overhead. 0 for what no compute engine serves.
pub(super) fn compute_ps(machine: &Machine, pe: &PeProgram, kind: &OpKind) -> Ps {
    match kind {
        OpKind::Dot { dst, a, b, accumulate, .. } => {
            let (result, left) = (pe.tile(*dst).bytes(), pe.tile(*a));
            let fetched = left.bytes() + pe.tile(*b).bytes() + if *accumulate { result } else { 0 };
            let mkn = pe.mkn(kind).unwrap_or_default();
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

/// What an item of a stage of a composite takes; 0 for its transfers. A MATH item past those of the tiles
/// (`whole`) is that of the whole output.
pub(super) fn stage_ps(machine: &Machine, c: &Composite, stage: Stage, item: u32, whole: bool) -> Ps {
    let tile = |step: u32| {
        let [i, k, j] = c.step(step);
        [c.extent(0, i), c.extent(1, k), c.extent(2, j)]
    };
    let k_tiles = c.tiles()[1];
    let bytes = |m: u32, n: u32, size: u32| u64::from(m) * u64::from(n) * u64::from(size);
    let weight = |steps: &mut dyn Iterator<Item = &EpilogueStep>| steps.map(|s| s.fun.steps()).sum::<u64>();
    match stage {
        Stage::Read | Stage::Write => 0,
        Stage::Fetch => {
            let ([m, k, n], size) = (tile(item), c.ty.bytes());
            machine.tcm.read.time(bytes(m, k, size) + bytes(k, n, size))
        }
        Stage::Gemm => machine.gemm.time(c.ty, tile(item)),
        Stage::Math if whole => {
            let steps = weight(&mut c.at(Level::Kernel));
            math_ps(machine, steps * steps_of(machine, [c.mkn[0], c.mkn[2]]))
        }
        Stage::Math => {
            let by_k = c.has(Level::KTile);
            let step = if by_k { item } else { item * k_tiles };
            let [m, _, n] = tile(step);
            // A K tile's product is added up in one step of its own.
            let mut steps = if by_k { weight(&mut c.at(Level::KTile)) + 1 } else { 0 };
            if !by_k || step % k_tiles + 1 == k_tiles {
                steps += weight(&mut c.at(Level::OutputTile));
            }
            math_ps(machine, steps * steps_of(machine, [m, n]))
        }
        Stage::Store => {
            let [m, _, n] = tile(item * k_tiles);
            // Before a step on the whole output nothing is rounded yet.
            let size = if c.has(Level::Kernel) { 4 } else { c.out_ty.bytes() };
            machine.tcm.write.time(bytes(m, n, size))
        }
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
