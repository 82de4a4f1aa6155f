//! Which rows there are, and how one is measured.

use super::super::{Session, machine::MachineText};
use super::{Args, Sips, default_sizes};
use kernbench_core::ccl::{self, Ccl};
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::host::{Algorithm, Backend, Context, LaunchOptions, Operation, ReduceOp};
use kernbench_core::ir::PeId;
use kernbench_core::topology::{
    BufferKind, Family, Links, Machine, PeAt, RankTopology, SipTopology, Topology,
};
use kernbench_core::ty::ElementType;
use kernbench_core::units::Ps;
use kernbench_kernels::collectives::{ALGORITHMS, Case, RING_ALLREDUCE};

/// Rows that differ in their size only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kind {
    pub operation: Operation,
    /// By position in [`ALGORITHMS`].
    algorithm: usize,
    pub topology: RankTopology,
    pub buffer_kind: BufferKind,
}

impl Kind {
    pub fn algorithm(&self) -> &'static Algorithm {
        &ALGORITHMS[self.algorithm]
    }
}

/// A row to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub kind: Kind,
    bytes: u64,
}

/// A row that was measured.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub kind: Kind,
    pub world: usize,
    pub bytes: u64,
    pub ty: ElementType,
    pub reduce: ReduceOp,
    pub simulated_ps: Ps,
    pub correct: Option<bool>,
}

impl Row {
    /// Bytes over time, in GB/s.
    pub fn algbw(&self) -> f64 {
        if self.simulated_ps == 0 { 0.0 } else { self.bytes as f64 * 1000.0 / self.simulated_ps as f64 }
    }

    /// What crosses the links of a rank, in GB/s, by the factors of NCCL's tests (their PERFORMANCE.md).
    pub fn busbw(&self) -> f64 {
        let p = self.world as f64;
        self.algbw()
            * match self.kind.operation {
                Operation::AllReduce => 2.0 * (p - 1.0) / p,
                Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => (p - 1.0) / p,
                Operation::Broadcast | Operation::Barrier => 1.0,
            }
    }
}

/// A sweep.
pub(super) struct Plan {
    pub rows: Vec<Wanted>,
    machine: MachineText,
    sips: Option<Sips>,
    ty: ElementType,
    reduce: ReduceOp,
    slot_size: Option<u32>,
    check_up_to: u64,
    options: LaunchOptions,
}

impl Plan {
    pub fn new(args: &Args, session: &mut Session<'_>) -> Result<Plan, Failure> {
        let mut machine = args.machine.text(session)?;
        if let Some(n_slots) = args.n_slots {
            machine.ccl.defaults.n_slots = n_slots;
        }
        let ranks = match args.sips {
            None => machine.topology.machine().sips,
            Some(Sips([w, h])) => w * h.max(1),
        };
        if ranks > 16 {
            let d = Diagnostic::error(
                "KB0659",
                format!("the machine has {ranks} SIPs, but collectives are measured on at most 16"),
            );
            return Err(d.help("name fewer with `--sips`").into());
        }
        let kinds: Vec<BufferKind> = match &args.buffer_kind[..] {
            [] => vec![machine.ccl.defaults.buffer_kind],
            kinds => kinds.to_vec(),
        };
        let sizes: Vec<u64> =
            if args.bytes.is_empty() { default_sizes().collect() } else { args.bytes.clone() };
        let mut rows = vec![];
        for operation in Operation::ALL.into_iter().filter(|op| is_wanted(&args.op, op)) {
            let of_operation = ALGORITHMS.iter().enumerate().filter(|(_, a)| a.operation == operation);
            for (algorithm, a) in of_operation.filter(|(_, a)| is_wanted(&args.algorithm, &a.name)) {
                let topologies = RankTopology::ALL.into_iter().filter(|t| a.topologies.contains(t));
                for topology in topologies.filter(|t| is_wanted(&args.sip_topology, t)) {
                    for &buffer_kind in &kinds {
                        let kind = Kind { operation, algorithm, topology, buffer_kind };
                        // A barrier moves no bytes.
                        let sizes = if operation == Operation::Barrier { &[0][..] } else { &sizes };
                        rows.extend(sizes.iter().map(|&bytes| Wanted { kind, bytes }));
                    }
                }
            }
        }
        if rows.is_empty() {
            return Err(nothing(args).into());
        }
        let fidelity = Some(args.fidelity.fidelity);
        Ok(Plan {
            rows,
            machine,
            sips: args.sips,
            ty: args.dtype,
            reduce: args.reduce,
            slot_size: args.slot_size,
            check_up_to: args.check_up_to,
            options: LaunchOptions { fidelity, ..LaunchOptions::default() },
        })
    }

