//! The columns that the tables of a bill share, with their unit.

use super::{Bill, BillRow};
use crate::experiment::time_unit::TimeUnit;
use crate::numbers::{duration_or_dash, plain, short};
use crate::table::Column;
use crate::units::human_bytes;

/// The columns of a table with one row for each isolation level and technique of a bill.
pub(super) type BillColumns<'a> = Vec<Column<'a, BillRow>>;

/// Returns the columns with the costs of an isolation level besides latency: CPU, memory and
/// others.
pub(super) fn cost_columns<'a>(bill: &Bill) -> BillColumns<'a> {
    let mut costs: BillColumns<'a> = vec![
        ("CPU s/M", &|row| row.cpu_s_per_million.map_or_else(|| "–".into(), plain)),
        ("start", &|row| time_or_dash(row.startup_ns)),
        ("PSS", &|row| row.pss_bytes.map_or_else(|| "–".into(), |bytes| human_bytes(bytes as u64))),
        ("faults", &|row| count_or_dash(row.page_faults)),
        ("switches", &|row| count_or_dash(row.context_switches)),
    ];
    // This column is there once there is something in it.
    if bill.rows.iter().any(|row| row.contains.is_some()) {
        costs.push(("contains", &|row| row.contains.clone().unwrap_or_else(|| "–".into())));
    }
    costs
}

/// Returns the time unit of all latencies in the tables of `launcher bill`.
pub(super) fn latency_unit(bill: &Bill) -> TimeUnit {
    let of =
        |row: &BillRow| [row.p50_ns, row.p99_ns, row.p999_ns, row.stall_free_p99_ns, row.stall_free_p999_ns];
    TimeUnit::for_durations(bill.rows.iter().flat_map(of).flatten())
}

pub(super) fn time_or_dash(ns: Option<f64>) -> String {
    duration_or_dash(ns.map(|ns| ns as u64))
}

pub(super) fn count_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |value| short(value.round() as u64))
}
