//! Recovery: the newest valid snapshot, then the records after it, up to the first invalid one.

use crate::error::JournalError;
use crate::reader::Reader;
use crate::segment::{self, OpenSegment};
use crate::snapshot;
use std::io;
use std::path::{Path, PathBuf};

/// A snapshot or a record that a journal's recovery passes to its caller: at most one snapshot,
/// then records.
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
    /// Sequence of the last valid record; 0 for none.
    pub last: u64,
    /// Sequence of the last record that the restored snapshot includes; 0 without a snapshot.
    pub snapshot: u64,
    /// Number of valid records after the snapshot.
    pub records: u64,
    /// Paths of the invalid snapshots, each with the reason.
    pub bad_snapshots: Vec<(PathBuf, &'static str)>,
    /// The reason why the log ends at its last record, unless no further record was written.
    pub stopped: Option<String>,
    /// Sequence of the last record known to be durable, from the headers of the segments.
    pub watermark: u64,
    /// The reason why a segment after the last record must have been removed or damaged, if one
    /// was.
    pub lost: Option<String>,
    /// Sequence of the first record of a later segment, if records before it are missing. A power
    /// failure may cause that, but not among synced records: see [`LogEnd::watermark`].
    pub gap: Option<u64>,
    /// Id of the log; `None` in an empty directory.
    pub(crate) log: Option<u64>,
    /// Indices of the segments that recovery has read.
    pub(crate) segments: Vec<u64>,
    pub(crate) highest: u64,
    /// Indices of damaged segments, each with the reason.
    damaged: Vec<(u64, &'static str)>,
    /// Indices of segments with records, each with its first record.
    begun: Vec<(u64, u64)>,
}

/// Reads the newest valid snapshot and the later records of the log in a directory, passes each to
/// `apply`, and changes no file. The directory may be empty.
///
/// # Errors
/// [`JournalError::Damaged`] if durable records are missing; [`JournalError::Missing`] if a segment
/// that continued the log was lost or damaged; [`JournalError::Gap`] if no valid snapshot reaches
/// the log; an I/O error. An incomplete record ends the log without an error, because a crash
/// leaves nothing valid after it.
pub fn recover(folder: &Path, apply: impl FnMut(Recovered<'_>)) -> Result<LogEnd, JournalError> {
    check_end(folder, read_log(folder, apply)?)
}

fn check_end(folder: &Path, end: LogEnd) -> Result<LogEnd, JournalError> {
    if end.last < end.watermark {
        let (path, next, durable) = (folder.to_owned(), end.last + 1, end.watermark);
        return Err(JournalError::Damaged { path, next, durable });
    }
    match &end.lost {
        Some(why) => Err(missing(folder, &end, why.clone())),
        None => Ok(end),
    }
}

fn missing(folder: &Path, end: &LogEnd, why: String) -> JournalError {
    JournalError::Missing { path: folder.to_owned(), next: end.last + 1, why }
}

/// Checks that no records are missing before a later segment: a death of the process leaves no such
/// gap. For logs that were never synced, and so have no watermark.
pub(crate) fn check_gap(folder: &Path, end: &LogEnd) -> Result<(), JournalError> {
    end.gap_description().map_or(Ok(()), |why| Err(missing(folder, end, why)))
}

impl LogEnd {
    pub(crate) fn gap_description(&self) -> Option<String> {
        self.gap.map(|first| format!("a later segment begins with record {first}"))
    }
}

/// Recovers a log as [`recover`] does, even if records are missing that were durable.
pub(crate) fn read_log(folder: &Path, mut apply: impl FnMut(Recovered<'_>)) -> Result<LogEnd, JournalError> {
    let mut end = scan_headers(folder, 0)?;
    newest_snapshot(folder, &mut end, &mut apply)?;
    end.last = end.snapshot;
    let reader = match Reader::open(folder, Some(end.snapshot + 1)) {
        Ok(reader) => reader,
        // The log was synced up to the snapshot, so this is damage, and nothing after it is
        // reachable.
        Err(error @ JournalError::Bad { .. }) => {
            end.stopped = Some(error.to_string());
            find_lost(folder, None, &mut end)?;
            return Ok(end);
        }
        Err(error) => return Err(error),
    };
    read_records(folder, reader, end, apply)
}

/// Recovers a state that has already followed the log with `reader`: applies only the records after
/// it.
pub(crate) fn resume(
    folder: &Path,
    reader: Reader,
    apply: impl FnMut(Recovered<'_>),
) -> Result<LogEnd, JournalError> {
    // Segments before this one were passed by the reader.
    let current = reader.index().unwrap_or(0);
    let mut end = scan_headers(folder, current)?;
    end.last = reader.next_sequence() - 1;
    end.snapshot = end.last;
    let passed = segment::list(folder)?.into_iter().map(|(index, _)| index);
    end.segments = passed.filter(|index| *index < current).collect();
    check_end(folder, read_records(folder, reader, end, apply)?)
}

/// Starts to follow a log by passing its newest valid snapshot to `apply`. Returns a reader of the
/// records after it, to follow a log while it is written.
///
/// # Errors
/// As [`recover`], except that the log may end anywhere.
pub fn follow(folder: &Path, mut apply: impl FnMut(Recovered<'_>)) -> Result<Reader, JournalError> {
    let mut end = scan_headers(folder, u64::MAX)?;
    newest_snapshot(folder, &mut end, &mut apply)?;
    Reader::open(folder, Some(end.snapshot + 1))
}

/// Reads the headers of all segments, and the first records of those after index `after`.
/// Called before the records are read: what is written in that time does not look like one.
fn scan_headers(folder: &Path, after: u64) -> Result<LogEnd, JournalError> {
    let mut end = LogEnd::default();
    for (index, path) in segment::list(folder)? {
        end.highest = end.highest.max(index);
        match OpenSegment::open(&path) {
            Ok(open) => {
                end.log = end.log.or(Some(open.header.log));
                end.watermark = end.watermark.max(open.header.watermark);
                end.damaged.extend(open.cut_short()?.map(|what| (index, what)));
                if index > after {
                    end.begun.extend(open.first()?.map(|first| (index, first)));
                }
            }
            Err(JournalError::Bad { .. }) => {
                end.damaged.extend(segment::damage(&path)?.map(|what| (index, what)));
            }
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
    folder: &Path,
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
    find_lost(folder, Some(&mut reader), &mut end)?;
    Ok(end)
}

/// Looks after the last record for evidence of more: a segment that is damaged or begins later, or
/// an end mark without a segment after it.
fn find_lost(folder: &Path, reader: Option<&mut Reader>, end: &mut LogEnd) -> Result<(), JournalError> {
    let current = end.segments.last().copied().unwrap_or(0);
    let name = |index| segment::path(Path::new(""), index).display().to_string();
    let begun = end.begun.iter().filter(|(index, _)| *index > current).map(|(_, first)| *first);
    end.gap = begun.filter(|first| *first > end.last + 1).min();
    let damaged = end.damaged.iter().find(|(index, _)| *index > current);
    end.lost = damaged.map(|(index, what)| format!("{}: {what}", name(*index)));
    if end.lost.is_none()
        && let Some(reader) = reader
        && reader.is_at_segment_end()?
    {
        // A writer creates the next segment before it stores the mark.
        let has_successor = segment::list(folder)?
            .iter()
            .any(|(index, path)| *index > current && OpenSegment::open(path).is_ok());
        if !has_successor {
            end.lost = Some(format!("{} goes on in a segment that is missing", name(current)));
        }
    }
    if end.stopped.is_none() {
        end.stopped = end.lost.clone().or(end.gap_description());
    }
    Ok(())
}
