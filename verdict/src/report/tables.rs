//! The tables of measures and of threads in a run's report.

use super::units::{count, duration, duration_or_dash as time, percent, short};
use crate::summary::{Distribution, Measure, Summary, ThreadSummary};
use crate::table::{Column, Grid};
pub use crate::table::{ruled, table};
use protocol::flow::StageInfo;

pub(super) const PERCENTILES: [Column<'static, Distribution>; 6] = [
    ("p50", &|row| time(row.p50_ns)),
    ("p90", &|row| time(row.p90_ns)),
    ("p99", &|row| time(row.p99_ns)),
    ("p99.9", &|row| time(row.p999_ns)),
    ("p99.99", &|row| time(row.p9999_ns)),
    ("max", &|row| time(row.max_ns)),
];

/// Returns the table of a run's measured durations, each with its percentiles. Names are the keys
/// of the summary, and `stall-free` shows the share of orders that it covers. With `is_full`, what
/// each measure is, and at the end the minimum and the number of its samples: the percentiles are
/// what a narrow screen shows.
pub fn measures(summary: &Summary, is_full: bool) -> Grid {
    let name = |measure: &Measure| match (measure, &summary.stall_free) {
        // A part is listed below the measure that it is part of.
        (Measure::Exchange(_), _) => format!("· {}", measure.name()),
        (Measure::StallFree, Some(free)) => {
            format!("· stall-free on {}", percent(Some(1.0 - free.excluded_share)))
        }
        (Measure::WithoutSteal, _) => "· without steal".into(),
        _ => measure.name().to_owned(),
    };
    let percentiles =
        PERCENTILES.map(|(head, cell)| (head, move |row: &Measure| cell(&summary.distribution(*row))));
    let mut columns: Vec<Column<'_, Measure>> = vec![("stage", &name)];
    let samples = |row: &Measure| count(summary.distribution(*row).count);
    let minimum = |row: &Measure| time(summary.distribution(*row).min_ns);
    let explanation: Column<'_, Measure> = ("what it is", &meaning);
    let extremes: [Column<'_, Measure>; 2] = [("min", &minimum), ("orders", &samples)];
    columns.extend([explanation].into_iter().filter(|_| is_full));
    columns.extend(percentiles.iter().map(|(head, cell)| (*head, cell as _)));
    columns.extend(extremes.into_iter().filter(|_| is_full));
    let all: Vec<Measure> = summary.measures().collect();
    let mut grid = Grid::from_rows("measures", "", 1, &columns, &all);
    for (row, measure) in grid.rows.iter_mut().zip(&all) {
        if [Measure::RoundTrip, Measure::RtVenue].contains(measure) {
            row.best = (0..row.cells.len()).collect();
        }
    }
    grid
}

fn meaning(measure: &Measure) -> String {
    let description = match measure {
        Measure::Stage(stage) => {
            let StageInfo { from, to, meaning, .. } = stage.info();
            return format!("{meaning}, {} − {}", to.name(), from.name());
        }
        Measure::Exchange(part) => return format!("part of venue_service: {}", part.info().meaning),
        Measure::RoundTrip => "t8 − t1",
        Measure::RtVenue => "round trip less the venue",
        Measure::RtVenueFromDue => "the same, from when it was due",
        Measure::SendLag => "how late the order was sent, t1 − due",
        Measure::GatewayLateness => "how late the gateway was, t5 − release",
        Measure::TickToTrade => "t1 − the write of the touch that triggered the order",
        Measure::TickToExchange => "from that write until the exchange has the order",
        Measure::StallFree => "rt_venue of orders that no stall of the machine touched",
        Measure::WithoutSteal => "from due, of orders that no steal touched",
    };
    description.into()
}

/// Returns the table of at most `max` threads: those of the engine, then the most disturbed
/// strategies.
pub(super) fn threads(summary: &Summary, max: usize) -> Grid {
    let (shown, hidden) = listed_threads(summary, max);
    let restarts = |thread: &ThreadSummary| thread.restarts(&summary.incidents);
    let name = |thread: &&ThreadSummary| thread.role.clone() + if restarts(thread) > 0 { " *" } else { "" };
    let mut grid = Grid::from_rows(
        "threads",
        "",
        1,
        &[
            ("thread", &name),
            ("core", &|row: &&ThreadSummary| row.core.map_or_else(|| "–".into(), |core| core.to_string())),
            ("stamps", &|row| short(row.records)),
            ("vol", &|row| short(row.voluntary_switches)),
            ("invol", &|row| short(row.involuntary_switches)),
            ("faults", &|row| short(row.minor_faults.saturating_add(row.major_faults))),
            ("cpu", &|row| duration(row.cpu_ns)),
            ("max gap", &|row| duration(row.longest_gap_ns)),
            ("busy", &|row| percent(row.utilization)),
        ],
        &shown,
    );
    if summary.processes.iter().any(|thread| restarts(thread) > 0) {
        grid = grid.note("*: started again: all but stamps is of its last incarnation");
    }
    if hidden > 0 {
        let hidden = count(hidden as u64);
        grid = grid.note(format!("… and {hidden} strategies with shorter gaps: see summary.json"));
    }
    grid
}

/// Returns the listed threads in the order of the plan, and the number of omitted ones.
fn listed_threads(summary: &Summary, max: usize) -> (Vec<&ThreadSummary>, usize) {
    let threads = &summary.processes;
    if threads.len() <= max {
        return (threads.iter().collect(), 0);
    }
    let is_strategy = |thread: &ThreadSummary| thread.role.starts_with("strategy-");
    let (mut strategies, mut shown): (Vec<usize>, Vec<usize>) =
        (0..threads.len()).partition(|index| is_strategy(&threads[*index]));
    strategies.sort_by_key(|index| std::cmp::Reverse(threads[*index].longest_gap_ns));
    strategies.truncate(max.saturating_sub(shown.len()).max(3));
    shown.extend(strategies);
    shown.sort_unstable();
    let hidden = threads.len() - shown.len();
    (shown.into_iter().map(|index| &threads[index]).collect(), hidden)
}
