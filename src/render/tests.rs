//! What diagnostics look like.

use super::*;
use insta::assert_snapshot;

fn text(file: &str, span: Range<usize>) -> Place {
    Place::Text { file: file.to_owned(), span }
}

fn source(line: u32, column: u32) -> Place {
    Place::Source { file: "kernel.rs".to_owned(), line, column }
}

fn shown(diagnostics: &[Diagnostic]) -> String {
    let mut texts = Texts::default();
    texts.add("machine.yaml", "cube:\n  noc:\n    w: 6\n    w: 7\n");
    texts.add("kernel.rs", "fn k() {\n    let x = tl::load(q);\n    tl::store(o, é);\n}\n");
    render(diagnostics, &texts, false, "kernbench")
}

#[test]
fn carets_stand_under_texts_and_calls() {
    let twice = Diagnostic::error("KB0302", "key `w` is given twice")
        .at(text("machine.yaml", 27..28), "given again")
        .at(text("machine.yaml", 18..19), "first given here")
        .help("remove one of the two");
    let kernel =
        Diagnostic::warning("KB0208", "`x` is never used").at(source(2, 13), "`x`").at(source(3, 18), "");
    assert_snapshot!(shown(&[twice, kernel]), @r#"
    error[KB0302]: key `w` is given twice
     --> machine.yaml:4:6
      |
    3 |     w: 6
      |      - first given here
    4 |     w: 7
      |      ^ given again
      |
      = help: remove one of the two

    warning[KB0208]: `x` is never used
     --> kernel.rs:2:13
      |
    2 |     let x = tl::load(q);
      |             ^^^^^^^^ `x`
    3 |     tl::store(o, é);
      |                  -

    1 error and 1 warning; run `kernbench explain CODE` for more about one, such as KB0302
    "#);
}

#[test]
fn places_that_are_not_there_are_named() {
    let d = Diagnostic::error("KB0401", "deadlock")
        .at(source(90, 1), "pe0 waits")
        .at(text("gone.yaml", 3..4), "")
        .at(text("machine.yaml", 400..500), "past the end");
    assert_snapshot!(shown(&[d]), @r#"
    error[KB0401]: deadlock
     --> kernel.rs:90:1
      = note: pe0 waits
     ::: gone.yaml
      |
     ::: machine.yaml:4:10
      |
    4 |     w: 7
      |         - past the end

    1 error; run `kernbench explain KB0401` for more
    "#);
    assert_eq!(shown(&[]), "");
}

#[test]
fn the_closing_line_counts() {
    let (a, b) = (Diagnostic::error("KB0101", "a"), Diagnostic::warning("KB0102", "b"));
    assert_snapshot!(closing(&[b.clone(), a.clone(), a], "kernbench"), @r#"2 errors and 1 warning; run `kernbench explain CODE` for more about one, such as KB0101"#);
    assert_snapshot!(closing(&[b], "mine"), @"1 warning; run `mine explain KB0102` for more");
}
