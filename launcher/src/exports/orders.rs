//! `orders.csv`: a row for each order with its stamps, for DuckDB, Polars, pandas and spreadsheets.

use anyhow::Result;
use merge::MergedRun;
use protocol::flow::PATH;
use protocol::index::GatewayIndex;
use protocol::stamps::Point;
use record::run::RunRecord;
use std::io::Write;
use verdict::summary::to_ns;

/// The table's columns.
const COLUMNS: [&str; 15] = [
    "strategy", "epoch", "sequence", "due", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "rejected",
    "measured", "venue",
];

/// Returns nanoseconds since the run's start; negative before it.
fn since_start(record: &RunRecord, ticks: u64) -> i64 {
    let start = record.clock.start_ticks;
    let since = to_ns(ticks.abs_diff(start), record.clock.ns_per_tick) as i64;
    if ticks < start { -since } else { since }
}

/// Writes a CSV file of a run's orders, one row per order, with a header row. Each row has the
/// order's id, due time and stamps in nanoseconds since the run's start (empty if missing), the
/// reason's code if it was refused, whether it counts in the figures, and its venue (empty if no
/// gateway's log has it).
pub fn write(record: &RunRecord, merged: &MergedRun, out: impl Write) -> Result<()> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    writer.write_record(COLUMNS)?;
    let trading = record.plan.trading();
    for (id, row) in merged.orders() {
        let time = |point| row.at(point).map(|ticks| since_start(record, ticks));
        // A row has room for a gateway's number of seven bits.
        let venue = row.pushed().map(|(gateway, _)| trading.venue_of(GatewayIndex(gateway as u16)));
        writer.serialize((
            (id.strategy().0, id.epoch(), id.sequence()),
            time(Point::Due),
            PATH.map(time),
            row.reason(),
            merged.is_counted(id, row),
            venue,
        ))?;
    }
    Ok(writer.flush()?)
}
