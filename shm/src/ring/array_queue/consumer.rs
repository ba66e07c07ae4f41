//! The consumer of `array-queue`: takes messages with a private cursor, and repairs what dead
//! producers left.

use super::layout::{LAP, RingLayout, WRITTEN};
use crate::memory::{AtomicWords, HeaderError};
use crate::ring::intent::Intents;
use crate::ring::receiver::SharedQueue;
use crate::ring::{BlockedSlot, PeerFault};
use crate::sync::{Ordering, load_owned};

/// The receiving end of an `array-queue` ring, whose producers share its slots; messages of `W`
/// words. At most one at a time.
pub struct Consumer<const W: usize = { crate::ring::MESSAGE_WORDS }> {
    ring: RingLayout<W>,
    /// The number of the next message to take. Private: no other process needs it.
    head: u64,
    intents: Intents,
    passed_over: u64,
}

impl<const W: usize> Consumer<W> {
    /// Attaches the receiving end to a ring and to the words in which producers announce the slots
    /// that they fill. The announcements are in producer order; all must have their headers.
    ///
    /// # Errors
    /// A header that is not that of a ring of `W`-word messages, or of an announcement, or does not
    /// fit its region.
    pub fn attach(ring: &AtomicWords, intents: Vec<AtomicWords>) -> Result<Self, HeaderError> {
        let (ring, intents) = (RingLayout::attach(ring)?, Intents::attach(intents)?);
        Ok(Self { ring, head: 0, intents, passed_over: 0 })
    }

    /// Attaches the receiving end of an `array-queue` ring in place of a crashed one. Messages not
    /// taken yet arrive whole and in order. A message that was being taken is delivered again if
    /// its slot was not freed. Producers may continue concurrently; retirements start again.
    ///
    /// # Errors
    /// As [`Consumer::attach`].
    pub fn resume(ring: &AtomicWords, intents: Vec<AtomicWords>) -> Result<Self, HeaderError> {
        let mut consumer = Self::attach(ring, intents)?;
        let ring = &consumer.ring;
        // Acquire: pairs with the claims; the stamps are as new. The predecessor's death is
        // certain, so this is not before its head, and it frees no slot while we look: the tail
        // can be at most a lap ahead of its head. A scribbled one must not make numbers overflow.
        let tail = ring.tail[0].load(Ordering::Acquire).min(u64::MAX >> 8);
        let first = tail.saturating_sub(ring.capacity());
        // Taken is what is free for the next lap, or more.
        let stamp = |position: u64| ring.slots[ring.slot_offset(position)].load(Ordering::Acquire);
        let untaken = |position: &u64| stamp(*position) < ring.free_stamp(*position) + LAP;
        consumer.head = (first..tail).find(untaken).unwrap_or(tail);
        Ok(consumer)
    }

    /// Returns `true` if a producer has claimed a slot that the consumer has not popped or skipped
    /// yet. Its message is published or about to be.
    ///
    /// SeqCst: pairs with the producers' CAS, see `channel`.
    #[inline]
    pub fn is_claimed(&self) -> bool {
        self.ring.tail[0].load(Ordering::SeqCst) != self.head
    }

    /// Frees the slot at the head unread.
    fn skip(&mut self) {
        let slot = &self.ring.slots[self.ring.slot_offset(self.head)];
        // Release: pairs with a producer's Acquire of the stamp one lap later; what was here comes
        // before its writes.
        slot.store(self.ring.free_stamp(self.head) + LAP, Ordering::Release);
        self.head += 1;
    }

    /// Repairs the stamp at the head, which was overwritten.
    #[cold]
    fn repair_stamp(&mut self, stamp: u64) -> PeerFault {
        let position = self.head;
        // Relaxed: it may be a lie as well, and then one damaged message more or less makes no
        // difference.
        let claimed = self.ring.tail[0].load(Ordering::Relaxed).wrapping_sub(position);
        if (1..=self.ring.capacity()).contains(&claimed) {
            // A written message cannot be distinguished from an unwritten slot: it is skipped.
            self.skip();
        } else {
            let (free, slot) =
                (self.ring.free_stamp(position), &self.ring.slots[self.ring.slot_offset(position)]);
            // Unclaimed: as it was, unless it has changed again.
            let _ = slot.compare_exchange(stamp, free, Ordering::Release, Ordering::Relaxed);
        }
        PeerFault::InvalidStamp { stamp, position }
    }

