//! Laws of what the probe says, on several machines.

use super::*;
use crate::diag::Failure;
use crate::engine::Fidelity;
use crate::topology::tests::{holed, odd};
use crate::topology::{BufferKind, Topology, UciePolicy};
use crate::yaml::carets::render;
use insta::assert_snapshot;

fn machines() -> [Topology; 4] {
    let default = Topology::default_machine();
    [default.with_ucie_policy(UciePolicy::Striped), default, odd(), holed()]
}

/// The latency and the size of a kind of traffic in a catalogue.
fn latency(catalogue: &[Entry], id: &str, bytes: u32) -> u64 {
    let entry = catalogue.iter().find(|e| e.id == id && e.bytes == bytes);
    entry.unwrap_or_else(|| panic!("no {id} of {bytes} B")).measure.latency_ps
}

#[test]
fn parts_sum_to_the_latency_and_no_fair_share_is_exceeded() {
    for topology in machines() {
        for fidelity in Fidelity::ALL {
            let sizes = [1, 100, 256, 700, 4 << 10, 16 << 10, 100_000];
            let entries = catalogue(&topology, &sizes, fidelity);
            let measured = entries.iter().map(|e| (e.id.as_str(), e.bytes, e.measure));
            let rows = rows(&topology, fidelity);
            let published = rows.iter().filter_map(|r| Some((r.id, 0, r.measure?)));
            for (id, bytes, m) in measured.chain(published) {
                assert_eq!(m.parts.total_ps(), m.latency_ps, "{topology:?} {id} {bytes} B");
                assert!(m.share_ppm() <= 1_000_000, "{topology:?} {id} {bytes} B: {m:?}");
                assert!(m.per_us() <= m.fair_per_us, "{topology:?} {id} {bytes} B: {m:?}");
                if m.issuers == 1 || id == "all-local" {
                    assert_eq!(m.parts.contention_ps, 0, "{topology:?} {id} {bytes} B");
                }
            }
        }
    }
}

#[test]
fn published_rows_are_what_the_rules_give() {
    for fidelity in Fidelity::ALL {
        for row in rows(&Topology::default_machine(), fidelity) {
            let alone = row.measure.is_some_and(|m| m.issuers == 1);
            // Against others only the exact fidelity is exact.
            if alone || fidelity.name() == "flit" {
                assert_eq!(row.over_rules_ps(), Some(0), "row {} by {}", row.id, fidelity.name());
            }
        }
    }
}

#[test]
fn rows_without_their_ends_are_not_simulated() {
    let of = |t: &Topology| -> Vec<&'static str> {
        let rows = rows(t, Fidelity::default());
        rows.into_iter().filter(|row| row.measure.is_some()).map(|row| row.id).collect()
    };
    let [_, default, odd, holed] = machines();
    assert_eq!(of(&default), ["1", "2", "3", "4", "5-first", "5-striped", "6", "7", "8"]);
    assert_eq!(of(&odd), ["1", "2", "3", "8"]);
    assert_eq!(of(&holed), ["1", "2", "3", "7", "8"]);
    assert_eq!(machines().map(|t| is_reference(&t)), [false, true, false, false]);
}

