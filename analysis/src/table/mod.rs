//! Tables: [`Grid`] values that are printed within the terminal's width, or written as Markdown and
//! CSV.

pub mod grid;
mod width;

pub use grid::{Column, Grid, GridRow};
pub(crate) use width::split_columns;
pub use width::{DEFAULT_WIDTH, fit_to_width, set_width, width};

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

/// Returns the table style without lines other than a rule below the head.
pub const fn ruled() -> TableStyle {
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_table_splits_without_losing_cells() {
        let mut wide = table(ruled(), &["stage", "p50", "p90", "p99", "greatest"]);
        wide.add_row(["orch_pre_dispatch", "1,111 ns", "2,222 ns", "3,333 ns", "44.4 µs"]);
        wide.add_row(["submit", "5 ns", "6 ns", "7 ns", "8 ns"]);
        let lines: Vec<String> = wide.lines().collect();
        for width in [20, 30, 40, 50, 80] {
            let text = split_columns(lines.clone(), &wide, width);
            assert!(width < 40 || text.iter().all(|line| line.chars().count() <= width), "{text:#?}");
            for cell in ["1,111 ns", "2,222 ns", "3,333 ns", "44.4 µs", "greatest"] {
                assert_eq!(
                    text.iter().filter(|line| line.contains(cell)).count(),
                    1,
                    "{cell} of {width}: {text:#?}"
                );
            }
        }
        assert_eq!(split_columns(lines.clone(), &wide, 80), lines);
        let parts = split_columns(lines, &wide, 40);
        assert_eq!(parts.iter().filter(|line| line.starts_with("orch_pre_dispatch")).count(), 2);
        assert_eq!(parts.iter().filter(|line| line.starts_with('─')).count(), 2);
    }
}
