//! `kernbench probe`: its tables, its JSON, traffic files, and queues as kernels meet them.

use super::cli::{Said, kernbench, program, run_in};
use insta::assert_snapshot;
use kernbench::core::probe::catalogue;
use kernbench::engine::Fidelity;
use kernbench::host::{Context, LaunchOptions};
use kernbench::prelude::*;
use serde_json::{Value, json};
use std::fs;

/// The exact latencies of the rules, by the ids of rows.
const RULES: [(&str, f64); 9] = [
    ("1", 77.0),
    ("2", 141.0),
    ("3", 82.0),
    ("4", 556.0),
    ("5-first", 1111.5),
    ("5-striped", 368.5),
    ("6", 573.0),
    ("7", 412.0),
    ("8", 542.5),
];

fn number(object: &Value, key: &str) -> f64 {
    object[key].as_f64().unwrap_or_else(|| panic!("no number `{key}` in {object}"))
}

/// Without what depends on the fidelity: its name, and the lines of transfers that meet others.
fn without_contention(text: &str) -> String {
    let mut crowd = false;
    let mut alone = |line: &&str| {
        if !line.starts_with(' ') {
            crowd = line.starts_with("hot spot");
        }
        let row = ["  4  ", "  5-first ", "  5-striped "].iter().any(|row| line.starts_with(row));
        !(row || crowd && line.starts_with(' '))
    };
    let text = text.lines().filter(&mut alone).collect::<Vec<_>>().join("\n");
    let names = Fidelity::ALL.map(|f| format!("{} fidelity", f.name()));
    names.iter().fold(text, |text, name| text.replace(name, "F fidelity"))
}

#[test]
fn tables() {
    let said = kernbench("probe --size 4KiB 32KiB");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.lines().all(|line| line.len() <= 110), "{}", said.out);
    insta::with_settings!({ omit_expression => true }, {
        assert_snapshot!("probe", without_contention(&said.text()));
    });
}

