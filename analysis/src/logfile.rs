//! A saved log: one thread's segment as it was at the end of the run, cut after its last record.
//!
//! ```text
//! byte 0         128           640          9088                                      end of file
//!      ┌─────────┬─────────────┬────────────┬────────┬────────┬─────   ─────┬────────┐
//!      │ header  │ status      │ counters   │ record │ record │      …      │ record │
//!      └─────────┴─────────────┴────────────┴────────┴────────┴─────   ─────┴────────┘
//!       16 words  64 words      1056 words   16 bytes each, until a zero key or the end of the file
//! ```
//!
//! Files are read in blocks and never mapped: a file that is cut while it is read is an error here
//! and would be a SIGBUS there. Nothing in a file is believed before it was checked, so any bytes
//! give records or an error.

use protocol::counters::ThreadCounters;
use protocol::stamps::{RECORD_BYTES, RECORD_WORDS, Record, code_of, point_of};
use protocol::status::{self, LOG_OFFSET, STATUS_WORDS, ThreadStatus};
use shm::memory::header::{HEADER_WORDS, Header, HeaderError, run_hash};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use system::folder::{NotRegular, not_regular, open_regular};
use thiserror::Error;

pub use protocol::log_file::{EXTENSION, RECORDS_AT, file_name, keys_at, write};

/// Bytes in a block: large enough that the calls do not show, small enough to stay in the cache.
const BLOCK_BYTES: usize = 1 << 20;

/// A saved log that cannot be believed, or not to its end.
#[derive(Debug, Error)]
pub enum LogError {
    /// The operating system refused.
    #[error("{file}: {source}")]
    Io {
        /// The log's path.
        file: String,
        /// What it said.
        source: io::Error,
    },
    /// No regular file: a folder, a pipe, a device, a symbolic link.
    #[error("{file}: {what}")]
    NotAFile {
        /// The path.
        file: String,
        /// What it is instead.
        what: NotRegular,
    },
    /// The header is not as it must be.
    #[error("{file}: {source}")]
    Header {
        /// The log's path.
        file: String,
        /// Which field, and what to do.
        source: HeaderError,
    },
    /// The file ends inside the status block.
    #[error("{file}: ends inside the status block, at byte {bytes} of {RECORDS_AT}: cut short")]
    CutStatus {
        /// The log's path.
        file: String,
        /// Bytes that there are.
        bytes: u64,
    },
    /// The file ends inside a record.
    #[error("{file}: ends inside record {record} (at byte {offset}): cut short")]
    CutRecord {
        /// The log's path.
        file: String,
        /// The record's number, from 0.
        record: u64,
        /// Where the record begins in the file.
        offset: u64,
    },
    /// A key that no thread writes.
    #[error("{file}: record {record} (at byte {offset}) has the unknown point code {code}: overwritten")]
    UnknownPoint {
        /// The log's path.
        file: String,
        /// The record's number, from 0.
        record: u64,
        /// Where the record begins in the file.
        offset: u64,
        /// The top four bits of its key.
        code: u8,
    },
    /// Records behind the zero key that ends the log.
    #[error(
        "{file}: the log ends at record {end}, yet record {record} (at byte {offset}) is written: overwritten"
    )]
    AfterEnd {
        /// The log's path.
        file: String,
        /// The record with the zero key.
        end: u64,
        /// The record behind it.
        record: u64,
        /// Where that record begins in the file.
        offset: u64,
    },
    /// The log of another thread under this name.
    #[error(
        "{file}: is the log of thread {found} of the plan, expected thread {expected}: renamed or overwritten"
    )]
    OtherThread {
        /// The log's path.
        file: String,
        /// The index in its header.
        found: u64,
        /// The index of the thread with that name.
        expected: u64,
    },
}

impl LogError {
    /// Whether the file is whole as far as it goes: cut short, but not overwritten.
    pub const fn is_cut(&self) -> bool {
        matches!(self, LogError::CutRecord { .. })
    }
}

/// A log that is being read. Header and status are checked and there when it exists; records come
/// in blocks.
#[derive(Debug)]
pub struct LogReader<R = File> {
    source: R,
    file: String,
    header: Header,
    status: ThreadStatus,
    counters: ThreadCounters,
    block: Vec<u8>,
    records: u64,
    /// What ended the log, kept until the good records before it were handed out.
    ended: Option<Result<(), LogError>>,
}

impl LogReader<File> {
    /// Opens a saved log and checks its header; with `run`, also that it belongs to the run of that
    /// id.
    ///
    /// # Errors
    /// [`LogError`]: the file cannot be read, is cut inside header or status, or has a header of something else.
    pub fn open(path: &Path, run: Option<&str>) -> Result<Self, LogError> {
        let name = || path.display().to_string();
        let io = |source| LogError::Io { file: name(), source };
        let file = open_regular(path).map_err(|source| match not_regular(&source) {
            Some(what) => LogError::NotAFile { file: name(), what },
            None => io(source),
        })?;
        let found = file.metadata().map_err(io)?.len();
        let log = Self::new(file, name(), run)?;
        if found > log.header.bytes {
            let source = HeaderError::Size { promised: log.header.bytes, found };
            return Err(LogError::Header { file: name(), source });
        }
        Ok(log)
    }
}

