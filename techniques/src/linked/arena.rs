//! Allocates and frees the blocks of the linked list: their layout, and the encoding of links.

use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, Header, HeaderError, SegmentKind};
use shm::ring::intent::Intent;
use shm::sync::{Ordering, spin_hint};

/// Offset (words), in a linked list's segment, of the next message's number, which a producer
/// claims by advancing the word.
pub const TAIL: usize = HEADER_WORDS;
/// Offset (words), in a linked list's segment, of the word with the newest memory block's number
/// and index. A word of 0 is the first block.
pub const LAST: usize = TAIL + 16;
/// Offset in words, from the segment's start, of the number of memory blocks that were ever taken
/// from the part of the segment that nobody had used.
pub const FRESH: usize = LAST + 16;
/// Offset (words) of the number of freed memory blocks that were reused.
pub const FREE_HEAD: usize = FRESH + 16;
/// Offset (words) of the number of memory blocks freed.
pub const FREE_TAIL: usize = FREE_HEAD + 16;
/// Offset (words) of the number of the message that the consumer takes next, with which a successor
/// of the consumer continues.
pub const HEAD: usize = FREE_TAIL + 16;
/// Offset (words) of the index of the consumer's current block. The previous one follows, which it
/// has not freed.
pub const CURRENT: usize = HEAD + 1;
/// Offset (words) of the ring of freed blocks' indices.
pub const FREE_RING: usize = HEAD + 16;

/// Number of messages per memory block, as in the standard library's channel.
pub const BLOCK_SLOTS: usize = 31;
/// The kind (code, name and layout) of the segment that holds a linked list's memory blocks.
pub const KIND: SegmentKind = SegmentKind::new(
    8,
    "linked",
    &[
        ("tail", TAIL),
        ("last", LAST),
        ("fresh", FRESH),
        ("free-head", FREE_HEAD),
        ("free-tail", FREE_TAIL),
        ("head", HEAD),
        ("current", CURRENT),
        ("free-ring", FREE_RING),
        ("slots", BLOCK_SLOTS),
    ],
)
.reserve();
/// Maximum number of memory blocks in a linked list's segment, used or free: 2^23, since a link
/// stores the block's index in 23 bits.
pub const MAX_BLOCKS: usize = 1 << 23;

/// Maximum number of attempts of a push before it returns [`Full`](shm::ring::Full); see
/// `array_queue`.
pub(super) const MAX_TRIES: u32 = 128;

/// Returns the size in words of a memory block for `slots` messages of `words` words.
pub const fn block_words(slots: usize, words: usize) -> usize {
    (1 + slots * (words + 1)).next_multiple_of(16)
}

const fn blocks_offset(blocks: usize) -> usize {
    FREE_RING + blocks.next_multiple_of(16)
}

/// Returns the size in words of a linked list's segment with `blocks` memory blocks of `slots`
/// messages of `words` words.
pub const fn arena_words(blocks: usize, slots: usize, words: usize) -> usize {
    blocks_offset(blocks) + blocks * block_words(slots, words)
}

/// Returns the number of blocks that a linked list reserves, 16 times as many as a ring of
/// `capacity` slots needs. Also one spare block per producer, and two partly used blocks.
pub const fn reserved_blocks(capacity: usize, producers: usize) -> usize {
    (16 * capacity).div_ceil(BLOCK_SLOTS) + producers + 2
}

/// A link to a memory block: its number in the list and its id in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockLink {
    pub(super) number: u64,
    pub(super) id: usize,
}

impl BlockLink {
    /// Block 0, which is in the list from the start.
    pub(super) const FIRST: Self = Self { number: 0, id: 0 };

    /// Decodes the link to the newest block of a list; 0 is block 0.
    #[inline(always)]
    pub(super) const fn newest(word: u64, blocks: usize) -> Option<Self> {
        if word == 0 { Some(Self::FIRST) } else { Self::from_word(word, blocks) }
    }

    pub(super) const fn to_word(self) -> u64 {
        self.number << 24 | (self.id as u64) << 1 | 1
    }

    /// Decodes a link from a word; `None` without a link, or for a block outside the arena.
    #[inline(always)]
    pub(super) const fn from_word(word: u64, blocks: usize) -> Option<Self> {
        let block = Self { number: word >> 24, id: (word >> 1) as usize & (MAX_BLOCKS - 1) };
        if word & 1 == 1 && block.id < blocks { Some(block) } else { None }
    }
}

/// A memory region that is divided into blocks of messages, already validated.
pub(super) struct BlockArena<const W: usize, const B: usize> {
    pub(super) words: AtomicWords,
    pub(super) blocks: usize,
}

impl<const W: usize, const B: usize> BlockArena<W, B> {
    pub(super) fn attach(words: &AtomicWords) -> Result<Self, HeaderError> {
        let header = words.header(KIND)?;
        let blocks = header.check_geometry(FREE_RING, block_words(B, W))?;
        let Header { capacity, slot_words, bytes, .. } = header;
        if !(2..=MAX_BLOCKS).contains(&blocks) || arena_words(blocks, B, W) > words.len() {
            return Err(HeaderError::Geometry { capacity, slot_words, bytes });
        }
        Ok(Self { words: words.slice(0, arena_words(blocks, B, W)), blocks })
    }

