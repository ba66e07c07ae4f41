//! Table of the latencies by isolation level, of runs whose strategies have several.

use super::units::{duration_or_dash as time, short};
use crate::summary::{LevelSummary, Measure, Summary};
use crate::table::Grid;

/// Returns the table of isolation levels; none for a run with one.
pub(super) fn grid(summary: &Summary) -> Option<Grid> {
    let of = |row: &LevelSummary, measure| row.measure(measure);
    let rows = Grid::from_rows(
        "levels",
        "by isolation level, in one run: rt_venue from due; from the send; from due without steal",
        1,
        &[
            ("isolation", &|row: &LevelSummary| row.level.to_string()),
            ("strategies", &|row| row.strategies.to_string()),
            ("orders", &|row| short(of(row, Measure::RtVenue).count)),
            ("p50", &|row| time(of(row, Measure::RtVenueFromDue).p50_ns)),
            ("p99", &|row| time(of(row, Measure::RtVenueFromDue).p99_ns)),
            ("p99.9", &|row| time(of(row, Measure::RtVenueFromDue).p999_ns)),
            ("sent p50", &|row| time(of(row, Measure::RtVenue).p50_ns)),
            ("sent p99", &|row| time(of(row, Measure::RtVenue).p99_ns)),
            ("no steal p99", &|row| time(of(row, Measure::WithoutSteal).p99_ns)),
        ],
        summary.levels.iter(),
    );
    (!summary.levels.is_empty()).then_some(rows)
}
