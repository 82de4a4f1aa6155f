//! What was measured, as one JSON object; times are in ns, exact to the picosecond.

use super::Probed;
use kernbench_core::probe::{Entry, Measure, Parts, Row};
use kernbench_core::units::Ps;
use serde::Serialize;

/// Nanoseconds as the decimal number that prints without noise.
pub(super) fn ns(ps: Ps) -> f64 {
    ps as f64 / 1000.0
}

fn signed_ns(ps: i64) -> f64 {
    ps as f64 / 1000.0
}

#[derive(Serialize)]
struct Object<'a> {
    fidelity: &'static str,
    /// Whether the published results are of this machine.
    applies: bool,
    rows: Vec<RowObject<'a>>,
    catalogue: Vec<EntryObject<'a>>,
}

#[derive(Serialize)]
struct RowObject<'a> {
    id: &'a str,
    title: &'a str,
    ns: Option<f64>,
    rules_ns: f64,
    reference_ns: f64,
    /// `ns` minus `rules_ns`.
    over_rules_ns: Option<f64>,
    /// `ns` minus `reference_ns`.
    difference_ns: Option<f64>,
    #[serde(flatten)]
    measure: Option<MeasureObject>,
}

#[derive(Serialize)]
struct EntryObject<'a> {
    id: &'a str,
    title: &'a str,
    /// Of each transfer.
    bytes: u32,
    #[serde(flatten)]
    measure: MeasureObject,
}

#[derive(Serialize)]
struct MeasureObject {
    issuers: u32,
    bytes_moved: u64,
    latency_ns: f64,
    #[serde(flatten)]
    parts: PartsObject,
    bandwidth_gbs: f64,
    fair_gbs: f64,
    utilisation: f64,
}

/// The parts of a latency, in ns.
#[derive(Serialize)]
pub(super) struct PartsObject {
    wire_ns: f64,
    overhead_ns: f64,
    drain_ns: f64,
    commit_ns: f64,
    contention_ns: f64,
}

impl From<&Parts> for PartsObject {
    fn from(p: &Parts) -> Self {
        PartsObject {
            wire_ns: signed_ns(p.wire_ps),
            overhead_ns: ns(p.overhead_ps),
            drain_ns: ns(p.drain_ps),
            commit_ns: ns(p.commit_ps),
            contention_ns: ns(p.contention_ps),
        }
    }
}

impl From<&Measure> for MeasureObject {
    fn from(m: &Measure) -> Self {
        MeasureObject {
            issuers: m.issuers,
            bytes_moved: m.bytes,
            latency_ns: ns(m.latency_ps),
            parts: (&m.parts).into(),
            bandwidth_gbs: m.per_us() as f64 / 1000.0,
            fair_gbs: m.fair_per_us as f64 / 1000.0,
            utilisation: m.share_ppm() as f64 / 1e6,
        }
    }
}

/// One line.
pub(super) fn json(probed: &Probed<'_>) -> String {
    let row = |row: &'_ Row| RowObject {
        id: row.id,
        title: row.title,
        ns: row.measure.map(|m| ns(m.latency_ps)),
        rules_ns: ns(row.rules_ps),
        reference_ns: ns(row.reference_ps),
        over_rules_ns: row.over_rules_ps().filter(|_| probed.is_reference).map(signed_ns),
        difference_ns: row.over_reference_ps().filter(|_| probed.is_reference).map(signed_ns),
        measure: row.measure.as_ref().map(MeasureObject::from),
    };
    let object = Object {
        fidelity: probed.fidelity.name(),
        applies: probed.is_reference,
        rows: probed.rows.iter().map(row).collect(),
        catalogue: probed.catalogue.iter().map(entry).collect(),
    };
    // Every number is finite, so this cannot fail.
    serde_json::to_string(&object).unwrap_or_default() + "\n"
}

fn entry(entry: &Entry) -> EntryObject<'_> {
    EntryObject { id: &entry.id, title: &entry.title, bytes: entry.bytes, measure: (&entry.measure).into() }
}
