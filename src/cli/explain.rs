//! `kernbench explain`: the pages of diagnostic codes.

mod pages;

use super::out;
use kernbench_core::diag::{Diagnostic, Failure, nearest};
use pages::PAGES;

/// Explain a diagnostic code, or list all of them
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  kernbench explain KB0303\n  kernbench explain")]
pub(super) struct Args {
    /// Such as KB0303; KB may be left out
    code: Option<String>,
}

/// What the first two digits say.
const FAMILIES: [(&str, &str); 6] = [
    ("01", "mistakes in a kernel, found while it is recorded"),
    ("02", "findings of the checks on the whole program"),
    ("03", "topology.yaml and ccl.yaml"),
    ("04", "runs that do not come to their end"),
    ("05", "data"),
    ("06", "host program and command line"),
];

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    match &args.code {
        Some(code) => out::print(page(code)?),
        None => out::print(&all()),
    }
}

fn page(text: &str) -> Result<&'static str, Failure> {
    let upper = text.trim().to_uppercase();
    let code = if upper.starts_with("KB") { upper } else { format!("KB{upper:0>4}") };
    if let Some((_, page)) = PAGES.iter().find(|(c, _)| *c == code) {
        return Ok(page);
    }
    let help = match nearest(&code, PAGES.iter().map(|(c, _)| *c)) {
        Some(near) => format!("the nearest is `{near}`; without a code, `explain` lists all"),
        None => "without a code, `explain` lists all".to_owned(),
    };
    Err(Diagnostic::error("KB0640", format!("there is no code `{text}`")).help(help).into())
}

fn all() -> String {
    let mut text = String::new();
    for (family, about) in FAMILIES {
        text += &format!("{}KB{family}xx  {about}\n", if text.is_empty() { "" } else { "\n" });
        for (code, page) in PAGES.iter().filter(|(code, _)| code[2..].starts_with(family)) {
            let title = page.lines().next().and_then(|line| line.split_once(": "));
            text += &format!("  {code}  {}\n", title.map_or("", |(_, title)| title));
        }
    }
    text
}
