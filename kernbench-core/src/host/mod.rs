//! The host program: a context, its tensors, and launches.

mod alloc;
mod barrier;
mod calls;
mod collective;
mod crew;
mod flight;
mod group;
mod launch;
mod meeting;
mod spawn;
mod state;
mod tensor;
mod transfer;
mod worker;

pub use barrier::HOST_READ_BARRIERS;
pub use calls::Collective;
pub use collective::{Algorithm, Call, Operation, Ranks, ReduceOp};
pub use group::Backend;
pub use launch::{LaunchId, LaunchOptions, Launched};
pub use spawn::SpawnError;
pub use tensor::Tensor;
pub use worker::{Handle, Worker};

use crate::ccl::Ccl;
use crate::diag::{Diagnostic, Failure, Place};
use crate::ir::{Draft, Program, TensorId};
use crate::log::OpLog;
use crate::placement::Placement;
use crate::tl::{Kernel, Raw};
use crate::topology::{Links, Topology};
use crate::ty::Dtype;
use crate::units::Ps;
use ndarray::Array2;
use state::{State, no_sip};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

type Shared = Rc<RefCell<State>>;

/// One simulated machine with its memory and its clock, driven by one host program.
///
/// ```
/// use kernbench_core::host::Context;
/// use kernbench_core::placement::Placement;
/// use kernbench_core::topology::Topology;
/// let ctx = Context::new(Topology::default_machine());
/// let x = ctx.from_array(&ndarray::arr2(&[[1.0f32, 2.0]]), Placement::replicated().on(1, 1), "x")?;
/// assert_eq!(ctx.read(&x)?, ndarray::arr2(&[[1.0, 2.0]]));
/// # Ok::<(), kernbench_core::diag::Failure>(())
/// ```
#[derive(Debug)]
pub struct Context {
    shared: Shared,
}

impl Context {
    /// A context on a machine, with the default collectives configuration, that computes values.
    #[must_use]
    pub fn new(topology: Topology) -> Context {
        Context::with_ccl(topology, Ccl::default_config())
    }

    /// A context with a collectives configuration of its own.
    #[must_use]
    pub fn with_ccl(topology: Topology, ccl: Ccl) -> Context {
        Context { shared: Rc::new(RefCell::new(State::new(topology, ccl))) }
    }

    /// Whether launches compute values (the default) or only time. Set before the first tensor.
    #[must_use]
    pub fn data(self, data: bool) -> Context {
        self.shared.borrow_mut().set_data(data);
        self
    }

    /// How many threads compute values; results do not depend on it. Default: one per core.
    #[must_use]
    pub fn threads(self, threads: usize) -> Context {
        self.shared.borrow_mut().threads = Some(threads.max(1));
        self
    }

    /// The machine.
    #[must_use]
    pub fn topology(&self) -> Rc<Topology> {
        self.shared.borrow().topology.clone()
    }

