//! The sending end: finds or links the block of the tail, claims a message's number there, writes
//! and stamps.

use super::arena::{Arena, BLOCK_SLOTS, Block, LAST, MAX_TRIES, TAIL};
use core::ops::ControlFlow;
use shm::memory::{AtomicWords, HeaderError};
use shm::ring::intent::Intent;
use shm::ring::step::{reach, write};
use shm::ring::{self, Full, Step};
use shm::sync::{Ordering, spin_hint};

/// What a search for a block came to.
pub(super) enum Found {
    /// The block's first word.
    At(usize),
    /// What we went by is out of date, or has just been brought up to date: look again.
    LookAgain,
    /// All of the arena is in use.
    Nothing,
}

/// A sending end; one for each producer. `PROTECTED` is `true` but where a bench asks what the
/// announcement costs: without it a death in the middle of a push cannot be repaired.
pub struct Producer<
    const W: usize = { shm::ring::MESSAGE_WORDS },
    const B: usize = BLOCK_SLOTS,
    const PROTECTED: bool = true,
> {
    arena: Arena<W, B>,
    intent: Intent,
    /// The number of the block that we last pushed into, and where it begins.
    number: u64,
    block: usize,
    /// A block that we took and did not need; it stays announced.
    spare: Option<usize>,
}

impl<const W: usize, const B: usize, const PROTECTED: bool> Producer<W, B, PROTECTED> {
    /// Attaches a sending end to an arena and to the producer's own announcement, which both have
    /// their headers.
    ///
    /// # Errors
    /// A header that is not that of an arena of such blocks, or of an announcement, or does not fit
    /// its region.
    pub fn attach(arena: &AtomicWords, intent: &AtomicWords) -> Result<Self, HeaderError> {
        let (arena, intent) = (Arena::attach(arena)?, Intent::attach(intent)?);
        // No block has the number MAX: the first push looks for its block.
        Ok(Self { arena, intent, number: u64::MAX, block: 0, spare: None })
    }

    /// Appends a message, or says that the arena is full.
    ///
    /// # Errors
    /// [`Full`] if all of the arena is in use, or if somebody damaged the list.
    #[inline(always)]
    pub fn try_push(&mut self, message: &[u64; W]) -> Result<(), Full> {
        self.try_push_with(message, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`Producer::try_push`], and calls `at` at each step; see
    /// [`ring::Producer::try_push_with`].
    ///
    /// # Errors
    /// [`Full`], as there.
    #[inline(always)]
    pub fn try_push_with(
        &mut self,
        message: &[u64; W],
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        reach(at, Step::Entered)?;
        // Acquire: pairs with the Release in the claims; who sees the tail in a block sees `last`
        // there or later, and does not take the arena for full because it wants a block that is
        // there already.
        let mut tail = self.arena.words[TAIL].load(Ordering::Acquire);
        for _ in 0..MAX_TRIES {
            if tail / B as u64 != self.number {
                match self.find(tail / B as u64, at)? {
                    Found::At(block) => (self.number, self.block) = (tail / B as u64, block),
                    Found::LookAgain => {
                        tail = self.arena.words[TAIL].load(Ordering::Acquire);
                        spin_hint();
                        continue;
                    }
                    Found::Nothing => return Err(Full),
                }
            }
            if PROTECTED {
                self.intent.announce(tail);
            }
            reach(at, Step::Announced)?;
            // Release: for the next producer, see above; and pairs with the Acquire of the tail in
            // the repair: who sees the place claimed sees it announced.
            let claimed = self.arena.words[TAIL].compare_exchange(
                tail,
                tail.wrapping_add(1),
                Ordering::Release,
                Ordering::Acquire,
            );
            match claimed {
                Ok(_) => {
                    reach(at, Step::Claimed)?;
                    let slot = self.arena.slot(self.block, (tail % B as u64) as usize);
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

    /// Takes back the place that stands announced; see [`ring::Producer::withdraw`]. A block that
    /// we took and did not need stays so.
    pub fn withdraw(&mut self) {
        self.intent.withdraw();
    }

    /// The block with that number, if it is the newest one; else makes it so, if it is its turn.
    #[inline]
    fn find(&mut self, number: u64, at: &mut impl FnMut(Step) -> ControlFlow<()>) -> Result<Found, Full> {
        // Acquire: pairs with the Release in `grow`; the block's `next` is set, and the consumer's
        // reads of what the block held before are over.
        let word = self.arena.words[LAST].load(Ordering::Acquire);
        let last = if word == 0 {
            Some(Block { number: 0, id: 0 })
        } else {
            Block::from_word(word, self.arena.blocks)
        };
        match last {
            Some(last) if last.number == number => Ok(Found::At(self.arena.block(last.id))),
            Some(last) if last.number.wrapping_add(1) == number => self.grow(word, last, at),
            // An old tail; or damage, and then the tries run out.
            _ => Ok(Found::LookAgain),
        }
    }

    /// Links a block behind the last one, unless somebody has, and makes it the last.
    #[cold]
    pub(super) fn grow(
        &mut self,
        word: u64,
        last: Block,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<Found, Full> {
        let block = self.arena.block(last.id);
        // Acquire: pairs with the Release of the link, and with that of the giving back if the
        // block was free or is in use again: then the next load finds a later `last`.
        let seen = self.arena.words[block].load(Ordering::Acquire);
        // Relaxed: an unchanged `last` is what `find` has acquired.
        if self.arena.words[LAST].load(Ordering::Relaxed) != word {
            return Ok(Found::LookAgain);
        }
        let next = if seen & 1 == 1 {
            match Block::from_word(seen, self.arena.blocks) {
                Some(next) if next.number == last.number + 1 => next,
                _ => return Ok(Found::LookAgain),
            }
        } else {
            let Some(id) = self.spare.take().or_else(|| self.arena.allocate(&self.intent)) else {
                return Ok(Found::Nothing);
            };
            reach(at, Step::Allocated)?;
            let next = Block { number: last.number + 1, id };
            // Release: pairs with the Acquire loads of `next`; the new block's own `next` is set.
            // Relaxed otherwise: what was found instead is looked at afresh.
            let link = self.arena.words[block].compare_exchange(
                seen,
                next.to_word(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if link.is_err() {
                self.spare = Some(id);
                return Ok(Found::LookAgain);
            }
            reach(at, Step::Linked)?;
            next
        };
        // Release: pairs with the Acquire in `find`. Whoever is first; the others look again.
        let _ = self.arena.words[LAST].compare_exchange(
            word,
            next.to_word(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        Ok(Found::LookAgain)
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
