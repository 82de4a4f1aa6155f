//! What overlaps in the loop of a long decode, and what bounds it: `cargo run --release --example pipelining`.

use kernbench::diag::Failure;
use kernbench::kernels::attention::{Long, gqa_decode_long};
use kernbench::kernels::random;
use kernbench::prelude::*;
use kernbench::report::Report;
use kernbench::topology::IssueMode;
use std::sync::Arc;

fn main() -> Result<(), Failure> {
    print!("{}", text()?);
    Ok(())
}

/// Both tables: the shipped kernel at six sizes, and other ways to write or run the loop at one of them.
pub fn text() -> Result<String, Failure> {
    let mut text =
        format!("gqa_decode_long on one PE, h_kv={HEADS}, {KEYS} keys a head, f16, times in ns\n\n");
    text += &header("d, h_q/h_kv");
    for d in [64, 128] {
        for group in [1, 4, 8] {
            text += &Case::own(d, group, Way::Shipped).measure()?.line(&format!("{d}, {group}"));
        }
    }
    text += "\nthe same problem at d=128, h_q/h_kv=4, other loops\n\n";
    for (cube, home) in HOMES {
        text += &header(&format!("K and V in {home}"));
        for (way, buffers, issue, name) in LOOPS {
            let case = Case { cube, buffers, issue, ..Case::own(128, 4, way) };
            text += &case.measure()?.line(name);
        }
        text.push('\n');
    }
    Ok(text)
}

/// Key/value heads, and keys of each.
const HEADS: usize = 2;
const KEYS: usize = 2048;
/// Keys of a block, as in the shipped kernel.
const BLOCK: usize = 64;

/// How the loop over blocks of keys is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `gqa_decode_long`.
    Shipped,
    /// Its loop, with one buffer or two.
    Dots,
    /// Both products composite GEMMs of loaded tiles.
    Composites,
    /// The same, but V is not loaded: its product reads it tile by tile.
    Streamed,
    /// The keys are the values, too, as in attention over a latent cache: one tile for both products.
    Latent,
}

/// The cubes whose PE 0 holds K and V, while PE 0 of cube 0 computes.
pub const HOMES: [(usize, &str); 3] = [(0, "the own slice"), (1, "the next cube"), (15, "the farthest cube")];

/// The loops: how each is written, its buffers, how the PE issues, and its name.
pub const LOOPS: [(Way, usize, IssueMode, &str); 8] = [
    (Way::Dots, 1, IssueMode::Dataflow, "one buffer"),
    (Way::Dots, 2, IssueMode::Dataflow, "two buffers"),
    (Way::Dots, 2, IssueMode::Blocking, "two buffers, blocking"),
    (Way::Composites, 1, IssueMode::Dataflow, "composites, one buffer"),
    (Way::Composites, 2, IssueMode::Dataflow, "composites, two buffers"),
    (Way::Streamed, 2, IssueMode::Dataflow, "composites, V streamed"),
    (Way::Latent, 1, IssueMode::Dataflow, "K is V, one buffer"),
    (Way::Latent, 2, IssueMode::Dataflow, "K is V, two buffers"),
];

/// `gqa_decode_long` without its reduction, with K and V from row `first` on, and the loop to choose.
#[kernel]
fn decode(q: In<f16>, k: In<f16>, v: In<f16>, o: Out<f16>, a: Long, first: usize, way: Way, buffers: usize) {
    for head in 0..a.h_kv {
        let heads = Block::new(head * (a.h_q / a.h_kv), a.h_q / a.h_kv);
        scratch_scope!(buffers = 2, {
            let q = tl::load(q.rows(heads));
            let acc = Running::empty(tl, q.nrows(), a.d);
            for keys in Block::new(first + head * a.keys, a.keys).blocks(BLOCK) {
                let (k, v) = (k.rows(keys), v.rows(keys));
                match buffers {
                    1 => scratch_scope!({ acc.block(tl, q, k, v, a.scale, way) }),
                    _ => scratch_scope!(buffers = 2, { acc.block(tl, q, k, v, a.scale, way) }),
                }
            }
            tl::store(o.rows(heads), tl::eval((acc.o / acc.l).cast::<f16>()));
        });
    }
}

/// The running softmax of the library, of which no row is without keys here, with the products to choose.
#[derive(Clone, Copy)]
struct Running<'s> {
    m: Tile<'s, f32>,
    l: Tile<'s, f32>,
    o: Tile<'s, f32>,
}

impl<'s> Running<'s> {
    #[device]
    fn empty(tl: &Scope, rows: usize, d: usize) -> Running<'_> {
        Running {
            m: tl::full([rows, 1], f32::NEG_INFINITY),
            l: tl::zeros([rows, 1]),
            o: tl::zeros([rows, d]),
        }
    }

    /// Folds a block of keys in.
    #[device]
    fn block(self, tl: &Scope, q: Tile<f16>, k: In<f16>, v: In<f16>, scale: f32, way: Way) {
        let kt = tl::load(k);
        let vt = match way {
            Way::Streamed => None,
            Way::Latent => Some(kt),
            _ => Some(tl::load(v)),
        };
        let composite = matches!(way, Way::Composites | Way::Streamed);
        let s = match composite {
            true => into(tl, [q.nrows(), kt.nrows()], |s| Gemm::new(q, kt.t(), s)),
            false => tl::dot(q, kt.t()),
        };
        let s = tl::eval(s * scale);
        let m = tl::max(tl::maximum(self.m, s), Axis::Cols);
        let p = tl::eval(tl::exp(s - m));
        let alpha = tl::eval(tl::exp(self.m - m));
        tl::copy_to(self.l, self.l * alpha + tl::sum(p, Axis::Cols));
        let p = tl::eval(p.cast::<f16>());
        let pv = match vt {
            None => into(tl, self.o.shape(), |pv| Gemm::new(p, v, pv)),
            Some(vt) if composite => into(tl, self.o.shape(), |pv| Gemm::new(p, vt, pv)),
            Some(vt) => tl::dot(p, vt),
        };
        tl::copy_to(self.o, self.o * alpha + pv);
        tl::copy_to(self.m, m);
    }
}

