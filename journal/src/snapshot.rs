//! Snapshot files: an encoded state with the sequence of the last record in it.
//!
//! ```text
//! snapshot-00000000000000001000
//!   byte  0  magic "bulksnap"
//!         8  version    1
//!        16  log id     of the journal
//!        24  sequence   of the last record in the state
//!        32  length     of the state
//!        40  crc        CRC-32C of the state
//!        48  check      CRC-32C of bytes 0 to 47
//!        56  zero
//!        64  the state
//! ```
//! A snapshot is written under a temporary name, synced, renamed, and the directory is synced. The
//! log is synced up to the sequence before the rename. A snapshot with its final name is therefore
//! complete, and the log reaches it. Its sequence alone decides which records it contains, not
//! which files exist: a crash after the rename applies no record twice.

use crate::disk::{self, Disk};
use crate::error::JournalError;
use crate::files::open_regular;
use crate::format::{self, word};
use crate::reader::Reader;
use crate::segment::{self, OpenSegment};
use crc_fast::crc32_iscsi as crc32c;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Name of a snapshot's file while it is written.
pub(crate) const UNFINISHED: &str = "unfinished-snapshot";
const HEADER: usize = 64;
const MAGIC: u64 = u64::from_le_bytes(*b"bulksnap");
const VERSION: u64 = 1;

/// Returns the snapshots in a directory, the oldest first.
pub(crate) fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    segment::numbered(folder, "snapshot-", 20)
}

fn header(log: u64, sequence: u64, state: &[u8]) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    let length = state.len() as u64;
    format::put(&mut bytes, 0, &[MAGIC, VERSION, log, sequence, length, u64::from(crc32c(state))]);
    let check = u64::from(crc32c(&bytes[..48]));
    format::put(&mut bytes, 48, &[check]);
    bytes
}

pub(crate) struct Snapshot {
    pub log: u64,
    pub sequence: u64,
    pub state: Vec<u8>,
}

/// Reads a snapshot file and verifies it. The inner error describes an invalid one.
pub(crate) fn read(path: &Path) -> Result<Result<Snapshot, &'static str>, JournalError> {
    let mut bytes = Vec::new();
    let read = open_regular(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(JournalError::io(path, "read it"))?;
    if bytes.len() < HEADER {
        return Ok(Err("cut short"));
    }
    let state = bytes.split_off(HEADER);
    let (log, sequence) = (word(&bytes, 16), word(&bytes, 24));
    if word(&bytes, 0) != MAGIC || word(&bytes, 8) != VERSION {
        return Ok(Err("not a snapshot of this version"));
    }
    if bytes != header(log, sequence, &state) {
        return Ok(Err("a wrong CRC or length"));
    }
    Ok(Ok(Snapshot { log, sequence, state }))
}

/// Writes a snapshot to disk durably. `sync_log` makes the log durable up to the snapshot.
pub(crate) fn write(
    disk: &dyn Disk,
    folder: &Path,
    log: u64,
    sequence: u64,
    state: &[u8],
    sync_log: impl FnOnce() -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    let unfinished = folder.join(UNFINISHED);
    disk::remove(disk, &unfinished)?;
    let file = disk::create(disk, &unfinished)?;
    disk::write(disk, &unfinished, &file, &header(log, sequence, state))?;
    disk::write(disk, &unfinished, &file, state)?;
    disk::sync(disk, &unfinished, &file)?;
    sync_log()?;
    disk::rename(disk, &unfinished, &folder.join(format!("snapshot-{sequence:020}")))?;
    disk::sync_dir(disk, folder)
}

/// Writes a snapshot of a state to which all records up to the position of `reader` have been
/// applied. It does not delay the writer of the log; then removes old snapshots and segments, as
/// [`Writer::snapshot`](crate::Writer::snapshot) does. Must not run twice at once, nor while a
/// writer opens the directory: both remove unfinished files.
///
/// # Errors
/// The system's refusal. The log and older snapshots stay valid.
pub fn write_snapshot(
    disk: &dyn Disk,
    folder: &Path,
    reader: &Reader,
    state: &[u8],
    keep: usize,
) -> Result<(), JournalError> {
    let (Some(log), Some(current)) = (reader.log_id(), reader.index()) else { return Ok(()) };
    let sync_log = || {
        let mut segments = segment::list(folder)?;
        segments.retain(|(index, _)| *index <= current);
        segments.iter().try_for_each(|(_, path)| {
            match File::open(path) {
                Ok(file) => disk::sync(disk, path, &file),
                // The writer has removed it since it was listed: nothing needs its records.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(JournalError::io(path, "open it")(error)),
            }
        })
    };
    write(disk, folder, log, reader.next_sequence() - 1, state, sync_log)?;
    prune(disk, folder, keep.max(1))
}

/// Removes all but the newest `keep` valid snapshots, and the log segments that none of them needs.
/// Those are the segments before the oldest snapshot that stays. A damaged snapshot does not count,
/// because recovery cannot use it.
pub(crate) fn prune(disk: &dyn Disk, folder: &Path, keep: usize) -> Result<(), JournalError> {
    let mut snapshots = list(folder)?;
    let (mut good, mut oldest) = (0, 0);
    while good < keep {
        let Some((sequence, path)) = snapshots.pop() else {
            // With fewer, recovery may need the whole log.
            return Ok(());
        };
        if read(&path)?.is_ok() {
            (good, oldest) = (good + 1, sequence);
        }
    }
    for (_, path) in snapshots {
        disk::remove(disk, &path)?;
    }
    let segments = segment::list(folder)?;
    for pair in segments.windows(2) {
        // A segment is obsolete if the next one begins at or before the record after the snapshot.
        let next = OpenSegment::open(&pair[1].1).and_then(|open| open.first());
        match next {
            Ok(Some(first)) if first <= oldest + 1 => disk::remove(disk, &pair[0].1)?,
            _ => break,
        }
    }
    Ok(())
}
