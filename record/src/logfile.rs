//! Writer and reader of a saved log: a thread's segment as it was at the end of the run, cut after
//! its last record.
//!
//! ```text
//! byte 0         128           640          9088                                      end of file
//!      ┌─────────┬─────────────┬────────────┬────────┬────────┬─────   ─────┬────────┐
//!      │ header  │ status      │ counters   │ record │ record │      …      │ record │
//!      └─────────┴─────────────┴────────────┴────────┴────────┴─────   ─────┴────────┘
//!       16 words  64 words      1056 words   16 bytes each, to a zero key or the end
//! ```
//!
//! Files are read in blocks and not mapped: truncating a mapped file would raise SIGBUS, truncating
//! a file during `read` is an error. Every value is checked before use, so arbitrary bytes give
//! records or an error.

use protocol::counters::ThreadCounters;
use protocol::stamps::{RECORD_BYTES, RECORD_WORDS, Record, code_of, count_records, point_of};
use protocol::status::{self, LOG_OFFSET, STATUS_WORDS, ThreadStatus};
use shm::memory::ReadOnlyWords;
use shm::memory::header::{HEADER_WORDS, Header, HeaderError, run_hash};
use shm::sync::Ordering;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use system::folder::{not_regular, open_regular};
use thiserror::Error;

/// Bytes in a block: large enough to amortize the system calls, small enough to stay in the cache.
const BLOCK_BYTES: usize = 1 << 20;

const BLOCK_WORDS: usize = BLOCK_BYTES / 8;

/// The file name extension of saved stamp logs.
pub const EXTENSION: &str = "stamps";

/// Returns the file name of a thread's log in the run's directory.
pub fn file_name(thread: &str) -> String {
    format!("{thread}.{EXTENSION}")
}

/// Number of bytes before the first record in a file with a saved stamp log.
pub const RECORDS_AT: u64 = (LOG_OFFSET * 8) as u64;

