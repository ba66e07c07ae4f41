//! Segment files: their names, and opening one for reading.

use crate::error::JournalError;
use crate::files::open_regular;
use crate::format::{self, RECORD_HEADER, SEGMENT_HEADER, ScanResult, SegmentHeader};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const PREFIX: &str = "log-";
const DIGITS: usize = 8;
/// Name of a log segment's file while it is created.
pub(crate) const UNFINISHED: &str = "unfinished-segment";

/// Lists the files with a prefix and a number of at least `digits` digits, the lowest number first.
///
/// # Errors
/// The system's refusal, also in the middle: with a part of its segments a log seems to end early.
pub(crate) fn numbered(
    folder: &Path,
    prefix: &str,
    digits: usize,
) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    let entries = fs::read_dir(folder).and_then(|entries| numbered_of(entries, prefix, digits));
    entries.map_err(JournalError::io(folder, "list the folder"))
}

fn numbered_of(
    entries: impl Iterator<Item = io::Result<fs::DirEntry>>,
    prefix: &str,
    digits: usize,
) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| number_of(name, prefix, digits));
        files.extend(number.map(|number| (number, entry.path())));
    }
    files.sort();
    Ok(files)
}

/// Returns the number in a file's name. `None` unless this crate writes it so: not for `log-3`.
fn number_of(name: &str, prefix: &str, digits: usize) -> Option<u64> {
    let text = name.strip_prefix(prefix)?;
    let number = text.parse().ok()?;
    (format!("{number:0digits$}") == text).then_some(number)
}

/// Returns index and path of all log segments in a directory, in order.
pub(crate) fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    numbered(folder, PREFIX, DIGITS)
}

/// Returns the index of a log segment from its file name; `None` for any other file.
pub fn index_of(path: &Path) -> Option<u64> {
    number_of(path.file_name()?.to_str()?, PREFIX, DIGITS)
}

pub(crate) fn path(folder: &Path, index: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{index:08}"))
}

const RENAMED: &str = "the header is that of another segment: the file was renamed or replaced";

/// Opens a file and reads its first bytes, as many as a header has.
fn read_header(path: &Path) -> Result<(File, Vec<u8>), JournalError> {
    let file = open_regular(path).map_err(JournalError::io(path, "open it"))?;
    let mut bytes = vec![0; SEGMENT_HEADER];
    let bytes_read = read_at(&file, path, &mut bytes, 0)?;
    bytes.truncate(bytes_read);
    Ok((file, bytes))
}

/// Decodes the header of the segment at `path`, which must be its own.
fn decode_header(path: &Path, bytes: &[u8]) -> Result<SegmentHeader, &'static str> {
    let header = SegmentHeader::decode(bytes)?;
    if index_of(path) == Some(header.index) { Ok(header) } else { Err(RENAMED) }
}

/// Returns why a file cannot be read as the segment that it was; `None` for a valid segment, and
/// for a file that never was one.
pub(crate) fn damage(path: &Path) -> Result<Option<&'static str>, JournalError> {
    match read_header(path) {
        Ok((_, bytes)) => {
            Ok(decode_header(path, &bytes).err().filter(|_| SegmentHeader::was_segment(&bytes)))
        }
        Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
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
        let (file, bytes) = read_header(path)?;
        let bad = |what| JournalError::Bad { path: path.to_owned(), offset: 0, sequence: 0, what };
        let header = decode_header(path, &bytes).map_err(bad)?;
        Ok(Self { path: path.to_owned(), file, seed: header.seed(), header })
    }

    /// Returns the reason if the segment's file is shorter than its header states; `None` if the
    /// file is whole.
    pub fn cut_short(&self) -> Result<Option<&'static str>, JournalError> {
        let facts = self.file.metadata().map_err(JournalError::io(&self.path, "ask for its size"))?;
        Ok((facts.len() < self.header.bytes).then_some("the file is cut short"))
    }

    /// Returns the sequence number of the segment's first record; `None` if no record is valid.
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
        assert!(numbered_of(failing, PREFIX, DIGITS).is_err());
    }

    #[test]
    fn only_names_as_written_are_segments() {
        for (name, index) in [
            ("log-00000003", Some(3)),
            ("log-123456789", Some(123_456_789)),
            ("log-3", None),
            ("log-+0000003", None),
            ("log-000000003", None),
        ] {
            assert_eq!(index_of(Path::new(name)), index, "{name}");
        }
    }
}
