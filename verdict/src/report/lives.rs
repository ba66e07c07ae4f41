//! Report of the incarnations of strategies that had several, or that an operator added.

use super::incidents::{life_name, shortened};
use super::strategies::display_name;
use super::units::{count, duration_or_dash as time, short};
use crate::summary::{LifeSummary, Summary};
use crate::table::Grid;

/// Returns the table of lives, at most `max` of them; none if no strategy had more than one.
pub(super) fn grid(summary: &Summary, max: usize) -> Option<Grid> {
    if summary.lives.is_empty() {
        return None;
    }
    let seconds = |ns: u64| format!("{:.3}", ns as f64 / 1e9);
    let grid = Grid::from_rows(
        "lives",
        "lives of strategies: what ran from when to when, and rt_venue of its orders",
        2,
        &[
            ("life", &|row: &LifeSummary| life_name(row.strategy, row.epoch)),
            ("program", &|row| display_name(&row.kind)),
            ("from (s)", &|row| seconds(row.from_ns)),
            ("to (s)", &|row| row.to_ns.map_or_else(|| "end".into(), seconds)),
            ("sent", &|row| short(row.sent)),
            ("returned", &|row| short(row.returned)),
            ("p50", &|row| time(row.rt_venue.p50_ns)),
            ("p99", &|row| time(row.rt_venue.p99_ns)),
            ("ended", &|row| row.ended.as_deref().map_or_else(|| "–".into(), shortened)),
        ],
        summary.lives.iter().take(max),
    );
    let hidden = summary.lives.len().saturating_sub(max);
    Some(match hidden {
        0 => grid,
        hidden => grid.note(format!("… and {} more: see summary.json", count(hidden as u64))),
    })
}
