//! The text form of a program.
//!
//! ```text
//! program `decode` of `gqa_decode_short`: 8 PEs, 304 ops
//!   q f16[8, 64]
//!
//! sip0.cube0.pe{1,2} (2 PEs), 38 ops, peak 21504 B
//!    0 q         load q[{1,2}+1, 0:64] : f16[1, 64]
//!    1 acc.m     fill -inf : f32[1, 1]
//!    7 s.dot     dot %0, %5.t : f32[1, 8]  <- 0 5
//!    8 s         mul(%7, 0.125) : f32[1, 8]  <- 7
//! ```
//!
//! One op a line: its number, the binding it gets, what it does with which operands, the type of the
//! result, and the ops it waits for: plain numbers for data, `~` for bytes it overwrites, `|` for a
//! fence. `%n` is the tile that op `n` first writes. PEs with the same program are printed once;
//! where their ranges differ, `{..}+n` gives the starts and the length.

use super::{AccessId, OpKind, PeId, PeProgram, Program, TensorId};
use std::collections::BTreeMap;
use std::fmt;

/// Where a PE is, as the machine names it; made by the caller, who knows the machine.
pub type PeName<'a> = &'a dyn Fn(PeId) -> [u32; 3];

/// PEs whose programs are the same but for the ranges of their accesses.
#[derive(Clone, Debug)]
pub struct Alike<'a> {
    /// The PEs, in order.
    pub members: Vec<&'a PeProgram>,
}

impl Program {
    /// Groups the PEs whose programs are the same up to the ranges they access.
    #[must_use]
    pub fn alike(&self) -> Vec<Alike<'_>> {
        let mut groups: Vec<Alike<'_>> = vec![];
        for pe in &self.pes {
            match groups.iter_mut().find(|g| self.same(g.members[0], pe)) {
                Some(group) => group.members.push(pe),
                None => groups.push(Alike { members: vec![pe] }),
            }
        }
        groups
    }

    fn same(&self, a: &PeProgram, b: &PeProgram) -> bool {
        let links = |kind: &OpKind| match kind {
            OpKind::Send { link, .. } => Some((self.link(*link).dir, true)),
            OpKind::Recv { link, .. } | OpKind::RecvAsync { link, .. } => {
                Some((self.link(*link).recv_dir, false))
            }
            _ => None,
        };
        // Message numbers are those of the program order, so the kinds need no deeper look.
        let ops = |(x, y): (&super::Op, &super::Op)| {
            x.site == y.site
                && x.edge_end == y.edge_end
                && match (links(&x.kind), links(&y.kind)) {
                    (None, None) => x.kind == y.kind,
                    (l, r) => l == r,
                }
        };
        let homes = |p: &PeProgram, t: &super::Transfer| i64::from(t.home.0) - i64::from(p.pe.0);
        a.ops.len() == b.ops.len()
            && a.edges == b.edges
            && a.tiles == b.tiles
            && a.steps == b.steps
            && a.composites == b.composites
            && a.ops.iter().zip(&b.ops).all(ops)
            && a.accesses.len() == b.accesses.len()
            && a.accesses
                .iter()
                .zip(&b.accesses)
                .all(|(x, y)| (x.tensor, x.shape, x.stride, x.len) == (y.tensor, y.shape, y.stride, y.len))
            && a.transfers.iter().zip(&b.transfers).all(|(x, y)| homes(a, x) == homes(b, y))
    }

    /// The listing; `name` gives SIP, cube and PE of a [`PeId`].
    #[must_use]
    pub fn listing<'a>(&'a self, name: PeName<'a>) -> impl fmt::Display + 'a {
        Listing { program: self, name }
    }

    /// What an op of all PEs of a group does, such as `load k[{0,64}+64, 0:128]`.
    #[must_use]
    pub fn text_in(&self, group: &Alike<'_>, op: super::OpId, name: PeName<'_>) -> String {
        self.op_text_with(group.members[0], op, |access| self.range_of(group, access, name))
    }

    /// The range of an access in a group: starts that differ between PEs are listed.
    fn range_of(&self, group: &Alike<'_>, access: AccessId, name: PeName<'_>) -> String {
        let first = group.members[0].access(access);
        let mut text = self.access_text(first);
        let offsets: Vec<u64> = group.members.iter().map(|p| p.access(access).offset).collect();
        if let Some(tensor) = self.tensors.get(first.tensor.at())
            && offsets.iter().any(|&o| o != offsets[0])
        {
            let width = tensor.shape[1].max(1) as u64;
            let part = |starts: Vec<u64>, len: u64| match starts.iter().all(|&s| s == starts[0]) {
                true => format!("{}:{}", starts[0], starts[0] + len),
                false => format!("{{{}}}+{len}", numbers(starts)),
            };
            let [m, n] = first.shape.map(u64::from);
            let rows = part(offsets.iter().map(|o| o / width).collect(), m);
            let cols = part(offsets.iter().map(|o| o % width).collect(), n);
            let rectangle = offsets.iter().all(|o| o % width + n <= width)
                && (u64::from(first.stride) == width || m <= 1);
            text = match rectangle {
                true => format!("{}[{rows}, {cols}]", tensor.name),
                false => format!("{}.flat[{{{}}}+{}] as [{m}, {n}]", tensor.name, numbers(offsets), m * n),
            };
        }
        // A transfer from another PE's slice costs a trip: say where to.
        let pe = group.members[0];
        let away: Vec<PeId> =
            pe.transfers_of(access).iter().map(|t| t.home).filter(|&home| home != pe.pe).collect();
        if let Some(&home) = away.first() {
            let [s, c, p] = name(home);
            text += &format!(" @ sip{s}.cube{c}.pe{p}");
            if away.len() > 1 {
                text += &format!(" and {} more", away.len() - 1);
            }
        }
        text
    }
}

