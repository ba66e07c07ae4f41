//! The `inspect` command: shows a log, the folder of a run, or the path of one order.
//!
//! Made for damaged data: everything readable is printed and every problem named before the call
//! fails. No file content makes it panic, and a closed pipe (`| head`) is not an error.

mod folder;
mod log;
mod order;
mod time;
mod truncation;
mod worst;

use crate::document::DocumentError;
use crate::escape::single_line;
use crate::logfile::LogError;
use crate::merge::MergeError;

use protocol::wire::OrderId;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use thiserror::Error;

/// The selection and output format of `launcher inspect`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Number of records of a log to print from its beginning.
    pub head: Option<u64>,
    /// Number of records of a log to print from its end.
    pub tail: Option<u64>,
    /// Only this order; for a folder, its path through all threads.
    pub order: Option<OrderId>,
    /// Number of slowest orders of a run folder to explain.
    pub worst: Option<usize>,
    /// Output format.
    pub format: Format,
}

/// Output format of `launcher inspect`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Aligned text for people; of a log, the first records by default.
    #[default]
    Text,
    /// One JSON object for programs.
    Json,
    /// CSV with a header row.
    Csv,
}

/// An error of `launcher inspect`, mostly returned after everything readable was printed.
#[derive(Debug, Error)]
pub enum InspectError {
    /// The path does not exist or cannot be read.
    #[error("{path}: {source}")]
    Path {
        /// Path as given.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A log is invalid or damaged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The folder does not hold a run.
    #[error(transparent)]
    Record(#[from] DocumentError),
    /// The log belongs to another run than the record next to it.
    #[error("{file}: belongs to another run than the run.json beside it: move it out of that folder")]
    OtherRun {
        /// Path of the log.
        file: String,
    },
    /// The log is valid but truncated.
    #[error("{file}: {what}")]
    Cut {
        /// Path of the log.
        file: String,
        /// What the file or folder lacks, as text.
        what: String,
    },
    /// The folder has problems, each of which was printed.
    #[error("{}{first}", problem_count(*.count, .folder))]
    Problems {
        /// Path of the folder.
        folder: String,
        /// Number of problems.
        count: usize,
        /// First problem.
        first: String,
    },
    /// No log has a stamp of the order.
    #[error("{path}: no stamp of order {order}: see the logs' orders with `inspect` on a strategy's log")]
    NoSuchOrder {
        /// Path that was searched.
        path: String,
        /// The requested order.
        order: OrderId,
    },
    /// An option requires a folder.
    #[error("{log}: --worst needs a run's folder: the log of one thread does not say what the others did")]
    NeedsFolder {
        /// Path of the log.
        log: String,
    },
    /// An option requires a log.
    #[error("{folder}: --head and --tail need a log: name one of the .stamps files in this folder")]
    NeedsLog {
        /// Path of the folder.
        folder: String,
    },
    /// The logs cannot be merged.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// No order returned with all its stamps.
    #[error("{path}: no order has all stamps t1 to t8: nothing can be said about its slowest ones")]
    NothingMeasured {
        /// Path of the folder.
        path: String,
    },
    /// The output cannot be written.
    #[error("output: {0}")]
    Output(#[from] io::Error),
}

/// Prints a stamp log, or the logs in the folder of a run, to `out`. A broken pipe ends the output
/// without an error.
///
/// # Errors
/// [`InspectError`], after everything readable was printed.
pub fn inspect(path: &Path, options: &Options, out: &mut impl Write) -> Result<(), InspectError> {
    let facts = std::fs::metadata(path)
        .map_err(|source| InspectError::Path { path: path.display().to_string(), source })?;
    let printed = match (facts.is_dir(), options.order) {
        (false, _) if options.worst.is_some() => {
            Err(InspectError::NeedsFolder { log: path.display().to_string() })
        }
        (false, _) => log::inspect(path, options, out),
        (true, _) if options.head.or(options.tail).is_some() => {
            Err(InspectError::NeedsLog { folder: path.display().to_string() })
        }
        (true, None) if options.worst.is_some() => {
            worst::inspect(path, options.worst.unwrap_or_default(), options.format, out)
        }
        (true, None) => folder::inspect(path, options.format, out),
        (true, Some(order)) => order::inspect(path, order, options.format, out),
    };
    let flushed = match out.flush() {
        Ok(()) => printed,
        Err(error) => printed.and(Err(error.into())),
    };
    match flushed {
        Err(InspectError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Formats a number of problems.
fn problem_count(count: usize, folder: &str) -> String {
    if count == 1 {
        format!("a problem in {folder}: ")
    } else {
        format!("{count} problems in {folder}, first: ")
    }
}

/// Returns an error if there are problems.
fn check_no_problems(folder: &Path, problems: &[String]) -> Result<(), InspectError> {
    match problems.first() {
        None => Ok(()),
        Some(first) => Err(InspectError::Problems {
            folder: folder.display().to_string(),
            count: problems.len(),
            first: first.clone(),
        }),
    }
}

/// Writes lines without trailing spaces.
fn print_lines(out: &mut impl Write, lines: impl IntoIterator<Item = String>) -> io::Result<()> {
    lines.into_iter().try_for_each(|line| writeln!(out, "{}", single_line(line.trim_end())))
}

/// Writes one JSON value and a line break.
fn print_json(out: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Writes CSV with a header row.
fn print_csv<T: serde::Serialize>(out: &mut impl Write, rows: &[T]) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for row in rows {
        writer.serialize(row).map_err(crate::report::export::io_error)?;
    }
    writer.flush()
}
