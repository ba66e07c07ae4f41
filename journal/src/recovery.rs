//! Recovery: the newest good snapshot, then the rest of the log, up to the first record that is not
//! whole.

use crate::error::JournalError;
use crate::reader::Reader;
use crate::segment::{self, OpenSegment};
use crate::snapshot;
use std::io;
use std::path::{Path, PathBuf};

/// What recovery hands over: at most one snapshot, and before all records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered<'a> {
    /// The state as it was behind that record.
    Snapshot {
        /// The last record in it.
        sequence: u64,
        /// As it was handed to [`crate::Writer::snapshot`].
        state: &'a [u8],
    },
    /// A record behind the snapshot, each once and in order.
    Record {
        /// Its place in the log.
        sequence: u64,
        /// What was appended.
        payload: &'a [u8],
    },
}

/// Where the log ends, and what recovery has met.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// The last record; 0 for none.
    pub last: u64,
    /// The snapshot that it began with; 0 for none.
    pub snapshot: u64,
    /// Records behind it.
    pub records: u64,
    /// Snapshots that could not be used, and why.
    pub bad_snapshots: Vec<(PathBuf, &'static str)>,
    /// Why it ends there, if not because nothing more was written.
    pub stopped: Option<String>,
    /// The last record that a segment says was synced.
    pub watermark: u64,
    /// The log's id; `None` in an empty folder.
    pub(crate) log: Option<u64>,
    /// The numbers of the segments that recovery has read.
    pub(crate) segments: Vec<u64>,
    /// The highest number that a segment has.
    pub(crate) highest: u64,
}

/// Hands over what a folder holds, and changes nothing. The folder may be empty.
///
/// # Errors
/// [`JournalError::Damaged`] if records are missing that were synced; [`JournalError::Gap`] if no
/// good snapshot reaches the log; what the system refused. A record that is not whole is no error:
/// no crash leaves another one behind it that counts.
pub fn recover(folder: &Path, apply: impl FnMut(Recovered<'_>)) -> Result<End, JournalError> {
    whole(folder, read(folder, apply)?)
}

/// Whether nothing is missing that was synced.
fn whole(folder: &Path, end: End) -> Result<End, JournalError> {
    if end.last < end.watermark {
        let (path, next, durable) = (folder.to_owned(), end.last + 1, end.watermark);
        return Err(JournalError::Damaged { path, next, durable });
    }
    Ok(end)
}

/// The same, whatever was lost.
pub(crate) fn read(folder: &Path, mut apply: impl FnMut(Recovered<'_>)) -> Result<End, JournalError> {
    let mut end = segments_of(folder)?;
    newest_snapshot(folder, &mut end, &mut apply)?;
    end.last = end.snapshot;
    let reader = match Reader::open(folder, Some(end.snapshot + 1)) {
        Ok(reader) => reader,
        // The snapshot's log was synced, so this is damage before it: nothing behind can be
        // reached.
        Err(error @ JournalError::Bad { .. }) => {
            end.stopped = Some(error.to_string());
            return Ok(end);
        }
        Err(error) => return Err(error),
    };
    read_on(reader, end, apply)
}

/// The same for one that has followed the log up to where that reader is, and needs only what comes
/// then.
pub(crate) fn go_on(
    folder: &Path,
    reader: Reader,
    apply: impl FnMut(Recovered<'_>),
) -> Result<End, JournalError> {
    let mut end = segments_of(folder)?;
    end.last = reader.due() - 1;
    end.snapshot = end.last;
    // Those that the reader has left behind.
    let current = reader.index().unwrap_or(0);
    let before = segment::list(folder)?.into_iter().map(|(index, _)| index);
    end.segments = before.filter(|index| *index < current).collect();
    whole(folder, read_on(reader, end, apply)?)
}

/// The newest good snapshot goes to `apply`; the reader stands behind it. For who follows the log
/// beside its writer.
///
/// # Errors
/// As [`recover`], but that the log may end anywhere: it goes on.
pub fn follow(folder: &Path, mut apply: impl FnMut(Recovered<'_>)) -> Result<Reader, JournalError> {
    let mut end = segments_of(folder)?;
    newest_snapshot(folder, &mut end, &mut apply)?;
    Reader::open(folder, Some(end.snapshot + 1))
}

/// What the segments' headers say.
fn segments_of(folder: &Path) -> Result<End, JournalError> {
    let mut end = End::default();
    for (index, path) in segment::list(folder)? {
        end.highest = end.highest.max(index);
        match OpenSegment::open(&path) {
            Ok(open) => {
                end.log = end.log.or(Some(open.header.log));
                end.watermark = end.watermark.max(open.header.watermark);
            }
            Err(JournalError::Bad { .. }) => {}
            // Removed meanwhile, behind a snapshot, by a writer that is at work.
            Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(end)
}

fn newest_snapshot(
    folder: &Path,
    end: &mut End,
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

fn read_on(
    mut reader: Reader,
    mut end: End,
    mut apply: impl FnMut(Recovered<'_>),
) -> Result<End, JournalError> {
    loop {
        let index = reader.index();
        if index.is_some() && end.segments.last() != index.as_ref() {
            end.segments.extend(index);
        }
        match reader.next() {
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