/// Writes one thread's stamp log to a file: header, status block and records. `header` replaces the
/// segment's own header.
pub fn write(header: &[u64], segment: &ReadOnlyWords, out: &mut impl Write) -> io::Result<()> {
    let words = LOG_OFFSET + count_records(segment) * RECORD_WORDS;
    let mut bytes = Vec::with_capacity(BLOCK_WORDS.min(words) * 8);
    for start in (0..words).step_by(BLOCK_WORDS) {
        bytes.clear();
        for index in start..words.min(start + BLOCK_WORDS) {
            // Relaxed: the records below the count are complete, and the thread that wrote them has
            // ended.
            let word = header.get(index).copied().unwrap_or_else(|| segment.load(index, Ordering::Relaxed));
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// The kind of an error that makes a saved stamp log unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFault {
    /// The operating system returned an error.
    Unreadable,
    /// The file ends within a record: the log is truncated, but not overwritten.
    Cut,
    /// The file is not a log, belongs elsewhere, or is overwritten.
    Invalid,
}

/// An error in a saved stamp log, or an early end of it.
#[derive(Clone, Debug, Error)]
#[error("{file}: {what}")]
pub struct LogError {
    /// Kind of the error.
    pub fault: LogFault,
    file: String,
    what: String,
}

impl LogError {
    /// Creates an error about a saved stamp log whose content is wrong.
    pub fn invalid(file: impl Into<String>, what: impl ToString) -> Self {
        Self { fault: LogFault::Invalid, file: file.into(), what: what.to_string() }
    }

    /// Creates an error about a saved stamp log that cannot be read.
    pub fn unreadable(file: impl Into<String>, source: impl ToString) -> Self {
        Self { fault: LogFault::Unreadable, ..Self::invalid(file, source) }
    }
}

/// A reader of a saved stamp log, the file with the timestamp records of one thread of a run.
/// Header and status are checked on creation; records are read in blocks.
#[derive(Debug)]
pub struct LogReader<R = Box<dyn Read>> {
    source: R,
    file: String,
    header: Header,
    status: ThreadStatus,
    counters: ThreadCounters,
    block: Vec<u8>,
    records: u64,
    /// Result at the end of the log, held back until the records before it were returned.
    ended: Option<Result<(), LogError>>,
}

impl LogReader {
    /// Opens a saved stamp log and checks its header. With `run`, also that the log belongs to that
    /// run.
    pub fn open(path: &Path, run: Option<&str>) -> Result<Self, LogError> {
        let name = || path.display().to_string();
        let io = |source| LogError::unreadable(name(), source);
        let file = open_regular(path).map_err(|source| match not_regular(&source) {
            Some(what) => LogError::invalid(name(), what),
            None => io(source),
        })?;
        let found = file.metadata().map_err(io)?.len();
        let log = Self::new(Box::new(file), name(), run)?;
        let promised = log.header.bytes;
        if found > promised {
            return Err(LogError::invalid(name(), HeaderError::Size { promised, found }));
        }
        Ok(log)
    }
}

impl<R: Read> LogReader<R> {
    /// Creates a reader of a stamp log from `source`; `file` names the log in errors.
    pub fn new(mut source: R, file: String, run: Option<&str>) -> Result<Self, LogError> {
        let mut front = [0; LOG_OFFSET * 8];
        let bytes =
            read_full(&mut source, &mut front).map_err(|source| LogError::unreadable(&file, source))?;
        let mut words = front.chunks_exact(8).map(word);
        let mut header_words = [0; HEADER_WORDS];
        header_words.fill_with(|| words.next().unwrap_or(0));
        let mut status_words = [0; STATUS_WORDS];
        status_words.fill_with(|| words.next().unwrap_or(0));
        let counters = ThreadCounters::from_words(words);

        let header = if bytes < HEADER_WORDS * 8 {
            Err(HeaderError::TooShort(bytes as u64))
        } else {
            Header::decode(&header_words, status::KIND).and_then(|header| {
                header.check_geometry(LOG_OFFSET, RECORD_WORDS)?;
                match run {
                    Some(run) if header.run != run_hash(run) => Err(HeaderError::OtherRun),
                    _ => Ok(header),
                }
            })
        };
        let header = header.map_err(|source| LogError::invalid(&file, source))?;
        if bytes < front.len() {
            let what = format!("ends inside the status block, at byte {bytes} of {RECORDS_AT}: cut short");
            return Err(LogError::invalid(file, what));
        }
        let status = ThreadStatus::from_words(status_words);
        Ok(Self { source, file, header, status, counters, block: Vec::new(), records: 0, ended: None })
    }

    /// Returns the checked header of the segment from which the stamp log was saved.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the status block that the thread wrote last.
    pub const fn status(&self) -> &ThreadStatus {
        &self.status
    }

    /// Returns the saved counters of the agents that the thread ran.
    pub const fn counters(&self) -> &ThreadCounters {
        &self.counters
    }

    /// Returns the name of the saved stamp log, as error messages show it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns how many records of the log were returned so far: all of them after the last block.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Returns the next block of the log's records in order; `None` after the last.
    ///
    /// # Errors
    /// [`LogError`] at the first invalid record, after all records before it were returned.
    pub fn next_block(&mut self) -> Result<Option<RecordBlock<'_>>, LogError> {
        if let Some(ended) = self.ended.take() {
            self.ended = Some(Ok(()));
            return ended.map(|()| None);
        }
        self.block.resize(BLOCK_BYTES, 0);
        let bytes = read_full(&mut self.source, &mut self.block)
            .map_err(|source| LogError::unreadable(&self.file, source))?;
        let (complete, rest) = self.block[..bytes].as_chunks::<RECORD_BYTES>();
        let valid_count = complete.iter().position(|bytes| !is_record(bytes)).unwrap_or(complete.len());
        let record = self.records + valid_count as u64;
        if valid_count < complete.len() {
            self.ended = Some(match word(&complete[valid_count][..8]) {
                0 => self.check_nothing_follows(bytes, valid_count, record),
                key => Err(self.invalid_record(record, |at| {
                    format!("{at} has the unknown point code {}: overwritten", code_of(key))
                })),
            });
        } else if !rest.is_empty() {
            let cut = self.invalid_record(record, |at| format!("ends inside {at}: cut short"));
            self.ended = Some(Err(LogError { fault: LogFault::Cut, ..cut }));
        } else if bytes < BLOCK_BYTES {
            self.ended = Some(Ok(()));
        }
        if valid_count == 0 {
            // Recurses at most once: `ended` is set, or the file is at its end.
            return match self.ended {
                Some(_) => self.next_block(),
                None => Ok(None),
            };
        }
        let first = self.records;
        self.records = record;
        Ok(Some(RecordBlock { first, bytes: &self.block.as_chunks().0[..valid_count] }))
    }

    /// Checks that only zeros follow the zero key that ends a log: anything else means that the
    /// middle was overwritten.
    fn check_nothing_follows(&mut self, bytes: usize, end_in_block: usize, end: u64) -> Result<(), LogError> {
        let mut record = end;
        let mut chunk = self.block[end_in_block * RECORD_BYTES..bytes].to_vec();
        loop {
            let complete = chunk.as_chunks::<RECORD_BYTES>().0;
            if let Some(found) = complete.iter().position(|bytes| word(&bytes[..8]) != 0) {
                record += found as u64;
                return Err(self.invalid_record(record, |at| {
                    format!("the log ends at record {end}, yet {at} is written: overwritten")
                }));
            }
            record += complete.len() as u64;
            chunk.resize(BLOCK_BYTES, 0);
            match read_full(&mut self.source, &mut chunk) {
                Ok(0) => return Ok(()),
                Ok(bytes) => chunk.truncate(bytes),
                Err(source) => return Err(LogError::unreadable(&self.file, source)),
            }
        }
    }

    /// Creates the error of a record; `what` receives its number and offset as text.
    fn invalid_record(&self, record: u64, what: impl FnOnce(String) -> String) -> LogError {
        let offset = RECORDS_AT + record * RECORD_BYTES as u64;
        LogError::invalid(&self.file, what(format!("record {record} (at byte {offset})")))
    }
}

/// A block of consecutive records of a stamp log, each checked to have a valid point.
#[derive(Clone, Copy, Debug)]
pub struct RecordBlock<'a> {
    /// Number of the first record in the log, from 0.
    pub first: u64,
    /// The bytes of the records, at least one record.
    pub bytes: &'a [[u8; RECORD_BYTES]],
}

impl<'a> RecordBlock<'a> {
    /// Returns the block's records in log order.
    #[inline]
    pub fn records(self) -> impl Iterator<Item = Record> + 'a {
        self.bytes.iter().map_while(|bytes| Record::from_words(word(&bytes[..8]), word(&bytes[8..])))
    }
}

#[inline]
fn is_record(bytes: &[u8; RECORD_BYTES]) -> bool {
    point_of(word(&bytes[..8])).is_some()
}

/// Decodes a little-endian word of eight bytes; returns 0 if bytes are missing.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Reads until the buffer is full or the source ends. Returns the number of bytes.
fn read_full(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
