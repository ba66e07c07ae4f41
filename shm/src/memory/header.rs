//! The header at the start of every segment, and the fingerprint of all layouts.
//!
//! ```text
//! word  0  magic          stored last (Release), read first (Acquire): before it, nothing below is believed
//!       1  version        of the formats
//!       2  layout hash    of every offset and size that two processes must agree on
//!       3  bytes          of the whole segment
//!       4  kind           what the segment is: `Kind`
//!       5  capacity       slots, records or entries; what the kind says
//!       6  slot words     words in a slot, record or entry
//!       7  creator pid
//!       8  creator start  /proc/PID/stat field 22: tells the creator from a later process of its pid
//!       9  run            hash of the run's id
//!      10  index          whose it is among its kind (a thread's index in the plan)
//!   11–15  zero
//! ```
//!
//! An attacher checks all of it, takes its own copy of the geometry and never reads it from shared memory again.

use crate::ring::{array_queue, intent, linked, spsc};
use crate::stamps::RECORD_WORDS;
use crate::status::STATUS_WORDS;
use crate::sync::{AtomicU64, Ordering};
use crate::wire::MESSAGE_WORDS;
use thiserror::Error;

/// Words in a header: 128 bytes, two cache lines (the adjacent-line prefetcher fetches pairs).
pub const HEADER_WORDS: usize = 16;

/// `bulkhead` in ASCII, little endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"bulkhead");

/// The version of the formats; raised with every change that the layout hash cannot see.
pub const VERSION: u64 = 3;

/// Words in a schedule entry: see `strategy::schedule`.
pub const SCHEDULE_ENTRY_WORDS: usize = 4;

/// FNV-1a over bytes (Fowler, Noll, Vo), the hash of layouts and run ids.
pub const fn fnv1a(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x100_0000_01b3);
        i += 1;
    }
    hash
}

/// Where FNV-1a starts.
pub const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// A fingerprint of every name, offset and size that two processes must agree on. Change a layout and processes
/// of the two builds refuse each other.
pub const LAYOUT_HASH: u64 = {
    let layout: &[(&str, usize)] = &[
        ("header", HEADER_WORDS),
        ("message", MESSAGE_WORDS),
        ("record", RECORD_WORDS),
        ("status", STATUS_WORDS),
        ("schedule-entry", SCHEDULE_ENTRY_WORDS),
        ("ring-head", spsc::HEAD),
        ("ring-head-words", spsc::HEAD_WORDS),
        ("ring-slots", spsc::SLOTS),
        ("ring-slot-words", spsc::slot_words(MESSAGE_WORDS)),
        ("array-queue-tail", array_queue::TAIL),
        ("array-queue-slots", array_queue::SLOTS),
        ("intent-place", intent::PLACE),
        ("intent-block", intent::BLOCK),
        ("linked-last", linked::LAST),
        ("linked-fresh", linked::FRESH),
        ("linked-free-head", linked::FREE_HEAD),
        ("linked-free-tail", linked::FREE_TAIL),
        ("linked-head", linked::HEAD),
        ("linked-current", linked::CURRENT),
        ("linked-free-ring", linked::FREE_RING),
        ("linked-slots", linked::BLOCK_SLOTS),
        ("bell", crate::bell::BELL),
        ("control-state", crate::control::STATE),
        ("control-start", crate::control::START),
        ("control-lives", crate::control::LIVES),
        ("control-plan", crate::control::PLAN),
    ];
    let mut hash = FNV_OFFSET;
    let mut i = 0;
    while i < layout.len() {
        hash = fnv1a(hash, layout[i].0.as_bytes());
        hash = fnv1a(hash, &(layout[i].1 as u64).to_le_bytes());
        i += 1;
    }
    hash
};

/// What a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    /// The plan and the run's state; written by the launcher.
    Control = 1,
    /// The producer's part of a ring; written by the producer.
    Ring = 2,
    /// A thread's status block and stamp log; written by that thread.
    Thread = 3,
    /// A strategy's schedule; written by the launcher before the start.
    Schedule = 4,
    /// A thread's doorbell.
    Bell = 5,
    /// The consumer's part of a ring; written by the consumer.
    RingHead = 6,
    /// A bounded ring with a stamp per slot.
    ArrayQueue = 7,
    /// An arena of linked blocks.
    Linked = 8,
    /// What one producer announces before it claims, in a ring that several write; written by that producer.
    Intent = 9,
    /// What the engine says about strategies that died or misbehave; written by the engine.
    Repairs = 10,
}

