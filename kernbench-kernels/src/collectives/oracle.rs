//! What collectives must give, computed from all ranks' elements.

use kernbench_core::host::{Operation, ReduceOp};
use kernbench_core::ty::{ElementType, Float, Num, bf16, f16};

/// An element type of collectives, of which f64 holds every value.
pub trait Element: Num + PartialEq {
    /// Rounds to nearest even; towards zero to an integer.
    fn of(x: f64) -> Self;
    /// Exact.
    fn exact(self) -> f64;
}

macro_rules! floats {
    ($($ty:ty),*) => {$(
        impl Element for $ty {
            fn of(x: f64) -> Self {
                <$ty as Float>::from_f32(x as f32)
            }
            fn exact(self) -> f64 {
                f64::from(self.to_f32())
            }
        }
    )*};
}

floats!(f16, bf16, f32);

impl Element for i32 {
    fn of(x: f64) -> Self {
        x as i32
    }
    fn exact(self) -> f64 {
        f64::from(self)
    }
}

/// A collective whose result is checked.
#[derive(Clone, Copy, Debug)]
pub struct Collective {
    /// What it does.
    pub operation: Operation,
    /// How it reduces, if it does.
    pub reduce: ReduceOp,
    /// The rank a broadcast comes from.
    pub root: usize,
}

/// An element that is not as it must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wrong {
    /// The rank that has it.
    pub rank: usize,
    /// Its index there; the length of the shorter one if there are too few or too many elements.
    pub at: usize,
    /// What it is.
    pub got: f64,
    /// What it must be.
    pub want: f64,
    /// How far it may be from that.
    pub bound: f64,
}

impl Collective {
    /// The first element that is wrong, if the ranks gave `from` and got `got`, each as in the table of
    /// [`Ranks`](kernbench_core::host::Ranks). Of an all-reduce, all ranks must have the same bits.
    #[must_use]
    pub fn wrong<T: Element>(&self, from: &[&[T]], got: &[&[T]]) -> Option<Wrong> {
        for (rank, mine) in got.iter().enumerate() {
            if self.operation == Operation::AllReduce && rank > 0 && *mine == got[0] {
                continue;
            }
            let len = self.result_len(from);
            if mine.len() != len || got.len() != from.len() {
                let at = mine.len().min(len);
                return Some(Wrong { rank, at, got: f64::NAN, want: f64::NAN, bound: 0.0 });
            }
            for (at, value) in mine.iter().enumerate() {
                let (want, mut bound) = self.element(from, rank, at);
                if self.operation == Operation::AllReduce && rank > 0 {
                    bound = 0.0;
                }
                let value = value.exact();
                let error = (value - want).abs();
                if error.is_nan() || error > bound {
                    return Some(Wrong { rank, at, got: value, want, bound });
                }
            }
        }
        None
    }

    fn result_len<T>(&self, from: &[&[T]]) -> usize {
        let len = from.first().map_or(0, |x| x.len());
        match self.operation {
            Operation::AllGather => len * from.len(),
            Operation::ReduceScatter => len / from.len().max(1),
            Operation::Barrier => 0,
            _ => len,
        }
    }

