//! Exports of the stage table as CSV and Markdown, with the incidents of a run that has any.

use super::tables::measures;
use super::{result_fields, sections};
use crate::summary::{Summary, TradingSummary};
use record::escape::markdown as escaped;
use serde::Serialize;
use std::io::{self, Write};

/// The columns of the stage table: name, then the fields of a distribution.
const STAGE_COLUMNS: [&str; 10] =
    ["stage", "count", "min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns", "mean_ns"];
/// Maximum number of rows of a table; all are in `summary.json`.
const MAX_ROWS: usize = 50;
const TOTALS: [&str; 2] = ["incidents", "trading"];

/// Writes the latency distribution of each measured duration as CSV with a header row, times in
/// nanoseconds. In a run with incidents, their effect on survivors follows.
pub fn csv(summary: &Summary, out: impl Write) -> io::Result<()> {
    let stages = summary.measures().map(|measure| (measure.name(), summary.distribution(measure)));
    let incidents = summary.containment.iter().flat_map(|containment| containment.distributions());
    write_table(out, &STAGE_COLUMNS, stages.chain(incidents))
}

/// Writes tuples as CSV with the header row `head`, or nothing if there are no tuples.
pub fn write_table<T: Serialize>(
    out: impl Write,
    head: &[&str],
    rows: impl Iterator<Item = T>,
) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    for (index, row) in rows.enumerate() {
        if index == 0 {
            writer.write_record(head).map_err(io_error)?;
        }
        writer.serialize(row).map_err(io_error)?;
    }
    writer.flush()
}

/// Writes the final positions of a run's strategies as CSV with a header row: quantities in 1e-8
/// units, money in cents.
pub fn positions_csv(trading: &TradingSummary, out: impl Write) -> io::Result<()> {
    write_csv(out, &trading.positions)
}

/// Writes records as CSV with a header row, or nothing if there are no records. An unknown value is
/// an empty field.
pub fn write_csv<T: Serialize>(out: impl Write, rows: impl IntoIterator<Item = T>) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for row in rows {
        writer.serialize(row).map_err(io_error)?;
    }
    writer.flush()
}

/// Writes the table of a run's latency distributions as Markdown below the verdict, so that a
/// copied table keeps its caveats.
pub fn markdown(summary: &Summary, mut out: impl Write) -> io::Result<()> {
    if summary.fit_for_latency {
        writeln!(out, "Run `{}`: fit for latency claims.\n", escaped(&summary.run))?;
    } else {
        writeln!(out, "Run `{}`: **not fit for latency claims**:\n", escaped(&summary.run))?;
        for reason in &summary.reasons {
            writeln!(out, "- {}", escaped(reason))?;
        }
    }
    for (name, parts) in result_fields(summary).iter().filter(|(name, _)| TOTALS.contains(name)) {
        writeln!(out, "- {name}: {}", escaped(&parts.join(", ")))?;
    }
    let sections = sections(summary, MAX_ROWS).into_iter().flat_map(|(_, grids)| grids);
    for grid in std::iter::once(measures(summary, false)).chain(sections) {
        write!(out, "\n{}", grid.markdown())?;
    }
    Ok(())
}

pub(crate) fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
