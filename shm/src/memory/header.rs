//! The header at the start of every segment: its creator, its kind, and the fingerprint of its
//! layout.
//!
//! ```text
//! word  0  magic          stored last (Release), read first (Acquire): before it nothing is valid
//!       1  version        of the formats
//!       2  layout hash    of every offset and size of this kind of segment
//!       3  bytes          of the whole segment
//!       4  kind           what the segment is: [`SegmentKind::code`]
//!       5  capacity       slots, records or entries; what the kind says
//!       6  slot words     words in a slot, record or entry
//!       7  creator pid
//!       8  creator start  /proc/PID/stat field 22: tells the creator from a later process
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

/// Words in a header: 128 bytes, two cache lines (the adjacent-line prefetcher fetches pairs).
pub const HEADER_WORDS: usize = 16;

/// Index of the header word that numbers the segments of one kind: [`Header::index`].
pub const INDEX: usize = 10;

/// The first word of every segment: `bulkhead` in ASCII, little endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"bulkhead");

/// The version of the formats; raised with every change that the layout hash cannot see.
pub const VERSION: u64 = 3;

/// FNV-1a over bytes (Fowler, Noll, Vo), the hash of layouts and run ids.
pub const fn fnv1a(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x100_0000_01b3);
        i += 1;
    }
    hash
}

/// The initial value of FNV-1a.
pub const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// A kind of segment: each layout has a constant of this type next to the offsets that it names.
///
/// The fingerprint covers every name, offset and size that two processes must agree on. Change a
/// layout and processes of the two builds refuse each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentKind {
    /// Code of the kind, unique among the kinds of a run.
    pub code: u64,
    /// For people.
    pub name: &'static str,
    /// The hash of its layout, and of what all segments have in common.
    pub layout: u64,
    /// Whether its pages are touched when it is mapped: not for a reserve, which grows by the pages
    /// that are used.
    pub prefault: bool,
    /// Words of other content before the first slot, record or entry; the header at least.
    pub offset: usize,
    /// Words in each; `None`: as the creator chose.
    pub slot_words: Option<usize>,
}

impl SegmentKind {
    /// Creates a kind with this code, this name, and a layout of named offsets and sizes in words.
    pub const fn new(code: u64, name: &'static str, layout: &[(&str, usize)]) -> Self {
        let mut hash = entry(entry(FNV_OFFSET, "header", HEADER_WORDS), name, code as usize);
        let mut i = 0;
        while i < layout.len() {
            hash = entry(hash, layout[i].0, layout[i].1);
            i += 1;
        }
        Self { code, name, layout: hash, prefault: true, offset: HEADER_WORDS, slot_words: None }
    }

    /// Marks the kind as a reserve, whose pages are not touched when it is mapped.
    #[must_use]
    pub const fn reserve(self) -> Self {
        Self { prefault: false, ..self }
    }

    /// Sets the size of the segment's slots, which begin after `offset` words.
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
    /// Another format.
    #[error("format version {0}, this build reads version {VERSION}: use the launcher that wrote it")]
    Version(u64),
    /// Another layout of the same version.
    #[error("layout hash {found:#018x}, this build has {expected:#018x}: use the launcher that wrote it")]
    Layout {
        /// This build's.
        expected: u64,
        /// In the header.
        found: u64,
    },
    /// A kind other than the requested one.
    #[error("segment kind {found}, expected {} ({})", expected.code, expected.name)]
    WrongKind {
        /// The expected value.
        expected: SegmentKind,
        /// The code that was found.
        found: u64,
    },
    /// The header promises another size than there is.
    #[error("header promises {promised} bytes, there are {found}: cut short or overwritten")]
    Size {
        /// In the header.
        promised: u64,
        /// In the file.
        found: u64,
    },
    /// A geometry that cannot be.
    #[error("impossible geometry: capacity {capacity}, {slot_words} words each, in {bytes} bytes")]
    Geometry {
        /// Slots, records or entries.
        capacity: u64,
        /// Words in each.
        slot_words: u64,
        /// In the whole segment.
        bytes: u64,
    },
    /// From another run.
    #[error("belongs to another run")]
    OtherRun,
}

/// The header, decoded and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of the segment: [`SegmentKind::code`].
    pub kind: SegmentKind,
    /// Bytes of the whole segment (of a saved log: of the segment that it was saved from).
    pub bytes: u64,
    /// Slots, records or entries.
    pub capacity: u64,
    /// Words in each.
    pub slot_words: u64,
    /// Process id of the creator.
    pub creator_pid: u32,
    /// When that process started (clock ticks since boot).
    pub creator_start: u64,
    /// [`run_hash`] of the run's id.
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

    /// Decodes copied words and checks magic, version, layout and kind. The caller checks sizes.
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

    /// Returns the id and start time of the process that created a segment of any kind. `None` if
    /// `words` are not a header of this version.
    pub const fn creator(words: &[u64; HEADER_WORDS]) -> Option<(u32, u64)> {
        if words[0] == MAGIC && words[1] == VERSION { Some((words[7] as u32, words[8])) } else { None }
    }

    /// Writes the header into a fresh segment, the magic last (Release: pairs with the Acquire in
    /// [`Header::read`]), so that a reader of the magic sees everything written before it.
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

    /// Checks that `capacity` slots of `slot_words` words fit after `offset` words of other
    /// content.
    ///
    /// # Errors
    /// [`HeaderError::Geometry`].
    pub fn check_geometry(&self, offset: usize, slot_words: usize) -> Result<usize, HeaderError> {
        let words = self.capacity.checked_mul(slot_words as u64).and_then(|w| w.checked_add(offset as u64));
        let fits = words.and_then(|w| w.checked_mul(8)).is_some_and(|bytes| bytes <= self.bytes);
        if fits && self.slot_words == slot_words as u64 {
            Ok(self.capacity as usize)
        } else {
            let Self { capacity, slot_words, bytes, .. } = *self;
            Err(HeaderError::Geometry { capacity, slot_words, bytes })
        }
    }
}
