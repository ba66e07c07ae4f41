//! Prints [`Grid`] values within the terminal's width, or writes them as Markdown and CSV.

pub mod grid;

pub use grid::{Column, Grid, GridRow};

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use std::sync::OnceLock;

/// Creates an empty table for the terminal or Markdown, with a text column first and then numbers.
pub fn table(style: TableStyle, columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(style);
    table.set_header(columns.iter().copied());
    let is_markdown = style == comfy_table::presets::ASCII_MARKDOWN;
    for (index, column) in table.column_iter_mut().enumerate() {
        if !is_markdown {
            column.set_padding((0, u16::from(index + 1 < columns.len())));
        }
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Returns the table style without lines other than a rule below the head.
pub const fn ruled() -> TableStyle {
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'))
}

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
