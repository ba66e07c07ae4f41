//! Recovery: the newest valid snapshot, then the records after it, up to the first invalid one.

use crate::error::JournalError;
use crate::reader::Reader;
use crate::segment::{self, OpenSegment};
use crate::snapshot;
use std::io;
use std::path::{Path, PathBuf};

/// A snapshot or a record that recovery passes on: at most one snapshot, then the records after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered<'a> {
    /// The newest valid snapshot.
    Snapshot {
        /// Last record in the snapshot.
        sequence: u64,
        /// Encoded state as passed to [`crate::Writer::snapshot`].
        state: &'a [u8],
    },
    /// A record after the snapshot, each once and in order.
    Record {
        /// Sequence in the log.
        sequence: u64,
        /// Payload as appended.
        payload: &'a [u8],
    },
}

/// The state of a log's end as recovery found it: last record, durable end, damage.
#[derive(Clone, Debug, Default)]
pub struct LogEnd {
    /// Last record; 0 for none.
    pub last: u64,
    /// Last record of the snapshot used; 0 for none.
    pub snapshot: u64,
    /// Number of records after the snapshot.
    pub records: u64,
    /// Invalid snapshots, each with the reason.
    pub bad_snapshots: Vec<(PathBuf, &'static str)>,
    /// Why the log ends there, unless no further record was written.
    pub stopped: Option<String>,
    /// Last record known to be durable, from the headers of the segments.
    pub watermark: u64,
    /// Id of the log; `None` in an empty directory.
    pub(crate) log: Option<u64>,
    /// Indices of the segments that recovery has read.
    pub(crate) segments: Vec<u64>,
    pub(crate) highest: u64,
}

/// Recovers the log in a directory through `apply`, without changing it. The directory may be
/// empty.
///
/// # Errors
/// [`JournalError::Damaged`] if durable records are missing; [`JournalError::Gap`] if no valid
/// snapshot reaches the log; the system's refusal. An incomplete record ends the log without an
/// error, because a crash leaves nothing valid after it.
pub fn recover(folder: &Path, apply: impl FnMut(Recovered<'_>)) -> Result<LogEnd, JournalError> {
    check_watermark(folder, read_log(folder, apply)?)
}

fn check_watermark(folder: &Path, end: LogEnd) -> Result<LogEnd, JournalError> {
    if end.last < end.watermark {
        let (path, next, durable) = (folder.to_owned(), end.last + 1, end.watermark);
        return Err(JournalError::Damaged { path, next, durable });
    }
    Ok(end)
}

/// Recovers a log as [`recover`] does, even if records are missing that were durable.
pub(crate) fn read_log(folder: &Path, mut apply: impl FnMut(Recovered<'_>)) -> Result<LogEnd, JournalError> {
    let mut end = scan_headers(folder)?;
    newest_snapshot(folder, &mut end, &mut apply)?;
    end.last = end.snapshot;
    let reader = match Reader::open(folder, Some(end.snapshot + 1)) {
        Ok(reader) => reader,
        // The log was synced up to the snapshot, so this is damage, and nothing after it is
        // reachable.
        Err(error @ JournalError::Bad { .. }) => {
            end.stopped = Some(error.to_string());
            return Ok(end);
        }
        Err(error) => return Err(error),
    };
    read_records(reader, end, apply)
}

/// Recovers a state that has already followed the log with `reader`: applies only the records after
/// it.
pub(crate) fn resume(
    folder: &Path,
    reader: Reader,
    apply: impl FnMut(Recovered<'_>),
) -> Result<LogEnd, JournalError> {
    let mut end = scan_headers(folder)?;
    end.last = reader.next_sequence() - 1;
    end.snapshot = end.last;
    // Segments that the reader has passed.
    let current = reader.index().unwrap_or(0);
    let passed = segment::list(folder)?.into_iter().map(|(index, _)| index);
    end.segments = passed.filter(|index| *index < current).collect();
    check_watermark(folder, read_records(reader, end, apply)?)
}

/// Starts to follow a log by passing its newest valid snapshot to `apply`. Returns a reader of the
/// records after it, to follow a log while it is written.
///
/// # Errors
/// As [`recover`], except that the log may end anywhere.
pub fn follow(folder: &Path, mut apply: impl FnMut(Recovered<'_>)) -> Result<Reader, JournalError> {
    let mut end = scan_headers(folder)?;
    newest_snapshot(folder, &mut end, &mut apply)?;
    Reader::open(folder, Some(end.snapshot + 1))
}

fn scan_headers(folder: &Path) -> Result<LogEnd, JournalError> {
    let mut end = LogEnd::default();
    for (index, path) in segment::list(folder)? {
        end.highest = end.highest.max(index);
        match OpenSegment::open(&path) {
            Ok(open) => {
                end.log = end.log.or(Some(open.header.log));
                end.watermark = end.watermark.max(open.header.watermark);
            }
            Err(JournalError::Bad { .. }) => {}
            // Removed concurrently by a writer, after a snapshot.
            Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(end)
}

fn newest_snapshot(
    folder: &Path,
    end: &mut LogEnd,
    apply: &mut impl FnMut(Recovered<'_>),
) -> Result<(), JournalError> {
    for (_, path) in snapshot::list(folder)?.into_iter().rev() {
        match snapshot::read(&path)? {
            Ok(found) if end.log.is_some_and(|log| log != found.log) => {
                end.bad_snapshots.push((path, "of another journal"));
            }
            Ok(found) => {
                end.log = Some(found.log);
                end.snapshot = found.sequence;
                apply(Recovered::Snapshot { sequence: found.sequence, state: &found.state });
                break;
            }
            Err(what) => end.bad_snapshots.push((path, what)),
        }
    }
    Ok(())
}

fn read_records(
    mut reader: Reader,
    mut end: LogEnd,
    mut apply: impl FnMut(Recovered<'_>),
) -> Result<LogEnd, JournalError> {
    loop {
        let index = reader.index();
        if index.is_some() && end.segments.last() != index.as_ref() {
            end.segments.extend(index);
        }
        match reader.next_record() {
            Ok(Some(record)) => {
                end.last = record.sequence;
                end.records += 1;
                apply(Recovered::Record { sequence: record.sequence, payload: record.payload });
            }
            Ok(None) => break,
            Err(error @ (JournalError::Bad { .. } | JournalError::Gap { .. })) => {
                end.stopped = Some(error.to_string());
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(end)
}
