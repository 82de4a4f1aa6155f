//! Names, filters, the two views, and the serialised form.

use super::*;
use crate::engine::tests::build::Build;
use crate::engine::tests::fake::Line;
use crate::engine::tests::{options, run};
use crate::ir::PeId;
use crate::ty::Dir::{E, W};
use crate::ty::Group;
use insta::assert_snapshot;

pub(crate) fn logged(line: &Line, program: Program) -> LaunchLog {
    let options = options(line);
    let timing = run(line, &program);
    LaunchLog {
        program: Arc::new(program),
        timing,
        submitted_ps: 0,
        issue: options.issue,
        slots: options.slots.kind,
        fidelity: options.fidelity,
    }
}

fn log() -> OpLog {
    let line = Line::new(1, 2);
    let mut b = Build::new(2);
    let mut pe = b.pe(0);
    let q = pe.load("q", [32, 64], 0);
    let k = pe.load("k", [64, 32], 1);
    let s = pe.dot("s", q, k);
    let p = pe.exp("p", s, false);
    pe.exp("acc.l", p, true);
    pe.send(E, q);
    pe.barrier(Group::Cube);
    let mut pe = b.pe(1);
    let y = pe.recv("y", W, [32, 64]);
    pe.store(y, 1);
    pe.barrier(Group::Cube);
    let mut log = OpLog::new(Arc::new(line.machine.clone()));
    log.launches.push(Arc::new(logged(&line, b.finish())));
    log
}

#[test]
fn the_logical_view_has_no_times() {
    assert_snapshot!(log().logical(), @r#"
    launch 0 "test" by_hand on 2 PEs, 10 ops
    sip0.cube0.pe0
      %0 dma_read q = load x[0:32, 0:64] : f16[32, 64]  kernel.rs:1
      %1 dma_read k = load x[0:32, 0:64] as [64, 32] @ sip0.cube0.pe1 : f16[64, 32]  kernel.rs:2
      %2 gemm_f16 s = dot %0, %1 : f32[32, 32]  kernel.rs:3
      %3 math p = exp(sub(%2, 1.0)) : f32[32, 32]  kernel.rs:4
      %4 math acc.l = sum.cols exp(sub(%3, 1.0)) : f32[32, 1]  kernel.rs:5
      %5 ipcq_copy send E #0, %0 : f16[32, 64]  kernel.rs:6
      %6 barrier cube  kernel.rs:7
    sip0.cube0.pe1
      %0 ipcq_recv y = recv W #0 : f16[32, 64]  kernel.rs:8
      %1 dma_write store y[8192:8224, 0:64], %0 : f16[32, 64]  kernel.rs:9
      %2 barrier cube  kernel.rs:10
    "#);
}

#[test]
fn the_timed_view_is_in_order_of_start() {
    assert_snapshot!(log().timed_text(), @"
      start        end
      4.000     33.040  sip0.cube0.pe0 %0 dma_read q = load x[0:32, 0:64] : f16[32, 64]  kernel.rs:1
      4.000     91.163  sip0.cube0.pe1 %0 ipcq_recv y = recv W #0 : f16[32, 64]  kernel.rs:8
     33.040     67.100  sip0.cube0.pe0 %1 dma_read k = load x[0:32, 0:64] as [64, 32] : f16[64, 32]  kernel.rs:2
     33.040     79.070  sip0.cube0.pe0 %5 ipcq_copy send E #0, %0 : f16[32, 64]  kernel.rs:6
     67.100    107.484  sip0.cube0.pe0 %2 gemm_f16 s = dot %0, %1 : f32[32, 32]  kernel.rs:3
     91.163    120.203  sip0.cube0.pe1 %1 dma_write store y[8192:8224, 0:64], %0 : f16[32, 64]  kernel.rs:9
    107.484    147.484  sip0.cube0.pe0 %3 math p = exp(sub(%2, 1.0)) : f32[32, 32]  kernel.rs:4
    120.203    201.484  sip0.cube0.pe1 %2 barrier cube  kernel.rs:10
    147.484    195.484  sip0.cube0.pe0 %4 math acc.l = sum.cols exp(sub(%3, 1.0)) : f32[32, 1]  kernel.rs:5
    195.484    201.484  sip0.cube0.pe0 %6 barrier cube  kernel.rs:7
    ");
}

#[test]
fn a_record_serialises_to_one_flat_line() {
    let log = log();
    let lines: Vec<String> = log
        .filter(|r| r.kind() == Kind::Ipcq || r.name() == "gemm_f16")
        .filter_map(|r| serde_json::to_string(&r).ok())
        .collect();
    assert_snapshot!(lines.join("\n"), @r#"
    {"launch":0,"pe":0,"op":2,"start_ps":67100,"end_ps":107484,"component":"sip0.cube0.pe0.pe_gemm","kind":"gemm","name":"gemm_f16","bytes":0,"shape":[32,32],"mkn":[32,64,32],"direction":null,"space":"tcm","expression":"dot %0, %1","binding":"s","file":"kernel.rs","line":3}
    {"launch":0,"pe":0,"op":5,"start_ps":33040,"end_ps":79070,"component":"sip0.cube0.pe0.pe_ipcq","kind":"ipcq","name":"ipcq_copy","bytes":4096,"shape":[32,64],"mkn":null,"direction":"E","space":"tcm","expression":"send E #0, %0","binding":"_","file":"kernel.rs","line":6}
    {"launch":0,"pe":1,"op":0,"start_ps":4000,"end_ps":91163,"component":"sip0.cube0.pe1.pe_ipcq","kind":"ipcq","name":"ipcq_recv","bytes":4096,"shape":[32,64],"mkn":null,"direction":"E","space":"tcm","expression":"recv W #0","binding":"y","file":"kernel.rs","line":8}
    "#);
}

#[test]
fn counting_and_filtering_read_as_they_should() {
    let log = log();
    assert_eq!(log.count("dma_read"), 2);
    assert_eq!(log.count("dma_write"), 1);
    assert_eq!(log.filter(|r| r.direction() == Some(E)).count(), 2, "both ends have the sender's direction");
    assert_eq!(log.filter(|r| r.pe() == PeId(1)).map(|r| r.bytes()).sum::<u64>(), 2 * 4096);
    assert_eq!(log.records().map(|r| r.remote_bytes()).sum::<u64>(), 4096);
}

#[test]
fn a_copy_lasts_from_hand_over_until_it_can_be_received() {
    let log = log();
    let copy = log.filter(|r| r.name() == "ipcq_copy").next();
    let recv = log.filter(|r| r.name() == "ipcq_recv").next();
    let (copy, recv) = (copy.as_ref(), recv.as_ref());
    assert_eq!(copy.map(Record::end_ps), recv.map(|r| r.timing().data_ps));
    assert!(copy.is_some_and(|c| c.duration_ps() >= 16_000));
}