impl<R: Read> LogReader<R> {
    /// Starts to read a log from `source`; `file` is what errors call it.
    ///
    /// # Errors
    /// As for [`LogReader::open`].
    pub fn new(mut source: R, file: String, run: Option<&str>) -> Result<Self, LogError> {
        let mut front = [0; LOG_OFFSET * 8];
        let bytes = match fill(&mut source, &mut front) {
            Ok(bytes) => bytes,
            Err(source) => return Err(LogError::Io { file, source }),
        };
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
        let header = match header {
            Ok(header) => header,
            Err(source) => return Err(LogError::Header { file, source }),
        };
        if bytes < front.len() {
            return Err(LogError::CutStatus { file, bytes: bytes as u64 });
        }
        let status = ThreadStatus::from_words(status_words);
        Ok(Self { source, file, header, status, counters, block: Vec::new(), records: 0, ended: None })
    }

    /// The checked header.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// What the thread said about itself last.
    pub const fn status(&self) -> &ThreadStatus {
        &self.status
    }

    /// What the thread's agents counted.
    pub const fn counters(&self) -> &ThreadCounters {
        &self.counters
    }

    /// What errors call this log: its path.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The records handed out so far; after the last block, all of the log.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// The next records, in the order in which they were written; `None` after the last.
    ///
    /// # Errors
    /// [`LogError`] where the log stops making sense. All records before that place were handed
    /// out.
    pub fn next_block(&mut self) -> Result<Option<Block<'_>>, LogError> {
        if let Some(ended) = self.ended.take() {
            self.ended = Some(Ok(()));
            return ended.map(|()| None);
        }
        self.block.resize(BLOCK_BYTES, 0);
        let bytes = match fill(&mut self.source, &mut self.block) {
            Ok(bytes) => bytes,
            Err(source) => return Err(LogError::Io { file: self.file.clone(), source }),
        };
        let (whole, rest) = self.block[..bytes].as_chunks::<RECORD_BYTES>();
        let good = whole.iter().position(|bytes| !is_record(bytes)).unwrap_or(whole.len());
        let record = self.records + good as u64;
        if good < whole.len() {
            self.ended = Some(match word(&whole[good][..8]) {
                0 => self.check_nothing_follows(bytes, good, record),
                key => Err(LogError::UnknownPoint {
                    file: self.file.clone(),
                    record,
                    offset: offset_of(record),
                    code: code_of(key),
                }),
            });
        } else if !rest.is_empty() {
            let offset = offset_of(record);
            self.ended = Some(Err(LogError::CutRecord { file: self.file.clone(), record, offset }));
        } else if bytes < BLOCK_BYTES {
            self.ended = Some(Ok(()));
        }
        if good == 0 {
            // At most one level deep: `ended` is set, or there was nothing and the file is at its
            // end.
            return match self.ended {
                Some(_) => self.next_block(),
                None => Ok(None),
            };
        }
        let first = self.records;
        self.records = record;
        Ok(Some(Block { first, records: &self.block.as_chunks().0[..good] }))
    }

    /// A zero key ends a log: a file that goes on after it was overwritten in the middle.
    fn check_nothing_follows(&mut self, bytes: usize, end_in_block: usize, end: u64) -> Result<(), LogError> {
        let mut record = end;
        let mut chunk = self.block[end_in_block * RECORD_BYTES..bytes].to_vec();
        loop {
            let whole = chunk.as_chunks::<RECORD_BYTES>().0;
            if let Some(found) = whole.iter().position(|bytes| word(&bytes[..8]) != 0) {
                record += found as u64;
                return Err(LogError::AfterEnd {
                    file: self.file.clone(),
                    end,
                    record,
                    offset: offset_of(record),
                });
            }
            record += whole.len() as u64;
            chunk.resize(BLOCK_BYTES, 0);
            match fill(&mut self.source, &mut chunk) {
                Ok(0) => return Ok(()),
                Ok(bytes) => chunk.truncate(bytes),
                Err(source) => return Err(LogError::Io { file: self.file.clone(), source }),
            }
        }
    }
}

/// Consecutive records of a log, all with keys that were checked.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// The number of the first of them in the log, from 0.
    pub first: u64,
    records: &'a [[u8; RECORD_BYTES]],
}

impl<'a> Block<'a> {
    /// The records, in the order in which they were written.
    pub fn records(self) -> impl Iterator<Item = Record> + 'a {
        self.records.iter().map_while(|bytes| Record::from_words(word(&bytes[..8]), word(&bytes[8..])))
    }

    /// How many there are, at least 1.
    pub const fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none; a reader never hands out such a block.
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

/// Where a record begins in the file.
const fn offset_of(record: u64) -> u64 {
    RECORDS_AT + record * RECORD_BYTES as u64
}

#[inline]
fn is_record(bytes: &[u8; RECORD_BYTES]) -> bool {
    point_of(word(&bytes[..8])).is_some()
}

/// A little-endian word of eight bytes; missing ones count as zero.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Reads until the buffer is full or the source is at its end.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
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
