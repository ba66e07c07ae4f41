//! The arena: where everything is in it, the words that name blocks, and how blocks are taken and
//! given back.

use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, Header, HeaderError, SegmentKind};
use shm::ring::intent::Intent;
use shm::sync::{Ordering, spin_hint};

/// Where the producers' shared cursor is.
pub const TAIL: usize = HEADER_WORDS;
/// Where the newest block is named.
pub const LAST: usize = TAIL + 16;
/// Where the blocks taken from the untouched rest are counted.
pub const FRESH: usize = LAST + 16;
/// Where the next block to reuse is counted.
pub const FREE_HEAD: usize = FRESH + 16;
/// Where the blocks given back are counted.
pub const FREE_TAIL: usize = FREE_HEAD + 16;
/// Where the consumer keeps the number of the next message to take, for its successor.
pub const HEAD: usize = FREE_TAIL + 16;
/// Where it keeps the block that it takes from, and behind that the one before, which it has not
/// given back.
pub const CURRENT: usize = HEAD + 1;
/// Where the free ring begins.
pub const FREE_RING: usize = HEAD + 16;

/// Messages in a block: the standard library's number.
pub const BLOCK_SLOTS: usize = 31;
/// An arena of linked blocks.
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
/// The most blocks: what an id's 23 bits hold.
pub const MAX_BLOCKS: usize = 1 << 23;

/// How often a push tries before it says [`Full`](shm::ring::Full); see `array_queue`.
pub(super) const MAX_TRIES: u32 = 128;

/// Words in a block of `slots` messages of `words` words.
pub const fn block_words(slots: usize, words: usize) -> usize {
    (1 + slots * (words + 1)).next_multiple_of(16)
}

/// Where the blocks begin.
const fn blocks_at(blocks: usize) -> usize {
    FREE_RING + blocks.next_multiple_of(16)
}

/// Words that an arena of so many blocks needs.
pub const fn arena_words(blocks: usize, slots: usize, words: usize) -> usize {
    blocks_at(blocks) + blocks * block_words(slots, words)
}

/// The blocks of a link whose bounded twin has `capacity` slots: room for 16 times as many
/// messages, for one spare block of each producer, and for the two that are half used.
pub const fn reserve(capacity: usize, producers: usize) -> usize {
    (16 * capacity).div_ceil(BLOCK_SLOTS) + producers + 2
}

/// What a link word says: a block's number and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) number: u64,
    pub(super) id: usize,
}

impl Block {
    pub(super) const fn to_word(self) -> u64 {
        self.number << 24 | (self.id as u64) << 1 | 1
    }

    /// The block in a link word; `None` if there is no link in it, or one that leads out of the
    /// arena.
    #[inline(always)]
    pub(super) const fn from_word(word: u64, blocks: usize) -> Option<Self> {
        let block = Self { number: word >> 24, id: (word >> 1) as usize & (MAX_BLOCKS - 1) };
        if word & 1 == 1 && block.id < blocks { Some(block) } else { None }
    }
}

/// The arena, as the attaching end found and checked it.
pub(super) struct Arena<const W: usize, const B: usize> {
    pub(super) words: AtomicWords,
    pub(super) blocks: usize,
}

impl<const W: usize, const B: usize> Arena<W, B> {
    pub(super) fn attach(words: &AtomicWords) -> Result<Self, HeaderError> {
        let header = words.header(KIND)?;
        let blocks = header.check_geometry(FREE_RING, block_words(B, W))?;
        let Header { capacity, slot_words, bytes, .. } = header;
        if !(2..=MAX_BLOCKS).contains(&blocks) || arena_words(blocks, B, W) > words.len() {
            return Err(HeaderError::Geometry { capacity, slot_words, bytes });
        }
        Ok(Self { words: words.slice(0, arena_words(blocks, B, W)), blocks })
    }

    /// Where the block with that id begins; its word `next`.
    #[inline(always)]
    pub(super) fn block(&self, id: usize) -> usize {
        blocks_at(self.blocks) + id * block_words(B, W)
    }

