//! Why something cannot be journalled, read or recovered.

use crate::codec::CodecError;
use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What went wrong. Each names the file, and where there is one the way out.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The system refused something.
    #[error("{}: cannot {what}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// Another writer has the folder.
    #[error("{}: another process is writing this journal: one writer at a time", .0.display())]
    Locked(PathBuf),
    /// A payload that no record can hold.
    #[error(
        "a record of {bytes} bytes: from 1 to {most} fit into this journal's segments (larger segments hold more)"
    )]
    Length {
        /// The payload's.
        bytes: usize,
        /// The longest possible.
        most: usize,
    },
    /// A record or header that is not what was written.
    #[error("{}: byte {offset}: {what}: record {sequence} and what follows it cannot be read", path.display())]
    Bad {
        /// The segment.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// The sequence that was due there.
        sequence: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// What was on the disk for certain is not there any more: no crash does that.
    #[error(
        "{}: records {next} to {durable} were synced to the disk and cannot be read any more: the disk or somebody changed \
         them. Restore the folder from a copy, or give up what follows: launcher journal cut FOLDER", path.display()
    )]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// The first record that is missing.
        next: u64,
        /// The last one that was synced.
        durable: u64,
    },
    /// The log does not begin where the newest good snapshot ends.
    #[error(
        "{}: the log begins with record {first}, and no good snapshot reaches record {}: restore the folder from a copy",
        path.display(), first - 1
    )]
    Gap {
        /// The folder.
        path: PathBuf,
        /// The first record of the log.
        first: u64,
    },
    /// Options that cannot be.
    #[error("{0}")]
    Options(String),
    /// The journal has failed before and takes nothing any more. What the watermark covers is on
    /// the disk; of what came later nobody can say, because after a failed `fdatasync` the kernel
    /// forgets which pages it could not write. So it is never tried again: end the process, mend
    /// the disk, and recover.
    #[error("the journal has stopped for good: {0}; recover from what is on the disk")]
    Failed(String),
}

impl JournalError {
    /// Wraps the system's refusal.
    pub(crate) fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, what, source }
    }
}

/// Why a state cannot be recovered from a journal.
#[derive(Debug, Error)]
pub enum RecoveryError {
    /// The journal itself.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A record that no process with this configuration writes.
    #[error("journal record {0} was not written by a process with this configuration")]
    Foreign(u64),
    /// A state that cannot be encoded.
    #[error(transparent)]
    Unencoded(#[from] CodecError),
    /// A snapshot that cannot be decoded.
    #[error("the snapshot after record {0}: {1}")]
    Encoded(u64, CodecError),
    /// A snapshot with a state that no process with this configuration has.
    #[error("the snapshot after record {0} was not written by a process with this configuration: {1}")]
    State(u64, Box<dyn StdError + Send + Sync>),
    /// The journal has less than there was: what was written has been lost.
    #[error("journal is incomplete: it accounts for {journal} {what} {index}, but {there} were observed")]
    Short {
        /// `orders of strategy`, `reports of gateway`, …
        what: &'static str,
        /// Which one.
        index: usize,
        /// As many of them follow from the journal.
        journal: u64,
        /// As many there were.
        there: u64,
    },
    /// A replica dropped outputs that have not gone out.
    #[error("state is incomplete: it dropped {dropped} {what} {index}, but only {there} were sent")]
    Dropped {
        /// `reports to strategy`, …
        what: &'static str,
        /// Which one.
        index: usize,
        /// As many were dropped.
        dropped: u64,
        /// As many had gone out.
        there: u64,
    },
}

impl RecoveryError {
    /// Compares how much follows from the journal with how much was observed.
    ///
    /// # Errors
    /// [`RecoveryError::Short`] if the journal has less.
    pub fn check_count(what: &'static str, index: usize, journal: u64, there: u64) -> Result<(), Self> {
        if there <= journal { Ok(()) } else { Err(Self::Short { what, index, journal, there }) }
    }
}
