//! The command line as its users meet it: what they type, what they read, what is left behind.

use insta::assert_snapshot;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small problem, for which everything is quick.
const SMALL: &str = "--set h_q=8 h_kv=8 d=64 s_kv=64";

pub(super) struct Said {
    line: String,
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl Said {
    pub(super) fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.text());
        serde_json::from_str(&self.out).expect("one JSON object")
    }

    /// As in a terminal, with the exit code unless it is 0.
    pub(super) fn text(&self) -> String {
        let code = self.code.map_or("killed".to_owned(), |c| format!("exit code {c}"));
        let code = if self.code == Some(0) { String::new() } else { format!("{code}\n") };
        format!("$ kernbench {}\n{}{}{code}", self.line, self.out, self.err)
    }
}

pub(super) fn run_in(directory: &Path, program: &Path, line: &str) -> Said {
    let output = Command::new(program)
        .args(line.split_whitespace())
        .current_dir(directory)
        .env_remove("NO_COLOR")
        .output()
        .expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Said {
        line: line.to_owned(),
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

pub(super) fn kernbench(line: &str) -> Said {
    run_in(Path::new(env!("CARGO_MANIFEST_DIR")), program(), line)
}

pub(super) fn program() -> &'static Path {
    assert_cmd::cargo::cargo_bin!("kernbench")
}

/// Snapshots without what moves when a kernel is edited, and without the wall time.
macro_rules! snapshot {
    ($name:literal, $text:expr) => {
        insta::with_settings!({
            omit_expression => true,
            filters => [(r"wall time  \d+\.\d\d s", "wall time  .. s"), (r"\.rs:\d+", ".rs:LINE"), (r#""line":\d+"#, r#""line":LINE"#), (r"default: \w+\] \[possible values: [\w, ]*message", "default: F] [possible values: F..")],
        }, { assert_snapshot!($name, $text) })
    };
}

#[test]
fn help_texts() {
    let commands = ["run", "list", "program", "log", "topology", "probe", "conform", "explain"];
    let mut text = kernbench("--help").text();
    for command in commands {
        text += "\n\n";
        text += &kernbench(&format!("{command} --help")).text();
    }
    snapshot!("help", text);
}

#[test]
fn list() {
    snapshot!("list", kernbench("list").text());
}

#[test]
fn explain() {
    for code in ["KB0613", "kb0613", "0613", "613"] {
        assert_eq!(
            kernbench(&format!("explain {code}")).out,
            include_str!("../../docs/diagnostics/KB0613.md")
        );
    }
    let all = kernbench("explain");
    let lines = all.out.lines().filter(|l| l.starts_with("  KB")).count();
    assert_eq!(lines, fs::read_dir("docs/diagnostics").unwrap().count());
    snapshot!("explain_unknown", kernbench("explain KB9303").text());
}

#[test]
fn a_run_for_people() {
    let runs = [
        kernbench(&format!("run gqa-decode-short {SMALL}")),
        kernbench(&format!("run gqa-prefill-short --no-data --issue blocking {SMALL} t_q=8")),
    ];
    snapshot!("run", runs.map(|r| r.text()).join("\n"));
}

#[test]
fn a_run_as_json() {
    let table = [
        (1, json!({"intra_N": 24, "intra_W": 144})),
        (2, json!({"intra_W": 72})),
        (4, json!({"intra_W": 24})),
        (8, json!({})),
    ];
    for (kv_per_cube, messages) in table {
        let run = kernbench(&format!("run gqa-decode-short --json {SMALL} kv_per_cube={kv_per_cube}")).json();
        assert_eq!(run["correct"], true);
        assert_eq!(run["op_counts"]["dma_write"], 8);
        assert_eq!(run["ipcq_by_direction"], messages);
        assert_eq!(run["params"]["kv_per_cube"], kv_per_cube);
        let time: u64 = run["time"].as_array().unwrap().iter().map(|r| r["ps"].as_u64().unwrap()).sum();
        assert_eq!(run["simulated_ps"], time, "the parts sum to the whole");
        let keys: Vec<&String> = run.as_object().unwrap().keys().collect();
        for key in
            "bench params correct max_error error_bound simulated_ps launch_overhead_ps deploy_ps op_counts \
                    ipcq_by_direction bytes_moved engines machine fidelity issue wall_s error_at got want \
                    nan_inputs time"
                .split_whitespace()
        {
            assert!(keys.iter().any(|k| *k == key), "{key}");
        }
    }
    let prefill = kernbench(&format!("run gqa-prefill-short --json {SMALL} t_q=8 kv_per_cube=2")).json();
    assert_eq!((&prefill["correct"], &prefill["op_counts"]["dma_write"]), (&json!(true), &json!(8)));
}

#[test]
fn without_data_times_are_the_same_and_nothing_is_claimed() {
    let with = kernbench(&format!("run gqa-decode-short --json --threads 1 {SMALL}")).json();
    let without = kernbench(&format!("run gqa-decode-short --json --no-data {SMALL}")).json();
    assert_eq!(with["simulated_ps"], without["simulated_ps"]);
    assert_eq!(with["time"], without["time"]);
    for key in ["correct", "max_error", "error_bound", "error_at", "got", "want", "nan_inputs"] {
        assert!(without[key].is_null() && !with[key].is_null(), "{key}");
    }
}

#[test]
fn a_wrong_result_is_shown_and_is_exit_code_1() {
    let own = program().parent().unwrap().join("examples/own_bench");
    assert!(own.exists(), "build it with `cargo build --examples`");
    let run = |line| run_in(Path::new(env!("CARGO_MANIFEST_DIR")), &own, line);
    assert_eq!(run("run double").code, Some(0));
    let wrong = run("run double --set times=3");
    assert_eq!(wrong.code, Some(1));
    snapshot!("wrong", wrong.text());
    assert_eq!(
        run("run gqa-decode-short --set s_kv=64 --no-data").code,
        Some(0),
        "the shipped benches are there too"
    );
}

#[test]
fn program_listing() {
    snapshot!("program", kernbench(&format!("program gqa-decode-short {SMALL} kv_per_cube=8")).text());
}

#[test]
fn log_views_and_filters() {
    let lines = [
        format!("log gqa-decode-short {SMALL} --pe sip0.cube0.pe4 --kind ipcq,memory"),
        format!("log gqa-decode-short {SMALL} --timed --op ipcq_copy --direction intra_N --limit 2"),
        format!("log gqa-decode-short {SMALL} --json --op dma_write --pe sip0.cube1"),
        format!("log gqa-decode-short {SMALL} --op barrier"),
    ];
    snapshot!("log", lines.map(|line| kernbench(&line).text()).join("\n"));
}

#[test]
fn two_logs_are_equal_byte_for_byte() {
    let line = format!("log gqa-decode-short {SMALL} --json");
    let (a, b) = (kernbench(&line), kernbench(&line));
    assert!(a.out == b.out && a.code == Some(0));
    let counts = kernbench(&format!("run gqa-decode-short --json {SMALL}")).json();
    let ops: u64 = counts["op_counts"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(a.out.lines().count() as u64, ops);
}

#[test]
fn topology() {
    let json = kernbench("topology --json").json();
    assert_eq!((&json["nodes"], &json["edges"]), (&json!(4335), &json!(12412)));
    let kinds = json["nodes_by_kind"].as_object().unwrap();
    assert_eq!(kinds.values().map(|n| n.as_u64().unwrap()).sum::<u64>(), 4335);
    assert_eq!(kernbench("topology --dot").out.matches(" -> ").count(), 12412);
    let lines = [
        "topology",
        "topology --path sip0.cube0.pe1 sip0.cube0.hbm_ctrl.pe0",
        "topology --path sip0.cube0.pe0 sip0.cube1.pe0 --bytes 100",
        "topology --path sip0.cube0.pe0.pe_cpu sip0.cube0.m_cpu",
    ];
    snapshot!("topology", lines.map(|line| kernbench(line).text()).join("\n"));
}

#[test]
fn published_latencies_are_those_of_paths() {
    let latency = |from: &str, to: &str, kib: u64| {
        let way = kernbench(&format!("topology --json --path {from} {to} --bytes {}", kib << 10)).json();
        let read = &way["latency"]["response_back_ps"];
        read.as_u64().unwrap()
    };
    assert_eq!(latency("sip0.cube0.pe0", "sip0.cube0.hbm_ctrl.pe0", 16), 77_000);
    assert_eq!(latency("sip0.cube0.pe0", "sip0.cube0.hbm_ctrl.pe0", 32), 141_000);
    assert_eq!(latency("sip0.cube0.pe1", "sip0.cube0.hbm_ctrl.pe0", 16), 82_000);
    assert_eq!(latency("sip0.cube0.pe0", "sip0.cube15.hbm_ctrl.pe7", 16), 573_000);
    assert_eq!(latency("sip0.cube0.pe0", "sip1.cube0.hbm_ctrl.pe0", 16), 412_000);
}

/// A folder of input files.
struct Files {
    directory: tempfile::TempDir,
}

type Tensor = (&'static str, Dtype, Vec<usize>);

impl Files {
    fn new() -> Files {
        Files { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Tensors whose 16-bit element number `i` is `bits(i)`.
    fn tensors(&self, name: &str, tensors: &[Tensor], bits: impl Fn(usize) -> u16) {
        let bytes = |(_, ty, shape): &Tensor| -> Vec<u8> {
            let n = shape.iter().product::<usize>() * ty.bitsize() / 16;
            (0..n).flat_map(|i| bits(i).to_le_bytes()).collect()
        };
        let data: Vec<Vec<u8>> = tensors.iter().map(bytes).collect();
        let views = tensors.iter().zip(&data);
        let views =
            views.map(|((name, ty, shape), b)| (*name, TensorView::new(*ty, shape.clone(), b).unwrap()));
        fs::write(self.path(name), safetensors::serialize(views, None).unwrap()).unwrap();
    }

    fn run(&self, line: &str) -> Said {
        run_in(self.directory.path(), program(), line)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }
}

fn qkv() -> Vec<Tensor> {
    vec![("q", Dtype::F16, vec![8, 64]), ("k", Dtype::F16, vec![512, 64]), ("v", Dtype::F16, vec![512, 64])]
}

/// Small numbers of either sign, as f16.
fn plain(i: usize) -> u16 {
    0x3400 + (i % 97) as u16 * 8 + ((i % 3) as u16 & 1) * 0x8000
}

#[test]
fn inputs_come_from_a_file_and_outputs_go_to_one() {
    let files = Files::new();
    files.tensors("in.safetensors", &qkv(), plain);
    let line = format!("run gqa-decode-short {SMALL} --json --input in.safetensors --output out.safetensors");
    let first = files.run(&line).json();
    assert_eq!(first["correct"], true);
    let bytes = fs::read(files.path("out.safetensors")).unwrap();
    let out = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let o = out.tensor("o").unwrap();
    assert_eq!((o.dtype(), o.shape()), (Dtype::F16, [8, 64].as_slice()));
    // Again, over the file that is there: the same bytes, and nothing else in the folder.
    files.run(&line);
    assert_eq!(fs::read(files.path("out.safetensors")).unwrap(), bytes);
    assert_eq!(files.names().len(), 2);
}

#[test]
fn nan_and_infinity_in_inputs_are_reported() {
    let files = Files::new();
    let odd = |i: usize| match i {
        327 | 9000 => 0x7e00,
        20 => 0xfc00,
        _ => plain(i),
    };
    files.tensors("nan.safetensors", &qkv(), odd);
    let line = format!("run gqa-decode-short {SMALL} --input nan.safetensors");
    let run = files.run(&line);
    let inputs: Vec<&str> = run.out.lines().filter(|l| l.contains(" holds ")).map(str::trim).collect();
    assert_eq!(
        inputs,
        [
            "inputs     q holds 1 NaN and 1 infinite, first at q[0, 20]",
            "k holds 2 NaN and 1 infinite, first at k[0, 20]",
            "v holds 2 NaN and 1 infinite, first at v[0, 20]"
        ]
    );
    let json: Value = serde_json::from_str(&files.run(&format!("{line} --json")).out).unwrap();
    assert_eq!(json["nan_inputs"][1], json!({"tensor": "k", "nan": 2, "infinite": 1, "first": [0, 20]}));
}

#[test]
fn bad_inputs_leave_nothing_behind() {
    let files = Files::new();
    files.tensors("good", &qkv(), plain);
    let [q, k, v] = [0, 1, 2].map(|i| qkv()[i].clone());
    files.tensors("types", &[("q", Dtype::F32, vec![8, 64]), k.clone(), v.clone()], plain);
    files.tensors(
        "shapes",
        &[q.clone(), ("k", Dtype::F16, vec![64, 512]), ("v", Dtype::F16, vec![512])],
        plain,
    );
    files.tensors("names", &[("Q", Dtype::F16, vec![8, 64]), k, ("values", v.1, v.2)], plain);
    let good = fs::read(files.path("good")).unwrap();
    fs::write(files.path("cut"), &good[..good.len() - 1]).unwrap();
    fs::write(files.path("header"), &good[..50]).unwrap();
    fs::write(files.path("text"), "this is no safetensors file").unwrap();
    fs::write(files.path("latin.yaml"), b"cube:\n  # gr\xf6\xdfer\n").unwrap();
    fs::write(files.path("broken.yaml"), "system: {flit_bytes: 256\ncube: 3\n").unwrap();
    let had = files.names().len();
    let mut text = String::new();
    for options in [
        "--input types",
        "--input shapes",
        "--input names",
        "--input cut",
        "--input header",
        "--input text",
        "--input gone",
        "--input .",
        "--topology latin.yaml",
        "--topology broken.yaml",
        "--topology gone.yaml",
        "--ccl .",
        "--output gone/o.safetensors",
        "--output .",
        "--set d",
        "--set skv=64 h_q=8",
        "--set scale=big",
        "--set kv_per_cube=3",
        "--max-ns 0",
        "--scratch 1KiB",
        "--scratch 1TB",
        "--issue eager",
        "--no-data --output x",
    ] {
        let output = if options.contains("--output") { "" } else { " --output o.safetensors" };
        let said = files.run(&format!("run gqa-decode-short {SMALL} {options}{output}"));
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{options}");
        assert_eq!(files.names().len(), had, "{options} leaves a file");
        text += &format!("$ {options}\n{}\n", said.err);
    }
    for line in [
        "run gqa-decode",
        "run",
        "run --set s_kv=64",
        "log gqa-decode-short --op dma_raed",
        "log gqa-decode-short --pe sip0.cube16",
        "topology --path sip0.cube0.pe0 sip0.cube0.hbm_ctl.pe1",
        "run gqa-decode-short --set s_kv=2147483648 --no-data",
    ] {
        let said = files.run(line);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{line}");
        text += &format!("$ kernbench {line}\n{}\n", said.err);
    }
    snapshot!("bad_inputs", text);
}

#[test]
fn settings_before_the_bench_are_told_apart() {
    let before = kernbench(&format!("run {SMALL} gqa-decode-short --no-data --json")).json();
    assert_eq!((&before["bench"], &before["params"]["s_kv"]), (&json!("gqa-decode-short"), &json!(64)));
}

#[cfg(unix)]
#[test]
fn a_reader_that_leaves_early_is_no_error() {
    use std::io::Read;
    use std::process::Stdio;
    let mut child = Command::new(program())
        .args(["log", "gqa-decode-short", "--set", "s_kv=512"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 6];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let end = child.wait_with_output().unwrap();
    assert_eq!((first, end.status.code(), end.stderr), (*b"launch", Some(0), vec![]));
}
