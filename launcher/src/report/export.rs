//! The stage table for other programs (CSV) and other documents (Markdown).

use super::tables::stages;
use crate::summary::{Measure, Summary};
use comfy_table::presets::ASCII_MARKDOWN;
use serde::Serialize;
use std::io::{self, Write};

/// A line of the CSV. A value that is not known is an empty field.
#[derive(Serialize)]
struct Line {
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

/// Writes the stage table as CSV with a head, times in nanoseconds.
///
/// # Errors
/// What `out` answers.
pub fn csv(summary: &Summary, out: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for measure in Measure::ALL {
        let figures = summary.distribution(measure);
        let line = Line {
            stage: measure.name(),
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

/// Writes the stage table as Markdown, with the verdict above it: a table that travels takes its doubts along.
///
/// # Errors
/// What `out` answers.
pub fn markdown(summary: &Summary, mut out: impl Write) -> io::Result<()> {
    if summary.fit_for_latency {
        writeln!(out, "Run `{}`: fit for latency claims.\n", summary.run)?;
    } else {
        writeln!(out, "Run `{}`: **not fit for latency claims**:\n", summary.run)?;
        for reason in &summary.reasons {
            writeln!(out, "- {reason}")?;
        }
        writeln!(out)?;
    }
    writeln!(out, "{}", stages(summary, ASCII_MARKDOWN))
}

/// A CSV error is the error of the writer below it, or a bug in the line above.
pub(crate) fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