/// A new tile with the product of a composite GEMM.
#[device]
fn into<'s>(
    tl: &'s Scope,
    shape: [usize; 2],
    product: impl FnOnce(Tile<'s, f32>) -> Gemm<'s, f32, f32>,
) -> Tile<'s, f32> {
    let tile = tl::zeros(shape);
    // What reads the tile waits by itself.
    let _ = tl::composite(product(tile));
    tile
}

/// A problem, where its keys are, and how it is run.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The problem.
    pub a: Long,
    /// How the loop is written.
    pub way: Way,
    /// Its buffers, one or two; the shipped kernel has two.
    pub buffers: usize,
    /// The cube whose PE 0 holds K and V; PE 0 of cube 0 computes.
    pub cube: usize,
    /// How the PE issues.
    pub issue: IssueMode,
}

/// What a case took.
#[derive(Clone, Debug)]
pub struct Measured {
    /// From the start of the PE to the end of its last op.
    pub makespan_ps: u64,
    /// How long transfers held the PE's DMA channels, of which reads and writes have one each: the larger sum.
    pub dma_ps: u64,
    /// How long ops held the accelerator slot, which GEMM and MATH share.
    pub slot_ps: u64,
    /// The result.
    pub o: Vec<f16>,
}

impl Case {
    /// A case with its keys in the slice of the PE that computes.
    pub fn own(d: usize, group: usize, way: Way) -> Case {
        let scale = 1.0 / (d as f32).sqrt();
        let a = Long {
            h_q: HEADS * group,
            h_kv: HEADS,
            d,
            keys: KEYS,
            valid: KEYS,
            scale,
            // A PE without neighbours has nobody to reduce with: what is measured is the loop.
            cubes: 1,
            mesh_columns: 1,
            pe_grid: [1, 1],
        };
        Case { a, way, buffers: 2, cube: 0, issue: IssueMode::Dataflow }
    }

    /// Runs it.
    ///
    /// # Errors
    /// Those of a launch.
    pub fn measure(self) -> Result<Measured, Failure> {
        let Case { a, way, buffers, cube, issue } = self;
        let ctx = Context::new(Topology::default_machine());
        // Rows are split over the cubes up to the one that is meant; only its part is read.
        let (part, parts) = (a.h_kv * a.keys, cube + 1);
        let values = |name: &str, rows: usize| random::normal_bytes(ElementType::F16, 0, name, rows * a.d);
        let (here, there) = (Placement::replicated().on(1, 1), Placement::row_wise().on(parts, 1));
        let tensor = |name: &str, skipped: usize, rows: usize, place| {
            let mut bytes = vec![0; skipped * a.d * 2];
            bytes.extend(values(name, rows));
            ctx.from_bytes::<f16>(&Arc::new(bytes), [skipped + rows, a.d], place, name)
        };
        let q = tensor("q", 0, a.h_q, here)?;
        let (k, v) = (tensor("k", cube * part, part, there)?, tensor("v", cube * part, part, there)?);
        let mut to = ctx.empty::<f16>([a.h_q, a.d], here, "o")?;
        let options = LaunchOptions { issue: Some(issue), grid: Some([1, 1]), ..LaunchOptions::default() };
        let (q, k, v, o) = (q.input(), k.input(), v.input(), to.output());
        match way {
            Way::Shipped => ctx.launch_with("decode", gqa_decode_long { q, k, v, o, a }, &options)?,
            _ => ctx.launch_with(
                "decode",
                decode { q, k, v, o, a, first: cube * part, way, buffers },
                &options,
            )?,
        };
        let report = Report::of(&ctx.op_log(), 0);
        let busy = |name: &str| report.engines.iter().find(|e| e.engine == name).map_or(0, |e| e.busy_ps);
        Ok(Measured {
            makespan_ps: report.makespan_ps,
            dma_ps: busy("dma_read").max(busy("dma_write")),
            slot_ps: busy("gemm") + busy("math"),
            o: ctx.read(&to)?.into_iter().collect(),
        })
    }
}

impl Measured {
    /// The makespan over the time of the busier of the two, in thousandths, rounded up.
    pub fn ratio(&self) -> u64 {
        (self.makespan_ps * 1000).div_ceil(self.dma_ps.max(self.slot_ps))
    }

    /// What keeps the loop from being faster: the DMA or the slot if one of them is busy for all but a tenth of the
    /// bound, else that ops wait for each other.
    fn bound(&self) -> &'static str {
        match (self.ratio() <= 1100, self.dma_ps > self.slot_ps) {
            (false, _) => "neither: ops wait",
            (true, true) => "DMA",
            (true, false) => "slot",
        }
    }

    fn line(&self, name: &str) -> String {
        let Measured { makespan_ps, dma_ps, slot_ps, .. } = self;
        let [makespan, dma, slot] =
            [makespan_ps, dma_ps, slot_ps].map(|ps| format!("{}.{}", ps / 1000, ps % 1000 / 100));
        let ratio = format!("{}.{:03}", self.ratio() / 1000, self.ratio() % 1000);
        format!("{name:<33}{makespan:>9}{dma:>10}{slot:>10}{ratio:>7}  {}\n", self.bound())
    }
}

fn header(name: &str) -> String {
    format!("{name:<33}{:>9}{:>10}{:>10}{:>7}  bounded by\n", "makespan", "DMA", "slot", "ratio")
}
