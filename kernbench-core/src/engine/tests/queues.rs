//! Sends, receives, slots and credits.

use super::*;
use crate::ir::{OpId, PeId, Transfer};
use crate::topology::BufferKind;
use crate::ty::Dir::{E, W};
use crate::units::ns;

/// PE 0 sends `count` tiles of `shape` to PE `1`; the receiver first computes for a while.
fn pipe(count: usize, shape: [u32; 2], late: u32) -> Program {
    let mut b = Build::new(2);
    let mut pe = b.pe(0);
    let x = pe.fill("x", shape);
    for _ in 0..count {
        pe.send(E, x);
    }
    let mut pe = b.pe(1);
    if late > 0 {
        pe.fill("busy", [late, 128]);
        pe.fence();
    }
    for _ in 0..count {
        pe.recv("y", W, shape);
    }
    b.finish()
}

fn raw(line: &Line, bytes: u32) -> Ps {
    let transfer = Transfer {
        addr: 0,
        home: PeId(1),
        run_bytes: bytes,
        runs: 1,
        stride_bytes: 0,
        ..Transfer::default()
    };
    traffic_on(line, &[Flow { issuer: Issuer::Dma(PeId(0)), transfer, start_ps: 0 }], Fidelity::Message)[0]
        .end_ps
}

#[test]
fn a_message_costs_two_slot_accesses_and_a_credit_more_than_raw_dma() {
    for (cubes, pes) in [(1, 2), (2, 1)] {
        let line = Line::new(cubes, pes);
        for kind in [BufferKind::Tcm, BufferKind::Sram, BufferKind::Hbm] {
            for bytes in [256, 4096, 65536, 1000] {
                let program = pipe(1, [1, bytes / 2], 0);
                let mut options = options(&line);
                options.slots.kind = kind;
                let timing = run_with(&line, &program, &options);
                let took = timing.pes[1].ops[0].end_ps - timing.pes[0].ops[1].start_ps;
                let slot = line.machine.slot_cost(kind).time(bytes.into());
                let credit = if cubes == 2 { 125 } else { 63 };
                assert_eq!(took, raw(&line, bytes) + 2 * slot + credit - ns(8.0), "{kind:?} {bytes}");
            }
        }
    }
}

#[test]
fn a_send_is_done_at_hand_over_and_the_next_one_waits_for_the_channel() {
    let line = Line::new(1, 2);
    let timing = run(&line, &pipe(3, [1, 2048], 0));
    let sends = &timing.pes[0].ops[1..];
    assert!(sends[0].duration_ps() == 0);
    // 4 KiB leave in 16 ns.
    assert_eq!(sends[1].end_ps, sends[0].end_ps + ns(16.0));
    assert_eq!(sends[2].end_ps, sends[1].end_ps + ns(16.0));
}

#[test]
fn a_send_without_a_slot_waits_for_the_credit_at_once_or_at_its_next_poll() {
    let line = Line::new(1, 2);
    let program = pipe(3, [1, 128], 100);
    let mut options = options(&line);
    options.slots.n_slots = 2;
    let timing = run_with(&line, &program, &options);
    let (sends, recvs) = (&timing.pes[0].ops[1..], &timing.pes[1].ops[2..]);
    assert_eq!(sends[2].end_ps, recvs[0].end_ps, "the first credit frees the third send");
    assert_eq!(sends[2].peer, Some(OpRef { pe: 1, op: OpId(2) }));
    assert_eq!(timing.pes[0].credit_wait_ps, sends[2].duration_ps());

    options.slots.poll_ps = Some(ns(4.0));
    let polled = run_with(&line, &program, &options);
    let (send, credit) = (polled.pes[0].ops[3], polled.pes[1].ops[2].end_ps);
    assert_eq!((send.end_ps - send.start_ps) % ns(4.0), 0);
    assert!(send.end_ps >= credit && send.end_ps < credit + ns(4.0));
}

#[test]
fn the_queue_serves_in_program_order_and_other_engines_go_on() {
    let line = Line::new(1, 2);
    let mut b = Build::new(2);
    let mut pe = b.pe(0);
    let x = pe.fill("x", [1, 128]);
    let early = pe.recv("early", E, [1, 128]);
    let send = pe.send(E, x);
    pe.load("z", [1, 128], 0);
    let mut pe = b.pe(1);
    let slow = pe.fill("slow", [1000, 128]);
    let slow = pe.exp("e", slow, true);
    let _ = slow;
    pe.fence();
    let y = pe.fill("y", [1, 128]);
    pe.send(W, y);
    pe.recv("late", W, [1, 128]);
    let program = b.finish();
    let timing = run(&line, &program);
    let ops = &timing.pes[0].ops;
    let recv = program.pes[0].tile(early).def;
    assert!(ops[send.at()].start_ps >= ops[recv.at()].end_ps);
    assert!(ops[3].end_ps < ops[recv.at()].end_ps, "the load does not wait for the queue");
}

#[test]
fn an_async_receive_blocks_only_at_its_wait() {
    let line = Line::new(1, 2);
    let mut b = Build::new(2);
    let mut pe = b.pe(0);
    let x = pe.fill("x", [50, 128]);
    pe.send(E, x);
    let mut pe = b.pe(1);
    let post = pe.recv_async("y", W, [50, 128]);
    pe.fill("meanwhile", [8, 128]);
    let wait = pe.wait(post);
    pe.fill("after", [1, 128]);
    let program = b.finish();
    let timing = run(&line, &program);
    let ops = &timing.pes[1].ops;
    assert_eq!(ops[post.at()].duration_ps(), 0);
    assert!(ops[1].end_ps < ops[wait.at()].end_ps);
    assert_eq!(ops[wait.at()].data_ps, timing.pes[0].ops[1].data_ps);
    assert!(ops[3].start_ps >= ops[wait.at()].end_ps);
}

#[test]
fn empty_messages_take_the_path_only() {
    let line = Line::new(1, 2);
    let timing = run(&line, &pipe(2, [0, 128], 0));
    let (send, recv) = (timing.pes[0].ops[1], timing.pes[1].ops[0]);
    // Two routers and three wires of 10 ps, there and back; 16 B of credit.
    assert_eq!(recv.end_ps - send.start_ps, 2 * (ns(4.0) + 30) + 63);
}
