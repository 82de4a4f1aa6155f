//! Results on stdout: buffered, and quiet when the reader has gone.

use comfy_table::{CellAlignment, Table, presets};
use kernbench_core::diag::{Diagnostic, Failure};
use std::io::{self, BufWriter, ErrorKind, Write};

/// Writes results. A closed pipe (`| head`) ends them quietly.
///
/// # Errors
/// `KB0619`: stdout takes no more, as on a full disk.
pub(super) fn results(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Diagnostic::error("KB0619", format!("the results cannot be written to stdout: {e}"))
                .help("make room, or send them elsewhere with `> FILE` or `| less`")
                .into())
        }
        _ => Ok(()),
    }
}

/// Writes a text as [`results`] does.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    results(|out| out.write_all(text.as_bytes()))
}

/// Rows in columns, indented by two; the columns in `right` are aligned right.
pub(super) fn table(header: &[&str], rows: &[Vec<String>], right: &[usize]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if !header.is_empty() {
        table.set_header(header.to_vec());
    }
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
        if right.contains(&column.index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("  {}", line.trim_end()).trim_end().to_owned() + "\n").collect()
}
