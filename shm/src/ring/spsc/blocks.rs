//! Blocks of slots, and the words that say which message and which block.

/// Slots of a block, at most: two of them are 4 KiB, so that the blocks of both rings of a round trip fit half of a first-level cache; more slots would leave it,
/// fewer ask for the head more often.
const BLOCK_LOG2: u32 = 5;
/// And at least: a ring that had less than four such blocks is one block. In models as few as can have a message that is not the last one of its block.
const LEAST_LOG2: u32 = if cfg!(loom) { 1 } else { 3 };
/// Slots from which on a ring is long; see [`Blocks::are_long`]. In models any ring that has blocks.
const LONG_LOG2: u32 = if cfg!(loom) { 0 } else { 7 };
/// Slots from which on a message's successor is not asked for; see [`Blocks::are_short`].
const SHORT_LOG2: u32 = 9;
/// The low bits of a sequence and of the head, which name a block.
pub const LINK_BITS: u32 = 12;
/// One message, as it is counted in these words.
pub(super) const ONE: u64 = 1 << LINK_BITS;
/// More messages than are ever counted: 2^51, seven years at ten million a second. Where a scribbled number would make sums overflow.
pub(super) const MANY: u64 = 1 << 51;

/// The sequence of the slot of the message that makes it so many, whose successor is in the slot behind it; or, if it is the last one of
/// its block, with the number of the block where the next message will be.
#[inline(always)]
pub(super) const fn sequence(published: u64, link: u64) -> u64 {
    published << LINK_BITS | link
}

/// How many messages a sequence or a head says.
#[inline(always)]
pub(super) const fn count(word: u64) -> u64 {
    word >> LINK_BITS
}

/// How the slots of a ring are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    slots_log2: u32,
    /// Slots of a block, less one.
    within: u64,
    /// Blocks, less one.
    mask: u64,
}

impl Blocks {
    /// Those of a ring of so many slots, a power of two: one block or at least four, and no more than have a number.
    pub(super) const fn of(capacity: u64) -> Self {
        let log2 = capacity.trailing_zeros();
        let quarter = log2.saturating_sub(2);
        let fewest = log2.saturating_sub(LINK_BITS);
        let slots_log2 = match quarter {
            ..LEAST_LOG2 => log2,
            LEAST_LOG2..=BLOCK_LOG2 => quarter,
            _ if fewest > BLOCK_LOG2 => fewest,
            _ => BLOCK_LOG2,
        };
        Self { slots_log2, within: (1 << slots_log2) - 1, mask: (capacity >> slots_log2) - 1 }
    }

    /// How many there are.
    pub(super) const fn count(self) -> u64 {
        self.mask + 1
    }

    /// Slots of each.
    pub(super) const fn slots(self) -> u64 {
        self.within + 1
    }

    /// Whether a consumer of such a ring is to look for a message only when the one before it is there. In a short ring it runs on over what is already there; in a long one it
    /// catches up with the producer, and then each look ahead takes a line away that is about to be written. See "where the nanoseconds go" in the book.
    pub(super) const fn are_long(self) -> bool {
        self.mask > 0 && (self.mask + 1) << self.slots_log2 >= 1 << LONG_LOG2
    }

    /// Whether a consumer of such a ring is to ask for the slot after the next when it takes a message: where the producer comes to the end of the ring, that line is on its way
    /// meanwhile. In a longer ring, which it does not come to the end of, it would be taken from it. See "where the nanoseconds go" in the book.
    pub(super) const fn are_short(self) -> bool {
        (self.mask + 1) << self.slots_log2 < 1 << SHORT_LOG2
    }

    /// Which part of all messages that position is in: so many blocks were filled before it.
    #[inline(always)]
    pub(super) const fn filled(self, position: u64) -> u64 {
        position >> self.slots_log2
    }

    /// Where in its block that position is.
    #[inline(always)]
    pub(super) const fn within(self, position: u64) -> u64 {
        position & self.within
    }

    /// Slots from that place or position to the end of its block.
    #[inline(always)]
    pub(super) const fn rest(self, place: u64) -> u64 {
        self.slots() - self.within(place)
    }

    /// That number, or what a scribbled word has in its place, as one of these blocks or of these parts of a lap.
    #[inline(always)]
    pub(super) const fn number(self, word: u64) -> u64 {
        word & self.mask
    }

    /// The place of the first slot of the block that a word names.
    #[inline(always)]
    pub(super) const fn first(self, word: u64) -> u64 {
        self.number(word) << self.slots_log2
    }
}

/// Follows the messages of a ring that are there and not taken, as its words say: how many. `head` is the consumer's word, `sequence` loads that of the slot at
/// a place.
#[cfg(not(loom))]
pub(in crate::ring) fn waiting(
    capacity: u64,
    head: u64,
    mut sequence: impl FnMut(u64) -> Option<u64>,
) -> Option<u64> {
    let blocks = Blocks::of(capacity);
    let taken = count(head).min(MANY);
    let mut place = blocks.first(head) + blocks.within(taken);
    let mut waiting = 0;
    while waiting < capacity {
        // The whole block, or one message of it.
        let rest = blocks.rest(place);
        let last = sequence(place + rest - 1)?;
        if count(last) == taken + waiting + rest {
            waiting += rest;
            place = blocks.first(last);
        } else if count(sequence(place)?) == taken + waiting + 1 {
            waiting += 1;
            place += 1;
        } else {
            break;
        }
    }
    Some(waiting.min(capacity))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn blocks_make_up_the_ring_and_have_numbers() {
        for log2 in 0..33 {
            let blocks = Blocks::of(1 << log2);
            assert_eq!(blocks.slots() * blocks.count(), 1 << log2);
            assert!(blocks.count() <= ONE, "{log2}");
            assert_eq!(blocks.count() == 1, log2 < 5);
            assert!(blocks.count() >= 4 || log2 < 5);
            assert!(blocks.slots() == 32 || log2 < 7 || blocks.count() == ONE);
            assert_eq!(blocks.are_long(), log2 >= 7);
            assert_eq!(blocks.are_short(), log2 < 9);
        }
    }

    #[test]
    fn a_word_names_a_block_and_a_place_has_the_rest_of_its_block() {
        let blocks = Blocks::of(256);
        assert_eq!((blocks.rest(64), blocks.rest(64 + 31), blocks.rest(3)), (32, 1, 29));
        assert_eq!(blocks.first(sequence(32, 7)), 7 * 32);
        // Nobody's block is some block.
        assert_eq!(blocks.first(sequence(64, 8 + 3)), 3 * 32);
    }
}