    pub fn measure(&self, Wanted { kind, bytes }: &Wanted) -> Result<Row, Failure> {
        let topology = self.topology(kind.topology)?;
        let world = topology.machine().sips as usize;
        let ccl = self.ccl(kind, *bytes, topology.machine())?;
        let data = *bytes <= self.check_up_to;
        // Rows run side by side already.
        let ctx = Context::with_ccl(topology, ccl).data(data).threads(1);
        ctx.init_process_group_with(Backend::Ahbm(&[ALGORITHMS]), &self.options)?;
        let case = Case { algorithm: *kind.algorithm(), ty: self.ty, bytes: *bytes, reduce: self.reduce };
        let measured = case.measure(&ctx, data, 0)?;
        Ok(Row {
            kind: *kind,
            world,
            bytes: measured.bytes,
            ty: self.ty,
            reduce: self.reduce,
            simulated_ps: measured.launched.simulated_ps,
            correct: measured.correct,
        })
    }

    /// The machine with the SIPs that are wanted.
    fn topology(&self, topology: RankTopology) -> Result<Topology, Failure> {
        let grid = match self.sips {
            None => return Ok(self.machine.topology.clone()),
            Some(Sips([w, h])) => [w, h.max(1)],
        };
        let sips = match topology {
            _ if self.sips.is_some_and(|Sips([_, h])| h == 0) => SipTopology::Ring1d,
            RankTopology::Torus2d => SipTopology::Torus2d,
            _ => SipTopology::Mesh2dNoWrap,
        };
        self.machine.with_sips(grid, sips)
    }

    /// The collectives configuration that chooses an algorithm.
    fn ccl(&self, kind: &Kind, bytes: u64, machine: &Machine) -> Result<Ccl, Failure> {
        let mut ccl = self.machine.ccl.clone();
        let (name, same) =
            (kind.algorithm().name, ccl.algorithms.iter().find(|a| a.module == kind.algorithm().name));
        let template = same.or(ccl.algorithms.first()).cloned();
        let Some(template) = template else { return Err(Failure(vec![])) };
        let entry = ccl::Algorithm {
            name: name.to_owned(),
            module: name.to_owned(),
            topology: kind.topology,
            buffer_kind: kind.buffer_kind,
            n_elem: None,
            world_size: None,
            root_cube: same.and_then(|a| a.root_cube),
            places: template.places,
        };
        ccl.defaults.slot_size = match self.slot_size {
            Some(bytes) => bytes,
            None => largest_slot(kind, machine, &ccl)?.min(bytes.next_multiple_of(256).max(256)) as u32,
        };
        ccl.defaults.vc_chunk_size = ccl.defaults.vc_chunk_size.min(ccl.defaults.slot_size);
        ccl.defaults.buffer_kind = kind.buffer_kind;
        // A group needs an algorithm for all-reduces, too.
        let all_reduce = ccl::Algorithm {
            name: RING_ALLREDUCE.name.to_owned(),
            module: RING_ALLREDUCE.name.to_owned(),
            topology: RankTopology::Ring1d,
            ..entry.clone()
        };
        ccl.algorithms = match kind.operation {
            Operation::AllReduce => vec![entry],
            _ => vec![all_reduce, entry],
        };
        (ccl.defaults.algorithm, ccl.defaults.large_algorithm) = (ccl.algorithms[0].name.clone(), None);
        Ok(ccl)
    }
}

/// Whether a list that narrows has something; an empty one does not narrow.
fn is_wanted<T: PartialEq>(list: &[T], x: &T) -> bool {
    list.is_empty() || list.contains(x)
}

/// What is told where flags leave no row: what the algorithms that were named, or those of the operations, can do.
fn nothing(args: &Args) -> Diagnostic {
    let named = |a: &&Algorithm| match args.algorithm.is_empty() {
        true => is_wanted(&args.op, &a.operation),
        false => args.algorithm.contains(&a.name),
    };
    let can = |a: &Algorithm| {
        let over: Vec<&str> = a.topologies.iter().map(|t| t.name()).collect();
        format!("`{}` does {} over {}", a.name, a.operation.name(), over.join(", "))
    };
    let known: Vec<String> = ALGORITHMS.iter().filter(named).map(can).collect();
    Diagnostic::error("KB0659", "no algorithm does this operation over this topology").help(known.join("; "))
}

/// The largest slot, a power of two, for which the rings of a PE take at most half of its TCM.
fn largest_slot(kind: &Kind, machine: &Machine, ccl: &Ccl) -> Result<u64, Failure> {
    let ranks: Vec<PeId> = (0..machine.sips).map(|sip| machine.pe(PeAt { sip, cube: 0, pe: 0 })).collect();
    let mut tables = vec![Links::of_ranks(machine, kind.topology, &ranks)?];
    if kind.algorithm().every_cube {
        tables.push(Links::of_family(machine, &Family::CubeMesh)?);
    }
    let most = |links: &Links| {
        let mut into: Vec<PeId> = links.links.iter().map(|link| link.to).collect();
        into.sort_unstable();
        into.chunk_by(|a, b| a == b).map(<[PeId]>::len).max().unwrap_or(0) as u64
    };
    let rings = u64::from(ccl.defaults.n_slots) * tables.iter().map(most).sum::<u64>();
    let room = (machine.tcm.bytes / 2 / rings.max(1)).max(256);
    Ok(1 << room.min(1 << 30).ilog2())
}
