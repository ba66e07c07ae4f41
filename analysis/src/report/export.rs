//! Exports of the stage table as CSV and Markdown, with the incidents of a run that has any.

use super::tables::measures;
use super::{result_fields, sections};
use crate::escape::markdown as escaped;
use crate::summary::{Summary, TradingSummary};
use serde::Serialize;
use std::io::{self, Write};

/// A row of the CSV. An unknown value is an empty field.
#[derive(Serialize)]
struct StageRow {
    stage: &'static str,
    count: u64,
    min_ns: Option<u64>,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    p9999_ns: Option<u64>,
    max_ns: Option<u64>,
    mean_ns: Option<f64>,
}

/// Maximum number of rows of a table; all are in `summary.json`.
const MAX_ROWS: usize = 50;
/// Result fields that introduce the tables.
const TOTALS: [&str; 2] = ["incidents", "trading"];

/// Writes the stage table as CSV with a header row, times in nanoseconds. In a run with incidents,
/// their effect on survivors follows.
///
/// # Errors
/// Any error of `out`.
pub fn csv(summary: &Summary, out: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let stages = summary.measures().map(|measure| (measure.name(), summary.distribution(measure)));
    let incidents = summary.containment.iter().flat_map(|containment| containment.distributions());
    for (stage, figures) in stages.chain(incidents) {
        let line = StageRow {
            stage,
            count: figures.count,
            min_ns: figures.min_ns,
            p50_ns: figures.p50_ns,
            p90_ns: figures.p90_ns,
            p99_ns: figures.p99_ns,
            p999_ns: figures.p999_ns,
            p9999_ns: figures.p9999_ns,
            max_ns: figures.max_ns,
            mean_ns: figures.mean_ns,
        };
        writer.serialize(line).map_err(io_error)?;
    }
    writer.flush()
}

/// A row of the positions. An unknown value is an empty field.
#[derive(Serialize)]
struct PositionRow<'a> {
    strategy: u16,
    instrument: u16,
    name: &'a str,
    net: i64,
    fills: u64,
    volume: f64,
    average_price: Option<f64>,
    last_price: Option<i64>,
    realised_cents: f64,
    unrealised_cents: f64,
    open_buy: i64,
    open_sell: i64,
}

/// Writes the positions as CSV with a header row: quantities in 1e-8 units, money in cents.
///
/// # Errors
/// Any error of `out`.
pub fn positions_csv(trading: &TradingSummary, out: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for position in &trading.positions {
        let line = PositionRow {
            strategy: position.strategy,
            instrument: position.instrument,
            name: &position.name,
            net: position.net,
            fills: position.fills,
            volume: position.volume,
            average_price: position.average_price,
            last_price: position.last_price,
            realised_cents: position.realized_cents,
            unrealised_cents: position.unrealized_cents,
            open_buy: position.open_buy,
            open_sell: position.open_sell,
        };
        writer.serialize(line).map_err(io_error)?;
    }
    writer.flush()
}

/// Writes the stage table as Markdown with the verdict above it, so that a copied table keeps its
/// caveats.
///
/// # Errors
/// Any error of `out`.
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

/// Converts an error of the CSV writer to an I/O error.
pub(crate) fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
