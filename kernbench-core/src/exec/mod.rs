//! Runs a program on data: values only, no time.
//!
//! PEs run in rounds. In a round every PE that can run does, on any number of threads, until it needs
//! what is not there; it sees the store as of the round's start. Then the round's messages and stores
//! are applied in order of PEs. So the result depends on nothing but the program, even if it races.
//!
//! Invariant: nothing here knows time. A program whose values depend on timing is reported, not timed.

mod dot;
mod expr;
mod findings;
mod functions;
mod packing;
mod pe;
mod round;
mod steps;
mod tiles;

use crate::diag::{Diagnostic, Failure};
use crate::ir::{LinkId, PeId, Program, TensorId};
use crate::store::{Store, Version, Writer};
use crate::ty::Group;
use findings::{CONFLICT, DEADLOCK, Finding, Findings, Rectangle};
use pe::{Pe, Pending, Status};
use rayon::prelude::*;

/// How to run a program, and what it does not say of the machine.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// How many threads; `None` for the pool the caller runs in.
    pub threads: Option<usize>,
    /// Cubes of a SIP.
    pub cubes: u32,
    /// PEs of a cube.
    pub pes: u32,
    /// Whether several PEs hold a copy of a tensor.
    pub replicated: &'a (dyn Fn(TensorId) -> bool + Sync),
}

/// Executes a program on a store that holds data, as launch number `launch`. The warnings.
///
/// Without data it executes nothing: see [`Store::commit`].
///
/// # Errors
/// A read of what nobody wrote (`KB0501`), two PEs writing different bytes to one range (`KB0502`), a
/// read of a stale replica (`KB0503`), PEs that wait for ever (`KB0504`). What was written until then
/// stays in the store.
pub fn execute(
    program: &Program,
    store: &mut Store,
    launch: u32,
    options: &Options,
) -> Result<Vec<Diagnostic>, Failure> {
    let pool = match options.threads {
        None | Some(1) => None,
        Some(n) => rayon::ThreadPoolBuilder::new().num_threads(n).build().ok(),
    };
    let mut pes: Vec<Pe> = program.pes.iter().map(Pe::new).collect();
    let mut findings = Findings::default();
    loop {
        let round = &*store;
        let mut runnable: Vec<&mut Pe> = pes.iter_mut().filter(|pe| pe.can_run()).collect();
        if runnable.is_empty() {
            if !release_barriers(&mut pes, options) {
                break;
            }
            continue;
        }
        let run = |pe: &mut &mut Pe| pe.run(round, launch, options);
        match &pool {
            _ if options.threads == Some(1) || runnable.len() == 1 => runnable.iter_mut().for_each(run),
            Some(pool) => pool.install(|| runnable.par_iter_mut().for_each(run)),
            None => runnable.par_iter_mut().for_each(run),
        }
        end_round(program, &mut pes, store, launch, &mut findings);
    }
    if pes.iter().any(|pe| pe.status != Status::Done) {
        let mut all = match findings.report(program, options) {
            Ok(list) | Err(Failure(list)) => list,
        };
        all.push(deadlock(program, &pes, options));
        return Err(Failure(all));
    }
    findings.report(program, options)
}

/// Applies what the PEs did in a round, in their order.
fn end_round(program: &Program, pes: &mut [Pe], store: &mut Store, launch: u32, findings: &mut Findings) {
    for i in 0..pes.len() {
        let pe = &mut pes[i];
        for finding in std::mem::take(&mut pe.findings) {
            findings.add(program, finding);
        }
        for pending in std::mem::take(&mut pe.stores) {
            apply(program, pe, &pending, store, launch, findings);
        }
        for (link, seq, payload) in std::mem::take(&mut pe.outbox) {
            let to = receiver(program, link);
            if let Ok(to) = pes.binary_search_by_key(&to, |pe| Some(pe.program.pe)) {
                pes[to].inbox.insert((link, seq), payload);
            }
        }
    }
}

fn receiver(program: &Program, link: LinkId) -> Option<PeId> {
    program.links.get(link.at()).map(|l| l.to)
}

