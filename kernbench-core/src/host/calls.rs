//! The collectives as workers call them.

use super::collective::{Operation, ReduceOp};
use super::crew::Wait;
use super::launch::Launched;
use super::meeting::{Entered, Wanted};
use super::{Shared, Tensor, Worker, here};
use crate::diag::{Diagnostic, Failure, Place};
use crate::tl::{InOut, Raw};
use crate::ty::{Dtype, ElementType, Num};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{self, Poll};

/// A collective that a rank has entered. `.await` gives way until all ranks have, and it has completed.
#[derive(Debug)]
#[must_use = "a collective that is not awaited is a mistake"]
pub struct Collective<'a> {
    shared: Shared,
    number: Result<usize, Failure>,
    /// The number of the `spawn` it belongs to.
    spawn: u32,
    rank: usize,
    place: Place,
    done: bool,
    /// Its tensors stay borrowed until it has completed.
    tensors: PhantomData<&'a mut ()>,
}

impl Future for Collective<'_> {
    type Output = Result<Launched, Failure>;

    fn poll(mut self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<Self::Output> {
        let number = match &self.number {
            Ok(number) => *number,
            Err(failure) => {
                let failure = failure.clone();
                self.done = true;
                return Poll::Ready(Err(failure));
            }
        };
        let shared = self.shared.clone();
        let mut s = shared.borrow_mut();
        if s.crew.is_none() || s.spawns != self.spawn {
            self.done = true;
            return Poll::Ready(Err(not_awaited(number, &self.place).into()));
        }
        if s.is_collective_known(number) {
            self.done = true;
            s.settle(self.rank, number);
            let submission = s.group.as_ref().and_then(|group| group.meetings[number].launched.clone());
            let submission = submission.ok_or_else(|| Failure(vec![]));
            return Poll::Ready(submission.and_then(|submission| s.outcome(&submission)).map(|(_, l)| l));
        }
        if let Some(hand) = s.hand() {
            hand.waits.push(Wait::Collective(number, self.place.clone()));
        }
        Poll::Pending
    }
}

impl Drop for Collective<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let Ok(mut s) = self.shared.try_borrow_mut() else { return };
        if s.spawns != self.spawn {
            return;
        }
        if let Ok(number) = self.number {
            s.settle(self.rank, number);
        }
        let Some(crew) = s.crew.as_mut().filter(|crew| !crew.ending) else { return };
        let found = match &self.number {
            Err(failure) => failure.0.clone(),
            Ok(number) => vec![not_awaited(*number, &self.place)],
        };
        if let Some(hand) = crew.hands.get_mut(self.rank) {
            hand.findings.extend(found);
        }
    }
}

/// What is wrong with a rank that has entered a collective and does not wait for it.
pub(super) fn not_awaited(number: usize, place: &Place) -> Diagnostic {
    Diagnostic::error("KB0652", format!("collective {number} was entered and not awaited"))
        .at(place.clone(), "entered here")
        .help("write `.await` behind it: the other ranks count on this one")
}

