//! The producer of `array-queue`: announces a position, claims it by compare-and-swap, writes the
//! slot and stamps it.

use super::layout::{RingLayout, WRITTEN};
use crate::memory::{AtomicWords, HeaderError};
use crate::ring::intent::Intent;
use crate::ring::step::{reach, write};
use crate::ring::{self, Full, Step};
use crate::sync::{Ordering, spin_hint};
use core::ops::ControlFlow;

/// Maximum number of attempts of a push to claim a position before it returns [`Full`]. Among
/// correct producers each failed attempt is another producer's success, a long series of them
/// practically never happens; a hostile producer cannot delay a push for longer.
const MAX_TRIES: u32 = 128;

/// A producer's sending end of an `array-queue` ring; messages of `W` words. `PROTECTED` is `false`
/// only in benches that measure the cost of the announcement: without it a death in the middle of a
/// push cannot be repaired.
pub struct Producer<const W: usize = { crate::ring::MESSAGE_WORDS }, const PROTECTED: bool = true> {
    ring: RingLayout<W>,
    intent: Intent,
}

impl<const W: usize, const PROTECTED: bool> Producer<W, PROTECTED> {
    /// Attaches a producer's sending end to a ring, and to the words in which the producer
    /// announces the slot that it fills. Both must have their headers.
    ///
    /// # Errors
    /// A header that is not that of a ring of `W`-word messages, or of an announcement, or does not
    /// fit its region.
    pub fn attach(ring: &AtomicWords, intent: &AtomicWords) -> Result<Self, HeaderError> {
        Ok(Self { ring: RingLayout::attach(ring)?, intent: Intent::attach(intent)? })
    }

    /// Pushes a message into the ring, or returns [`Full`].
    ///
    /// # Errors
    /// [`Full`] if the next slot still holds the message of the lap before, or if another process
    /// damaged the ring.
    #[inline(always)]
    pub fn try_push(&mut self, message: &[u64; W]) -> Result<(), Full> {
        self.try_push_with(message, &mut |_| ControlFlow::Continue(()))
    }

    /// Pushes a message as [`Producer::try_push`] does, and calls `at` at each step, where tests
    /// can interrupt the push. See [`ring::Producer::try_push_with`].
    ///
    /// # Errors
    /// [`Full`]; the message was not taken.
    #[inline(always)]
    pub fn try_push_with(
        &mut self,
        message: &[u64; W],
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        reach(at, Step::Entered)?;
        let ring = &self.ring;
        // Relaxed: only a proposal; the CAS decides, and the stamp orders the slot's words.
        let mut tail = ring.tail[0].load(Ordering::Relaxed);
        for _ in 0..MAX_TRIES {
            let slot = ring.slot_offset(tail);
            let slot = &ring.slots[slot..slot + W + 1];
            let free = ring.free_stamp(tail);
            // Acquire: pairs with the consumer's Release of the stamp; its reads of the slot are
            // over.
            let stamp = slot[0].load(Ordering::Acquire);
            if stamp == free {
                if PROTECTED {
                    self.intent.announce(tail);
                }
                reach(at, Step::Announced)?;
                // Release: pairs with the Acquire of the tail in the repair; a reader that sees the
                // position claimed sees it announced. SeqCst: comes before the producer's check for
                // a parked receiver (see `channel`) in the one order that all SeqCst operations
                // have.
                let claimed = ring.tail[0].compare_exchange(
                    tail,
                    tail.wrapping_add(1),
                    Ordering::SeqCst,
                    Ordering::Relaxed,
                );
                match claimed {
                    Ok(_) => {
                        reach(at, Step::Claimed)?;
                        write(&slot[1..], message, at)?;
                        // Release: pairs with the consumer's Acquire of the stamp; it sees the
                        // words above.
                        slot[0].store(free | WRITTEN, Ordering::Release);
                        return reach(at, Step::Published);
                    }
                    Err(now) => {
                        if PROTECTED {
                            self.intent.withdraw();
                        }
                        tail = now;
                    }
                }
            } else if stamp < free {
                // Of the lap before: not taken yet, or claimed and not yet written. No place is
                // free.
                return Err(Full);
            } else {
                // Another producer has claimed this position. It moved the tail before its stamp,
                // and we have seen the stamp (Acquire), so the tail that we find now is a later
                // one: if not, the stamp is forged.
                let now = ring.tail[0].load(Ordering::Relaxed);
                if now == tail {
                    return Err(Full);
                }
                tail = now;
            }
            spin_hint();
        }
        Err(Full)
    }

    /// Clears the producer's announcement of a push that was not completed; see
    /// [`ring::Producer::withdraw`].
    pub fn withdraw(&mut self) {
        self.intent.withdraw();
    }
}

impl ring::Producer for Producer {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &crate::ring::Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        Producer::try_push_with(self, message, at)
    }

    fn withdraw(&mut self) {
        Producer::withdraw(self);
    }
}
