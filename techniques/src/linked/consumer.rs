//! The receiving end of a linked list: follows the blocks with a private cursor, and frees them.

use super::arena::{
    BLOCK_SLOTS, BlockArena, BlockLink, CURRENT, FREE_HEAD, FREE_TAIL, FRESH, HEAD, LAST, TAIL,
};
use shm::memory::{AtomicWords, HeaderError, Word};
use shm::ring::SharedQueue;
use shm::ring::intent::Intents;
use shm::ring::{Allocation, BlockedSlot, PeerFault};
use shm::sync::{Ordering, load_owned};

/// The receiving end of the technique `linked`, at most one at a time. `PROTECTED` is `false` only
/// in a bench that measures the cost of supporting a successor, which needs the stored cursor.
pub struct Consumer<
    const W: usize = { shm::ring::MESSAGE_WORDS },
    const B: usize = BLOCK_SLOTS,
    const PROTECTED: bool = true,
> {
    pub(super) arena: BlockArena<W, B>,
    pub(super) intents: Intents,
    /// The number of the next message to take. Kept in the arena as well, for a successor only.
    pub(super) head: u64,
    head_word: Word,
    /// The block of the next message, its offset, and the message's slot; a slot past the last one
    /// means the next block.
    pub(super) current: BlockLink,
    pub(super) block: usize,
    pub(super) slot: usize,
    /// The previous block, while no message of the current one was taken.
    previous: Option<usize>,
    pub(super) freed: u64,
    /// `true` if the list ends here, because the next block cannot be found.
    is_broken: bool,
    pub(super) passed_over: u64,
}

impl<const W: usize, const B: usize, const PROTECTED: bool> Consumer<W, B, PROTECTED> {
    /// Attaches the receiving end to the list's memory and to the producers' segments for
    /// announcements, which `intents` has in the order of the producers. A producer announces there
    /// which slot or block it is about to take. All segments must have their headers.
    ///
    /// # Errors
    /// As [`Producer::attach`](super::Producer::attach).
    pub fn attach(arena: &AtomicWords, intents: Vec<AtomicWords>) -> Result<Self, HeaderError> {
        let (arena, intents) = (BlockArena::attach(arena)?, Intents::attach(intents)?);
        let (block, head_word) = (arena.block_offset(0), Word::new(&arena.words, HEAD));
        Ok(Self {
            arena,
            intents,
            head: 0,
            head_word,
            current: BlockLink::FIRST,
            block,
            slot: 0,
            previous: None,
            freed: 0,
            is_broken: false,
            passed_over: 0,
        })
    }

    /// Attaches a receiving end in place of a crashed one. Messages that were not taken arrive,
    /// whole and in order; the one that the dead consumer was taking arrives again if its head was
    /// not stored. Producers may continue concurrently; retirements begin again.
    ///
    /// # Errors
    /// As [`Consumer::attach`].
    pub fn resume(arena: &AtomicWords, intents: Vec<AtomicWords>) -> Result<Self, HeaderError> {
        let mut consumer = Self::attach(arena, intents)?;
        // Relaxed, all of them: the predecessor's death is certain, so all its stores are visible.
        let kept = |word: usize| consumer.arena.words[word].load(Ordering::Relaxed);
        let (head, current, behind) = (kept(HEAD), kept(CURRENT), kept(CURRENT + 1));
        // A corrupt value must not make numbers overflow.
        consumer.freed = kept(FREE_TAIL).min(u64::MAX >> 8);
        if let Some(current) = BlockLink::from_word(current, consumer.arena.blocks) {
            consumer.current = current;
            consumer.block = consumer.arena.block_offset(current.id);
        }
        let BlockLink { number, id } = consumer.current;
        let first = number * B as u64;
        // Head and block are consistent: a head in a later block means the end of this one.
        consumer.slot = head.saturating_sub(first).min(B as u64) as usize;
        consumer.head = first + consumer.slot as u64;
        // The previous block, unless it was freed: it still links here.
        let behind = BlockLink::from_word(behind, consumer.arena.blocks).map(|behind| behind.id);
        let leads_here =
            |behind: &usize| kept(consumer.arena.block_offset(*behind)) == BlockLink { number, id }.to_word();
        consumer.previous = behind.filter(leads_here);
        // A block that the predecessor was freeing is freed before any other.
        let is_half = |id: &usize| consumer.arena.is_being_freed(*id, consumer.freed);
        if let Some(id) = (0..consumer.arena.blocks).find(is_half) {
            consumer.arena.free(id, consumer.freed);
            consumer.freed += 1;
        }
        Ok(consumer)
    }

