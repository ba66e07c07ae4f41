//! The table of a run's latency percentiles with and without the orders that stalls affected.

use crate::table::Grid;
use merge::tail::{Tail, TailPercentiles};
use record::numbers::{duration_or_dash, percent};

/// Returns the table of the run's latency percentiles with and without the orders that stalls
/// affected.
pub fn stall_free_grid(tail: &Tail) -> Grid {
    let free = tail.orders.saturating_sub(tail.stall_affected);
    let rows = [("all", tail.all, tail.orders), ("untouched by the machine's stalls", tail.stall_free, free)];
    let share = |of: &(&str, TailPercentiles, u64)| percent(Some(of.2 as f64 / tail.orders.max(1) as f64));
    Grid::from_rows(
        "stall_free",
        "",
        1,
        &[
            ("rt_venue of orders", &|of: &(&str, TailPercentiles, u64)| of.0.to_owned()),
            ("p50", &|of| duration_or_dash(of.1.p50_ns)),
            ("p99", &|of| duration_or_dash(of.1.p99_ns)),
            ("p99.9", &|of| duration_or_dash(of.1.p999_ns)),
            ("share", &share),
        ],
        &rows,
    )
    .note("an order is left out if a gap of a thread, or the backlog after one, touched it: never by its own latency")
}
