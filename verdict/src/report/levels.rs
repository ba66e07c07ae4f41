//! Tables of the latencies by isolation level, of runs whose strategies have several.

use super::units::{duration_or_dash as time, short};
use crate::summary::{LevelSummary, Measure, Summary};
use crate::table::Grid;
use merge::crossover::{LevelDifference, Ratio};
use record::units::Nanos;

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

/// Returns the table of each level against the reference; none for a run whose levels did not take
/// turns.
pub(super) fn crossover(summary: &Summary) -> Option<Grid> {
    let found = summary.crossover.as_ref()?;
    let first = found.reference()?.level;
    let ratio = |ratio: Option<Ratio>| ratio.map_or("-".into(), |of| change([of.value, of.low, of.high]));
    let name = |of: &LevelDifference| match of.again {
        0 => of.level.to_string(),
        _ => format!("{} A/A", of.level),
    };
    Some(Grid::from_rows(
        "crossover",
        format!(
            "against {first}, by turns of {} in {} blocks: rt_venue from due, ratio with interval at 95 %",
            Nanos(found.epoch_ns),
            found.blocks
        ),
        1,
        &[
            ("isolation", &|row: &LevelDifference| name(row)),
            ("orders", &|row| short(row.orders)),
            ("p50", &|row| ratio(row.p50)),
            ("p99", &|row| ratio(row.p99)),
            ("orders beyond p99", &|row| ratio(row.beyond_p99)),
        ],
        found.levels.iter().enumerate().filter(|(place, _)| *place != found.reference).map(|(_, row)| row),
    ))
}

/// Formats a ratio with its interval as a change in percent if the interval's upper end is below 2,
/// otherwise as a factor.
pub fn change([value, low, high]: [f64; 3]) -> String {
    let percent = |factor: f64| format!("{:+.1}", (factor - 1.0) * 100.0);
    if high < 2.0 {
        return format!("{} % [{}, {}]", percent(value), percent(low), percent(high));
    }
    format!("× {value:.2} [{low:.2}, {high:.2}]")
}