    /// The SIP on which tensors are placed from now on; 0 at first.
    ///
    /// # Errors
    /// The machine has no such SIP.
    pub fn set_device(&self, sip: usize) -> Result<(), Failure> {
        let mut s = self.shared.borrow_mut();
        let have = s.topology.machine().sips;
        if sip >= have as usize {
            return Err(no_sip(sip, have).into());
        }
        s.device = sip as u32;
        Ok(())
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// The placement does not fit the shape or the machine, or memory is exhausted.
    pub fn zeros<T: Dtype>(
        &self,
        shape: [usize; 2],
        placement: Placement,
        name: &str,
    ) -> Result<Tensor<T>, Failure> {
        let tensor = self.empty(shape, placement, name)?;
        self.shared.borrow_mut().write_zeros(tensor.id());
        Ok(tensor)
    }

    /// A tensor nobody has written: reading it before someone does is an error.
    ///
    /// # Errors
    /// The placement does not fit the shape or the machine, or memory is exhausted.
    pub fn empty<T: Dtype>(
        &self,
        shape: [usize; 2],
        placement: Placement,
        name: &str,
    ) -> Result<Tensor<T>, Failure> {
        let mut s = self.shared.borrow_mut();
        let (id, shard) = s.create(shape, T::TYPE, placement, name)?;
        let raw = Raw::whole(s.serial(id), id, shape, shard);
        Ok(Tensor { shared: self.shared.clone(), raw, name: name.to_owned(), ty: PhantomData })
    }

    /// A tensor with the elements of an array.
    ///
    /// # Errors
    /// The placement does not fit the shape or the machine, or memory is exhausted.
    pub fn from_array<T: Dtype>(
        &self,
        array: &Array2<T>,
        placement: Placement,
        name: &str,
    ) -> Result<Tensor<T>, Failure> {
        let tensor = self.empty([array.nrows(), array.ncols()], placement, name)?;
        self.put(&tensor, array)?;
        Ok(tensor)
    }

    /// Writes all elements, into every replica.
    ///
    /// # Errors
    /// The array's shape is not the tensor's.
    #[track_caller]
    pub fn write<T: Dtype>(&self, tensor: &Tensor<T>, array: &Array2<T>) -> Result<(), Failure> {
        self.shared.borrow().no_worker("write", here())?;
        self.put(tensor, array)
    }

    fn put<T: Dtype>(&self, tensor: &Tensor<T>, array: &Array2<T>) -> Result<(), Failure> {
        tensor.is_of(&self.shared)?;
        let (want, have) = (tensor.shape(), [array.nrows(), array.ncols()]);
        if want != have {
            return Err(Diagnostic::error(
                "KB0605",
                format!(
                    "an array of {}[{}, {}] for tensor `{}`, which is {}[{}, {}]",
                    T::TYPE,
                    have[0],
                    have[1],
                    tensor.name,
                    T::TYPE,
                    want[0],
                    want[1]
                ),
            )
            .help("give the array the tensor's shape")
            .into());
        }
        self.shared.borrow_mut().write(tensor.id(), || {
            let mut bytes = Vec::with_capacity(array.len() * T::TYPE.bytes() as usize);
            for x in array {
                x.write(&mut bytes);
            }
            Arc::new(bytes)
        });
        Ok(())
    }

    /// A tensor with the elements whose little-endian bytes, row-major, are given. They are shared, not
    /// copied.
    ///
    /// # Errors
    /// As [`Context::from_array`], and bytes that are not those of the shape.
    pub fn from_bytes<T: Dtype>(
        &self,
        bytes: &Arc<Vec<u8>>,
        shape: [usize; 2],
        placement: Placement,
        name: &str,
    ) -> Result<Tensor<T>, Failure> {
        let tensor = self.empty(shape, placement, name)?;
        let (have, want) = (bytes.len(), shape[0] * shape[1] * T::TYPE.bytes() as usize);
        if have != want {
            let text = format!(
                "{have} bytes for tensor `{name}`, which is {}[{}, {}], {want} bytes",
                T::TYPE,
                shape[0],
                shape[1]
            );
            return Err(Diagnostic::error("KB0605", text).help("give the bytes of all elements").into());
        }
        self.shared.borrow_mut().write(tensor.id(), || bytes.clone());
        Ok(tensor)
    }

    /// Reads all elements, each from a holder of its newest version.
    ///
    /// # Errors
    /// Somebody reads what nobody has written, or the context computes no values.
    #[track_caller]
    pub fn read<T: Dtype>(&self, tensor: &Tensor<T>) -> Result<Array2<T>, Failure> {
        tensor.is_of(&self.shared)?;
        let s = self.shared.borrow();
        s.no_worker("read", here())?;
        let bytes = s.read(tensor.id())?;
        let [m, n] = tensor.shape();
        let elements: Vec<T> = bytes.chunks_exact(T::TYPE.bytes() as usize).map(T::read).collect();
        Array2::from_shape_vec((m, n), elements)
            .map_err(|e| Diagnostic::error("KB0605", format!("tensor `{}`: {e}", tensor.name)).into())
    }

    /// Copies the newest version of every element to all replicas, as the host does it:
    /// a read of each range that only one replica holds, then writes to the others.
    ///
    /// # Errors
    /// The tensor is of another context, or this is inside a worker.
    #[track_caller]
    pub fn sync_replicas<T: Dtype>(&self, tensor: &mut Tensor<T>) -> Result<(), Failure> {
        let place = here();
        tensor.is_of(&self.shared)?;
        let mut s = self.shared.borrow_mut();
        s.no_worker("sync_replicas", place)?;
        s.sync_replicas(tensor.id());
        Ok(())
    }

    /// Runs a kernel on the PEs that hold its tensors and waits for it.
    ///
    /// # Errors
    /// Mistakes of the kernel, findings of the checks, a stall, or wrong data.
    #[track_caller]
    pub fn launch<K: Kernel>(&self, name: &str, kernel: K) -> Result<Launched, Failure> {
        self.launch_with(name, kernel, &LaunchOptions::default())
    }

    /// Runs a kernel with options and waits for it.
    ///
    /// # Errors
    /// As [`Context::launch`], and options the machine cannot meet.
    #[track_caller]
    pub fn launch_with<K: Kernel>(
        &self,
        name: &str,
        kernel: K,
        options: &LaunchOptions,
    ) -> Result<Launched, Failure> {
        let mut s = self.shared.borrow_mut();
        s.no_worker("launch", here())?;
        let order = s.order(options, here());
        s.launch(name, &kernel, &order)
    }

    /// Makes the SIPs ranks that take part in collectives, as the collectives configuration says. It reads, in this
    /// order, the algorithm, the number of ranks (that of the algorithm, else of the defaults, else one per SIP), and
    /// the neighbours.
    ///
    /// # Errors
    /// The configuration names an algorithm that is not in the tables, or one that does not run on its topology or
    /// on so many ranks, or the rings of its links do not fit a memory.
    #[track_caller]
    pub fn init_process_group(&self, backend: Backend) -> Result<(), Failure> {
        self.init_process_group_with(backend, &LaunchOptions::default())
    }

    /// The same, with options for the launches of its collectives: what they say of issue, fidelity, scratch, values and
    /// limits holds for each.
    ///
    /// # Errors
    /// As [`Context::init_process_group`].
    #[track_caller]
    pub fn init_process_group_with(&self, backend: Backend, options: &LaunchOptions) -> Result<(), Failure> {
        let mut s = self.shared.borrow_mut();
        s.no_worker("init_process_group", here())?;
        s.init_process_group(backend, options)
    }

    /// The configuration of queues and collectives.
    #[must_use]
    pub fn ccl(&self) -> Ccl {
        self.shared.borrow().ccl.clone()
    }

    /// Takes another configuration of queues and collectives for the launches and process groups that follow.
    ///
    /// # Errors
    /// The rings of the context's own links do not fit, or this is inside a worker.
    #[track_caller]
    pub fn configure_ccl(&self, ccl: Ccl) -> Result<(), Failure> {
        let place = here();
        let mut s = self.shared.borrow_mut();
        s.no_worker("configure_ccl", place)?;
        s.configure_ccl(ccl)
    }

    /// The ranks of the process group.
    ///
    /// # Errors
    /// There is no process group.
    pub fn world_size(&self) -> Result<usize, Failure> {
        let s = self.shared.borrow();
        s.group.as_ref().map(|group| group.world as usize).ok_or_else(|| group::no_group().into())
    }

    /// Installs a neighbour table for the launches that follow, in place of [`Links::default_for`] the machine.
    pub fn configure_neighbours(&self, links: Links) {
        self.shared.borrow_mut().links = Rc::new(links);
    }

    /// Records a kernel without checking or running it.
    ///
    /// # Errors
    /// Mistakes of the kernel, and options the machine cannot meet.
    pub fn record<K: Kernel>(
        &self,
        name: &str,
        kernel: &K,
        options: &LaunchOptions,
    ) -> Result<Draft, Failure> {
        let s = self.shared.borrow();
        s.record(name, kernel, &s.order(options, here()))
    }

    /// Checks a recorded kernel without running it; the program and its warnings.
    ///
    /// # Errors
    /// Findings of the checks.
    pub fn verify(
        &self,
        draft: Draft,
        options: &LaunchOptions,
    ) -> Result<(Program, Vec<Diagnostic>), Failure> {
        self.shared.borrow().verify(draft, options)
    }

    /// The text form of a program on this machine: see [`Program::listing`].
    #[must_use]
    pub fn listing(&self, program: &Program) -> String {
        let topology = self.topology();
        let position = |pe| {
            let at = topology.machine().at(pe);
            [at.sip, at.cube, at.pe]
        };
        program.listing(&position).to_string()
    }

    /// What all launches have done until now, in order.
    #[must_use]
    pub fn op_log(&self) -> OpLog {
        self.shared.borrow().log.clone()
    }

    /// Simulated time at which the host stands.
    #[must_use]
    pub fn now_ps(&self) -> Ps {
        self.shared.borrow().now
    }

    /// Simulated time spent writing tensors to the machine.
    #[must_use]
    pub fn deploy_ps(&self) -> Ps {
        self.shared.borrow().deploy
    }

    /// SIP, cube and PE of the holders of each shard, with address and bytes.
    #[must_use]
    pub fn shards(&self, tensor: TensorId) -> Option<Rc<crate::placement::Shards>> {
        self.shared.borrow().shards(tensor)
    }
}

/// The place of the user's code that called, where every function between is `#[track_caller]`.
#[track_caller]
fn here() -> Place {
    let at = std::panic::Location::caller();
    Place::Source { file: at.file().to_owned(), line: at.line(), column: at.column() }
}
