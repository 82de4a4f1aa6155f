//! Workers in rounds: each runs until it gives way, then what they wait for is completed.
//!
//! Invariant: one thread, in order of rank. Only the end of a round drives the engine.

use super::calls::not_awaited;
use super::crew::{Crew, Hand};
use super::worker::completed;
use super::{Context, Worker, here};
use crate::diag::{Diagnostic, Failure, Place};
use crate::units::Ps;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{self, Poll, Waker};

/// Why workers did not come to their end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnError {
    /// The ranks that failed, in order, each with why; those that were ended because of them are not among them. A
    /// stall belongs to no rank.
    pub causes: Vec<(Option<usize>, Failure)>,
}

impl From<SpawnError> for Failure {
    fn from(error: SpawnError) -> Failure {
        let of_rank = |(rank, failure): (Option<usize>, Failure)| {
            failure.0.into_iter().map(move |d| match rank {
                Some(rank) => Diagnostic { message: format!("rank {rank}: {}", d.message), ..d },
                None => d,
            })
        };
        Failure(error.causes.into_iter().flat_map(of_rank).collect())
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Failure::from(self.clone()).fmt(f)
    }
}

impl std::error::Error for SpawnError {}

type Task<'a, R> = Pin<Box<dyn Future<Output = Result<R, Failure>> + 'a>>;

impl Context {
    /// Runs `n` workers of a host program, one for each rank, and gives what they return, in order of rank.
    ///
    /// They take turns in order of rank, each until it gives way at an `.await`; when all have, what they wait for is
    /// completed, and collectives that every rank has entered. So a run depends on nothing but the program. A worker
    /// that fails or panics ends the others at their next turn.
    ///
    /// ```
    /// use kernbench_core::host::{Context, Worker};
    /// use kernbench_core::placement::Placement;
    /// let ctx = Context::new(kernbench_core::topology::Topology::default_machine());
    /// let sums = ctx.spawn(2, async |rank, ctx: Worker| {
    ///     ctx.set_device(rank)?;
    ///     let array = ndarray::Array2::from_elem([1, 8], rank as f32);
    ///     let t = ctx.from_array(&array, Placement::replicated().on(1, 1), "t")?;
    ///     Ok(t.to_array().await?.sum())
    /// })?;
    /// assert_eq!(sums, [0.0, 8.0]);
    /// # Ok::<(), kernbench_core::host::SpawnError>(())
    /// ```
    ///
    /// # Errors
    /// The root causes, if a worker fails or panics, if ranks differ in a collective, or if workers wait for what
    /// never comes.
    #[track_caller]
    pub fn spawn<R, F>(&self, n: usize, work: F) -> Result<Vec<R>, SpawnError>
    where
        F: AsyncFn(usize, Worker) -> Result<R, Failure>,
    {
        let place = here();
        self.shared.borrow().no_worker("spawn", place).map_err(|f| SpawnError { causes: vec![(None, f)] })?;
        self.shared.borrow_mut().begin_crew(n);
        let work = &work;
        let task = |rank| -> Task<'_, R> {
            Box::pin(async move {
                let ctx = || Worker { ctx: Context { shared: self.shared.clone() }, rank };
                let result = work(rank, ctx()).await?;
                ctx().finish().await?;
                Ok(result)
            })
        };
        let mut tasks: Vec<Option<Task<'_, R>>> = (0..n).map(|rank| Some(task(rank))).collect();
        let mut results: Vec<Option<R>> = (0..n).map(|_| None).collect();
        let mut causes = vec![];
        while causes.is_empty() && tasks.iter().any(Option::is_some) {
            let mut ran = false;
            for (rank, (task, result)) in tasks.iter_mut().zip(&mut results).enumerate() {
                let Some(running) = task else { continue };
                if !self.shared.borrow().can_go_on(rank) {
                    continue;
                }
                ran = true;
                self.shared.borrow_mut().begin_turn(rank);
                let mut waker = task::Context::from_waker(Waker::noop());
                let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(&mut waker)));
                self.shared.borrow_mut().end_turn(matches!(polled, Ok(Poll::Pending)));
                let failure = match polled {
                    Ok(Poll::Pending) => None,
                    Ok(Poll::Ready(Ok(value))) => {
                        *result = Some(value);
                        *task = None;
                        None
                    }
                    Ok(Poll::Ready(Err(failure))) => Some(failure),
                    Err(panic) => Some(panicked(panic.as_ref())),
                };
                let found = self.shared.borrow_mut().turn_over(rank, task.is_none());
                causes.extend(failure.into_iter().chain(found).map(|failure| (Some(rank), failure)));
            }
            if !causes.is_empty() {
                break;
            }
            let ended = self.shared.borrow_mut().end_round();
            if let Err(failure) = ended {
                causes.push((None, failure));
            } else if !ran && !(0..n).any(|rank| self.shared.borrow().can_go_on(rank)) {
                causes.push((None, self.shared.borrow().stall()));
            }
        }
        self.shared.borrow_mut().crew.iter_mut().for_each(|crew| crew.ending = true);
        // A worker that is dropped may panic in what it drops; the first cause is known already.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(tasks)));
        self.shared.borrow_mut().end_crew();
        if causes.is_empty() {
            Ok(results.into_iter().flatten().collect())
        } else {
            Err(SpawnError { causes })
        }
    }
}

impl Worker {
    /// Waits for what it has submitted and not awaited.
    async fn finish(self) -> Result<(), Failure> {
        let ids = self.ctx.shared.borrow_mut().pending();
        let place = Place::Source { file: String::new(), line: 0, column: 0 };
        completed(&self.ctx.shared, ids, &place).await
    }
}

impl super::state::State {
    fn begin_crew(&mut self, n: usize) {
        let (sips, now, device) = (self.topology.machine().sips as usize, self.now, self.device);
        let hand = |rank| Hand {
            device: if rank < sips { rank as u32 } else { device },
            clock: now,
            ..Hand::default()
        };
        self.crew = Some(Crew { hands: (0..n).map(hand).collect(), device, ..Crew::default() });
        self.round_ps = Some(now);
        self.spawns += 1;
        if let Some(group) = &mut self.group {
            group.begin();
        }
    }

    fn end_crew(&mut self) {
        if let Some(crew) = self.crew.take() {
            self.device = crew.device;
        }
        self.round_ps = None;
        // What a worker that was ended has left is completed, too.
        self.fly();
        self.now = self.flights.list.iter().filter_map(|f| f.known_ps).fold(self.now, Ps::max);
        self.land();
    }

    /// Notes that a worker has returned; what is wrong with how it used collectives.
    fn turn_over(&mut self, rank: usize, returned: bool) -> Option<Failure> {
        let hand = self.crew.as_mut()?.hands.get_mut(rank)?;
        hand.returned = returned;
        let mut found = std::mem::take(&mut hand.findings);
        if returned {
            found.extend(hand.open.drain(..).map(|(number, place)| not_awaited(number, &place)));
        }
        (!found.is_empty()).then_some(Failure(found))
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let why = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Diagnostic::error("KB0656", format!("the worker panicked: {why}"))
        .help("the message above says where; return an error instead for what can go wrong")
        .into()
}