#[test]
fn a_machine_has_the_traffic_that_its_size_allows() {
    let kinds = |t: &Topology| {
        let entries = catalogue(t, &[256], Fidelity::default());
        entries.into_iter().map(|e| e.id).collect::<Vec<_>>().join(" ")
    };
    let [_, default, odd, holed] = machines();
    assert_snapshot!([kinds(&default), kinds(&odd), kinds(&holed)].join("\n"), @"
    host-to-device device-to-host own-slice same-half cross-half adjacent-cube farthest-cube other-sip hot-spot-2 hot-spot-4 hot-spot-8 hot-spot-256 all-local queue-intra queue-east queue-south queue-global
    host-to-device device-to-host own-slice same-half cross-half adjacent-cube farthest-cube hot-spot-2 hot-spot-4 hot-spot-12 all-local queue-intra queue-east
    host-to-device device-to-host own-slice same-half adjacent-cube farthest-cube other-sip hot-spot-2 hot-spot-3 hot-spot-54 all-local queue-intra queue-east queue-south queue-global
    ");
}

#[test]
fn nearer_is_faster() {
    let [striped, first, ..] = machines();
    for t in [striped, first] {
        let sizes = [256, 16 << 10];
        let c = catalogue(&t, &sizes, Fidelity::default());
        for bytes in sizes {
            let ids = ["own-slice", "same-half", "cross-half", "adjacent-cube", "farthest-cube"];
            let times = ids.map(|id| latency(&c, id, bytes));
            assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
            assert!(latency(&c, "device-to-host", bytes) >= latency(&c, "host-to-device", bytes));
        }
    }
}

#[test]
fn a_queue_costs_two_slot_accesses_and_a_credit_more_than_a_transfer_less_its_commit() {
    let t = Topology::default_machine();
    let sizes = [256, 4 << 10, 16 << 10];
    let c = catalogue(&t, &sizes, Fidelity::default());
    for bytes in sizes {
        let access = t.machine().slot_cost(BufferKind::Tcm).time(bytes.into());
        // A commit is 8 ns, 16 B at 128 GB/s are 125 ps.
        let (queue, transfer) = (latency(&c, "queue-east", bytes), latency(&c, "adjacent-cube", bytes));
        assert_eq!(queue + 8000, transfer + 2 * access + 125);
    }
}

#[test]
fn fair_shares_of_traffic_that_can_be_done_by_hand() {
    let t = Topology::default_machine();
    let m = t.machine();
    let read = |from, home, bytes| flow(m, Issuer::Dma(PeId(from)), PeId(home), bytes, 0);
    let gbs = |flows: &[Flow]| -> Vec<f64> {
        fair_share(&t, flows).iter().map(|per_us| (per_us / 10.0).round() / 100.0).collect()
    };
    // A slice alone; a slice shared by four; a UCIe connection shared by two of the next cube.
    assert_eq!(gbs(&[read(0, 0, 4096)]), [256.0]);
    assert_eq!(gbs(&[0, 1, 2, 3].map(|pe| read(pe, 0, 4096))), [64.0; 4]);
    assert_eq!(gbs(&[read(0, 8, 4096), read(1, 9, 4096)]), [64.0; 2]);
    // One burst is one channel of 32 GB/s, which two share.
    assert_eq!(gbs(&[read(0, 0, 256)]), [32.0]);
    assert_eq!(gbs(&[read(0, 0, 256), read(1, 0, 256)]), [16.0; 2]);
    // The remote one takes half of the connection, the local one what is left of the slice.
    assert_eq!(gbs(&[read(0, 8, 4096), read(1, 9, 4096), read(8, 8, 4096)]), [64.0, 64.0, 192.0]);
    // A message meets no channel.
    assert_eq!(gbs(&[flow(m, Issuer::Message(PeId(0)), PeId(1), 256, 0)]), [256.0]);
}

fn read(text: &str) -> Result<Vec<Request>, Failure> {
    requests(&Topology::default_machine(), "t.yaml", text)
}

fn mistakes(text: &str) -> String {
    render(text, &read(text).expect_err("a mistake"))
}

#[test]
fn what_a_traffic_file_does_not_say_has_defaults() {
    let short = "- {from: sip0.cube0.pe1, to: sip0.cube3.pe4, bytes: 16384}\n".repeat(9)
        + "- {from: host, to: sip1.cube15.pe7, bytes: 1, channel: 7, op: write, start_ns: 12.345}\n";
    let all = read(&short).unwrap();
    let t = Topology::default_machine();
    let m = t.machine();
    for (i, request) in all[..9].iter().enumerate() {
        assert_eq!((request.op, request.from()), (Op::Read, Some(PeId(1))));
        assert_eq!(request.flow, flow(m, Issuer::Dma(PeId(1)), PeId(28), 16384, i as u32 % 8));
    }
    let last = Flow { start_ps: 12_345, ..flow(m, Issuer::HostWrite, PeId(255), 1, 7) };
    assert_eq!(all[9], Request { op: Op::Write, flow: last });
}

#[test]
fn a_traffic_file_of_a_row_is_the_row() {
    let rows = rows(&Topology::default_machine(), Fidelity::default());
    let lines = (0..8).map(|pe| format!("- {{from: sip0.cube0.pe{pe}, to: sip0.cube0.pe0, bytes: 16KiB}}\n"));
    let flows: Vec<Flow> = read(&lines.collect::<String>()).unwrap().iter().map(|r| r.flow).collect();
    let t = Topology::default_machine();
    let ends = passed(&t, &flows, Fidelity::default()).into_iter().map(|p| p.end_ps);
    assert_eq!(ends.max(), rows[3].measure.map(|m| m.latency_ps));
}

#[test]
fn names_and_ends_of_transfers() {
    assert_snapshot!(mistakes("\
- {from: sip0.cub0.pe1, to: sip0.cube16.pe0, bytes: 1}
- {from: hst, to: host, bytes: 1}
- {from: nowhere, to: sip0.cube0.r0c0, bytes: 1, op: raed}
- {from: host, to: sip0.cube0.pe0, bytes: 1, op: message}
- {from: sip0.cube0.pe0, to: sip0.cube0.pe0, bytes: 1, op: message, channel: 0}
"), @"
    [KB0318] the machine has no PE `sip0.cub0.pe1`
    t.yaml:1: - {from: sip0.cub0.pe1, to: sip0.cube16.pe0, bytes: 1}
                       ^^^^^^^^^^^^^
    help: did you mean `sip0.cube0.pe1`?
    [KB0318] the machine has no PE `sip0.cube16.pe0`
    t.yaml:1: - {from: sip0.cub0.pe1, to: sip0.cube16.pe0, bytes: 1}
                                          ^^^^^^^^^^^^^^^
    help: the last PE of the machine is `sip1.cube15.pe7`
    [KB0318] the machine has no PE `hst`
    t.yaml:2: - {from: hst, to: host, bytes: 1}
                       ^^^
    help: did you mean `host`?
    [KB0320] `transfers[1].to` cannot be `host`
    t.yaml:2: - {from: hst, to: host, bytes: 1}
                                ^^^^
    help: write `from: host` and `op: read` to read into the host
    [KB0318] the machine has no PE `nowhere`
    t.yaml:3: - {from: nowhere, to: sip0.cube0.r0c0, bytes: 1, op: raed}
                       ^^^^^^^
    help: write a PE from `sip0.cube0.pe0` to `sip1.cube15.pe7`, or `host`
    [KB0318] the machine has no PE `sip0.cube0.r0c0`
    t.yaml:3: - {from: nowhere, to: sip0.cube0.r0c0, bytes: 1, op: raed}
                                    ^^^^^^^^^^^^^^^
    help: did you mean `sip0.cube0.pe0`?
    [KB0308] `transfers[2].op` cannot be `raed`
    t.yaml:3: - {from: nowhere, to: sip0.cube0.r0c0, bytes: 1, op: raed}
                                                                   ^^^^
    help: did you mean `read`?
    [KB0320] the host sends no messages
    t.yaml:4: - {from: host, to: sip0.cube0.pe0, bytes: 1, op: message}
                                                               ^^^^^^^
    help: write `op: write` or `op: read`
    [KB0320] `sip0.cube0.pe0` sends a message to itself
    t.yaml:5: - {from: sip0.cube0.pe0, to: sip0.cube0.pe0, bytes: 1, op: message, channel: 0}
                                           ^^^^^^^^^^^^^^
    help: name another PE, or use `op: write` for its slice
    [KB0320] a message goes to no HBM channel
    t.yaml:5: - {from: sip0.cube0.pe0, to: sip0.cube0.pe0, bytes: 1, op: message, channel: 0}
                                                                                           ^
    help: remove `channel`, or use `op: write`
    ");
}

#[test]
fn numbers_of_transfers() {
    assert_snapshot!(mistakes("\
- {from: host, to: sip0.cube0.pe0, bytes: 16KB}
- {from: host, to: sip0.cube0.pe0, bytes: 0}
- {from: host, to: sip0.cube0.pe0, bytes: 3GiB}
- {from: host, to: sip0.cube0.pe0, bytes: 1.5}
- {from: host, to: sip0.cube0.pe0, bytes: 1, start_ns: -1}
- {from: host, to: sip0.cube0.pe0, bytes: 1, channel: 8}
"), @"
    [KB0317] `transfers[0].bytes` is no size: `16KB`
    t.yaml:1: - {from: host, to: sip0.cube0.pe0, bytes: 16KB}
                                                        ^^^^
    help: write bytes, or a whole number with KiB, MiB or GiB
    [KB0306] `transfers[1].bytes` must be from 1 to 2147483648, not 0
    t.yaml:2: - {from: host, to: sip0.cube0.pe0, bytes: 0}
                                                        ^
    help: write a number from 1 to 2147483648
    [KB0306] `transfers[2].bytes` must be from 1 to 2147483648, not 3GiB
    t.yaml:3: - {from: host, to: sip0.cube0.pe0, bytes: 3GiB}
                                                        ^^^^
    help: write a number from 1 to 2147483648
    [KB0305] `transfers[3].bytes` must be a size such as `16KiB`, not a fraction
    t.yaml:4: - {from: host, to: sip0.cube0.pe0, bytes: 1.5}
                                                        ^^^
    help: write a size such as `16KiB`
    [KB0306] `transfers[4].start_ns` must be from 0 to 1000000000000, not -1
    t.yaml:5: - {from: host, to: sip0.cube0.pe0, bytes: 1, start_ns: -1}
                                                                     ^^
    help: write a number from 0 to 1000000000000
    [KB0306] `transfers[5].channel` must be from 0 to 7, not 8
    t.yaml:6: - {from: host, to: sip0.cube0.pe0, bytes: 1, channel: 8}
                                                                    ^
    help: write a number from 0 to 7
    ");
}

#[test]
fn the_form_of_a_traffic_file() {
    let texts = [
        "- {form: host, to: sip0.cube0.pe0, size: 1}\n",
        "- {from: host, from: host, to: sip0.cube0.pe0, bytes: 1}\n- text\n",
        "from: host\n",
        "[]\n",
        "",
        "- {from: host\n- to",
    ];
    assert_snapshot!(texts.map(mistakes).join("\n"), @"
    [KB0303] unknown key `transfers[0].form`
    t.yaml:1: - {form: host, to: sip0.cube0.pe0, size: 1}
                 ^^^^
    help: did you mean `from`?
    [KB0304] missing key `transfers[0].bytes`
    t.yaml:1: - {form: host, to: sip0.cube0.pe0, size: 1}
                 ^^^^
    help: add `bytes: ..` here
    [KB0303] unknown key `transfers[0].size`
    t.yaml:1: - {form: host, to: sip0.cube0.pe0, size: 1}
                                                 ^^^^
    help: remove it; the keys here are `from`, `to`, `bytes`, `op`, `start_ns`, `channel`

    [KB0302] key `transfers[0].from` is given twice
    t.yaml:1: - {from: host, from: host, to: sip0.cube0.pe0, bytes: 1}
                             ^^^^ given again
    t.yaml:1: - {from: host, from: host, to: sip0.cube0.pe0, bytes: 1}
                 ^^^^ first given here
    help: remove one of the two
    [KB0305] `transfers[1]` must be a map of keys, not a text
    t.yaml:2: - text
                ^^^^
    help: write a map of keys

    [KB0305] `t.yaml` must be a list of transfers
    t.yaml:1: from: host
              ^
    help: write `- key: value` lines

    [KB0319] `t.yaml` lists no transfers
    help: add a line such as `- {from: sip0.cube0.pe1, to: sip0.cube0.pe0, bytes: 16KiB}`

    [KB0319] `t.yaml` lists no transfers
    help: add a line such as `- {from: sip0.cube0.pe1, to: sip0.cube0.pe0, bytes: 16KiB}`

    [KB0301] `t.yaml` is not YAML: unclosed bracket '{'
    t.yaml:1: - {from: host
                ^
    help: check the indentation, the brackets and the quotes up to this place
    ");
}

#[test]
fn pages_show_what_is_said() {
    let pages = [
        include_str!("../../../docs/diagnostics/KB0317.md"),
        include_str!("../../../docs/diagnostics/KB0318.md"),
        include_str!("../../../docs/diagnostics/KB0319.md"),
        include_str!("../../../docs/diagnostics/KB0320.md"),
    ];
    for page in pages {
        let block = |language: &str| {
            let block = page.split(&format!("```{language}\n")).nth(1).and_then(|b| b.split("```").next());
            block.unwrap_or_else(|| panic!("no {language} in {page}"))
        };
        let failure = requests(&Topology::default_machine(), "traffic.yaml", block("yaml"));
        assert_eq!(render(block("yaml"), &failure.expect_err("a mistake")), block("text"));
    }
}
