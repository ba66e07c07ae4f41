//! The header at the start of every segment: its creator, its kind, and the fingerprint of its
//! layout.
//!
//! ```text
//! word  0  magic          stored last (Release), read first (Acquire): before it nothing is valid
//!       1  version        of the formats
//!       2  layout hash    of every offset and size of this kind of segment
//!       3  bytes          of the whole segment
//!       4  kind           what the segment is: [`SegmentKind::code`]
//!       5  capacity       slots, records or entries, by the kind
//!       6  slot words     words in a slot, record or entry
//!       7  creator pid
//!       8  creator start  /proc/PID/stat field 22: distinguishes it from a later process
//!       9  run            hash of the run's id
//!      10  index          whose it is among its kind (a thread's index in the plan)
//!   11–15  zero
//! ```
//!
//! An end that attaches with a plan does not read it: the plan has the geometry, and any writer of
//! the segment can overwrite its header ([`Source::header`](crate::attached::Source::header)).
//! Without a plan it checks all of it, takes its own copy of the geometry and never reads it from
//! shared memory again.

use crate::sync::{AtomicU64, Ordering};
use thiserror::Error;

/// Number of 64-bit words in a segment's header: 128 bytes, two cache lines (the adjacent-line
/// prefetcher fetches pairs).
pub const HEADER_WORDS: usize = 16;

/// Index of the header word with the segment's number among those of its kind: [`Header::index`].
pub const INDEX: usize = 10;

/// The first word of every segment: `bulkhead` in ASCII, little endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"bulkhead");

/// The version of all segment formats, raised with every change that the layout hash (of offsets
/// and sizes) does not cover.
pub const VERSION: u64 = 3;

/// Returns the FNV-1a hash (Fowler, Noll, Vo) `hash` continued over `bytes`, for layouts and run
/// ids.
pub const fn fnv1a(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x100_0000_01b3);
        i += 1;
    }
    hash
}

/// The initial value of an FNV-1a hash.
pub const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// A kind of shared-memory segment: its code, its name and its layout. Each layout has a constant
/// of this type next to the offsets that it names.
///
/// The fingerprint covers every name, offset and size that two processes must agree on. Change a
/// layout and processes of the two builds refuse each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentKind {
    /// Code of the kind, unique among the kinds of a run.
    pub code: u64,
    /// The name of the kind in error messages.
    pub name: &'static str,
    /// Hash of the kind's layout and of the header layout that all segments share.
    pub layout: u64,
    /// Whether a segment's pages are touched when the segment is mapped: not for a reserve, which
    /// grows by the pages that are used.
    pub prefault: bool,
    /// Words of other content before the first slot, record or entry; the header at least.
    pub offset: usize,
    /// Words of each slot, record or entry; `None` if the creator of the segment chooses them.
    pub slot_words: Option<usize>,
}

impl SegmentKind {
    /// Creates a segment kind with this code, this name, and a layout of offsets and sizes in
    /// words.
    pub const fn new(code: u64, name: &'static str, layout: &[(&str, usize)]) -> Self {
        let mut hash = entry(entry(FNV_OFFSET, "header", HEADER_WORDS), name, code as usize);
        let mut i = 0;
        while i < layout.len() {
            hash = entry(hash, layout[i].0, layout[i].1);
            i += 1;
        }
        Self { code, name, layout: hash, prefault: true, offset: HEADER_WORDS, slot_words: None }
    }

    /// Marks a segment kind as memory whose pages are not touched when a segment is mapped.
    #[must_use]
    pub const fn reserve(self) -> Self {
        Self { prefault: false, ..self }
    }

    /// Sets the size of a slot in segments of this kind, in words, and the first slot's offset from
    /// the segment's start, in words.
    #[must_use]
    pub const fn of_slots(self, offset: usize, slot_words: usize) -> Self {
        Self { offset, slot_words: Some(slot_words), ..self }
    }
}

const fn entry(hash: u64, name: &str, value: usize) -> u64 {
    fnv1a(fnv1a(hash, name.as_bytes()), &(value as u64).to_le_bytes())
}

/// Errors of checking the header of a segment or of a saved log.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// Too few bytes for a header.
    #[error("{0} bytes: too short for a bulkhead header ({min} bytes)", min = HEADER_WORDS * 8)]
    TooShort(u64),
    /// The memory is not one of bulkhead's segments, or not complete yet.
    #[error("wrong magic {0:#018x}: not a bulkhead segment, or its creator died before it was complete")]
    Magic(u64),
    /// The segment has another version of the segment formats.
    #[error("format version {0}, this build reads version {VERSION}: use the launcher that wrote it")]
    Version(u64),
    /// The segment has the expected format version and another layout than this program.
    #[error("layout hash {found:#018x}, this build has {expected:#018x}: use the launcher that wrote it")]
    Layout {
        /// The layout hash of this build.
        expected: u64,
        /// The layout hash in the header.
        found: u64,
    },
    /// The segment is of another kind than the requested one.
    #[error("segment kind {found}, expected {} ({})", expected.code, expected.name)]
    WrongKind {
        /// The expected value.
        expected: SegmentKind,
        /// The code that was found.
        found: u64,
    },
    /// The header states another size than the segment has.
    #[error("header promises {promised} bytes, there are {found}: cut short or overwritten")]
    Size {
        /// The size that the header states, in bytes.
        promised: u64,
        /// The size of the file, in bytes.
        found: u64,
    },
    /// The capacity, words and bytes that the header states do not fit together.
    #[error("impossible geometry: capacity {capacity}, {slot_words} words each, in {bytes} bytes")]
    Geometry {
        /// Number of slots, records or entries.
        capacity: u64,
        /// Words of each slot, record or entry.
        slot_words: u64,
        /// Bytes of the whole segment.
        bytes: u64,
    },
    /// The segment is from another run.
    #[error("belongs to another run")]
    OtherRun,
}

