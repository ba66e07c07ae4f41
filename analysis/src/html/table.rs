//! Formats a table as HTML.

use crate::table::Grid;
use maud::{Markup, html};

/// Returns a table as HTML, with its title above and its notes below. Columns of figures are
/// aligned to the right; the answers of a containment table are colored.
pub(super) fn table(grid: &Grid) -> Markup {
    let is_figure = |column: usize| {
        let mut cells = grid.rows.iter().filter_map(|row| row.cells.get(column)).filter(|cell| *cell != "–");
        column >= grid.keys && cells.all(|cell| cell.contains(|c: char| c.is_ascii_digit()))
    };
    let is_wordy =
        |column: usize| grid.rows.iter().any(|row| row.cells.get(column).is_some_and(|cell| cell.len() > 40));
    let side = |column: usize| match column {
        _ if is_figure(column) => "n",
        _ if column >= grid.keys && is_wordy(column) => "wordy",
        _ => "",
    };
    let class = |column: usize, cell: &str| match cell {
        "yes" => "good",
        "late" => "warn",
        "NO" => "bad",
        _ => side(column),
    };
    html! {
        table {
            @if !grid.title.is_empty() { caption { (grid.title) } }
            thead { tr { @for (column, head) in grid.head.iter().enumerate() { th class=(side(column)) { (head) } } } }
            tbody { @for row in &grid.rows { tr {
                @for (column, cell) in row.cells.iter().enumerate() {
                    @if column < grid.keys { th scope="row" { (cell) } }
                    @else { td class=(class(column, cell)) { @if row.best.contains(&column) { b { (cell) } } @else { (cell) } } }
                }
            } } }
        }
        @for note in &grid.notes { p class="note" { (note) } }
    }
}
