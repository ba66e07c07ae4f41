//! Follows a log, also while it is written: with `pread`, and believing nothing that it has not
//! checked.

use crate::error::JournalError;
use crate::format::{self, Found, SEGMENT_HEADER};
use crate::segment::{self, OpenSegment};
use std::path::{Path, PathBuf};

/// Bytes that are read at once.
const CHUNK: usize = 1 << 18;
/// The same where it is not known that there is anything: who follows a log that is not written
/// looks again and again.
const PEEK: usize = 1 << 12;

/// A record as it was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its place in the log, from 1.
    pub sequence: u64,
    /// What was appended.
    pub payload: &'a [u8],
}

/// Reads records in order. Any number of readers may follow one writer; it does not know of them.
pub struct Reader {
    folder: PathBuf,
    segment: Option<OpenSegment>,
    /// Where the next record begins in the segment.
    at: u64,
    due: u64,
    /// What was read from `at` on: `buffer[start..end]`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Reader {
    /// Begins with record `from`, or with the first that the folder still has. The record need not
    /// be there yet.
    ///
    /// # Errors
    /// [`JournalError::Gap`] if the log begins later; what the system refused. Segments that cannot
    /// be read are passed over: whether one is missing shows in the sequences.
    pub fn open(folder: &Path, from: Option<u64>) -> Result<Self, JournalError> {
        let mut reader = Self {
            folder: folder.to_owned(),
            segment: None,
            at: 0,
            due: from.unwrap_or(1),
            buffer: Vec::new(),
            start: 0,
            end: 0,
        };
        let mut begins = Vec::new();
        let mut is_begun = true;
        for (_, path) in segment::list(folder)? {
            match begun(&path)? {
                Some((open, first)) => begins.push((first, open)),
                // Segments before the first one that has records: its beginning is not on the disk.
                None => is_begun &= !begins.is_empty(),
            }
        }
        let Some(earliest) = begins.first().map(|(first, _)| *first) else { return Ok(reader) };
        let wanted = from.unwrap_or(earliest);
        let Some(place) = begins.iter().rposition(|(first, _)| *first <= wanted) else {
            if !is_begun {
                return Ok(reader);
            }
            return Err(JournalError::Gap { first: earliest, path: folder.to_owned() });
        };
        let (first, open) = begins.swap_remove(place);
        reader.enter(open, first);
        while reader.due < wanted && reader.next()?.is_some() {}
        Ok(reader)
    }

    fn enter(&mut self, segment: OpenSegment, first: u64) {
        self.segment = Some(segment);
        self.at = SEGMENT_HEADER as u64;
        self.due = first;
        (self.start, self.end) = (0, 0);
    }

    /// The sequence of the record that comes next.
    pub fn due(&self) -> u64 {
        self.due
    }

    /// The segment that it stands in, and the byte in it.
    pub fn place(&self) -> Option<(&Path, u64)> {
        self.segment.as_ref().map(|segment| (segment.path.as_path(), self.at))
    }

    /// The number of that segment.
    pub(crate) fn index(&self) -> Option<u64> {
        self.segment.as_ref().map(|segment| segment.header.index)
    }