/// The collectives. Each is entered when it is called; `.await` it. All ranks must enter the same ones in the same
/// order, with equal sizes and element types. The errors come with the `.await`: ranks that differ, tensors that do
/// not fit or lie on another SIP than their rank, no process group, and those of a launch.
impl Worker {
    #[track_caller]
    fn enter<'a>(
        &self,
        operation: Operation,
        (ty, elements): (ElementType, u64),
        views: Option<[Raw; 2]>,
        reduce: Option<ReduceOp>,
        root: Option<usize>,
    ) -> Collective<'a> {
        let place = here();
        let wanted = Wanted { operation, reduce, root, ty, elements };
        let entered = Entered { wanted, views, place: place.clone() };
        let mut s = self.ctx.shared.borrow_mut();
        let fits = s.is_turn_of(self.rank, &place).and_then(|()| s.check_views(self.rank, &entered));
        let number = fits.and_then(|()| s.enter(self.rank, entered));
        Collective {
            shared: self.ctx.shared.clone(),
            number,
            spawn: s.spawns,
            rank: self.rank,
            place,
            done: false,
            tensors: PhantomData,
        }
    }

    /// Reduces a tensor of every rank, element by element; every rank's tensor becomes the result.
    #[track_caller]
    pub fn all_reduce<'a, T: Num>(&self, t: &'a mut Tensor<T>, op: ReduceOp) -> Collective<'a> {
        self.enter(Operation::AllReduce, size(t), Some([t.raw; 2]), Some(op), None)
    }

    /// Reduces the tensors `x` of all ranks into the tensors `y`.
    #[track_caller]
    pub fn all_reduce_into<'a, T: Num>(
        &self,
        x: &'a Tensor<T>,
        y: &'a mut Tensor<T>,
        op: ReduceOp,
    ) -> Collective<'a> {
        self.enter(Operation::AllReduce, size(x), Some([x.raw, y.raw]), Some(op), None)
    }

    /// Copies the root's tensor to those of all ranks.
    #[track_caller]
    pub fn broadcast<'a, T: Num>(&self, t: &'a mut Tensor<T>, root: usize) -> Collective<'a> {
        self.enter(Operation::Broadcast, size(t), Some([t.raw; 2]), None, Some(root))
    }

    /// Copies the root's `x` to the tensors `y` of all ranks.
    #[track_caller]
    pub fn broadcast_into<'a, T: Num>(
        &self,
        x: &'a Tensor<T>,
        y: &'a mut Tensor<T>,
        root: usize,
    ) -> Collective<'a> {
        self.enter(Operation::Broadcast, size(x), Some([x.raw, y.raw]), None, Some(root))
    }

    /// Puts the tensors `x` of all ranks, in order of rank, behind each other into the tensors `y`.
    #[track_caller]
    pub fn all_gather<'a, T: Num>(&self, x: &'a Tensor<T>, y: &'a mut Tensor<T>) -> Collective<'a> {
        self.enter(Operation::AllGather, size(x), Some([x.raw, y.raw]), None, None)
    }

    /// As [`Worker::all_gather`], where each rank's part is already in its place in `t`.
    #[track_caller]
    pub fn all_gather_in_place<'a, T: Num>(&self, t: &'a mut Tensor<T>) -> Collective<'a> {
        let (part, elements) = self.part(t);
        self.enter(Operation::AllGather, (T::TYPE, elements), Some([part, t.raw]), None, None)
    }

    /// Reduces the tensors `x` of all ranks; rank r gets part r of the result in `y`.
    #[track_caller]
    pub fn reduce_scatter<'a, T: Num>(
        &self,
        x: &'a Tensor<T>,
        y: &'a mut Tensor<T>,
        op: ReduceOp,
    ) -> Collective<'a> {
        self.enter(Operation::ReduceScatter, size(y), Some([x.raw, y.raw]), Some(op), None)
    }

    /// As [`Worker::reduce_scatter`], where each rank's part of the result goes to its place in `t`.
    #[track_caller]
    pub fn reduce_scatter_in_place<'a, T: Num>(&self, t: &'a mut Tensor<T>, op: ReduceOp) -> Collective<'a> {
        let (part, elements) = self.part(t);
        self.enter(Operation::ReduceScatter, (T::TYPE, elements), Some([t.raw, part]), Some(op), None)
    }

    /// Gives part r of `x` to rank r, which puts the parts it gets in order of rank into `y`.
    #[track_caller]
    pub fn all_to_all<'a, T: Num>(&self, x: &'a Tensor<T>, y: &'a mut Tensor<T>) -> Collective<'a> {
        self.enter(Operation::AllToAll, size(x), Some([x.raw, y.raw]), None, None)
    }

    /// As [`Worker::all_to_all`], in place.
    #[track_caller]
    pub fn all_to_all_in_place<'a, T: Num>(&self, t: &'a mut Tensor<T>) -> Collective<'a> {
        self.enter(Operation::AllToAll, size(t), Some([t.raw; 2]), None, None)
    }

    /// Waits until all ranks have come.
    #[track_caller]
    pub fn barrier(&self) -> Collective<'_> {
        self.enter(Operation::Barrier, (ElementType::F32, 0), None, None, None)
    }

    /// This rank's part of a tensor, as one row, and its elements. A tensor that does not divide gives a part of a
    /// size that does not fit, which is told on entering.
    fn part<T: Dtype>(&self, t: &Tensor<T>) -> (Raw, u64) {
        let world = self.world_size().unwrap_or(1).max(1);
        let [m, n] = t.shape();
        let part = m * n / world;
        let row = InOut::<T>::of(t.raw).reshape([1, m * n]);
        let start = part * self.rank.min(world - 1);
        (row.cols(start..start + part).raw, part as u64)
    }
}

fn size<T: Dtype>(t: &Tensor<T>) -> (ElementType, u64) {
    (T::TYPE, t.elements().end)
}
