//! The frame of every HTML page, which loads nothing, and its sections, facts and tables.
//!
//! A page with plots holds the script that draws them: uPlot (`vendor/`) and `plot.js`. Its policy
//! allows this script alone, by its hash.

use crate::table::Grid;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use record::escape::printable;
use record::numbers::counted;

const STYLE: &str = include_str!("style.css");
const PLOT_STYLE: &str = include_str!("vendor/uPlot.min.css");
/// The script of a page with plots. On paper a canvas is sharp with two pixels a CSS pixel.
const SCRIPT: &str = concat!(
    "/*\n",
    include_str!("vendor/LICENSE"),
    "*/\ndevicePixelRatio = Math.max(2, devicePixelRatio);\n",
    include_str!("vendor/uPlot.iife.min.js"),
    "\n",
    include_str!("plot.js"),
);
/// SHA-256 of [`SCRIPT`] in base64. A test compares them.
const SCRIPT_HASH: &str = "sha256-r0MQbTV163ZJrZCqeVjjuZsrH+tDIHpq0z5n2bkJmhk=";

/// Wraps a title and content in a complete HTML page with its styles. Its policy makes the browser
/// refuse every request, and every script but that of the plots.
pub fn page(title: &str, subject: &str, dim: &str, content: &Markup) -> String {
    let has_plots = content.0.contains("<figure class=\"plot\"");
    let scripts = if has_plots { format!(" script-src '{SCRIPT_HASH}';") } else { String::new() };
    let policy = format!(
        "default-src 'none';{scripts} style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    );
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { @if has_plots { (PreEscaped(PLOT_STYLE)) } (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    p class="subject" { (subject) }
                    p class="dim" { (dim) }
                }
                main { (content) }
                footer {
                    "Written by bulkhead " (env!("CARGO_PKG_VERSION")) " from the saved results beside this file. "
                    "Percentiles with fewer than ten samples beyond them are left out (–)."
                }
                @if has_plots { script id="plots" { (PreEscaped(SCRIPT)) } }
            }
        }
    };
    printable(&markup.into_string()).into_owned()
}

/// Returns a section of an HTML page with its heading.
pub fn section(id: &str, heading: &str, content: &Markup) -> Markup {
    html! {
        section id=(id) {
            h2 { (heading) }
            p class="hint" { "wider than this screen: swipe sideways →" }
            // Focusable, so that the arrow keys scroll a wide table.
            div class="scroll" tabindex="0" role="group" aria-label=(heading) { (content) }
        }
    }
}

/// Formats names and values in columns, as HTML. The browser balances the columns.
pub fn fact_columns(facts: &[(String, String)]) -> Markup {
    html! { dl { @for (name, text) in facts { div { dt { (name) } dd { (text) } } } } }
}

/// Formats the reasons of a verdict as HTML: folded, so that the figures are on the first screen.
pub fn folded_reasons(reasons: &[String]) -> Markup {
    html! {
        @if !reasons.is_empty() {
            details { summary { (counted(reasons.len() as u64, "reason")) } ul { @for reason in reasons { li { (reason) } } } }
        }
    }
}

/// Returns `true` if a cell's first letter or digit is a digit: `▲ +12`, `< 5 %`.
fn starts_with_figure(cell: &str) -> bool {
    cell.chars().find(|c| c.is_alphanumeric()).is_some_and(|c| c.is_ascii_digit())
}

/// Returns a table as HTML, with its title above and its notes below. Columns of figures are
/// aligned to the right; the answers of a containment table are colored.
pub fn table(grid: &Grid) -> Markup {
    let is_figure = |column: usize| {
        let mut cells = grid.rows.iter().filter_map(|row| row.cells.get(column)).filter(|cell| *cell != "–");
        column >= grid.keys && cells.all(|cell| starts_with_figure(cell))
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