/// The decoded and checked header at the start of a shared-memory segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of the segment: [`SegmentKind::code`].
    pub kind: SegmentKind,
    /// Bytes of the whole segment (of a saved log: of the segment that it was saved from).
    pub bytes: u64,
    /// Number of slots, records or entries.
    pub capacity: u64,
    /// Words of each slot, record or entry.
    pub slot_words: u64,
    /// Process id of the creator.
    pub creator_pid: u32,
    /// Time at which the creator's process started (clock ticks since boot).
    pub creator_start: u64,
    /// Hash of the run's id ([`run_hash`]).
    pub run: u64,
    /// Index of the segment among those of its kind.
    pub index: u64,
}

/// Returns the hash of a run's id that the headers of its segments carry.
pub const fn run_hash(run: &str) -> u64 {
    fnv1a(FNV_OFFSET, run.as_bytes())
}

impl Header {
    /// Makes the header of a segment of `words` words without creator and run, for tests, benches
    /// and memory within one process.
    pub const fn anonymous(
        kind: SegmentKind,
        words: usize,
        capacity: u64,
        slot_words: u64,
        index: u64,
    ) -> Self {
        let bytes = words as u64 * 8;
        Self { kind, bytes, capacity, slot_words, creator_pid: 0, creator_start: 0, run: 0, index }
    }

    /// Decodes a segment header's words and checks magic, version, layout and kind. The caller
    /// checks sizes.
    ///
    /// # Errors
    /// The first field that is not as it must be.
    pub fn decode(words: &[u64; HEADER_WORDS], expected: SegmentKind) -> Result<Self, HeaderError> {
        if words[0] != MAGIC {
            return Err(HeaderError::Magic(words[0]));
        }
        if words[1] != VERSION {
            return Err(HeaderError::Version(words[1]));
        }
        if words[4] != expected.code {
            return Err(HeaderError::WrongKind { expected, found: words[4] });
        }
        if words[2] != expected.layout {
            return Err(HeaderError::Layout { expected: expected.layout, found: words[2] });
        }
        Ok(Self {
            kind: expected,
            bytes: words[3],
            capacity: words[5],
            slot_words: words[6],
            creator_pid: words[7] as u32,
            creator_start: words[8],
            run: words[9],
            index: words[INDEX],
        })
    }

    /// Returns the process id and start time (clock ticks since boot) of the process that created a
    /// segment of any kind. `None` if `words` are not a header of this version.
    pub const fn creator(words: &[u64; HEADER_WORDS]) -> Option<(u32, u64)> {
        if words[0] == MAGIC && words[1] == VERSION { Some((words[7] as u32, words[8])) } else { None }
    }

    /// Writes the header into a fresh segment, the magic last: a reader of the magic sees
    /// everything before it. Release: pairs with the Acquire in [`Header::read`].
    ///
    /// # Panics
    /// If `words` is shorter than a header.
    pub fn write(&self, words: &[AtomicU64]) {
        let fields = [
            VERSION,
            self.kind.layout,
            self.bytes,
            self.kind.code,
            self.capacity,
            self.slot_words,
            u64::from(self.creator_pid),
            self.creator_start,
            self.run,
            self.index,
        ];
        for (word, field) in words[1..].iter().zip(fields) {
            word.store(field, Ordering::Relaxed);
        }
        words[0].store(MAGIC, Ordering::Release);
    }

    /// Reads and checks the header of a mapped segment, including that the segment has the promised
    /// size.
    ///
    /// # Errors
    /// The first field that is not as it must be.
    pub fn read(
        load: impl Fn(usize, Ordering) -> u64,
        len: usize,
        expected: SegmentKind,
    ) -> Result<Self, HeaderError> {
        if len < HEADER_WORDS {
            return Err(HeaderError::TooShort(len as u64 * 8));
        }
        let mut words = [0; HEADER_WORDS];
        // Acquire: pairs with the Release of the magic in `write`.
        words[0] = load(0, Ordering::Acquire);
        if words[0] != MAGIC {
            return Err(HeaderError::Magic(words[0]));
        }
        for (i, word) in words.iter_mut().enumerate().skip(1) {
            *word = load(i, Ordering::Relaxed);
        }
        let header = Self::decode(&words, expected)?;
        if header.bytes != len as u64 * 8 {
            return Err(HeaderError::Size { promised: header.bytes, found: len as u64 * 8 });
        }
        Ok(header)
    }

    /// Checks that the header's slots have `slot_words` words and fit after `offset` words of other
    /// content; returns their number.
    ///
    /// # Errors
    /// [`HeaderError::Geometry`].
    pub fn check_geometry(&self, offset: usize, slot_words: usize) -> Result<usize, HeaderError> {
        let words = self.capacity.checked_mul(slot_words as u64).and_then(|w| w.checked_add(offset as u64));
        let fits = words.and_then(|w| w.checked_mul(8)).is_some_and(|bytes| bytes <= self.bytes);
        if fits && self.slot_words == slot_words as u64 {
            Ok(self.capacity as usize)
        } else {
            Err(self.bad_geometry())
        }
    }

    pub(crate) const fn bad_geometry(&self) -> HeaderError {
        let Self { capacity, slot_words, bytes, .. } = *self;
        HeaderError::Geometry { capacity, slot_words, bytes }
    }
}
