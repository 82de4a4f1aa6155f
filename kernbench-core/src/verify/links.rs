//! Queues and barriers: what is sent is received, in the same shape, and everyone comes to a barrier.

use super::{Facts, and_more, label, pe_text};
use crate::diag::Diagnostic;
use crate::ir::{LinkId, OpKind, PeId, PeProgram, Program, SiteId, TileId};
use crate::ty::Group;
use std::collections::BTreeMap;

struct Message {
    bytes: u64,
    ty: &'static str,
    shape: [u32; 2],
    site: SiteId,
}

/// Sends and receives of each link agree in number, and one by one in bytes and element type.
pub(super) fn check(program: &Program, facts: &Facts<'_>) -> Vec<Diagnostic> {
    let mut ends: BTreeMap<LinkId, (Vec<Message>, Vec<Message>)> = BTreeMap::new();
    for pe in &program.pes {
        for op in &pe.ops {
            match op.kind {
                OpKind::Send { link, src, .. } => {
                    ends.entry(link).or_default().0.push(message(pe, src, op.site));
                }
                OpKind::Recv { link, dst, .. } | OpKind::RecvAsync { link, dst, .. } => {
                    ends.entry(link).or_default().1.push(message(pe, dst, op.site));
                }
                _ => {}
            }
        }
    }
    let (mut found, mut more): (Vec<Diagnostic>, Vec<usize>) = (vec![], vec![]);
    let mut seen: Vec<(&'static str, SiteId, usize)> = vec![];
    for (id, (sends, recvs)) in &ends {
        let link = program.link(*id);
        let (from, to) = (pe_text(facts, link.from), pe_text(facts, link.to));
        let (code, site, d) = if let Some((k, (s, r))) =
            sends.iter().zip(recvs).enumerate().find(|(_, (s, r))| s.bytes != r.bytes || s.ty != r.ty)
        {
            let d = Diagnostic::error(
                "KB0202",
                format!(
                    "message {k} from {from} to {to} is sent as {}[{}, {}] and received as {}[{}, {}]",
                    s.ty, s.shape[0], s.shape[1], r.ty, r.shape[0], r.shape[1]
                ),
            )
            .help("give the receive the element type and shape of the send");
            let d = label(program, label(program, d, s.site, "is sent here"), r.site, "is received here");
            ("KB0202", s.site, d)
        } else if sends.len() != recvs.len() {
            let sent_more = sends.len() > recvs.len();
            let extra = if sent_more { &sends[recvs.len()] } else { &recvs[sends.len()] };
            let (what, dir) = if sent_more {
                ("is never received", format!("`tl::recv(Dir::{:?}, ..)` on {to}", link.recv_dir))
            } else {
                ("is never sent", format!("`tl::send(Dir::{:?}, ..)` on {from}", link.dir))
            };
            let d = Diagnostic::error(
                "KB0201",
                format!(
                    "{from} sends {} message{} in direction `{}` to {to}, which receives {}: message {} {what}",
                    sends.len(),
                    if sends.len() == 1 { "" } else { "s" },
                    link.dir,
                    recvs.len(),
                    sends.len().min(recvs.len()),
                ),
            )
            .help(format!("add a {dir}, or take this one out"));
            let here = if sent_more { "is sent here" } else { "is received here" };
            ("KB0201", extra.site, label(program, d, extra.site, here))
        } else {
            continue;
        };
        match seen.iter().find(|(c, s, _)| *c == code && *s == site) {
            Some(&(_, _, i)) => more[i] += 1,
            None => {
                seen.push((code, site, found.len()));
                found.push(d);
                more.push(0);
            }
        }
    }
    for (d, more) in found.iter_mut().zip(more) {
        and_more(d, more, "link");
    }
    found
}

fn message(pe: &PeProgram, tile: TileId, site: SiteId) -> Message {
    let t = pe.tile(tile);
    Message { bytes: t.bytes(), ty: t.ty.name(), shape: t.shape, site }
}

/// The PEs of a group come to equally many barriers.
pub(super) fn check_barriers(program: &Program, facts: &Facts<'_>) -> Vec<Diagnostic> {
    let mut found = vec![];
    for group in [Group::Cube, Group::Sip] {
        let mut members: BTreeMap<[u32; 2], Vec<(PeId, Vec<SiteId>)>> = BTreeMap::new();
        for pe in &program.pes {
            let [sip, cube, _] = (facts.name)(pe.pe);
            let key = if group == Group::Cube { [sip, cube] } else { [sip, 0] };
            let sites =
                pe.ops.iter().filter(|op| matches!(op.kind, OpKind::Barrier { group: g } if g == group));
            members.entry(key).or_default().push((pe.pe, sites.map(|op| op.site).collect()));
        }
        for pes in members.values() {
            let (Some(least), Some(most)) = (
                pes.iter().min_by_key(|(pe, sites)| (sites.len(), *pe)),
                pes.iter().max_by_key(|(pe, sites)| (sites.len(), std::cmp::Reverse(*pe))),
            ) else {
                continue;
            };
            if least.1.len() < most.1.len() {
                let name = if group == Group::Cube { "cube" } else { "SIP" };
                let d = Diagnostic::error(
                    "KB0206",
                    format!(
                        "{} comes to {} barrier{} of its {name}, {} to {}: the first would wait for ever",
                        pe_text(facts, most.0),
                        most.1.len(),
                        if most.1.len() == 1 { "" } else { "s" },
                        pe_text(facts, least.0),
                        least.1.len()
                    ),
                )
                .help("call `tl::barrier` the same number of times on every PE of the group");
                let absent = format!("{} does not come to this one", pe_text(facts, least.0));
                found.push(label(program, d, most.1[least.1.len()], &absent));
                break;
            }
        }
    }
    found
}
