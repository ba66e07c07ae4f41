//! Errors of replaying a recorded flow: the file, the line, and the remedy.

use crate::schedule::spec::SpecError;
use thiserror::Error;

/// The header line of a recorded flow.
pub(in crate::schedule) const HEADER: &str =
    "time_us,sequence,op,order_id,side,type,tif,price_cents,qty_satoshi";

/// The error that a recorded flow cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The settings of the replay are out of range.
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
    /// A header or a row that is not as described at [`replay`](super::replay).
    #[error("{file}:{line}: {problem}")]
    Line {
        /// The file of the recorded flow.
        file: String,
        /// Line of the error, from 1.
        line: u64,
        /// The problem, for example `3 fields, the header has 9`.
        problem: String,
    },
}

/// A line of a recorded flow, to which an error refers.
#[derive(Clone, Copy)]
pub(super) struct LinePosition<'a> {
    pub file: &'a str,
    /// Line number in the file, from 1.
    pub line: u64,
}

impl LinePosition<'_> {
    pub(super) fn error(&self, problem: String) -> ReplayError {
        ReplayError::Line { file: self.file.into(), line: self.line, problem }
    }
}

/// Returns the start of a file's field in quotes, on one line, for an error message.
pub(super) fn excerpt(field: &str) -> String {
    const SHOWN: usize = 40;
    match field.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &field[..end]),
        None => format!("{field:?}"),
    }
}
