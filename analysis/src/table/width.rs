//! Width of reports: that of the terminal if it was set, else 80 columns.

use comfy_table::Table;
use std::sync::OnceLock;

/// Default width of a report in columns, for files and pipes.
pub const DEFAULT_WIDTH: usize = 80;
/// Minimum and maximum width: longer lines are hard to read.
const BOUNDS: (usize, usize) = (60, 132);

static COLUMNS: OnceLock<usize> = OnceLock::new();

/// Sets the terminal's width in columns for all later reports. Only the first call has an effect.
pub fn set_width(columns: usize) {
    // Set already: the process has one terminal.
    let _ = COLUMNS.set(columns.clamp(BOUNDS.0, BOUNDS.1));
}

/// Returns the maximum width of a report's line in columns.
pub fn width() -> usize {
    COLUMNS.get().copied().unwrap_or(DEFAULT_WIDTH)
}

/// Returns a table's lines, split into pieces below each other if it exceeds the terminal. Each
/// piece has the first column.
pub fn fit_to_width(table: &Table) -> Vec<String> {
    split_columns(table.lines().collect(), table, width())
}

/// Splits the lines of a table into pieces of at most `width` columns; a wider table column stays
/// whole.
pub(crate) fn split_columns(lines: Vec<String>, table: &Table, width: usize) -> Vec<String> {
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
            // A rule ends with its part.
            text.trim_end().chars().take(used_by(part, &widths)).collect()
        };
        all.extend(lines.iter().map(cut));
    }
    all
}

fn used_by(part: &[usize], widths: &[usize]) -> usize {
    (widths[0] + part.iter().map(|column| widths[*column]).sum::<usize>()).saturating_sub(2)
}
