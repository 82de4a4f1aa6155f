//! Every mistake of recording, checking and the host: its message, and that the mended form passes.

mod composite;
mod host;
mod limits;
mod record;
mod shapes;
mod verify;

use kernbench::diag::{Diagnostic, Failure, Place};
use kernbench::host::{Context, LaunchOptions, Tensor};
use kernbench::ndarray::Array2;
use kernbench::placement::Placement;
use kernbench::topology::Topology;

/// The default machine: 2 SIPs of 4 x 4 cubes of 4 x 2 PEs.
fn context() -> Context {
    Context::new(Topology::default_machine())
}

/// `x[i, j] = i * n + j` on PE 0.
fn counted(ctx: &Context, shape: [usize; 2], name: &str) -> Tensor<f32> {
    counted_on(ctx, shape, Placement::replicated().on(1, 1), name)
}

fn counted_on(ctx: &Context, [m, n]: [usize; 2], placement: Placement, name: &str) -> Tensor<f32> {
    let array = Array2::from_shape_fn((m, n), |(i, j)| (i * n + j) as f32);
    ctx.from_array(&array, placement, name).unwrap()
}

/// The text of diagnostics with file names for paths and `L:C` for lines and columns.
fn text<'a>(found: impl IntoIterator<Item = &'a Diagnostic>) -> String {
    let without_lines = |d: &Diagnostic| {
        let mut d = d.clone();
        for label in &mut d.labels {
            if let Place::Source { file, line, column } = &mut label.place {
                *file = file.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
                (*line, *column) = (0, 0);
            }
        }
        d.to_string().replace(":0:0", ":L:C")
    };
    found.into_iter().map(without_lines).collect::<Vec<_>>().join("\n")
}

/// The message of what has to fail.
#[track_caller]
fn message<T: std::fmt::Debug>(outcome: Result<T, Failure>) -> String {
    text(&outcome.expect_err("it has to fail").0)
}

/// Launches on a grid of cubes x PEs.
fn on(cubes: usize, pes: usize) -> LaunchOptions {
    LaunchOptions { grid: Some([cubes, pes]), ..LaunchOptions::default() }
}

#[test]
fn pages_show_the_messages_that_the_tests_see() {
    let seen = [
        include_str!("diagnostics/composite.rs"),
        include_str!("diagnostics/limits.rs"),
        include_str!("diagnostics/record.rs"),
        include_str!("diagnostics/shapes.rs"),
        include_str!("diagnostics/verify.rs"),
        include_str!("diagnostics/host.rs"),
    ]
    .concat();
    let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/diagnostics");
    let mut codes: Vec<&str> = seen.split("[KB").skip(1).filter_map(|s| s.get(..4)).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), 42, "19 of recording, 11 of the checks, 11 of the host, and KB0502");
    for code in codes.into_iter().filter(|&code| code != "0502") {
        let page = std::fs::read_to_string(format!("{pages}/KB{code}.md")).unwrap();
        assert!(page.starts_with(&format!("# KB{code}: ")), "the title of KB{code}");
        let mut messages = 0;
        for line in page.lines().filter(|l| l.starts_with("error[") || l.starts_with("warning[")) {
            assert!(seen.contains(line), "KB{code} shows a message of its own: {line}");
            messages += 1;
        }
        assert!(messages > 0, "KB{code} shows a message");
    }
}
