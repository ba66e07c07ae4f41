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

use anyhow::{Context, Result, anyhow, bail};
use protocol::wire::OrderId;
use record::escape::single_line;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// The selection of orders and the output format of `launcher inspect`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Number of records of a log to print from its beginning.
    pub head: Option<u64>,
    /// Number of records of a log to print from its end.
    pub tail: Option<u64>,
    /// The only order to print; for a folder, its path through all threads.
    pub order: Option<OrderId>,
    /// Number of slowest orders of a run folder to explain.
    pub worst: Option<usize>,
    /// Output format.
    pub format: Format,
}

/// The output format of `launcher inspect`, such as CSV.
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

/// Prints a stamp log or the folder of a run to `out`. A broken pipe ends the output without an
/// error.
///
/// # Errors
/// What is wrong with the path, mostly after everything readable was printed.
pub fn inspect(path: &Path, options: &Options, out: &mut impl Write) -> Result<()> {
    let name = path.display();
    let facts = std::fs::metadata(path).with_context(|| name.to_string())?;
    let printed = match (facts.is_dir(), options.order) {
        (false, _) if options.worst.is_some() => {
            bail!(
                "{name}: --worst needs a run's folder: the log of one thread does not say what the others did"
            )
        }
        (false, _) => log::inspect(path, options, out),
        (true, _) if options.head.or(options.tail).is_some() => {
            bail!("{name}: --head and --tail need a log: name one of the .stamps files in this folder")
        }
        (true, None) if options.worst.is_some() => {
            worst::inspect(path, options.worst.unwrap_or_default(), options.format, out)
        }
        (true, None) => folder::inspect(path, options.format, out),
        (true, Some(order)) => order::inspect(path, order, options.format, out),
    };
    match printed.and(out.flush().map_err(anyhow::Error::from)) {
        Err(error) => match error.downcast_ref::<io::Error>() {
            Some(closed) if closed.kind() == ErrorKind::BrokenPipe => Ok(()),
            Some(_) => Err(error.context("output")),
            None => Err(error),
        },
        ended => ended,
    }
}

fn no_such_order(path: &Path, order: OrderId) -> anyhow::Error {
    let path = path.display();
    anyhow!("{path}: no stamp of order {order}: see the logs' orders with `inspect` on a strategy's log")
}

fn check_no_problems(folder: &Path, problems: &[String]) -> Result<()> {
    match (problems, folder.display()) {
        ([], _) => Ok(()),
        ([only], folder) => bail!("a problem in {folder}: {only}"),
        ([first, ..], folder) => bail!("{} problems in {folder}, first: {first}", problems.len()),
    }
}

/// Writes lines without trailing spaces.
fn print_lines(out: &mut impl Write, lines: impl IntoIterator<Item = String>) -> io::Result<()> {
    lines.into_iter().try_for_each(|line| writeln!(out, "{}", single_line(line.trim_end())))
}

fn print_json(out: &mut impl Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
