//! The segments of a folder: their names, and opening one to read it.

use crate::error::JournalError;
use crate::format::{self, Found, RECORD_HEADER, SEGMENT_HEADER, SegmentHeader};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use system::folder::open_regular;

/// How the names of segments begin.
const PREFIX: &str = "log-";
/// The name under which a segment is made.
pub(crate) const UNFINISHED: &str = "unfinished-segment";

/// Files of that kind with their numbers, the lowest first.
pub(crate) fn numbered(folder: &Path, prefix: &str) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    let entries = fs::read_dir(folder).map_err(JournalError::io(folder, "list the folder"))?;
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name.strip_prefix(prefix)?.parse().ok()?, entry.path()))
        })
        .collect();
    found.sort();
    Ok(found)
}

/// The folder's segments, the first one first.
pub(crate) fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    numbered(folder, PREFIX)
}

/// The number of the segment that has this name; `None`: it is no segment's.
pub fn index_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX)?.parse().ok()
}

/// Where that segment is.
pub(crate) fn path(folder: &Path, index: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{index:08}"))
}

/// A segment that is read.
pub(crate) struct OpenSegment {
    pub path: PathBuf,
    pub file: File,
    pub header: SegmentHeader,
    pub seed: u32,
}

/// Reads as much as there is, which may be less than asked for.
pub(crate) fn read_at(file: &File, path: &Path, buffer: &mut [u8], at: u64) -> Result<usize, JournalError> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read_at(&mut buffer[got..], at + got as u64) {
            Ok(0) => break,
            Ok(bytes) => got += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(JournalError::io(path, "read it")(error)),
        }
    }
    Ok(got)
}

impl OpenSegment {
    /// Opens one and checks its header.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let file = open_regular(path).map_err(JournalError::io(path, "open it"))?;
        let mut bytes = [0; SEGMENT_HEADER];
        let got = read_at(&file, path, &mut bytes, 0)?;
        let header = SegmentHeader::decode(&bytes[..got]).map_err(|what| JournalError::Bad {
            path: path.to_owned(),
            offset: 0,
            sequence: 0,
            what,
        })?;
        Ok(Self { path: path.to_owned(), file, seed: header.seed(), header })
    }

    /// The sequence of its first record; `None` if it has none that is whole.
    pub fn first(&self) -> Result<Option<u64>, JournalError> {
        let mut bytes = vec![0; RECORD_HEADER];
        let at = SEGMENT_HEADER as u64;
        let room = self.header.bytes.saturating_sub(at) as usize;
        loop {
            let wanted = bytes.len();
            if read_at(&self.file, &self.path, &mut bytes, at)? < wanted {
                return Ok(None);
            }
            let mut claimed = [0; 8];
            claimed.copy_from_slice(&bytes[8..16]);
            let claimed = u64::from_le_bytes(claimed);
            match format::scan(&bytes, room, self.seed, claimed) {
                Found::Record(_) => return Ok(Some(claimed)),
                Found::More(more) if more > wanted => bytes.resize(more, 0),
                _ => return Ok(None),
            }
        }
    }
}
