//! `inspect`: what is in a log, in a run's folder, and where one order went.
//!
//! Made for the day on which something is wrong: what can be read is printed, what cannot is named,
//! and only then the call fails. Nothing in a file makes it panic, and a reader that hangs up (`|
//! head`) is no error.

mod cut;
mod folder;
mod log;
mod order;
mod time;
mod worst;

use crate::document::DocumentError;
use crate::escape::in_a_line;
use crate::logfile::LogError;
use crate::merge::MergeError;

use protocol::wire::OrderId;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use thiserror::Error;

/// What to print, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Of a log: so many records from its beginning.
    pub head: Option<u64>,
    /// Of a log: so many records from its end.
    pub tail: Option<u64>,
    /// Only this order; of a folder: its path through all threads.
    pub order: Option<OrderId>,
    /// Of a folder: why its slowest orders were slow, and so many of the worst.
    pub worst: Option<usize>,
    /// For whom.
    pub format: Format,
}

/// For whom the output is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// People: aligned text; of a log, the first records unless more are asked for.
    #[default]
    Text,
    /// Programs: one JSON object.
    Json,
    /// Tables: CSV with a head.
    Csv,
}

/// Why `inspect` fails, mostly after having printed what it could.
#[derive(Debug, Error)]
pub enum InspectError {
    /// The path leads nowhere.
    #[error("{path}: {source}")]
    Path {
        /// As it was given.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// A log that cannot be believed, or not to its end.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A folder that holds no run.
    #[error(transparent)]
    Record(#[from] DocumentError),
    /// A log beside the record of another run.
    #[error("{file}: belongs to another run than the run.json beside it: move it out of that folder")]
    OtherRun {
        /// The log.
        file: String,
    },
    /// A log that is sound as far as it goes, and goes not to its end.
    #[error("{file}: {what}")]
    Cut {
        /// The log.
        file: String,
        /// What is missing.
        what: String,
    },
    /// Several things are wrong with a folder; each was printed.
    #[error("{}{first}", problems(*.count, .folder))]
    Problems {
        /// The folder.
        folder: String,
        /// How many.
        count: usize,
        /// The first.
        first: String,
    },
    /// No log has a stamp of the order.
    #[error("{path}: no stamp of order {order}: see the logs' orders with `inspect` on a strategy's log")]
    NoSuchOrder {
        /// What was searched.
        path: String,
        /// The order.
        order: OrderId,
    },
    /// An option that needs a folder.
    #[error("{log}: --worst needs a run's folder: the log of one thread does not say what the others did")]
    NeedsFolder {
        /// The log.
        log: String,
    },
    /// Options that need a log.
    #[error("{folder}: --head and --tail need a log: name one of the .stamps files in this folder")]
    NeedsLog {
        /// The folder.
        folder: String,
    },
    /// Logs that cannot be merged.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// No order came back with all its stamps.
    #[error("{path}: no order has all stamps t1 to t8: nothing can be said about its slowest ones")]
    NothingMeasured {
        /// The folder.
        path: String,
    },
    /// The output cannot be written.
    #[error("output: {0}")]
    Output(#[from] io::Error),
}

/// Prints a log or a run's folder to `out`. A broken pipe ends it quietly.
///
/// # Errors
/// [`InspectError`], after everything that can be read was printed.
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

/// How many problems, in words.
fn problems(count: usize, folder: &str) -> String {
    if count == 1 {
        format!("a problem in {folder}: ")
    } else {
        format!("{count} problems in {folder}, first: ")
    }
}

/// Succeeds only if nothing was wrong.
fn no_problems(folder: &Path, problems: &[String]) -> Result<(), InspectError> {
    match problems.first() {
        None => Ok(()),
        Some(first) => Err(InspectError::Problems {
            folder: folder.display().to_string(),
            count: problems.len(),
            first: first.clone(),
        }),
    }
}

/// Writes lines without trailing blanks.
fn print_lines(out: &mut impl Write, lines: impl IntoIterator<Item = String>) -> io::Result<()> {
    lines.into_iter().try_for_each(|line| writeln!(out, "{}", in_a_line(line.trim_end())))
}

/// Writes one JSON value and ends the line.
fn print_json(out: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Writes CSV with a head.
fn print_csv<T: serde::Serialize>(out: &mut impl Write, rows: &[T]) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for row in rows {
        writer.serialize(row).map_err(crate::report::export::io_error)?;
    }
    writer.flush()
}
