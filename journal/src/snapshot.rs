//! Snapshots: a state, as bytes, with the sequence of the last record that is in it.
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
//! Written under another name, synced, renamed, and the folder synced; the log was synced up to the
//! sequence before the rename. So a snapshot that is there is whole, and the log reaches it. Which
//! records are in it is a matter of sequences and never of which files there are: a crash between
//! the rename and what follows it applies nothing twice.

use crate::disk::{self, Disk};
use crate::error::JournalError;
use crate::reader::Reader;
use crate::segment::{self, OpenSegment};
use crc_fast::crc32_iscsi as crc32c;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use system::folder::open_regular;

/// The name under which a snapshot is written.
pub(crate) const UNFINISHED: &str = "unfinished-snapshot";
const HEADER: usize = 64;
const MAGIC: u64 = u64::from_le_bytes(*b"bulksnap");
const VERSION: u64 = 1;

/// The folder's snapshots by their names, the oldest first.
pub(crate) fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    segment::numbered(folder, "snapshot-")
}

/// The bytes before the state.
fn header(log: u64, sequence: u64, state: &[u8]) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    let words = [MAGIC, VERSION, log, sequence, state.len() as u64, u64::from(crc32c(state))];
    for (at, word) in words.iter().enumerate() {
        bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
    }
    let check = u64::from(crc32c(&bytes[..48]));
    bytes[48..56].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// A snapshot that was read and checked.
pub(crate) struct Snapshot {
    pub log: u64,
    pub sequence: u64,
    pub state: Vec<u8>,
}

/// Reads one. What is wrong with it is the inner error.
pub(crate) fn read(path: &Path) -> Result<Result<Snapshot, &'static str>, JournalError> {
    let mut bytes = Vec::new();
    let read = open_regular(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(JournalError::io(path, "read it"))?;
    if bytes.len() < HEADER {
        return Ok(Err("cut short"));
    }
    let state = bytes.split_off(HEADER);
    let word =
        |at: usize| bytes[at * 8..at * 8 + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let (log, sequence) = (word(2), word(3));
    if word(0) != MAGIC || word(1) != VERSION {
        return Ok(Err("not a snapshot of this version"));
    }
    if bytes != header(log, sequence, &state) {
        return Ok(Err("a wrong CRC or length"));
    }
    Ok(Ok(Snapshot { log, sequence, state }))
}

/// Writes one, up to where its name is certain. `settle` makes the log certain up to the snapshot.
pub(crate) fn write(
    disk: &dyn Disk,
    folder: &Path,
    log: u64,
    sequence: u64,
    state: &[u8],
    settle: impl FnOnce() -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    let unfinished = folder.join(UNFINISHED);
    disk::remove(disk, &unfinished)?;
    let file = disk::create(disk, &unfinished)?;
    disk::write(disk, &unfinished, &file, &header(log, sequence, state))?;
    disk::write(disk, &unfinished, &file, state)?;
    disk::sync(disk, &unfinished, &file)?;
    settle()?;
    disk::rename(disk, &unfinished, &folder.join(format!("snapshot-{sequence:020}")))?;
    disk::sync_folder(disk, folder)
}

/// Writes a state as the snapshot behind the last record that `reader` has given, beside the writer
/// of the log, whom it does not hold up; then removes what nobody needs any more, as
/// [`Writer::snapshot`](crate::Writer::snapshot) does. One at a time, and not while a writer opens
/// the folder: both tidy up what is unfinished.
///
/// # Errors
/// What the system refused. The log and the snapshots that are there are as good as before.
pub fn write_beside(
    disk: &dyn Disk,
    folder: &Path,
    reader: &Reader,
    state: &[u8],
    keep: usize,
) -> Result<(), JournalError> {
    let (Some(log), Some(current)) = (reader.log(), reader.index()) else { return Ok(()) };
    let settle = || {
        let mut segments = segment::list(folder)?;
        segments.retain(|(index, _)| *index <= current);
        segments.iter().try_for_each(|(_, path)| {
            let file = File::open(path).map_err(JournalError::io(path, "open it"))?;
            disk::sync(disk, path, &file)
        })
    };
    write(disk, folder, log, reader.due() - 1, state, settle)?;
    prune(disk, folder, keep.max(1))
}

/// Removes all snapshots that are older than the newest `keep` good ones, and the segments that not
/// even the oldest of these needs. A damaged one counts for nothing: recovery cannot fall back to
/// it.
pub(crate) fn prune(disk: &dyn Disk, folder: &Path, keep: usize) -> Result<(), JournalError> {
    let mut snapshots = list(folder)?;
    let (mut good, mut oldest) = (0, 0);
    while good < keep {
        let Some((sequence, path)) = snapshots.pop() else {
            // Without that many, recovery falls back to the whole log.
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
        // A segment can go when the next one begins with what follows the snapshot, or before it.
        let next = OpenSegment::open(&pair[1].1).and_then(|open| open.first());
        match next {
            Ok(Some(first)) if first <= oldest + 1 => disk::remove(disk, &pair[0].1)?,
            _ => break,
        }
    }
    Ok(())
}