    /// Element `at` of what a rank must have, and how far from that it may be.
    ///
    /// The bound is 0 where nothing is rounded. In any order, a sum of n terms is off by at most gamma(n-1) times the
    /// sum of their magnitudes, a product by gamma(n-1) times its own (Higham, Accuracy and Stability of Numerical
    /// Algorithms, 2002, sections 3.1 and 4.2), where gamma(k) = k u / (1 - k u) and u is half a rounding step; and by
    /// the smallest step of the type for each reduction where results are that small.
    #[must_use]
    pub fn element<T: Element>(&self, from: &[&[T]], rank: usize, at: usize) -> (f64, f64) {
        let (world, len) = (from.len(), from.first().map_or(0, |x| x.len()));
        let part = len / world.max(1);
        let of_all = match self.operation {
            Operation::AllReduce => at,
            Operation::ReduceScatter => rank * part + at,
            Operation::Broadcast => return (from[self.root][at].exact(), 0.0),
            Operation::AllGather => return (from[at / len][at % len].exact(), 0.0),
            Operation::AllToAll => return (from[at / part][rank * part + at % part].exact(), 0.0),
            Operation::Barrier => return (0.0, 0.0),
        };
        let terms = || from.iter().map(|x| x[of_all].exact());
        if T::TYPE == ElementType::I32 {
            // Sums and products wrap.
            let terms = || terms().map(|x| x as i32);
            match self.reduce {
                ReduceOp::Sum => return (terms().fold(0, i32::wrapping_add).into(), 0.0),
                ReduceOp::Prod => return (terms().fold(1, i32::wrapping_mul).into(), 0.0),
                ReduceOp::Max | ReduceOp::Min => {}
            }
        }
        let rounding = |magnitude: f64| {
            let (u, least): (f64, f64) = match T::TYPE {
                ElementType::F16 => (1.0 / 2048.0, 2f64.powi(-24)),
                ElementType::Bf16 => (1.0 / 256.0, 2f64.powi(-133)),
                _ => (1.0 / 16_777_216.0, 2f64.powi(-149)),
            };
            let k = world.saturating_sub(1) as f64;
            k * u / (1.0 - k * u) * magnitude + k * least
        };
        match self.reduce {
            ReduceOp::Sum => (terms().sum(), rounding(terms().map(f64::abs).sum())),
            ReduceOp::Prod => (terms().product(), rounding(terms().product::<f64>().abs())),
            ReduceOp::Max => (terms().fold(f64::NEG_INFINITY, f64::max), 0.0),
            ReduceOp::Min => (terms().fold(f64::INFINITY, f64::min), 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(operation: Operation, from: [&[i32]; 2], got: [&[i32]; 2]) -> Option<(usize, usize)> {
        let c = Collective { operation, reduce: ReduceOp::Sum, root: 1 };
        c.wrong(&from, &got).map(|w| (w.rank, w.at))
    }

    #[test]
    fn what_is_right_and_what_is_not() {
        use Operation::*;
        let from: [&[i32]; 2] = [&[1, 2], &[30, 40]];
        assert_eq!(said(AllReduce, from, [&[31, 42], &[31, 42]]), None);
        assert_eq!(said(AllReduce, from, [&[31, 42], &[31, 41]]), Some((1, 1)));
        assert_eq!(said(AllReduce, from, [&[31], &[31]]), Some((0, 1)));
        assert_eq!(said(Broadcast, from, [&[30, 40], &[30, 40]]), None);
        assert_eq!(said(Broadcast, from, [&[1, 2], &[30, 40]]), Some((0, 0)));
        assert_eq!(said(AllGather, from, [&[1, 2, 30, 40], &[1, 2, 30, 40]]), None);
        assert_eq!(said(AllGather, from, [&[1, 2, 30, 40], &[30, 40, 1, 2]]), Some((1, 0)));
        assert_eq!(said(ReduceScatter, from, [&[31], &[42]]), None);
        assert_eq!(said(ReduceScatter, from, [&[31], &[31]]), Some((1, 0)));
        assert_eq!(said(AllToAll, from, [&[1, 30], &[2, 40]]), None);
        assert_eq!(said(AllToAll, from, [&[1, 2], &[30, 40]]), Some((0, 1)));
        assert_eq!(said(Barrier, from, [&[], &[]]), None);
    }

    #[test]
    fn integers_wrap() {
        let from: [&[i32]; 2] = [&[i32::MAX, 1 << 20], &[2, (1 << 20) + 3]];
        let right = |reduce, got: [i32; 2]| {
            let c = Collective { operation: Operation::AllReduce, reduce, root: 0 };
            c.wrong(&from, &[&got, &got]).is_none()
        };
        assert!(right(ReduceOp::Sum, [i32::MIN + 1, (2 << 20) + 3]));
        assert!(right(ReduceOp::Prod, [-2, 3 << 20]));
        assert!(!right(ReduceOp::Prod, [i32::MAX, 3 << 20]));
        assert!(right(ReduceOp::Max, [i32::MAX, (1 << 20) + 3]));
    }

    #[test]
    fn ranks_that_differ_within_the_bound_are_wrong() {
        let c = Collective { operation: Operation::AllReduce, reduce: ReduceOp::Sum, root: 0 };
        let from: [&[f16]; 2] = [&[f16::ONE], &[f16::from_f32(1.0 / 2048.0)]];
        let near = [f16::from_f32(1.0 + 1.0 / 1024.0)];
        let one = [f16::ONE];
        assert_eq!(c.wrong(&from, &[&one, &one]), None);
        assert_eq!(c.wrong(&from, &[&near, &near]), None);
        assert_eq!(c.wrong(&from, &[&one, &near]).map(|w| w.rank), Some(1));
        let nan = [f16::NAN];
        assert_eq!(c.wrong(&from, &[&nan, &nan]).map(|w| w.rank), Some(0));
    }
}