    #[inline(always)]
    pub(super) fn block_offset(&self, id: usize) -> usize {
        blocks_offset(self.blocks) + id * block_words(B, W)
    }

    /// Returns the offset (words) of a slot: its stamp, then the message.
    #[inline(always)]
    pub(super) fn slot_offset(&self, block: usize, slot: usize) -> usize {
        block + 1 + slot * (W + 1)
    }

    /// Allocates a freed block, or else an untouched one of the arena, and returns its id. The
    /// block carries its owner's mark as soon as it is allocated; a lagging counter is advanced by
    /// any producer.
    pub(super) fn allocate(&self, intent: &Intent) -> Option<usize> {
        let (words, blocks) = (&self.words, self.blocks);
        for _ in 0..MAX_TRIES {
            // Relaxed: only a proposal, the CAS decides.
            let head = words[FREE_HEAD].load(Ordering::Relaxed);
            // Acquire: pairs with the consumer's Release; the id is visible, and the consumer's
            // reads of the block are over.
            let free = words[FREE_TAIL].load(Ordering::Acquire).wrapping_sub(head);
            let (counter, count, id, mark) = if (1..=blocks as u64).contains(&free) {
                let place = FREE_RING + (head % blocks as u64) as usize;
                (FREE_HEAD, head, words[place].load(Ordering::Relaxed) as usize, self.free_mark(head))
            } else {
                // Block 0 is in use from the start.
                let fresh = words[FRESH].load(Ordering::Relaxed);
                if fresh >= blocks as u64 - 1 {
                    return None;
                }
                (FRESH, fresh, fresh as usize + 1, 0)
            };
            let mut is_ours = false;
            if id < blocks {
                intent.announce_block(id);
                // Fresh allocations are numbered 1 to blocks - 1, reused ones from there: unique,
                // and never 0 (the first use of block 0).
                let allocation = if counter == FRESH { count + 1 } else { count.wrapping_add(blocks as u64) };
                // Release: the announcement comes before it. The CAS succeeds only with the mark of
                // this index of the free ring, or none, because the values read may be stale.
                let next = &words[self.block_offset(id)];
                let taken = taken_mark(allocation, intent.index);
                is_ours = next.compare_exchange(mark, taken, Ordering::Release, Ordering::Relaxed).is_ok();
            }
            // Relaxed: the block was released by the consumer, not by the producer that took the
            // previous one.
            let _ = words[counter].compare_exchange(
                count,
                count.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if is_ours {
                return Some(id);
            }
            spin_hint();
        }
        None
    }

    /// Returns the mark in `next` of the block that was freed as the `count`th one.
    fn free_mark(&self, count: u64) -> u64 {
        count.wrapping_add(self.blocks as u64) << MARK_BITS
    }

    /// Frees a block, which is the `count`th one to be freed. For the only consumer.
    #[inline(always)]
    pub(super) fn free(&self, id: usize, count: u64) {
        // Release: pairs with the Acquire in `link_next_block` of a producer with a stale view of
        // the block: it finds a later `last`.
        self.words[self.block_offset(id)].store(self.free_mark(count), Ordering::Release);
        self.words[FREE_RING + (count % self.blocks as u64) as usize].store(id as u64, Ordering::Relaxed);
        // Release: pairs with the Acquire in `allocate`; the id is visible, and our reads of the
        // block are over.
        self.words[FREE_TAIL].store(count + 1, Ordering::Release);
    }

    /// Returns `true` if a block is being freed as the `count`th one. It may not be in the free
    /// ring yet.
    pub(super) fn is_being_freed(&self, id: usize, count: u64) -> bool {
        self.words[self.block_offset(id)].load(Ordering::Relaxed) == self.free_mark(count)
    }

    /// Returns `true` if a block is allocated by this producer and not linked.
    pub(super) fn is_taken_by(&self, id: usize, producer: u64) -> bool {
        // Relaxed: the store of a dead producer is visible; if a link is seen too late, the block
        // is found in the list.
        let next = self.words[self.block_offset(id)].load(Ordering::Relaxed);
        next & MARK_MASK == taken_mark(0, producer)
    }
}

/// Number of bits of a `next` without a link that are not the allocation's number.
const MARK_BITS: u32 = 12;
const MARK_MASK: u64 = (1 << MARK_BITS) - 1;

/// Returns the mark in `next` of an allocated block before it is linked: the producer and the
/// number of the allocation.
const fn taken_mark(allocation: u64, producer: u64) -> u64 {
    allocation << MARK_BITS | (producer << 2 & MARK_MASK) | 0b10
}

/// Writes the header of an empty linked list into zeroed words, for tests and benches. The launcher
/// writes those of a run's segments.
pub fn write_header<const W: usize, const B: usize>(words: &AtomicWords, blocks: usize) {
    Header::anonymous(KIND, words.len(), blocks as u64, block_words(B, W) as u64, 0).write(words);
}
