//! Memory layout of the ring: offsets, and the meaning of a stamp.

use crate::memory::{AtomicWords, Header, HeaderError, SegmentKind, header::HEADER_WORDS};

/// Offset (words) in an `array-queue` ring of the cursor that its producers share.
pub const TAIL: usize = HEADER_WORDS;
/// Offset (words) of the first slot of an `array-queue` ring.
pub const SLOTS: usize = TAIL + 16;
/// The segment kind of an `array-queue` ring.
pub const KIND: SegmentKind = SegmentKind::new(7, "array-queue", &[("tail", TAIL), ("slots", SLOTS)]);

/// Flag in a slot's stamp that the slot is written, next to the pass number; 0 means free.
pub(super) const WRITTEN: u64 = 1;
/// Difference between the stamps of a slot in two successive passes through the ring.
pub(super) const LAP: u64 = 2;

/// Returns the size in words of the segment of a ring with `capacity` slots.
pub const fn ring_words(capacity: usize, slot_words: usize) -> usize {
    SLOTS + capacity * (slot_words + 1)
}

/// Tail, slots and capacity of an attached ring, already checked.
pub(super) struct RingLayout<const W: usize> {
    pub(super) tail: AtomicWords,
    pub(super) slots: AtomicWords,
    mask: u64,
    log2: u32,
}

impl<const W: usize> RingLayout<W> {
    pub(super) fn attach(words: &AtomicWords) -> Result<Self, HeaderError> {
        let header = words.header(KIND)?;
        let capacity = header.check_geometry(SLOTS, W + 1)? as u64;
        if !capacity.is_power_of_two() {
            return Err(header.bad_geometry());
        }
        Ok(Self {
            tail: words.slice(TAIL, 1),
            slots: words.slice(SLOTS, capacity as usize * (W + 1)),
            mask: capacity - 1,
            log2: capacity.trailing_zeros(),
        })
    }

    pub(super) fn capacity(&self) -> u64 {
        self.mask + 1
    }

    #[inline(always)]
    pub(super) fn slot_offset(&self, position: u64) -> usize {
        (position & self.mask) as usize * (W + 1)
    }

    /// Returns the value of a slot's stamp that means that it is free for a position.
    #[inline(always)]
    pub(super) fn free_stamp(&self, position: u64) -> u64 {
        (position >> self.log2) << LAP.trailing_zeros()
    }
}

/// Writes the header of a ring into zeroed words, for tests and benches. A run's segments get
/// theirs from the launcher.
pub fn write_header<const W: usize>(words: &AtomicWords, capacity: usize) {
    Header::anonymous(KIND, words.len(), capacity as u64, W as u64 + 1, 0).write(words);
}
