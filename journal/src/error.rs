//! Errors of writing, reading and recovery.

use crate::codec::CodecError;
use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The error that a journal cannot be written or read. Messages name the file and, if there is one,
/// the remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The operating system refused an operation.
    #[error("{}: cannot {what}: {source}", path.display())]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// The operation, as in "cannot …".
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Another writer has locked the directory.
    #[error("{}: another process is writing this journal: one writer at a time", .0.display())]
    Locked(PathBuf),
    /// The payload is empty or too long for the segments.
    #[error(
        "a record of {bytes} bytes: from 1 to {max} fit into this journal's segments (larger segments hold more)"
    )]
    Length {
        /// Length of the payload.
        bytes: usize,
        /// Maximum length.
        max: usize,
    },
    /// A record or a header of the journal is invalid.
    #[error("{}: byte {offset}: {what}: record {sequence} and later ones cannot be read", path.display())]
    Bad {
        /// Path of the segment.
        path: PathBuf,
        /// Byte offset in the segment.
        offset: u64,
        /// Expected sequence of the record.
        sequence: u64,
        /// Description of the problem.
        what: &'static str,
    },
    /// Durable records are missing. A crash does not cause that.
    #[error(
        "{}: records {next} to {durable} were synced to the disk and cannot be read any more: the disk or another program changed \
         them. Restore the directory from a backup, or cut the log there (`launcher journal cut DIR`, or `journal::tool::cut`)", path.display()
    )]
    Damaged {
        /// Path of the directory.
        path: PathBuf,
        /// First missing record.
        next: u64,
        /// Last record known to be durable.
        durable: u64,
    },
    /// The log goes on after its last readable record, in a segment that was removed or damaged.
    #[error(
        "{}: records from {next} on are missing: {why}. Restore the directory from a backup, or cut the log there \
         (`launcher journal cut DIR`, or `journal::tool::cut`)", path.display()
    )]
    Missing {
        /// Path of the directory.
        path: PathBuf,
        /// First missing record.
        next: u64,
        /// What shows that there were more records.
        why: String,
    },
    /// The log begins after the record that follows the newest valid snapshot.
    #[error(
        "{}: the log begins with record {first}, and no valid snapshot reaches record {}: restore the directory from a backup",
        path.display(), first - 1
    )]
    Gap {
        /// Path of the directory.
        path: PathBuf,
        /// First record of the log.
        first: u64,
    },
    /// The options of the writer are invalid, or one of the writer's threads cannot run.
    #[error("{0}")]
    Options(String),
    /// The journal has failed, which is final. Records up to the watermark are durable. Later ones
    /// are undecided, because after a failed `fdatasync` the kernel forgets which pages it could
    /// not write, and so no sync is tried again. End the process, repair the disk, and recover.
    #[error("the journal has failed: {0}; end the process, repair the disk and recover")]
    Failed(String),
}

impl JournalError {
    /// Returns a closure that adds path and operation to an I/O error.
    pub(crate) fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, what, source }
    }
}

/// The error that the state of a state machine cannot be recovered from its journal.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecoveryError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A record of the journal was written with another configuration of the state machine.
    #[error("journal record {0} was not written by a process with this configuration")]
    Foreign(u64),
    /// The state cannot be encoded.
    #[error(transparent)]
    Encode(#[from] CodecError),
    /// A snapshot cannot be decoded.
    #[error("the snapshot after record {0}: {1}")]
    Decode(u64, CodecError),
    /// A snapshot holds a state of another configuration.
    #[error("the snapshot after record {0} was not written by a process with this configuration: {1}")]
    State(u64, Box<dyn StdError + Send + Sync>),
    /// The journal has fewer outputs than were observed, so records were lost.
    #[error("journal is incomplete: it accounts for {journal} {what} {index}, but {observed} were observed")]
    Incomplete {
        /// `orders of strategy`, `reports of gateway`, …
        what: &'static str,
        /// Index of the receiver.
        index: usize,
        /// Number that the journal accounts for.
        journal: u64,
        /// Number observed.
        observed: u64,
    },
    /// A replica dropped outputs that were not sent.
    #[error("state is incomplete: it dropped {dropped} {what} {index}, but only {observed} were sent")]
    DroppedUnsent {
        /// `reports to strategy`, …
        what: &'static str,
        /// Index of the receiver.
        index: usize,
        /// Number dropped.
        dropped: u64,
        /// Number sent.
        observed: u64,
    },
}

impl RecoveryError {
    /// Checks that replaying the journal produced at least as many outputs (`journal`) as their
    /// receivers already have (`observed`).
    ///
    /// # Errors
    /// [`RecoveryError::Incomplete`] if it has fewer.
    pub fn check_count(what: &'static str, index: usize, journal: u64, observed: u64) -> Result<(), Self> {
        if observed <= journal { Ok(()) } else { Err(Self::Incomplete { what, index, journal, observed }) }
    }
}
