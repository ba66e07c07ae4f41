//! Errors of replaying a recorded flow: the file, the line, and the remedy.

use crate::schedule::spec::{MAX_ORDERS, SpecError};
use thiserror::Error;

/// The header line of a recorded flow.
pub(in crate::schedule) const HEADER: &str =
    "time_us,sequence,op,order_id,side,type,tif,price_cents,qty_satoshi";

/// The error that a recorded flow cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// Settings out of range.
    #[error(transparent)]
    Settings(#[from] SpecError),
    /// The file cannot be opened or read.
    #[error("{file}: cannot be read: {source}")]
    Read {
        /// The file of the recorded flow.
        file: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file has no rows.
    #[error("{file}: no orders\nexpected the header {HEADER} and at least one row below it")]
    Empty {
        /// The file of the recorded flow.
        file: String,
    },
    /// A header that lacks a column, or has one that is unknown or there twice.
    #[error("{file}:{line}: {problem}\nexpected {HEADER} and optionally venue, in any order")]
    Header {
        /// The file of the recorded flow.
        file: String,
        /// Line of the error, from 1.
        line: u64,
        /// The problem, for example `no column side`.
        problem: String,
    },
    /// A row with more or fewer fields than the header.
    #[error("{file}:{line}: {found} fields, the header has {expected}")]
    Fields {
        /// The file of the recorded flow.
        file: String,
        /// Line of the error, from 1.
        line: u64,
        /// Fields in the row.
        found: usize,
        /// Fields in the header.
        expected: usize,
    },
    /// A field with an invalid value for its column.
    #[error("{file}:{line}: column {column}: {} {why}", excerpt(found))]
    Field {
        /// The file of the recorded flow.
        file: String,
        /// Line of the error, from 1.
        line: u64,
        /// The column's name.
        column: &'static str,
        /// Content of the field; bytes that are not UTF-8 are replaced.
        found: String,
        /// The problem, for example `is not a whole number`.
        why: String,
    },
    /// More rows than a schedule holds.
    #[error(
        "{file}:{line}: more than the {MAX_ORDERS} orders that a schedule holds: replay only the first ones"
    )]
    TooMany {
        /// The file of the recorded flow.
        file: String,
        /// The first line too many, from 1.
        line: u64,
    },
}

/// Returns the start of a file's field in quotes, on one line, for an error message.
pub(super) fn excerpt(field: &str) -> String {
    const SHOWN: usize = 40;
    match field.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &field[..end]),
        None => format!("{field:?}"),
    }
}
