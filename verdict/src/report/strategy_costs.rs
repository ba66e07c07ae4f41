//! The tables of the costs of strategies at each isolation level besides latency.

use super::units::{duration_or_dash, plain, short};
use crate::summary::{StrategyCosts, Summary};
use crate::table::{Column, Grid};

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), plain)
}

/// Formats a number of bytes in whole KiB.
pub fn kibibytes(bytes: f64) -> String {
    format!("{:.0} KiB", bytes / 1024.0)
}

fn size(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "–".into(), kibibytes)
}

fn time(ns: Option<f64>) -> String {
    duration_or_dash(ns.map(|ns| ns as u64))
}

fn count(value: f64) -> String {
    short(value.round() as u64)
}

/// The columns of the first table of strategies' costs: CPU time, memory, start and restart.
pub const USAGE: [Column<'static, StrategyCosts>; 7] = [
    ("CPU s/M", &|row| number(row.cpu_s_per_million)),
    ("idle CPU", &|row| number(row.idle_cpu)),
    ("private", &|row| size(row.private_bytes)),
    ("shared", &|row| size(row.shared_bytes)),
    ("tables", &|row| size(row.page_table_bytes)),
    ("start", &|row| time(row.startup_ns)),
    ("restart", &|row| time(row.restart_ns)),
];

/// The columns of the second table of strategies' costs: page faults, context switches and cache
/// misses.
pub const EVENTS: [Column<'static, StrategyCosts>; 5] = [
    ("faults", &|row| count(row.minor_faults)),
    ("voluntary", &|row| count(row.voluntary_switches)),
    ("preempted", &|row| count(row.involuntary_switches)),
    ("dTLB/order", &|row| number(row.dtlb_misses)),
    ("LLC/order", &|row| number(row.last_level_misses)),
];

/// The note below the table of strategies' CPU time, memory, start and restart.
pub const USAGE_NOTE: &str = "CPU s/M: of strategies for a million of their orders; idle CPU: seconds for each second without work; \
                                     memory of a strategy's process (a thread has none of its own)";

/// Returns the tables of a run's report; none for summaries without costs.
pub(super) fn grids(summary: &Summary) -> Vec<Grid> {
    if summary.costs.is_empty() {
        return Vec::new();
    }
    let keys: [Column<'_, StrategyCosts>; 2] =
        [("level", &|row| row.isolation.to_string()), ("strategies", &|row| row.strategies.to_string())];
    let grid = |name, title, columns: &[Column<'_, StrategyCosts>]| {
        Grid::from_rows(name, title, 2, &[&keys, columns].concat(), &summary.costs)
    };
    let usage =
        grid("strategy_costs", "what a strategy costs: CPU time, memory, start", &USAGE).note(USAGE_NOTE);
    let events = grid("strategy_events", "events of a strategy, and misses for each of its orders", &EVENTS);
    let absent = summary.misses_absent.as_ref().map(|why| format!("misses: {why}"));
    vec![usage, absent.into_iter().fold(events, Grid::note)]
}
