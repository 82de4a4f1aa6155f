//! The table of modules in ARCHITECTURE.md is what the sources do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Uses = BTreeMap<String, BTreeSet<String>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Rows `| module | may use | .. |` of the table of kernbench-core.
fn documented() -> Uses {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("## Modules of kernbench-core").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|l| l.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let uses = cells[1].split(", ").filter(|u| !u.is_empty()).map(str::to_owned).collect();
        (cells[0].trim_matches('`').to_owned(), uses)
    })
    .collect()
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Which modules the code of each module names after `crate::`, tests and comments aside.
fn found(modules: &BTreeSet<String>) -> Uses {
    let src = root().join("kernbench-core/src");
    let mut files = vec![];
    sources(&src, &mut files);
    let mut uses: Uses = modules.iter().map(|m| (m.clone(), BTreeSet::new())).collect();
    for file in files {
        let relative = file.strip_prefix(&src).unwrap();
        let first = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let is_test = relative.iter().any(|p| p == "tests" || p == "tests.rs" || p == "carets.rs");
        if first == "lib" || is_test {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for line in code.lines().filter(|l| !l.trim_start().starts_with("//")) {
            for part in line.split("crate::").skip(1) {
                let name: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if modules.contains(&name) && name != first {
                    uses.get_mut(&first).unwrap_or_else(|| panic!("`{first}` has no row")).insert(name);
                }
            }
        }
    }
    uses
}

#[test]
fn modules_use_what_the_architecture_says() {
    let documented = documented();
    let modules: BTreeSet<String> = documented.keys().cloned().collect();
    let found = found(&modules);
    assert_eq!(found, documented);
}

#[test]
fn arrows_point_from_later_to_earlier_modules() {
    let text = std::fs::read_to_string(root().join("kernbench-core/src/lib.rs")).unwrap();
    let order: Vec<&str> = text
        .lines()
        .filter_map(|l| l.strip_prefix("pub mod ").or_else(|| l.strip_prefix("mod ")))
        .filter_map(|l| l.strip_suffix(';'))
        .collect();
    let position = |m: &str| order.iter().position(|o| *o == m).unwrap_or_else(|| panic!("no module {m}"));
    for (module, uses) in documented() {
        for used in uses {
            assert!(position(&used) < position(&module), "`{module}` uses `{used}`, which comes later");
        }
    }
}