/// Writes the bytes of a store and notes its version; finds whether another PE wrote other bytes there.
fn apply(
    program: &Program,
    pe: &Pe,
    pending: &Pending,
    store: &mut Store,
    launch: u32,
    findings: &mut Findings,
) {
    let access = pe.program.access(pending.access);
    let Some(info) = program.tensors.get(access.tensor.at()) else { return };
    let size = info.ty.bytes();
    let bytes_of =
        |r: &std::ops::Range<u64>| (r.start as usize * size as usize)..(r.end as usize * size as usize);
    let mut at = 0;
    let (mut place, mut writer) = (Rectangle::default(), None);
    let cols = store.row_len(access.tensor);
    for run in access.runs() {
        let target = bytes_of(&run);
        let new = &pending.bytes[at..at + target.len()];
        at += target.len();
        for (range, version) in store.versions(access.tensor, run.clone()) {
            let Some(Version { launch: l, writer: Writer::Op { pe: other, op, .. } }) = version else {
                continue;
            };
            let part = bytes_of(&range);
            let old = store.bytes(access.tensor).get(part.clone()).unwrap_or(&[]);
            let differs = || old != &new[part.start - target.start..part.end - target.start];
            if l == launch && other != pe.program.pe && differs() {
                writer = writer.or(Some((other, op)));
                place.add(&range, cols);
            }
        }
        if let Some(target) = store.bytes_mut(access.tensor).get_mut(target) {
            target.copy_from_slice(new);
        }
    }
    if !place.is_empty() {
        let (code, pe, op, tensor) = (CONFLICT, pe.program.pe, pending.op, access.tensor);
        findings.add(program, Finding { code, pe, op, tensor, place, other: writer });
    }
    store.note_store(pe.program, pending.access, pending.op, launch);
}

/// The PEs that meet with `pe`: a number they and no others share.
fn group_of(pe: PeId, group: Group, options: &Options) -> u32 {
    match group {
        Group::Cube => pe.0 / options.pes.max(1),
        Group::Sip => pe.0 / (options.pes * options.cubes).max(1),
    }
}

/// Lets every group go on whose PEs all stand at the same kind of barrier; whether there was one.
fn release_barriers(pes: &mut [Pe], options: &Options) -> bool {
    let mut any = false;
    for group in [Group::Cube, Group::Sip] {
        let key = |pe: &Pe| group_of(pe.program.pe, group, options);
        // PEs are in order of their number, so those of a group are neighbours.
        for members in pes.chunk_by_mut(|a, b| key(a) == key(b)) {
            if members.iter().all(|pe| pe.status == Status::Meets(group)) {
                members.iter_mut().for_each(Pe::release);
                any = true;
            }
        }
    }
    any
}

/// What every PE that is not done waits for.
fn deadlock(program: &Program, pes: &[Pe], options: &Options) -> Diagnostic {
    const SHOWN: usize = 8;
    let stuck: Vec<&Pe> = pes.iter().filter(|pe| pe.status != Status::Done).collect();
    let message =
        format!("`{}` cannot go on: {} of {} PEs wait for ever", program.name, stuck.len(), pes.len());
    let mut d = Diagnostic::error(DEADLOCK, message)
        .help("let every receive have a send that does not itself wait for it, and every PE of a group reach its barrier");
    for pe in stuck.iter().take(SHOWN) {
        let name = findings::pe_name(options, pe.program.pe);
        let text = match pe.status {
            Status::Receives(link, seq) => {
                let from = program
                    .links
                    .get(link.at())
                    .map(|l| (l.recv_dir.name(), findings::pe_name(options, l.from)));
                let (dir, from) = from.unwrap_or_default();
                format!("`{name}` waits for message {seq} from {dir} (`{from}`)")
            }
            Status::Meets(Group::Cube) => format!("`{name}` waits for the other PEs of its cube"),
            Status::Meets(Group::Sip) => format!("`{name}` waits for the other PEs of its SIP"),
            Status::Ready | Status::Done => continue,
        };
        if let Some(site) = findings::site(program, pe.program.pe, pe.next) {
            d = findings::at_site(program, d, site, text);
        }
    }
    if stuck.len() > SHOWN {
        d.message += &format!(" (the first {SHOWN} are shown)");
    }
    d
}

#[cfg(test)]
mod tests;
