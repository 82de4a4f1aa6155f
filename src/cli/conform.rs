//! `kernbench conform`: runs the cases of an outside suite through the simulated machine.

mod case;

use super::{Session, files, out};
use case::Case;
use clap::ValueHint;
use kernbench_core::diag::{Diagnostic, Failure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a folder of attention cases on the simulated machine and compare with their outputs
#[derive(clap::Args)]
#[command(after_help = "\
The folder holds `manifest.json` and a safetensors file for each case, `in.*` and `out.*` of the ONNX operator
Attention. A case that cannot be expressed fails with the reason. Exit code 0 only if all pass.")]
pub(super) struct Args {
    /// Folder of the cases
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,
    /// Only cases whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Manifest {
    cases: Vec<Case>,
}

/// How a case went.
#[derive(Serialize)]
struct Row {
    case: String,
    passed: bool,
    /// The error that is largest beside its bound, the bound there, and where.
    max_error: Option<f64>,
    bound: Option<f64>,
    at: Option<String>,
    reason: Option<String>,
}

#[derive(Serialize)]
struct Summary {
    passed: usize,
    failed: usize,
    cases: Vec<Row>,
}

pub(super) fn run(args: &Args, session: &mut Session<'_>) -> Result<ExitCode, Failure> {
    let path = args.directory.join("manifest.json");
    let text = files::read_text(&path, "manifest", session)?;
    let manifest: Manifest = serde_json::from_str(&text).map_err(|error| {
        let text = format!("manifest `{}` is not as expected: {error}", files::name(&path));
        Diagnostic::error("KB0663", text)
            .help("write `{\"cases\": [{case, opset, attributes, bool_mask, tensors, rtol, atol}]}`")
    })?;
    let mut cases = manifest.cases;
    cases.retain(|case| case.case.contains(&args.only));
    if cases.is_empty() {
        let text = format!("`{}` has no case whose name contains `{}`", files::name(&path), args.only);
        return Err(Diagnostic::error("KB0663", text).help("leave `--only` out to run all cases").into());
    }
    let rows: Vec<Row> = cases.par_iter().map(|case| row(case, args)).collect();
    let passed = rows.iter().filter(|row| row.passed).count();
    let summary = Summary { passed, failed: rows.len() - passed, cases: rows };
    if args.json {
        let text = serde_json::to_string_pretty(&summary).unwrap_or_default();
        out::print(&(text + "\n"))?;
    } else {
        out::print(&table(&summary))?;
    }
    Ok(ExitCode::from(u8::from(summary.failed > 0)))
}

fn row(case: &Case, args: &Args) -> Row {
    let name = case.case.clone();
    match case.run(&args.directory) {
        Ok(worst) => Row {
            case: name,
            passed: worst.passed,
            max_error: worst.error.is_finite().then_some(worst.error),
            bound: Some(worst.bound),
            at: Some(worst.at.clone()),
            reason: (!worst.passed).then_some(worst.reason),
        },
        Err(reason) => {
            Row { case: name, passed: false, max_error: None, bound: None, at: None, reason: Some(reason) }
        }
    }
}

fn table(summary: &Summary) -> String {
    let number = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.2e}"));
    let rows: Vec<Vec<String>> = summary
        .cases
        .iter()
        .map(|row| {
            let verdict = if row.passed { "passed" } else { "FAILED" };
            let why = row.reason.clone().or_else(|| row.at.clone()).unwrap_or_default();
            vec![row.case.clone(), verdict.to_owned(), number(row.max_error), number(row.bound), why]
        })
        .collect();
    let table = out::table(&["case", "", "error", "bound", "where"], &rows, &[2, 3]);
    format!("{table}\n{} passed, {} failed\n", summary.passed, summary.failed)
}