    /// The next record; `None` if there is none (yet).
    ///
    /// # Errors
    /// [`JournalError::Bad`] at the first record that is damaged: the next call says the same.
    /// [`JournalError::Gap`] if the writer has removed what is due, behind a snapshot. What the
    /// system refused.
    #[expect(clippy::should_implement_trait, reason = "the record borrows the reader")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, JournalError> {
        let mut is_fresh = false;
        loop {
            let Some(segment) = &self.segment else {
                if self.go_on_behind(0)?.is_none() {
                    return Ok(None);
                }
                continue;
            };
            let room = segment.header.bytes.saturating_sub(self.at) as usize;
            let bytes = &self.buffer[self.start..self.end];
            match format::scan(bytes, room, segment.seed, self.due) {
                Found::Record(length) => {
                    let from = self.start + format::RECORD_HEADER;
                    self.start = (self.start + format::size(length)).min(self.end);
                    self.at += format::size(length) as u64;
                    self.due += 1;
                    let payload = &self.buffer[from..from + length];
                    return Ok(Some(Record { sequence: self.due - 1, payload }));
                }
                // What was read may be old by now, or torn by a store at the same time: it is read
                // once more.
                Found::Empty | Found::Bad(_) | Found::Roll if !is_fresh => {
                    self.fill(PEEK, 0)?;
                    is_fresh = true;
                }
                Found::More(bytes) => {
                    if !self.fill(CHUNK, bytes)? {
                        return self.end(Some("the file is cut short"));
                    }
                    is_fresh = true;
                }
                Found::Empty => return self.end(None),
                Found::Bad(what) => return self.end(Some(what)),
                Found::Roll => {
                    let index = segment.header.index;
                    match self.go_on_behind(index)? {
                        Some(()) => is_fresh = false,
                        None => return Ok(None),
                    }
                }
            }
        }
    }

    /// The log's id.
    pub(crate) fn log(&self) -> Option<u64> {
        self.segment.as_ref().map(|segment| segment.header.log)
    }

    /// Reads at least so many bytes from the next record on; `false` if there are not so many.
    fn fill(&mut self, usual: usize, at_least: usize) -> Result<bool, JournalError> {
        let Some(segment) = &self.segment else { return Ok(false) };
        self.buffer.resize(at_least.max(usual), 0);
        self.start = 0;
        self.end = segment::read_at(&segment.file, &segment.path, &mut self.buffer, self.at)?;
        Ok(self.end >= at_least)
    }

    /// No further record in this segment: a writer that has recovered goes on in a later one, with
    /// just the sequence that is due.
    fn end(&mut self, what: Option<&'static str>) -> Result<Option<Record<'_>>, JournalError> {
        let Some(segment) = &self.segment else { return Ok(None) };
        for (_, path) in later(&self.folder, segment.header.index)? {
            if let Some((open, first)) = begun(&path)?
                && first == self.due
            {
                self.enter(open, first);
                return self.next();
            }
        }
        match (what, &self.segment) {
            (Some(what), Some(segment)) => Err(JournalError::Bad {
                path: segment.path.clone(),
                offset: self.at,
                sequence: self.due,
                what,
            }),
            _ => Ok(None),
        }
    }

    /// Enters the segment behind that one which begins with what is due; `None` if it is not there
    /// yet.
    fn go_on_behind(&mut self, index: u64) -> Result<Option<()>, JournalError> {
        let mut gap = None;
        // Twice: between two looks of the first pass the writer may have begun this segment and the
        // one behind it. Whoever saw the later one begun finds the earlier one begun as well.
        for _ in 0..2 {
            for (_, path) in later(&self.folder, index)? {
                match begun(&path)? {
                    Some((open, first)) if first == self.due => {
                        self.enter(open, first);
                        return Ok(Some(()));
                    }
                    Some((_, first)) if first > self.due => gap = Some(first),
                    _ => {}
                }
            }
            if gap.is_none() {
                break;
            }
        }
        match gap {
            Some(first) => Err(JournalError::Gap { path: self.folder.clone(), first }),
            None => Ok(None),
        }
    }
}

fn later(folder: &Path, index: u64) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    Ok(segment::list(folder)?.into_iter().filter(|(found, _)| *found > index).collect())
}

/// A segment with its first record; `None` if it has none, cannot be read as one, or was removed
/// meanwhile.
fn begun(path: &Path) -> Result<Option<(OpenSegment, u64)>, JournalError> {
    match OpenSegment::open(path) {
        Ok(open) => Ok(open.first()?.map(|first| (open, first))),
        Err(JournalError::Bad { .. }) => Ok(None),
        Err(JournalError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