struct Listing<'a> {
    program: &'a Program,
    name: PeName<'a>,
}

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = self.program;
        let (pes, ops) = (p.pes.len(), p.op_count());
        writeln!(f, "program `{}` of `{}`: {pes} PE{}, {ops} ops", p.name, p.kernel, plural(pes))?;
        for id in p.touched() {
            if let Some(t) = p.tensors.get(id.at()) {
                writeln!(f, "  {} {}[{}, {}]", t.name, t.ty, t.shape[0], t.shape[1])?;
            }
        }
        for group in p.alike() {
            let (first, n) = (group.members[0], group.members.len());
            let names = pe_names(group.members.iter().map(|m| (self.name)(m.pe)));
            writeln!(
                f,
                "\n{names} ({n} PE{}), {} ops, peak {} B",
                plural(n),
                first.ops.len(),
                first.peak_bytes
            )?;
            let width = first.ops.iter().map(|op| p.binding(op.site).len()).max().unwrap_or(0);
            for (i, op) in first.ops.iter().enumerate() {
                let id = super::OpId(i as u32);
                let (text, ty) = (p.text_in(&group, id, self.name), first.type_text(&op.kind));
                let (colon, edges) = (if ty.is_empty() { "" } else { " : " }, first.edges_text(id));
                let line = format!("{i:>4} {:<width$}  {text}{colon}{ty}  {edges}", p.binding(op.site));
                writeln!(f, "{}", line.trim_end())?;
            }
        }
        Ok(())
    }
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

impl Program {
    /// The tensors the program reads or writes, in order.
    #[must_use]
    pub fn touched(&self) -> Vec<TensorId> {
        let all: std::collections::BTreeSet<TensorId> =
            self.pes.iter().flat_map(|p| p.accesses.iter().map(|a| a.tensor)).collect();
        all.into_iter().collect()
    }
}

/// `sip0.cube{0..3}.pe{1,2}`: cubes with the same PEs are named together.
pub fn pe_names(pes: impl Iterator<Item = [u32; 3]>) -> String {
    let mut cubes: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for [sip, cube, pe] in pes {
        cubes.entry((sip, cube)).or_default().push(u64::from(pe));
    }
    let mut alike: Vec<(u32, Vec<u64>, Vec<u64>)> = vec![];
    for ((sip, cube), pes) in cubes {
        match alike.iter_mut().find(|(s, _, p)| *s == sip && *p == pes) {
            Some((_, cubes, _)) => cubes.push(u64::from(cube)),
            None => alike.push((sip, vec![u64::from(cube)], pes)),
        }
    }
    let brace = |n: Vec<u64>| if n.len() == 1 { n[0].to_string() } else { format!("{{{}}}", numbers(n)) };
    let parts: Vec<String> = alike
        .into_iter()
        .map(|(sip, cubes, pes)| format!("sip{sip}.cube{}.pe{}", brace(cubes), brace(pes)))
        .collect();
    parts.join(", ")
}

/// Sorted distinct numbers: `0..7`, `0..28 by 4`, or `1,2,5,..` cut after eight.
fn numbers(mut n: Vec<u64>) -> String {
    n.sort_unstable();
    n.dedup();
    if n.len() > 2 {
        let step = n[1] - n[0];
        if n.windows(2).all(|w| w[1] - w[0] == step) {
            let by = if step == 1 { String::new() } else { format!(" by {step}") };
            return format!("{}..{}{by}", n[0], n[n.len() - 1]);
        }
    }
    let mut texts: Vec<String> = n.iter().take(8).map(u64::to_string).collect();
    if n.len() > 8 {
        texts.push("..".to_owned());
    }
    texts.join(",")
}