    /// Skips a position that a crashed producer announced, if it had claimed it. Returns `false`
    /// until the head has reached it, and while a live producer may have claimed it.
    fn try_skip_claim(&mut self, position: u64) -> bool {
        let ahead = position.wrapping_sub(self.head);
        // Acquire: pairs with the claim; the slot's claimant has announced it, and we see that.
        let claimed = self.ring.tail[0].load(Ordering::Acquire).wrapping_sub(self.head);
        // Taken already, unclaimed, or outside this ring: a false announcement.
        if ahead >= claimed || ahead >= self.ring.capacity() {
            return true;
        }
        if ahead > 0 {
            return false;
        }
        // Before the stamp, and Acquire there: a producer that announces another slot by now has
        // written this one.
        let is_announced = self.intents.is_announced(position);
        if self.is_written() {
            return true;
        }
        if !is_announced {
            self.skip();
            self.passed_over += 1;
        }
        !is_announced
    }

    /// Returns `true` if the stamp at the head is not the free one.
    fn is_written(&self) -> bool {
        let stamp = self.ring.slots[self.ring.slot_offset(self.head)].load(Ordering::Relaxed);
        stamp != self.ring.free_stamp(self.head)
    }
}

/// # Errors of a pop
/// [`PeerFault::InvalidStamp`]: an overwritten stamp. It was repaired; the next call continues.
///
/// # Errors of a check
/// [`PeerFault::InvalidTail`]: the tail is before the last message taken or more than a lap ahead;
/// or it is after the next position, which no producer has written, announces, or could have left
/// by crashing. Nothing was repaired: the ring is blocked.
impl<const W: usize> SharedQueue<W> for Consumer<W> {
    #[inline(always)]
    fn pop(&mut self, fault: &mut Option<PeerFault>) -> Option<[u64; W]> {
        let free = self.ring.free_stamp(self.head);
        let slot = self.ring.slot_offset(self.head);
        let slot = &self.ring.slots[slot..slot + W + 1];
        // Acquire: pairs with the producer's Release of the stamp; the words are written.
        let stamp = slot[0].load(Ordering::Acquire);
        if stamp != free | WRITTEN {
            if stamp != free {
                *fault = Some(self.repair_stamp(stamp));
            }
            return None;
        }
        let mut message = [0; W];
        for (value, word) in message.iter_mut().zip(&slot[1..]) {
            // Ours until we give it back: the Acquire of the stamp orders this after the stores of
            // the words.
            *value = load_owned(word);
        }
        // Release: pairs with a producer's Acquire of the stamp one lap later; our reads come
        // before its writes.
        slot[0].store(free + LAP, Ordering::Release);
        self.head += 1;
        Some(message)
    }

    fn retire(&mut self, producer: usize) -> bool {
        if !self.intents.try_mark_dead(producer) {
            return true;
        }
        // If it had claimed a position and not written it, we continue after it once we have
        // reached it.
        let mended = self.intents.position(producer).is_none_or(|position| self.try_skip_claim(position));
        if mended {
            self.intents.clear(producer);
        }
        mended
    }

    fn passed_over(&self) -> u64 {
        self.passed_over
    }

    fn check(&mut self) -> Result<(), PeerFault> {
        let position = self.head;
        // Acquire: pairs with the claims, as in `try_skip_claim`.
        let tail = self.ring.tail[0].load(Ordering::Acquire);
        let claimed = tail.wrapping_sub(position);
        let invalid = Err(PeerFault::InvalidTail { tail, position });
        if claimed > self.ring.capacity() {
            return invalid;
        }
        if claimed == 0 || self.intents.is_announced_by_anybody(position) {
            return Ok(());
        }
        if self.is_written() { Ok(()) } else { invalid }
    }

    fn blocked(&self) -> Option<BlockedSlot> {
        let place = self.head;
        // Relaxed, all of them: it shows this moment only, and matters only if it lasts.
        let claimed = self.ring.tail[0].load(Ordering::Relaxed).wrapping_sub(place);
        if self.is_written() || !(1..=self.ring.capacity()).contains(&claimed) {
            return None;
        }
        Some(BlockedSlot { position: place, announcer: self.intents.announcer(place) })
    }
}
