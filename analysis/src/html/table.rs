//! A table of a report as it is printed.

use crate::report::grid::Grid;
use maud::{Markup, html};

/// The table; `class` says how a cell looks.
pub(super) fn table(grid: &Grid, class: impl Fn(&str) -> &'static str) -> Markup {
    html! {
        table {
            caption { (grid.title) }
            thead { tr { @for head in &grid.head { th { (head) } } } }
            tbody { @for row in &grid.rows { tr {
                @for (number, cell) in row.cells.iter().enumerate() {
                    @if number < grid.keys { th scope="row" { (cell) } } @else { td class=(class(cell)) { (cell) } }
                }
            } } }
        }
    }
}

/// A table of figures, to the right, with its notes below.
pub(super) fn figures(grid: &Grid) -> Markup {
    html! {
        table {
            caption { (grid.title) }
            thead { tr { @for (number, head) in grid.head.iter().enumerate() {
                th class=(if number < grid.keys { "" } else { "n" }) { (head) }
            } } }
            tbody { @for row in &grid.rows { tr {
                @for (number, cell) in row.cells.iter().enumerate() {
                    @if number < grid.keys { th scope="row" { (cell) } } @else { td class="n" { (cell) } }
                }
            } } }
        }
        @for note in &grid.notes { p class="note" { (note) } }
    }
}
