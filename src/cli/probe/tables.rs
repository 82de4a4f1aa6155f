//! What was measured, as tables: published results beside those of now, and the catalogue.

use super::Probed;
use crate::cli::out::table;
use crate::cli::text::{bandwidth, bytes, ns, plural, share, signed_ns};
use kernbench_core::probe::{Measure, Row};
use std::fmt::Write;

pub(super) fn text(probed: &Probed<'_>) -> String {
    let machine = probed.topology.machine();
    let ([w, h], [pw, ph]) = (machine.cube_mesh, machine.pe_grid);
    let sips = plural(machine.sips.into(), "SIP");
    let mut out =
        format!("{sips} of {w} x {h} cubes of {pw} x {ph} PEs, {} fidelity\n\n", probed.fidelity.name());
    out += "published results, in ns\n";
    if !probed.is_reference {
        out += "  they are of the default machine and do not apply to this one\n";
    }
    out += &rows(probed);
    out += "\nlatencies and their parts, in ns; all transfers of a line start at once\n";
    let _ = writeln!(
        out,
        "{:11}{:>11} ={:>9}{:>10}{:>11}{:>8}{:>12}{:>12}{:>12}{:>8}",
        "", "latency", "wire", "overhead", "drain", "commit", "contention", "bandwidth", "fair share", "used"
    );
    out += "published results\n";
    for Row { id, measure, .. } in &probed.rows {
        out += &measure.as_ref().map_or_else(String::new, |m| line(id, m));
    }
    let mut group = "";
    for entry in &probed.catalogue {
        if entry.id != group {
            group = &entry.id;
            let _ = writeln!(out, "{}", entry.title);
        }
        out += &line(&bytes(entry.bytes.into()), &entry.measure);
    }
    out
}

fn rows(probed: &Probed<'_>) -> String {
    let rows: Vec<Vec<String>> = (probed.rows.iter())
        .map(|row| {
            let now = row.measure.map_or_else(|| "-".to_owned(), |m| ns(m.latency_ps));
            let mut cells = vec![row.id.to_owned(), row.title.to_owned(), now];
            if probed.is_reference {
                let difference = |ps: Option<i64>| ps.map_or_else(String::new, signed_ns);
                cells.extend([
                    ns(row.rules_ps),
                    difference(row.over_rules_ps()),
                    ns(row.reference_ps),
                    difference(row.over_reference_ps()),
                ]);
            }
            cells
        })
        .collect();
    let header = ["row", "traffic", "now", "rules", "+/-", "reference", "+/-"];
    let columns = if probed.is_reference { header.len() } else { 3 };
    table(&header[..columns], &rows, &[2, 3, 4, 5, 6])
}

fn line(name: &str, m: &Measure) -> String {
    let p = &m.parts;
    let wire = if p.wire_ps < 0 { signed_ns(p.wire_ps) } else { ns(p.wire_ps.unsigned_abs()) };
    format!(
        "  {name:9}{:>11} ={wire:>9}{:>10}{:>11}{:>8}{:>12}{:>12}{:>12}{:>8}\n",
        ns(m.latency_ps),
        ns(p.overhead_ps),
        ns(p.drain_ps),
        ns(p.commit_ps),
        ns(p.contention_ps),
        bandwidth(m.per_us()),
        bandwidth(m.fair_per_us),
        share(m.share_ppm()),
    )
}