    /// Where the slot begins: stamp, then message.
    #[inline(always)]
    pub(super) fn slot(&self, block: usize, slot: usize) -> usize {
        block + 1 + slot * (W + 1)
    }

    /// Takes a block that was given back, or else one that nobody has touched; its id. Whose it is
    /// says the block itself, as soon as it is taken; the counters are moved on by whoever finds
    /// them behind.
    pub(super) fn allocate(&self, intent: &Intent) -> Option<usize> {
        let (words, blocks) = (&self.words, self.blocks);
        for _ in 0..MAX_TRIES {
            // Relaxed: a proposal, the CAS decides.
            let head = words[FREE_HEAD].load(Ordering::Relaxed);
            // Acquire: pairs with the consumer's Release; the id is there, and its reads of the
            // block are over.
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
                // Fresh ones are numbered 1 to blocks - 1, reused ones from there: unique, and
                // never 0 (block 0's first).
                let allocation = if counter == FRESH { count + 1 } else { count.wrapping_add(blocks as u64) };
                // Release: the announcement comes before it. Only who finds the mark of this very
                // place in the free ring, or none, gets the block: what we read may be long out of
                // date.
                let next = &words[self.block(id)];
                let taken = taken_mark(allocation, intent.index);
                is_ours = next.compare_exchange(mark, taken, Ordering::Release, Ordering::Relaxed).is_ok();
            }
            // Relaxed: the block comes from the consumer, not from who took the one before.
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

    /// What stands in `next` of the block that was given back as that one.
    fn free_mark(&self, count: u64) -> u64 {
        count.wrapping_add(self.blocks as u64) << MARK_BITS
    }

    /// Gives a block back, the `count`th one. For the one consumer only.
    #[inline(always)]
    pub(super) fn give_back(&self, id: usize, count: u64) {
        // Release: pairs with the Acquire in `grow` of a producer that believes the block to be
        // what it was: it finds a later `last`.
        self.words[self.block(id)].store(self.free_mark(count), Ordering::Release);
        self.words[FREE_RING + (count % self.blocks as u64) as usize].store(id as u64, Ordering::Relaxed);
        // Release: pairs with the Acquire in `allocate`; the id is there, and our reads of the
        // block are over.
        self.words[FREE_TAIL].store(count + 1, Ordering::Release);
    }

    /// Whether that block is being given back as the `count`th one: the free ring has it only when
    /// this is over.
    pub(super) fn is_half_given_back(&self, id: usize, count: u64) -> bool {
        self.words[self.block(id)].load(Ordering::Relaxed) == self.free_mark(count)
    }

    /// Whether the block's `next` says that this producer took it, and that nothing follows it.
    pub(super) fn is_taken_by(&self, id: usize, producer: u64) -> bool {
        // Relaxed: of a dead producer, so it is there; and who is late to see that something
        // follows finds the block linked.
        let next = self.words[self.block(id)].load(Ordering::Relaxed);
        next & MARK_MASK == taken_mark(0, producer)
    }
}

/// Bits of a `next` without a link that are not the allocation's number.
const MARK_BITS: u32 = 12;
const MARK_MASK: u64 = (1 << MARK_BITS) - 1;

/// What stands in `next` of a block that was taken, before it is linked: by whom, and which
/// allocation that was.
const fn taken_mark(allocation: u64, producer: u64) -> u64 {
    allocation << MARK_BITS | (producer << 2 & MARK_MASK) | 0b10
}

/// Makes a list of zeroed words by writing its header: for tests and benches; a run's segments get
/// theirs from the launcher.
pub fn write_header<const W: usize, const B: usize>(words: &AtomicWords, blocks: usize) {
    Header {
        kind: KIND,
        bytes: words.len() as u64 * 8,
        capacity: blocks as u64,
        slot_words: block_words(B, W) as u64,
        creator_pid: 0,
        creator_start: 0,
        run: 0,
        index: 0,
    }
    .write(words);
}