impl Kind {
    /// The kind with this code.
    pub const fn from_code(code: u64) -> Option<Self> {
        match code {
            1 => Some(Kind::Control),
            2 => Some(Kind::Ring),
            3 => Some(Kind::Thread),
            4 => Some(Kind::Schedule),
            5 => Some(Kind::Bell),
            6 => Some(Kind::RingHead),
            7 => Some(Kind::ArrayQueue),
            8 => Some(Kind::Linked),
            9 => Some(Kind::Intent),
            10 => Some(Kind::Repairs),
            _ => None,
        }
    }
}

/// Why a segment or a saved log is not believed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// Too few bytes for a header.
    #[error("{0} bytes: too short for a bulkhead header ({min} bytes)", min = HEADER_WORDS * 8)]
    TooShort(u64),
    /// Not ours, or not yet complete.
    #[error("wrong magic {0:#018x}: not a bulkhead segment, or its creator died before it was complete")]
    Magic(u64),
    /// Another format.
    #[error("format version {0}, this build reads version {VERSION}: use the launcher that wrote it")]
    Version(u64),
    /// Another layout of the same version.
    #[error("layout hash {0:#018x}, this build has {LAYOUT_HASH:#018x}: use the launcher that wrote it")]
    Layout(u64),
    /// A kind that is not the one asked for.
    #[error("segment kind {found}, expected {expected:?}")]
    WrongKind {
        /// What was expected.
        expected: Kind,
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
    /// What the segment is.
    pub kind: Kind,
    /// Bytes of the whole segment (of a saved log: of the segment that it was saved from).
    pub bytes: u64,
    /// Slots, records or entries.
    pub capacity: u64,
    /// Words in each.
    pub slot_words: u64,
    /// Who created it.
    pub creator_pid: u32,
    /// When that process started (clock ticks since boot).
    pub creator_start: u64,
    /// [`run_hash`] of the run's id.
    pub run: u64,
    /// Whose it is among its kind.
    pub index: u64,
}

/// The hash of a run's id that the headers of its segments carry.
pub const fn run_hash(run: &str) -> u64 {
    fnv1a(FNV_OFFSET, run.as_bytes())
}

impl Header {
    /// Checks copied-out words: magic, version, layout, kind. Sizes are for the caller, who knows what there is.
    ///
    /// # Errors
    /// The first field that is not as it must be.
    pub fn decode(words: &[u64; HEADER_WORDS], expected: Kind) -> Result<Self, HeaderError> {
        if words[0] != MAGIC {
            return Err(HeaderError::Magic(words[0]));
        }
        if words[1] != VERSION {
            return Err(HeaderError::Version(words[1]));
        }
        if words[2] != LAYOUT_HASH {
            return Err(HeaderError::Layout(words[2]));
        }
        let kind = Kind::from_code(words[4]).filter(|kind| *kind == expected);
        let Some(kind) = kind else { return Err(HeaderError::WrongKind { expected, found: words[4] }) };
        Ok(Self {
            kind,
            bytes: words[3],
            capacity: words[5],
            slot_words: words[6],
            creator_pid: words[7] as u32,
            creator_start: words[8],
            run: words[9],
            index: words[10],
        })
    }

    /// Writes the header into a fresh segment, the magic last (Release: pairs with the Acquire in
    /// [`Header::read`]), so that whoever sees the magic sees everything written before it.
    ///
    /// # Panics
    /// If `words` is shorter than a header.
    pub fn write(&self, words: &[AtomicU64]) {
        let fields = [
            VERSION,
            LAYOUT_HASH,
            self.bytes,
            self.kind as u64,
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

    /// Reads and checks the header of a mapped segment, including that the segment has the promised size.
    ///
    /// # Errors
    /// The first field that is not as it must be.
    pub fn read(
        load: impl Fn(usize, Ordering) -> u64,
        len: usize,
        expected: Kind,
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

    /// Checks that `capacity` slots of `slot_words` words fit behind `offset` words of other content.
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