    /// Moves on to the list's next message, and frees the previous block if a new one begins.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        self.head += 1;
        self.slot += 1;
        if PROTECTED {
            // Release: our reads of the message come before it, for a successor.
            self.head_word.store(self.head, Ordering::Release);
        }
        if let Some(id) = self.previous.take() {
            self.arena.free(id, self.freed);
            self.freed += 1;
        }
    }

    #[cold]
    fn try_next_block(&mut self, fault: &mut Option<PeerFault>) -> bool {
        // Relaxed: a link of an earlier use is never seen, here or in the next block, because we
        // ourselves marked the block free since; and the stamps order the messages.
        let link = self.arena.words[self.block].load(Ordering::Relaxed);
        if link & 1 == 0 || self.is_broken {
            return false;
        }
        let follows = |next: &BlockLink| next.number == self.current.number + 1 && next.id != self.current.id;
        let Some(next) = BlockLink::from_word(link, self.arena.blocks).filter(follows) else {
            self.is_broken = true;
            *fault = Some(PeerFault::InvalidLink { link, block: self.current.number });
            return false;
        };
        // For a successor: Release, one after the other. The first is used together with the
        // second; alone, it is the block that already links to the second.
        let kept = &self.arena.words[CURRENT..CURRENT + 2];
        kept[1].store(self.current.to_word(), Ordering::Release);
        kept[0].store(next.to_word(), Ordering::Release);
        self.previous = Some(self.current.id);
        self.current = next;
        self.block = self.arena.block_offset(next.id);
        self.slot = 0;
        true
    }

    /// Handles a corrupt stamp at the next message.
    #[cold]
    fn repair_stamp(&mut self, stamp: u64) -> PeerFault {
        let position = self.head;
        // Relaxed: the tail may be corrupt as well, and then one more damaged message makes no
        // difference.
        let ahead = self.arena.words[TAIL].load(Ordering::Relaxed).wrapping_sub(position);
        if (1..1 << 63).contains(&ahead) {
            // The slot is claimed, but its content cannot be trusted: skip it.
            self.advance();
        } else {
            let slot = self.arena.slot_offset(self.block, self.slot);
            // The slot is unclaimed: restore its stamp, unless it has changed again. Relaxed:
            // producers do not read stamps.
            let _ = self.arena.words[slot].compare_exchange(stamp, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        PeerFault::InvalidStamp { stamp, position }
    }

    /// Returns the number of the next message to take from the list.
    pub fn position(&self) -> u64 {
        self.head
    }
}

/// # Errors of a pop
/// [`PeerFault::InvalidStamp`]: a stamp was corrupted, the next call continues.
/// [`PeerFault::InvalidLink`]: the list ends here permanently.
///
/// # Errors of a check
/// [`PeerFault::InvalidTail`]: the tail is before the last message taken, or in a block that was
/// never linked; or it is after the next slot, which is neither written nor announced nor left by a
/// dead producer. [`PeerFault::InvalidLink`]: `last` is not a block that can contain the tail.
/// Nothing was repaired: the list is blocked.
impl<const W: usize, const B: usize, const PROTECTED: bool> SharedQueue<W> for Consumer<W, B, PROTECTED> {
    #[inline(always)]
    fn pop(&mut self, fault: &mut Option<PeerFault>) -> Option<[u64; W]> {
        if self.slot == B && !self.try_next_block(fault) {
            return None;
        }
        let slot = self.arena.slot_offset(self.block, self.slot);
        let slot = &self.arena.words[slot..slot + W + 1];
        // Acquire: pairs with the producer's Release of the stamp; the words are written.
        let stamp = slot[0].load(Ordering::Acquire);
        if stamp != self.head + 1 {
            if stamp > self.head {
                *fault = Some(self.repair_stamp(stamp));
            }
            return None;
        }
        let mut message = [0; W];
        for (value, word) in message.iter_mut().zip(&slot[1..]) {
            // Ours until we free it: the Acquire of the stamp orders this after the stores of the
            // words.
            *value = load_owned(word);
        }
        self.advance();
        Some(message)
    }

    fn retire(&mut self, producer: usize) -> bool {
        if !self.intents.try_mark_dead(producer) {
            return true;
        }
        // A block that it had allocated and not linked is freed; a slot that it had claimed and not
        // written is skipped when we reach it.
        if let Some(id) = self.intents.block(producer) {
            self.reclaim_block(id, producer);
        }
        let mended = self.intents.position(producer).is_none_or(|position| self.try_skip(position));
        if mended {
            self.intents.clear(producer);
        }
        mended
    }

    fn passed_over(&self) -> u64 {
        self.passed_over
    }

    fn check(&mut self) -> Result<(), PeerFault> {
        let (words, position) = (&self.arena.words, self.head);
        // Acquire: pairs with the claims; `last` is as new as for the producers whose claims, and
        // announcements, we see.
        let tail = words[TAIL].load(Ordering::Acquire);
        // Acquire: pairs with the Release in `link_next_block`; the next load of the tail is at
        // least as new as the one before the block was linked.
        let link = words[LAST].load(Ordering::Acquire);
        let later = words[TAIL].load(Ordering::Relaxed);
        // A block is linked when the tail is at its beginning; the tail never passes its end.
        let last = BlockLink::newest(link, self.arena.blocks);
        let last = last.filter(|last| last.number <= later / B as u64);
        let Some(last) = last else {
            return Err(PeerFault::InvalidLink { link, block: later / B as u64 });
        };
        let invalid = Err(PeerFault::InvalidTail { tail, position });
        if tail < position || tail > (last.number + 1).saturating_mul(B as u64) {
            return invalid;
        }
        if tail == position || self.intents.is_announced_by_anybody(position) || self.is_written() {
            return Ok(());
        }
        invalid
    }

    fn blocked(&self) -> Option<BlockedSlot> {
        let place = self.head;
        // Relaxed, all of them: a snapshot, which is meaningful only if it persists.
        let tail = self.arena.words[TAIL].load(Ordering::Relaxed);
        if self.is_written() || tail <= place {
            return None;
        }
        Some(BlockedSlot { position: place, announcer: self.intents.announcer(place) })
    }

    /// The counters can be falsified by any process that can write the arena.
    fn allocation(&self) -> Allocation {
        let count = |word: usize| self.arena.words[word].load(Ordering::Relaxed);
        Allocation { fresh: count(FRESH).saturating_add(1), reused: count(FREE_HEAD) }
    }
}
