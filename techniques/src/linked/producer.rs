//! The sending end of a linked list: finds or links the block of the tail, claims a number there,
//! writes and stamps.

use super::arena::{BLOCK_SLOTS, BlockArena, BlockLink, LAST, MAX_TRIES, TAIL};
use core::ops::ControlFlow;
use shm::memory::{AtomicWords, HeaderError};
use shm::ring::intent::Intent;
use shm::ring::step::{reach, write};
use shm::ring::{self, Full, Step};
use shm::sync::{Ordering, spin_hint};

pub(super) enum BlockSearch {
    /// The block was found; the offset of its first word.
    Found(usize),
    /// The view of the list was stale, or has just been updated: search again.
    Retry,
    /// All blocks of the arena are in use.
    ArenaFull,
}

/// A sending end of the technique `linked`, one for each producer. `PROTECTED` is `false` only in a
/// bench that measures the cost of the announcement, without which a death in the middle of a push
/// cannot be repaired.
pub struct Producer<
    const W: usize = { shm::ring::MESSAGE_WORDS },
    const B: usize = BLOCK_SLOTS,
    const PROTECTED: bool = true,
> {
    arena: BlockArena<W, B>,
    intent: Intent,
    /// The number of the block of the last push, and its offset.
    number: u64,
    block: usize,
    /// A block that was allocated and not needed; it stays announced.
    spare: Option<usize>,
}

impl<const W: usize, const B: usize, const PROTECTED: bool> Producer<W, B, PROTECTED> {
    /// Attaches a producer's sending end to the list's memory and to the segment in which it
    /// announces its slots and blocks. Both must have their headers.
    ///
    /// # Errors
    /// An invalid header of the arena or of the announcement, or one that does not fit its region.
    pub fn attach(arena: &AtomicWords, intent: &AtomicWords) -> Result<Self, HeaderError> {
        let (arena, intent) = (BlockArena::attach(arena)?, Intent::attach(intent)?);
        // No block has the number MAX: the first push searches its block.
        Ok(Self { arena, intent, number: u64::MAX, block: 0, spare: None })
    }

    /// Appends a message to the linked list, or returns [`Full`](shm::ring::Full).
    ///
    /// # Errors
    /// [`Full`] if all blocks are in use, or if the list is damaged.
    #[inline(always)]
    pub fn try_push(&mut self, message: &[u64; W]) -> Result<(), Full> {
        self.try_push_with(message, &mut |_| ControlFlow::Continue(()))
    }

    /// Pushes as [`Producer::try_push`] does, and calls `at` at each [`Step`] of the push, where a
    /// test or a fault can stop it.
    ///
    /// # Errors
    /// [`Full`], as [`Producer::try_push`].
    #[inline(always)]
    pub fn try_push_with(
        &mut self,
        message: &[u64; W],
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        reach(at, Step::Entered)?;
        // Acquire: pairs with the Release in the claims; a producer that sees the tail in a block
        // sees `last` there or later. Otherwise it could allocate a block that already exists, and
        // find the arena full.
        let mut tail = self.arena.words[TAIL].load(Ordering::Acquire);
        for _ in 0..MAX_TRIES {
            if tail / B as u64 != self.number {
                match self.find_block(tail / B as u64, at)? {
                    BlockSearch::Found(block) => (self.number, self.block) = (tail / B as u64, block),
                    BlockSearch::Retry => {
                        tail = self.arena.words[TAIL].load(Ordering::Acquire);
                        spin_hint();
                        continue;
                    }
                    BlockSearch::ArenaFull => return Err(Full),
                }
            }
            if PROTECTED {
                self.intent.announce(tail);
            }
            reach(at, Step::Announced)?;
            // Release: for the next producer, see above; and pairs with the Acquire of the tail in
            // the repair: a claimed slot is seen as announced.
            let claimed = self.arena.words[TAIL].compare_exchange(
                tail,
                tail.wrapping_add(1),
                Ordering::Release,
                Ordering::Acquire,
            );
            match claimed {
                Ok(_) => {
                    reach(at, Step::Claimed)?;
                    let slot = self.arena.slot_offset(self.block, (tail % B as u64) as usize);
                    let slot = &self.arena.words[slot..slot + W + 1];
                    write(&slot[1..], message, at)?;
                    // Release: pairs with the consumer's Acquire of the stamp; it sees the words
                    // above, and that `last` had reached this block.
                    slot[0].store(tail.wrapping_add(1), Ordering::Release);
                    return reach(at, Step::Published);
                }
                Err(now) => {
                    if PROTECTED {
                        self.intent.withdraw();
                    }
                    tail = now;
                }
            }
            spin_hint();
        }
        Err(Full)
    }

    /// Clears the announcement of the slot that the producer was last about to claim; called at the
    /// end of each duty cycle. Otherwise an old announcement would look like a push that does not
    /// end. A spare block stays announced.
    pub fn withdraw(&mut self) {
        self.intent.withdraw();
    }

    /// Finds the block with that number if it is the newest one; links it if it is the next one.
    #[inline]
    fn find_block(
        &mut self,
        number: u64,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<BlockSearch, Full> {
        // Acquire: pairs with the Release in `link_next_block`; the block's `next` is set, and the
        // consumer's reads of what the block held before are over.
        let word = self.arena.words[LAST].load(Ordering::Acquire);
        match BlockLink::newest(word, self.arena.blocks) {
            Some(last) if last.number == number => Ok(BlockSearch::Found(self.arena.block_offset(last.id))),
            Some(last) if last.number.wrapping_add(1) == number => self.link_next_block(word, last, at),
            // A stale tail; or damage, and then the attempts run out.
            _ => Ok(BlockSearch::Retry),
        }
    }

    /// Appends a memory block to the list, unless another producer has. Also advances `last` to it.
    #[cold]
    pub(super) fn link_next_block(
        &mut self,
        word: u64,
        last: BlockLink,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<BlockSearch, Full> {
        let block = self.arena.block_offset(last.id);
        // Acquire: pairs with the Release of the link, and with that of the freeing if the block is
        // free or reused: then the next load finds a later `last`.
        let link_word = self.arena.words[block].load(Ordering::Acquire);
        // Relaxed: an unchanged `last` is what `find_block` has acquired.
        if self.arena.words[LAST].load(Ordering::Relaxed) != word {
            return Ok(BlockSearch::Retry);
        }
        let next = if link_word & 1 == 1 {
            match BlockLink::from_word(link_word, self.arena.blocks) {
                Some(next) if next.number == last.number + 1 => next,
                _ => return Ok(BlockSearch::Retry),
            }
        } else {
            let Some(id) = self.spare.take().or_else(|| self.arena.allocate(&self.intent)) else {
                return Ok(BlockSearch::ArenaFull);
            };
            reach(at, Step::Allocated)?;
            let next = BlockLink { number: last.number + 1, id };
            // Release: pairs with the Acquire loads of `next`; the new block's own `next` is set.
            // Relaxed on failure: the value is read again.
            let link = self.arena.words[block].compare_exchange(
                link_word,
                next.to_word(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if link.is_err() {
                self.spare = Some(id);
                return Ok(BlockSearch::Retry);
            }
            reach(at, Step::Linked)?;
            next
        };
        // Release: pairs with the Acquire in `find_block`. The first producer succeeds; the others
        // search again.
        let _ = self.arena.words[LAST].compare_exchange(
            word,
            next.to_word(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        Ok(BlockSearch::Retry)
    }
}

impl ring::Producer for Producer {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &shm::ring::Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        Producer::try_push_with(self, message, at)
    }

    fn withdraw(&mut self) {
        Producer::withdraw(self);
    }
}
