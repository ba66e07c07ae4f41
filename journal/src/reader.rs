//! The reader: follows a log, also while it is written, with `pread`. It trusts only validated
//! bytes.

use crate::error::JournalError;
use crate::format::{self, SEGMENT_HEADER, ScanResult};
use crate::segment::{self, OpenSegment};
use std::path::{Path, PathBuf};

/// Maximum number of bytes of a read. Reads become twice as long from one to the next: a follower
/// reads little, and the start of a long log does not take many.
const MAX_CHUNK: usize = 1 << 18;
/// Bytes of a read at the end of the log, which a follower polls.
const PEEK: usize = 1 << 12;

/// A record of the journal's log: its sequence number and its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Sequence number of the record in the log, from 1.
    pub sequence: u64,
    /// Payload of the record, as it was appended.
    pub payload: &'a [u8],
}

/// A record of the log with its own copy of the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedRecord {
    /// Sequence number of the record in the log, from 1.
    pub sequence: u64,
    /// Payload of the record, as it was appended.
    pub payload: Vec<u8>,
}

/// An iterator over the records of a log; see [`Reader::records`].
pub struct Records<'a> {
    reader: &'a mut Reader,
    has_ended: bool,
}

impl Iterator for Records<'_> {
    type Item = Result<OwnedRecord, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let owned =
            |record: Record<'_>| OwnedRecord { sequence: record.sequence, payload: record.payload.to_vec() };
        let next = self.reader.next_record().map(|record| record.map(owned)).transpose();
        self.has_ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Reads the records of a log in order. Any number of readers may follow one writer.
pub struct Reader {
    folder: PathBuf,
    segment: Option<OpenSegment>,
    at: u64,
    next_sequence: u64,
    /// `buffer[start..end]` holds the bytes from `at` on.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the last read.
    chunk: usize,
}

impl Reader {
    /// Opens the log in a directory for reading from record `from`, which may not exist yet.
    /// `None`: from its first record.
    ///
    /// # Errors
    /// [`JournalError::Gap`] if the log begins later; the system's refusal. Segments with an
    /// invalid header are skipped: a missing one shows in the sequences.
    pub fn open(folder: &Path, from: Option<u64>) -> Result<Self, JournalError> {
        let mut reader = Self {
            folder: folder.to_owned(),
            segment: None,
            at: 0,
            next_sequence: from.unwrap_or(1),
            buffer: Vec::new(),
            start: 0,
            end: 0,
            chunk: PEEK,
        };
        let mut begins = Vec::new();
        let mut is_begun = true;
        for (_, path) in segment::list(folder)? {
            match open_begun(&path)? {
                Some((open, first)) => begins.push((first, open)),
                // Segments without records before the first one with some: the log's beginning is
                // missing.
                None => is_begun &= !begins.is_empty(),
            }
        }
        let Some(earliest) = begins.first().map(|(first, _)| *first) else { return Ok(reader) };
        let wanted = from.unwrap_or(earliest);
        let Some(index) = begins.iter().rposition(|(first, _)| *first <= wanted) else {
            if !is_begun {
                return Ok(reader);
            }
            return Err(JournalError::Gap { first: earliest, path: folder.to_owned() });
        };
        let (first, open) = begins.swap_remove(index);
        reader.enter(open, first);
        while reader.next_sequence < wanted && reader.next_record()?.is_some() {}
        Ok(reader)
    }

    fn enter(&mut self, segment: OpenSegment, first: u64) {
        self.segment = Some(segment);
        self.at = SEGMENT_HEADER as u64;
        self.next_sequence = first;
        (self.start, self.end) = (0, 0);
    }

    /// Returns the sequence number of the log's next record.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Returns the segment file's path and the byte offset at which the next record is read; `None`
    /// if no segment is open.
    pub fn position(&self) -> Option<(&Path, u64)> {
        self.segment.as_ref().map(|segment| (segment.path.as_path(), self.at))
    }

    pub(crate) fn index(&self) -> Option<u64> {
        self.segment.as_ref().map(|segment| segment.header.index)
    }

