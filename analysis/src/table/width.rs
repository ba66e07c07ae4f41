//! How wide a report may be: as the terminal it is printed on, if somebody said so, else 80
//! columns.

use comfy_table::Table;
use std::sync::OnceLock;

/// The width where nobody says otherwise: in a file, in a pipe.
pub const WIDTH: usize = 80;
/// Narrower than that nothing is wrapped any further; wider, lines are hard to read.
const BOUNDS: (usize, usize) = (60, 132);

static COLUMNS: OnceLock<usize> = OnceLock::new();

/// Says how many columns the terminal has; only the first word counts.
pub fn set_width(columns: usize) {
    // Said before: the process has one terminal.
    let _ = COLUMNS.set(columns.clamp(BOUNDS.0, BOUNDS.1));
}

/// No line of a report is wider than this.
pub fn width() -> usize {
    COLUMNS.get().copied().unwrap_or(WIDTH)
}

/// The lines of a table, in parts below each other where it is wider than the terminal: each with
/// the first column.
pub fn fitted(table: &Table) -> Vec<String> {
    parted(table.lines().collect(), table, width())
}

/// Cuts lines that have the columns of a table into parts of so many columns; a column wider than
/// that stays whole.
pub(crate) fn parted(lines: Vec<String>, table: &Table, width: usize) -> Vec<String> {
    // Two spaces between columns: see `table`.
    let widths: Vec<usize> =
        table.column_max_content_widths().into_iter().map(|width| usize::from(width) + 2).collect();
    let total: usize = widths.iter().sum();
    if total <= width + 2 || widths.len() < 3 {
        return lines;
    }
    let starts: Vec<usize> =
        widths.iter().scan(0, |at, width| Some(std::mem::replace(at, *at + width))).collect();
    let mut parts: Vec<Vec<usize>> = vec![Vec::new()];
    let mut used = widths[0];
    for column in 1..widths.len() {
        if used + widths[column] > width + 2 && parts.last().is_some_and(|part| !part.is_empty()) {
            parts.push(Vec::new());
            used = widths[0];
        }
        used += widths[column];
        if let Some(part) = parts.last_mut() {
            part.push(column);
        }
    }
    let slice = |line: &str, column: usize| -> String {
        let text: String = line.chars().skip(starts[column]).take(widths[column]).collect();
        format!("{text:0$}", widths[column])
    };
    let mut all = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            all.push(String::new());
        }
        let cut = |line: &String| {
            let cells = std::iter::once(0).chain(part.iter().copied()).map(|column| slice(line, column));
            let text = cells.collect::<String>();
            // A rule ends where the part does.
            text.trim_end().chars().take(used_by(part, &widths)).collect()
        };
        all.extend(lines.iter().map(cut));
    }
    all
}

fn used_by(part: &[usize], widths: &[usize]) -> usize {
    (widths[0] + part.iter().map(|column| widths[*column]).sum::<usize>()).saturating_sub(2)
}
