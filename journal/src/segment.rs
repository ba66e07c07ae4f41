//! Segment files: their names, and opening one for reading.

use crate::error::JournalError;
use crate::files::open_regular;
use crate::format::{self, RECORD_HEADER, SEGMENT_HEADER, ScanResult, SegmentHeader};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const PREFIX: &str = "log-";
/// Name of a log segment's file while it is created.
pub(crate) const UNFINISHED: &str = "unfinished-segment";

/// Lists the files with a prefix and a number, the lowest number first.
///
/// # Errors
/// The system's refusal, also in the middle: with a part of its segments a log seems to end early.
pub(crate) fn numbered(folder: &Path, prefix: &str) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    let entries = fs::read_dir(folder).and_then(|entries| numbered_of(entries, prefix));
    entries.map_err(JournalError::io(folder, "list the folder"))
}

fn numbered_of(
    entries: impl Iterator<Item = io::Result<fs::DirEntry>>,
    prefix: &str,
) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(prefix)?.parse().ok());
        files.extend(number.map(|number| (number, entry.path())));
    }
    files.sort();
    Ok(files)
}

/// Returns index and path of all log segments in a directory, in order.
pub(crate) fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    numbered(folder, PREFIX)
}

/// Returns the index of a log segment from its file name; `None` for any other file.
pub fn index_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX)?.parse().ok()
}

pub(crate) fn path(folder: &Path, index: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{index:08}"))
}

pub(crate) struct OpenSegment {
    pub path: PathBuf,
    pub file: File,
    pub header: SegmentHeader,
    pub seed: u32,
}

/// Reads bytes of a file from an offset. Returns fewer only at the end of the file.
pub(crate) fn read_at(file: &File, path: &Path, buffer: &mut [u8], at: u64) -> Result<usize, JournalError> {
    let mut bytes_read = 0;
    while bytes_read < buffer.len() {
        match file.read_at(&mut buffer[bytes_read..], at + bytes_read as u64) {
            Ok(0) => break,
            Ok(bytes) => bytes_read += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(JournalError::io(path, "read it")(error)),
        }
    }
    Ok(bytes_read)
}

impl OpenSegment {
    /// Opens a log segment and checks its header.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let file = open_regular(path).map_err(JournalError::io(path, "open it"))?;
        let mut bytes = [0; SEGMENT_HEADER];
        let bytes_read = read_at(&file, path, &mut bytes, 0)?;
        let header = SegmentHeader::decode(&bytes[..bytes_read]).map_err(|what| JournalError::Bad {
            path: path.to_owned(),
            offset: 0,
            sequence: 0,
            what,
        })?;
        Ok(Self { path: path.to_owned(), file, seed: header.seed(), header })
    }

    /// Returns the sequence of the segment's first record; `None` if no record is valid.
    pub fn first(&self) -> Result<Option<u64>, JournalError> {
        let mut bytes = vec![0; RECORD_HEADER];
        let at = SEGMENT_HEADER as u64;
        let remaining = self.header.bytes.saturating_sub(at) as usize;
        loop {
            let wanted = bytes.len();
            if read_at(&self.file, &self.path, &mut bytes, at)? < wanted {
                return Ok(None);
            }
            let claimed = format::word(&bytes, 8);
            match format::scan(&bytes, remaining, self.seed, claimed) {
                ScanResult::Record(_) => return Ok(Some(claimed)),
                ScanResult::NeedsMore(more) if more > wanted => bytes.resize(more, 0),
                _ => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    #[test]
    fn failure_in_the_middle_of_a_listing_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(path(folder.path(), 3), []).unwrap();
        assert_eq!(list(folder.path()).unwrap(), [(3, path(folder.path(), 3))]);
        let failing = fs::read_dir(folder.path()).unwrap().chain([Err(Errno::EIO.into())]);
        assert!(numbered_of(failing, PREFIX).is_err());
    }
}
