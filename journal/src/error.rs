//! Why something cannot be journalled, read or recovered.

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
    /// The journal has failed before and takes nothing any more. What the watermark covers is on the disk; of what came later nobody
    /// can say, because after a failed `fdatasync` the kernel forgets which pages it could not write. So it is never tried again:
    /// end the process, mend the disk, and recover.
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
