//! What a worker of `spawn` can do, and the handles it awaits.

use super::crew::Wait;
use super::flight::Fate;
use super::launch::{LaunchId, LaunchOptions, Launched, Submission};
use super::{Context, Shared, Tensor, here};
use crate::diag::{Failure, Place};
use crate::placement::Placement;
use crate::tl::Kernel;
use crate::ty::Dtype;
use crate::units::Ps;
use ndarray::Array2;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

/// One rank's view of the context: what [`Context::spawn`] gives each worker.
///
/// Host work costs the worker its own simulated time; what it awaits brings all workers to one time.
#[derive(Debug)]
pub struct Worker {
    pub(super) ctx: Context,
    pub(super) rank: usize,
}

impl Worker {
    /// Its number, from 0.
    #[must_use]
    pub const fn rank(&self) -> usize {
        self.rank
    }

    /// The ranks of the process group.
    ///
    /// # Errors
    /// There is no process group.
    pub fn world_size(&self) -> Result<usize, Failure> {
        self.ctx.world_size()
    }

    /// The SIP on which its tensors are placed from now on; at first that of its rank, if there is one, else 0.
    ///
    /// # Errors
    /// The machine has no such SIP.
    pub fn set_device(&self, sip: usize) -> Result<(), Failure> {
        self.ctx.set_device(sip)
    }

    /// As [`Context::zeros`].
    ///
    /// # Errors
    /// As there.
    pub fn zeros<T: Dtype>(
        &self,
        shape: [usize; 2],
        placement: Placement,
        name: &str,
    ) -> Result<Tensor<T>, Failure> {
        self.ctx.zeros(shape, placement, name)
    }

    /// As [`Context::empty`].
    ///
    /// # Errors
    /// As there.
    pub fn empty<T: Dtype>(
        &self,
        shape: [usize; 2],
        placement: Placement,
        name: &str,
    ) -> Result<Tensor<T>, Failure> {
        self.ctx.empty(shape, placement, name)
    }

    /// As [`Context::from_array`].
    ///
    /// # Errors
    /// As there.
    pub fn from_array<T: Dtype>(
        &self,
        array: &Array2<T>,
        placement: Placement,
        name: &str,
    ) -> Result<Tensor<T>, Failure> {
        self.ctx.from_array(array, placement, name)
    }

    /// As [`Context::from_bytes`].
    ///
    /// # Errors
    /// As there.
    pub fn from_bytes<T: Dtype>(
        &self,
        bytes: &Arc<Vec<u8>>,
        shape: [usize; 2],
        placement: Placement,
        name: &str,
    ) -> Result<Tensor<T>, Failure> {
        self.ctx.from_bytes(bytes, shape, placement, name)
    }

    /// Submits a kernel; what follows need not wait for it. A handle that is dropped stays pending until the worker
    /// reads a tensor or comes to its end.
    ///
    /// # Errors
    /// Mistakes of the kernel, findings of the checks, or wrong data. A stall is told where it is awaited.
    #[track_caller]
    pub fn launch<K: Kernel>(&self, name: &str, kernel: K) -> Result<Handle, Failure> {
        self.launch_with(name, kernel, &LaunchOptions::default())
    }

    /// Submits a kernel with options.
    ///
    /// # Errors
    /// As [`Worker::launch`], and options the machine cannot meet.
    #[track_caller]
    pub fn launch_with<K: Kernel>(
        &self,
        name: &str,
        kernel: K,
        options: &LaunchOptions,
    ) -> Result<Handle, Failure> {
        let place = here();
        let mut s = self.ctx.shared.borrow_mut();
        s.is_turn_of(self.rank, &place)?;
        let order = s.order(options, place.clone());
        let submission = s.submit(name, &kernel, &order)?;
        if let (Some(id), Some(hand)) = (submission.id, s.hand()) {
            hand.pending.push(id);
        }
        Ok(Handle { shared: self.ctx.shared.clone(), submission, place })
    }

    /// Writes all elements, into every replica, when the launches under way that use the tensor have completed.
    ///
    /// # Errors
    /// The array's shape is not the tensor's, or a pending collective uses the tensor.
    #[track_caller]
    pub fn write<T: Dtype>(
        &self,
        tensor: &mut Tensor<T>,
        array: &Array2<T>,
    ) -> impl Future<Output = Result<(), Failure>> {
        let place = here();
        async move {
            tensor.settle(tensor.elements(), true, &place).await?;
            self.ctx.put(tensor, array)
        }
    }

    /// As [`Context::sync_replicas`], when the launches under way that use the tensor have completed.
    ///
    /// # Errors
    /// A pending collective uses the tensor, or it is of another context.
    #[track_caller]
    pub fn sync_replicas<T: Dtype>(
        &self,
        tensor: &mut Tensor<T>,
    ) -> impl Future<Output = Result<(), Failure>> {
        let place = here();
        async move {
            tensor.is_of(&self.ctx.shared)?;
            tensor.settle(tensor.elements(), true, &place).await?;
            self.ctx.shared.borrow_mut().sync_replicas(tensor.id());
            Ok(())
        }
    }

    /// How many launches it has submitted and does not know to have completed.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.ctx.shared.borrow_mut().pending().len()
    }

    /// How often it has given way to the other workers.
    #[must_use]
    pub fn yields(&self) -> usize {
        self.ctx.shared.borrow_mut().hand().map_or(0, |hand| hand.yields)
    }

    /// Simulated time at which it stands.
    #[must_use]
    pub fn now_ps(&self) -> Ps {
        self.ctx.now_ps()
    }
}

/// A launch that was submitted. `handle.await` gives way until it has completed, and gives a [`Launched`] or why it
/// could not complete.
#[derive(Debug)]
#[must_use = "`.await` it, or drop it if nothing needs to wait for the launch"]
pub struct Handle {
    shared: Shared,
    submission: Submission,
    place: Place,
}

impl Handle {
    /// For `after` of a later launch; `None` for a dry run.
    #[must_use]
    pub fn id(&self) -> Option<LaunchId> {
        self.submission.id
    }
}

impl IntoFuture for Handle {
    type Output = Result<Launched, Failure>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Launched, Failure>>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let ids = self.submission.id.into_iter().collect();
            Completed { shared: &self.shared, ids, place: &self.place }.await;
            let state = self.shared.borrow();
            state.outcome(&self.submission).map(|(_, launched)| launched)
        })
    }
}

/// Waits until launches have completed, or failed.
struct Completed<'a> {
    shared: &'a Shared,
    ids: Vec<LaunchId>,
    place: &'a Place,
}

impl Future for Completed<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<()> {
        let mut s = self.shared.borrow_mut();
        let open: Vec<LaunchId> = self.ids.iter().copied().filter(|id| !s.is_known(*id)).collect();
        if open.is_empty() {
            return Poll::Ready(());
        }
        if let Some(hand) = s.hand() {
            hand.waits.extend(open.into_iter().map(|id| Wait::Launch(id, self.place.clone())));
        }
        Poll::Pending
    }
}

/// Waits until launches have completed.
///
/// # Errors
/// One of them has failed.
pub(super) async fn completed(shared: &Shared, ids: Vec<LaunchId>, place: &Place) -> Result<(), Failure> {
    Completed { shared, ids: ids.clone(), place }.await;
    let s = shared.borrow();
    let failed = ids.iter().find_map(|id| match &s.flights.fates[id.at()] {
        Fate::Failed(failure) => Some(failure.clone()),
        _ => None,
    });
    failed.map_or(Ok(()), Err)
}