    /// Iterates over the log's records that exist now. Ends after the last one or the first error;
    /// a later call continues there. Copies each payload, unlike [`Reader::next_record`].
    pub fn records(&mut self) -> Records<'_> {
        Records { reader: self, has_ended: false }
    }

    /// Returns the log's next record; `None` if it does not exist yet.
    ///
    /// # Errors
    /// [`JournalError::Bad`] at the first damaged record, also for each later call;
    /// [`JournalError::Gap`] if the writer has removed the record after a snapshot; the system's
    /// refusal.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, JournalError> {
        let mut is_fresh = false;
        loop {
            let Some(segment) = &self.segment else {
                if self.enter_next(0)?.is_none() {
                    return Ok(None);
                }
                continue;
            };
            let remaining = segment.header.bytes.saturating_sub(self.at) as usize;
            let bytes = &self.buffer[self.start..self.end];
            match format::scan(bytes, remaining, segment.seed, self.next_sequence) {
                ScanResult::Record(length) => {
                    let from = self.start + format::RECORD_HEADER;
                    self.start = (self.start + format::record_size(length)).min(self.end);
                    self.at += format::record_size(length) as u64;
                    self.next_sequence += 1;
                    let payload = &self.buffer[from..from + length];
                    return Ok(Some(Record { sequence: self.next_sequence - 1, payload }));
                }
                // The buffer may be stale, or torn by a concurrent store: read once more.
                ScanResult::Empty | ScanResult::Invalid(_) | ScanResult::SegmentEnd if !is_fresh => {
                    self.fill(PEEK, 0)?;
                    is_fresh = true;
                }
                ScanResult::NeedsMore(bytes) => {
                    if !self.fill((2 * self.chunk).min(MAX_CHUNK), bytes)? {
                        return self.end_of_segment(Some("the file is cut short"));
                    }
                    is_fresh = true;
                }
                ScanResult::Empty => return self.end_of_segment(None),
                ScanResult::Invalid(what) => return self.end_of_segment(Some(what)),
                ScanResult::SegmentEnd => {
                    let index = segment.header.index;
                    match self.enter_next(index)? {
                        Some(()) => is_fresh = false,
                        None => return Ok(None),
                    }
                }
            }
        }
    }

    /// Returns `true` if the next position has the end mark: the log continues in a later segment.
    pub(crate) fn is_at_segment_end(&mut self) -> Result<bool, JournalError> {
        self.fill(PEEK, 0)?;
        let Some(segment) = &self.segment else { return Ok(false) };
        let remaining = segment.header.bytes.saturating_sub(self.at) as usize;
        let bytes = &self.buffer[self.start..self.end];
        Ok(format::scan(bytes, remaining, segment.seed, self.next_sequence) == ScanResult::SegmentEnd)
    }

    pub(crate) fn log_id(&self) -> Option<u64> {
        self.segment.as_ref().map(|segment| segment.header.log)
    }

    /// Reads at least `at_least` bytes from the next record on. Returns `false` if there are fewer.
    fn fill(&mut self, usual: usize, at_least: usize) -> Result<bool, JournalError> {
        let Some(segment) = &self.segment else { return Ok(false) };
        self.chunk = usual;
        self.buffer.resize(at_least.max(usual), 0);
        self.start = 0;
        self.end = segment::read_at(&segment.file, &segment.path, &mut self.buffer, self.at)?;
        Ok(self.end >= at_least)
    }

    /// Handles the end of a segment without an end mark: a writer that has recovered continues in a
    /// later segment with the next sequence.
    fn end_of_segment(&mut self, what: Option<&'static str>) -> Result<Option<Record<'_>>, JournalError> {
        let Some(segment) = &self.segment else { return Ok(None) };
        for (_, path) in later(&self.folder, segment.header.index)? {
            if let Some((open, first)) = open_begun(&path)?
                && first == self.next_sequence
            {
                self.enter(open, first);
                return self.next_record();
            }
        }
        match (what, &self.segment) {
            (Some(what), Some(segment)) => Err(JournalError::Bad {
                path: segment.path.clone(),
                offset: self.at,
                sequence: self.next_sequence,
                what,
            }),
            _ => Ok(None),
        }
    }

    /// Enters the segment after `index` that begins with the next record; `None` if it does not
    /// exist yet.
    fn enter_next(&mut self, index: u64) -> Result<Option<()>, JournalError> {
        let mut gap = None;
        // Two passes: during the first one the writer may begin both this segment and the next. If
        // the later one has begun, the second pass finds the earlier one begun.
        for _ in 0..2 {
            for (_, path) in later(&self.folder, index)? {
                match open_begun(&path)? {
                    Some((open, first)) if first == self.next_sequence => {
                        self.enter(open, first);
                        return Ok(Some(()));
                    }
                    Some((_, first)) if first > self.next_sequence => gap = Some(first),
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
    Ok(segment::list(folder)?.into_iter().filter(|(candidate, _)| *candidate > index).collect())
}

/// Opens a segment with its first record; `None` if it has none, has an invalid header, or was
/// removed concurrently.
fn open_begun(path: &Path) -> Result<Option<(OpenSegment, u64)>, JournalError> {
    match OpenSegment::open(path) {
        Ok(open) => Ok(open.first()?.map(|first| (open, first))),
        Err(JournalError::Bad { .. }) => Ok(None),
        Err(JournalError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
