//! Prints [`Grid`] values within the terminal's width, or writes them as Markdown and CSV.

pub mod grid;

pub use grid::{Column, Grid, GridRow};

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

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

/// Returns the table style that has no lines other than a rule below the head.
pub const fn ruled() -> TableStyle {
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'))
}
