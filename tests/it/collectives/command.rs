//! `kernbench collectives` and `kernbench run all-reduce` as their users meet them.

use crate::cli::{kernbench, program, run_in};
use insta::assert_snapshot;
use serde_json::{Value, json};

fn rows(line: &str) -> Vec<Value> {
    kernbench(line).json()["rows"].as_array().unwrap().clone()
}

#[test]
fn the_table() {
    let said = kernbench(
        "collectives --op all_reduce,broadcast,barrier --sips 2x3 --bytes 256,2KiB 4MiB --check-up-to 1KiB",
    );
    assert_snapshot!("collectives", said.text());
}

/// Every row has its fields, in order, and is right where data moved; bandwidths are what their definitions say.
#[test]
fn json_rows() {
    let line = "collectives --json --sips 4 --bytes 8,32KiB,2MiB --dtype i32 --reduce max";
    let said = kernbench(line);
    let first = r#"{"fidelity":"flit","rows":[{"op":"all_reduce","algorithm":"ring_allreduce","sip_topology":"ring_1d","world":4,"bytes":8,"dtype":"i32","buffer_kind":"tcm","simulated_ps":"#;
    assert!(said.out.starts_with(first), "{}", said.out);
    let all = said.json();
    assert_eq!(all["not_run"], json!([]));
    let rows = all["rows"].as_array().unwrap();
    let mut ops: Vec<&str> = rows.iter().map(|row| row["op"].as_str().unwrap()).collect();
    ops.dedup();
    assert_eq!(ops, ["all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "barrier"]);
    for row in rows {
        let (bytes, ps) = (row["bytes"].as_u64().unwrap(), row["simulated_ps"].as_u64().unwrap());
        let moved = bytes > 0 && bytes <= 1 << 20;
        assert_eq!(row["correct"], if moved { json!(true) } else { Value::Null }, "{row}");
        let algbw = bytes as f64 * 1000.0 / ps as f64;
        let bus = match row["op"].as_str().unwrap() {
            "all_reduce" => 1.5,
            "broadcast" | "barrier" => 1.0,
            _ => 0.75,
        };
        assert!((row["algbw_gbs"].as_f64().unwrap() - algbw).abs() <= 0.0006, "{row}");
        assert!((row["busbw_gbs"].as_f64().unwrap() - bus * algbw).abs() <= 0.0006, "{row}");
    }
}

#[test]
fn flags_narrow_the_sweep_and_threads_do_not_show() {
    let line = "collectives --json --algorithm lrab_hierarchical_allreduce --sips 2x3 --sip-topology torus_2d \
                --buffer-kind tcm,hbm --bytes 256,2048";
    let rows = rows(line);
    let shown: Vec<_> = rows.iter().map(|r| (&r["buffer_kind"], &r["bytes"], &r["world"])).collect();
    let six = json!(6);
    let want =
        [("tcm", 256), ("tcm", 2048), ("hbm", 256), ("hbm", 2048)].map(|(kind, n)| (json!(kind), json!(n)));
    assert_eq!(shown, want.iter().map(|(kind, n)| (kind, n, &six)).collect::<Vec<_>>());
    // Row 9 of the published results, to the picosecond.
    let ps = |i: usize| rows[i]["simulated_ps"].as_u64().unwrap();
    assert_eq!([ps(2) - ps(0), ps(3) - ps(1)], [256, 2048].map(|n| 24 * (6000 + 3 * n * 1000 / 512)));
    let one = kernbench(&format!("{line} --threads 1")).out;
    assert_eq!(one, kernbench(&format!("{line} --threads 3")).out);
}

/// Slots that are smaller than the bytes cost more; fidelities agree where nothing meets.
#[test]
fn slots_and_fidelity() {
    let ps = |more: &str| {
        let line = format!("collectives --json --algorithm ring_allreduce --bytes 16KiB {more}");
        rows(&line)[0]["simulated_ps"].as_u64().unwrap()
    };
    assert!(ps("--slot-size 1KiB") > ps("--slot-size 16KiB"));
    assert_eq!(ps("--slot-size 16KiB"), ps(""));
    assert!(ps("--slot-size 1KiB --n-slots 1") >= ps("--slot-size 1KiB --n-slots 8"));
    assert_eq!(kernbench("collectives --json --op barrier --fidelity message").json()["fidelity"], "message");
}

#[test]
fn mistakes() {
    let lines = [
        "collectives --op all_redce",
        "collectives --op broadcast --algorithm ring_allreduce",
        "collectives --algorithm tree_allreduce --sip-topology torus_2d",
        "collectives --sips 4x5",
        "collectives --sips 0",
        "collectives --bytes 1.5KiB",
        "collectives --bytes 2GiB",
        "collectives --op barrier --slot-size 4MiB --sips 8",
        "run all-reduce --set algorithm=ring_alreduce",
        "run all-reduce --set reduce=mean",
    ];
    let said: Vec<String> = lines.iter().map(|line| kernbench(line).text()).collect();
    assert_snapshot!("collectives_mistakes", said.join("\n"));
}

/// What does not fit is told beside what does.
#[test]
fn what_cannot_run_is_told() {
    let said = kernbench(
        "collectives --op all_reduce,all_to_all --sips 9x1 --bytes 256 --slot-size 1MiB --algorithm ring_allreduce pairwise_all_to_all",
    );
    assert_snapshot!("collectives_not_run", said.text());
}

#[test]
fn the_bench() {
    for algorithm in ["auto", "tree_allreduce", "lrab_hierarchical_allreduce"] {
        let line =
            format!("run all-reduce --json --set algorithm={algorithm} bytes=5000 dtype=bf16 reduce=prod");
        let run = kernbench(&line).json();
        assert_eq!(run["correct"], json!(true), "{algorithm}");
        assert!(run["op_counts"]["ipcq_copy"].as_u64().unwrap() > 0);
    }
    let slow = kernbench("run all-reduce --max-ns 100");
    assert_eq!(slow.code, Some(2));
    assert!(slow.err.starts_with("error[KB0403]"), "{}", slow.err);
}

/// A process group of fewer ranks than SIPs, and a configuration whose entries disagree about that.
#[test]
fn the_bench_with_a_configuration_of_ones_own() {
    let text = |small: &str, large: &str| {
        format!(
            "defaults: {{algorithm: a, large_algorithm: b, slot_size: 256}}\nalgorithms:\n  \
             a: {{module: ring_allreduce, topology: ring_1d{small}}}\n  \
             b: {{module: lrab_hierarchical_allreduce, topology: ring_1d{large}, root_cube: 6}}\n"
        )
    };
    let directory = tempfile::tempdir().unwrap();
    let run = |small, large, more: &str| {
        std::fs::write(directory.path().join("ccl.yaml"), text(small, large)).unwrap();
        run_in(
            directory.path(),
            program(),
            &format!("run all-reduce --ccl ccl.yaml --json --set bytes=1000 {more}"),
        )
    };
    for more in ["", "algorithm=a"] {
        let one = run(", world_size: 1", ", world_size: 1", more).json();
        let two = run("", "", more).json();
        assert_eq!([&one["correct"], &two["correct"]], [&json!(true); 2]);
        assert_eq!(one["ipcq_by_direction"].get("global_E"), None);
        assert!(two["ipcq_by_direction"]["global_E"].as_u64().unwrap() > 0);
    }
    assert_snapshot!(run("", ", world_size: 1", "").err, @"
    error[KB0322]: `world_size` is 1 for `b`, but the process group has 2, those of `a`
     --> ccl.yaml:4:75
      |
    4 |   b: {module: lrab_hierarchical_allreduce, topology: ring_1d, world_size: 1, root_cube: 6}
      |                                                                           ^
      |
      = help: give all algorithms of a process group the same, or leave it out

    1 error; run `kernbench explain KB0322` for more
    ");
}
