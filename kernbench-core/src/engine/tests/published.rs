//! Rows 1 to 8 of the machine's published results: exact models give all of them to 0.1 ns, fidelity
//! `message` those without contention.

use super::model::Model;
use super::*;
use crate::ir::{PeId, Transfer};
use crate::topology::{PeAt, Topology};

/// Flow `i` of a row: it begins at HBM channel `i mod 8`.
fn flow(i: u32, issuer: Issuer, home: PeId, kib: u32) -> Flow {
    let addr = u64::from(i % 8) * 256;
    let transfer = Transfer { addr, home, run_bytes: kib << 10, runs: 1, ..Transfer::default() };
    Flow { issuer, transfer, start_ps: 0 }
}

#[test]
fn rows_1_to_8() {
    let first = Topology::default_machine();
    let striped = machines::changed(&[("cube.ucie.policy", "striped".into())]);
    let pe = |sip, cube, pe| first.machine().pe(PeAt { sip, cube, pe });
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
    let mut near = String::new();
    for (row, topology, flows, expected) in &rows {
        let end = |model: Model| model.traffic(*topology, flows).iter().map(|p| p.end_ps).max();
        for model in Model::EXACT {
            assert_eq!(end(model), Some(*expected), "row {row}, {model:?}");
        }
        let message = end(Model::MESSAGE).unwrap_or(0);
        if flows.len() == 1 {
            assert_eq!(message, *expected, "row {row}");
        } else {
            let _ = writeln!(near, "row {row}: {message}, not {expected}");
        }
    }
    insta::assert_snapshot!(near, @"
    row 4: 545000, not 556000
    row 5 first: 1109500, not 1111500
    row 5 striped: 414500, not 368500
    ");
}