#[test]
fn json_has_rows_and_the_catalogue() {
    for fidelity in Fidelity::ALL.map(Fidelity::name) {
        let probe = kernbench(&format!("probe --json --size 16KiB --fidelity {fidelity}"));
        assert!(probe.out.contains(r#""rules_ns":368.5,"reference_ns":963.0"#), "numbers without noise");
        let probe = probe.json();
        assert_eq!((&probe["fidelity"], &probe["applies"]), (&json!(fidelity), &json!(true)));
        let rows = probe["rows"].as_array().unwrap();
        assert_eq!(rows.len(), RULES.len());
        for (row, (id, rules)) in rows.iter().zip(RULES) {
            assert_eq!((&row["id"], number(row, "rules_ns")), (&json!(id), rules));
            assert_eq!(number(row, "difference_ns"), number(row, "ns") - number(row, "reference_ns"));
            if fidelity == "flit" || row["issuers"] == 1 {
                assert_eq!(number(row, "ns"), rules, "row {id}");
            }
        }
        for entry in probe["catalogue"].as_array().unwrap() {
            let parts = ["wire_ns", "overhead_ns", "drain_ns", "commit_ns", "contention_ns"];
            let sum: f64 = parts.map(|part| number(entry, part)).iter().sum();
            assert!((sum - number(entry, "latency_ns")).abs() < 1e-6, "{entry}");
            let used = number(entry, "bandwidth_gbs") / number(entry, "fair_gbs");
            assert!((used - number(entry, "utilisation")).abs() < 1e-4 && used <= 1.0, "{entry}");
        }
    }
}

#[test]
fn another_machine_has_no_published_results() {
    let files = tempfile::tempdir().unwrap();
    let text = include_str!("../../topology.yaml");
    let small = text.replacen("count: 2 ", "count: 1 ", 1).replacen("{w: 4, h: 4}", "{w: 2, h: 1}", 1);
    let small = small.replacen(
        "    phys:                           # io_ucie-P{k} joins the N port of cube k\n      count: 4",
        "    phys:\n      count: 1",
        1,
    );
    fs::write(files.path().join("small.yaml"), small).unwrap();
    let run = |line: &str| run_in(files.path(), program(), line);
    let text = run("probe --topology small.yaml --size 4KiB").text();
    assert!(text.contains("do not apply to this one") && !text.contains("reference"), "{text}");
    let json = run("probe --topology small.yaml --json --size 256").json();
    let rows = json["rows"].as_array().unwrap();
    let there = |id: &str| rows.iter().find(|row| row["id"] == id).map(|row| !row["ns"].is_null());
    assert_eq!(["1", "5-first", "6", "7", "8"].map(there), [true, true, false, false, true].map(Some));
    assert!(rows.iter().all(|row| row["difference_ns"].is_null()));
    assert_eq!(json["applies"], false);
}

/// A traffic file and what `probe` says of it.
fn traffic(text: &str, options: &str) -> Said {
    let files = tempfile::tempdir().unwrap();
    fs::write(files.path().join("traffic.yaml"), text).unwrap();
    run_in(files.path(), program(), &format!("probe --traffic traffic.yaml {options}"))
}

/// Transfers that do not meet.
const APART: &str = "\
- {from: sip0.cube15.pe7, to: sip0.cube15.pe7, bytes: 16KiB, start_ns: 12.5}
- {from: host, to: sip1.cube0.pe0, bytes: 65536, op: write, channel: 3}
- {from: sip0.cube0.pe0, to: sip0.cube0.pe1, bytes: 100 B, op: message}
- {from: sip0.cube8.pe0, to: sip0.cube9.pe0, bytes: 16KiB, op: write}
";

#[test]
fn traffic_of_a_file() {
    let text = without_contention(&traffic(APART, "").text());
    insta::with_settings!({ omit_expression => true }, { assert_snapshot!("traffic", text) });
}

#[test]
fn traffic_as_json_keeps_the_order_of_the_file() {
    let json = traffic(APART, "--json").json();
    let transfers = json["transfers"].as_array().unwrap();
    let ends: Vec<f64> = transfers.iter().map(|t| number(t, "end_ns")).collect();
    assert_eq!(ends[..2], [89.5, 542.5]);
    assert_eq!(number(&json, "makespan_ns"), 542.5);
    let channels: Vec<&Value> = transfers.iter().map(|t| &t["channel"]).collect();
    assert_eq!(channels, [&json!(0), &json!(3), &Value::Null, &json!(3)]);
    for t in transfers {
        let parts = ["wire_ns", "overhead_ns", "drain_ns", "commit_ns", "contention_ns"];
        let sum: f64 = parts.map(|part| number(t, part)).iter().sum();
        let latency = number(t, "end_ns") - number(t, "start_ns");
        assert!((sum - latency).abs() < 1e-6 && latency == number(t, "latency_ns"), "{t}");
    }
    let path = ["pe7.pe_dma", "r5c5", "hbm_ctrl.pe7"].map(|node| format!("sip0.cube15.{node}"));
    assert_eq!(transfers[0]["path"], json!(path));
    // Row 5, by a file, and twice the same bytes.
    let row: String = (0..8)
        .map(|pe| format!("- {{from: sip0.cube0.pe{pe}, to: sip0.cube1.pe{pe}, bytes: 16KiB}}\n"))
        .collect();
    let (a, b) = (traffic(&row, "--json"), traffic(&row, "--json"));
    assert_eq!(a.out, b.out);
    let rows = kernbench("probe --json --size 1").json();
    assert_eq!(a.json()["makespan_ns"], rows["rows"][4]["ns"]);
}

#[test]
fn mistakes_of_a_traffic_file() {
    let said =
        traffic("- {from: sip0.cube0.pe1, bytes: 16KB}\n- {from: host, to: sip9.cube0.pe0, bytes: 1}\n", "");
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    insta::with_settings!({ omit_expression => true }, { assert_snapshot!("traffic_mistakes", said.err) });
    let gone = kernbench("probe --traffic gone.yaml");
    assert!(
        gone.code == Some(2) && gone.err.contains("traffic file `gone.yaml` does not exist"),
        "{}",
        gone.err
    );
    let both = kernbench("probe --traffic gone.yaml --size 4KiB");
    assert!(both.code == Some(2) && both.err.contains("cannot be used with"), "{}", both.err);
}

#[test]
fn a_run_names_the_fidelity_it_was_given() {
    for fidelity in Fidelity::ALL.map(Fidelity::name) {
        let line = format!("run gqa-decode-short --no-data --json --fidelity {fidelity} --set s_kv=64");
        assert_eq!(kernbench(&line).json()["fidelity"], fidelity);
    }
    assert_eq!(kernbench("log gqa-decode-short --fidelity exact").code, Some(2));
}

#[kernel]
fn one_message(there: usize, send: Dir, recv: Dir) {
    let x = tl::full([32, 32], 1.0f32);
    let me = tl::cube() * 8 + tl::pe();
    if me == 0 {
        tl::send(send, x);
    }
    if me == there {
        let _ = tl::recv::<f32>(recv, [32, 32]);
    }
}

#[test]
fn a_queue_of_the_catalogue_is_a_send_and_a_receive_of_a_kernel() {
    let topology = Topology::default_machine();
    let entries = catalogue(&topology, &[4096], Fidelity::default());
    let cases = [
        ("queue-intra", 1, Dir::IntraE, Dir::IntraW),
        ("queue-east", 8, Dir::E, Dir::W),
        ("queue-south", 32, Dir::S, Dir::N),
    ];
    for (id, there, send, recv) in cases {
        let ctx = Context::new(topology.clone());
        let options = LaunchOptions { grid: Some([5, 8]), ..LaunchOptions::default() };
        ctx.launch_with("message", one_message { there, send, recv }, &options).unwrap();
        let log = ctx.op_log();
        let sent = log.records().find(|r| r.name() == "ipcq_copy").unwrap().start_ps();
        let received = log.records().find(|r| r.name() == "ipcq_recv").unwrap().end_ps();
        let entry = entries.iter().find(|e| e.id == id).unwrap();
        assert_eq!(received - sent, entry.measure.latency_ps, "{id}");
    }
}
