//! Rows 1 to 8 of the machine's published results, which exact models give to 0.1 ns.

use super::model::Model;
use super::*;
use crate::ir::{PeId, Transfer};
use crate::topology::{PeAt, Topology};

fn pe(sip: u32, cube: u32, pe: u32) -> PeId {
    Topology::default_machine().machine().pe(PeAt { sip, cube, pe })
}

/// Flow `i` of a row: it begins at HBM channel `i mod 8`.
fn flow(i: u32, issuer: Issuer, home: PeId, kib: u32) -> Flow {
    let addr = u64::from(i % 8) * 256;
    let transfer = Transfer { addr, home, run_bytes: kib << 10, runs: 1, ..Transfer::default() };
    Flow { issuer, transfer, start_ps: 0 }
}

#[test]
fn rows_1_to_8() {
    let first = Topology::default_machine();
    let yaml = Topology::DEFAULT_YAML.replace("policy: first ", "policy: striped ");
    let striped = Topology::from_yaml("striped.yaml", &yaml).unwrap();
    let own = pe(0, 0, 0);
    let dma = Issuer::Dma(own);
    let hot = (0..8).map(|i| flow(i, Issuer::Dma(pe(0, 0, i)), own, 16)).collect();
    let across: Vec<Flow> = (0..8).map(|i| flow(i, Issuer::Dma(pe(0, 0, i)), pe(0, 1, i), 16)).collect();
    let rows: [(&str, &Topology, Vec<Flow>, Ps); 9] = [
        ("1", &first, vec![flow(0, dma, own, 16)], 77_000),
        ("2", &first, vec![flow(0, dma, own, 32)], 141_000),
        ("3", &first, vec![flow(0, Issuer::Dma(pe(0, 0, 1)), own, 16)], 82_000),
        ("4", &first, hot, 556_000),
        ("5 first", &first, across.clone(), 1_111_500),
        ("5 striped", &striped, across, 368_500),
        ("6", &first, vec![flow(0, dma, pe(0, 15, 7), 16)], 573_000),
        ("7", &first, vec![flow(0, dma, pe(1, 0, 0), 16)], 412_000),
        ("8", &first, vec![flow(0, Issuer::HostWrite, own, 64)], 542_500),
    ];
    for model in Model::EXACT {
        for (row, topology, flows, expected) in &rows {
            let end = model.traffic(*topology, flows).iter().map(|p| p.end_ps).max();
            assert_eq!(end, Some(*expected), "row {row}, {model:?}");
        }
    }
}
