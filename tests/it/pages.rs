//! Every diagnostic code has a page, and every page a code that the sources use.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Codes in the sources under a folder, tests and the list of pages apart.
fn codes(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() && name != "tests" {
            codes(&entry, found);
        } else if name.ends_with(".rs") && name != "tests.rs" && name != "pages.rs" {
            let text = fs::read_to_string(&entry).unwrap();
            let code = text.split("mod tests {").next().unwrap();
            for (at, _) in code.match_indices("\"KB") {
                let code = &code[at + 1..];
                found.insert(code[..code.find('"').unwrap()].to_owned());
            }
        }
    }
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let mut used = BTreeSet::new();
    for folder in ["src", "kernbench-core/src", "kernbench-kernels/src"] {
        codes(&root().join(folder), &mut used);
    }
    used.retain(|code| code.len() == 6 && code[2..].bytes().all(|b| b.is_ascii_digit()));
    let pages: BTreeSet<String> = fs::read_dir(root().join("docs/diagnostics"))
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().trim_end_matches(".md").to_owned())
        .collect();
    let list = fs::read_to_string(root().join("src/cli/explain/pages.rs")).unwrap();
    let listed: BTreeSet<String> = list
        .lines()
        .filter_map(|l| l.trim().strip_prefix("\"KB"))
        .map(|l| format!("KB{}", &l[..4]))
        .collect();
    let minus =
        |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).cloned().collect::<Vec<_>>().join(" ");
    let none = String::new();
    assert_eq!(minus(&used, &pages), none, "codes without a page in docs/diagnostics");
    assert_eq!(minus(&pages, &used), none, "pages whose code nothing uses");
    assert_eq!(minus(&pages, &listed), none, "pages that src/cli/explain/pages.rs does not list");
}

#[test]
fn a_page_begins_with_its_code_and_title() {
    for page in fs::read_dir(root().join("docs/diagnostics")).unwrap().map(|e| e.unwrap().path()) {
        let code = page.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&page).unwrap();
        let title = text.lines().next().unwrap_or_default();
        assert!(title.starts_with(&format!("# {code}: ")) && title.len() > 12, "{code}: `{title}`");
        assert!(text.lines().count() >= 9, "{code} says too little");
    }
}

#[test]
fn the_kernel_of_the_readme_is_the_one_that_runs() {
    let read = |path| fs::read_to_string(root().join(path)).unwrap();
    let readme = read("README.md");
    let kernel = readme.split("```rust\n").nth(1).and_then(|t| t.split("```").next()).unwrap();
    assert!(read("kernbench-kernels/src/attention/short.rs").contains(kernel.trim()));
}
