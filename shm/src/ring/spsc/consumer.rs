//! The consumer of the SPSC ring.

use super::{HEAD, POSITION_LIMIT, geometry, slot_words, slots_per_message_log2, split};
use crate::memory::{AtomicWords, Cursor, HeaderError, ReadOnlyWords, Word};
use crate::ring::{MESSAGE_WORDS, PeerFault};
use crate::sync::{Ordering, equal_unknown_to_compiler};

/// The receiving end of an SPSC ring; messages of `M` words.
// An empty poll reads the front of one line: a ring takes one line of the L1 cache, not two.
#[repr(C, align(64))]
pub struct Consumer<const M: usize = MESSAGE_WORDS> {
    /// Sequence in the next slot until its message arrives: an empty poll compares with it.
    stale_sequence: u64,
    slot: Cursor<M>,
    /// Sequence of the next message: one more than the messages that were taken.
    expected_sequence: u64,
    max_drain: u64,
    head_word: Word,
}

/// Slots from which on the next address is computed from the sequence just read. The consumer of a
/// long ring catches up with the producer, and prefetching would take the producer's lines away.
const DEPENDENT_FROM: u64 = 512;

/// Maximum number of messages that a drain takes at once: see [`Consumer::drain`].
const fn max_drain(capacity: u64) -> u64 {
    match capacity {
        1 => 1,
        ..32 => capacity / 2,
        _ => capacity / 4,
    }
}

impl<const M: usize> Consumer<M> {
    /// Attaches the receiving end to a ring whose producer's part and consumer's part are in one
    /// region. See [`Consumer::attach_parts`].
    ///
    /// # Errors
    /// A header that is not that of a ring of `M`-word messages, or does not fit its part.
    pub fn attach(words: &AtomicWords) -> Result<Self, HeaderError> {
        let (head, tail) = split(words)?;
        Self::attach_parts(&tail.into(), &head)
    }

    /// Attaches the receiving end to a ring whose producer's part and consumer's part are in
    /// separate segments. Both must have their headers; only once for each ring.
    ///
    /// # Errors
    /// A header that is not that of a ring of `M`-word messages, or does not fit its part.
    pub fn attach_parts(tail: &ReadOnlyWords, head: &AtomicWords) -> Result<Self, HeaderError> {
        let (first, slots) = geometry::<M>(tail, &head.clone().into())?;
        Ok(Self {
            stale_sequence: 0,
            slot: Cursor::new(tail.slice(first, slots * slot_words(M))),
            expected_sequence: 1,
            max_drain: max_drain(slots as u64 >> slots_per_message_log2(M)),
            head_word: Word::new(head, HEAD),
        })
    }

    /// Attaches a receiving end in place of a crashed one; the new end continues after the messages
    /// that the crashed one has freed. Messages after the stored head arrive whole and in order.
    /// The producer may continue concurrently.
    ///
    /// # Errors
    /// As [`Consumer::attach_parts`].
    pub fn resume_parts(tail: &ReadOnlyWords, head: &AtomicWords) -> Result<Self, HeaderError> {
        let mut consumer = Self::attach_parts(tail, head)?;
        // Relaxed: the crash is certain, and so are all stores before it.
        let taken = consumer.head_word.load(Ordering::Relaxed);
        consumer.go_to(taken);
        Ok(consumer)
    }

    /// Attaches a receiving end in place of a crashed one, to a ring whose producer's part and
    /// consumer's part are in one region.
    ///
    /// # Errors
    /// As [`Consumer::attach`].
    pub fn resume(words: &AtomicWords) -> Result<Self, HeaderError> {
        let (head, tail) = split(words)?;
        Self::resume_parts(&tail.into(), &head)
    }

    /// Begins again at position 0 of the ring, once the producer's crash is certain and before a
    /// new producer starts. Take nothing until the producer's part was reset, all zero but its
    /// header.
    pub fn renew(&mut self) {
        self.go_to(0);
        // Release: as in `release`. The new producer starts later.
        self.head_word.store(0, Ordering::Release);
    }

    /// Moves to the message after `taken` messages.
    fn go_to(&mut self, taken: u64) {
        // A scribbled one must not make numbers overflow.
        let taken = taken.min(POSITION_LIMIT);
        self.expect(taken + 1);
        self.slot.go_to(taken);
    }

    /// Makes that sequence the next one.
    #[inline(always)]
    const fn expect(&mut self, sequence: u64) {
        self.expected_sequence = sequence;
        self.stale_sequence = sequence.saturating_sub(self.slot.mask() + 1);
    }

    /// Returns `true` if the ring has no message to take now. [`Consumer::try_pop`] orders and
    /// checks.
    #[inline(always)]
    pub fn looks_empty(&self) -> bool {
        self.slot.slot().sequence(Ordering::Relaxed) == self.stale_sequence
    }

    /// Takes the ring's next message, or returns `None` if there is none now.
    ///
    /// # Errors
    /// [`PeerFault::InvalidSequence`]: the slot's sequence is impossible. Nothing was taken.
    #[inline(always)]
    pub fn try_pop(&mut self) -> Result<Option<[u64; M]>, PeerFault> {
        let mut fault = None;
        let message = self.pop(&mut fault);
        fault.map_or(Ok(message), Err)
    }

    /// Takes a message as [`Consumer::try_pop`] does, but stores a fault in `fault` instead of
    /// returning it. A `Result` would copy the message through memory again.
    #[inline(always)]
    pub(in crate::ring) fn pop(&mut self, fault: &mut Option<PeerFault>) -> Option<[u64; M]> {
        let message = self.take_or(fault)?;
        self.release();
        Some(message)
    }

    /// Passes up to `max` messages of the ring to `each`. Returns the number: at most a quarter of
    /// the ring, or half of one of less than 32 slots. Their slots are freed together: if the
    /// consumer crashes or `each` panics before, all are delivered again.
    ///
    /// # Errors
    /// As [`Consumer::try_pop`], if not even one could be taken; a fault after messages is found by
    /// the next call.
    #[inline(always)]
    pub fn drain(&mut self, max: usize, mut each: impl FnMut([u64; M])) -> Result<usize, PeerFault> {
        let (max, mut fault) = (self.max_drain.min(max as u64), None);
        if max == 0 || self.sequence_if_present(&mut fault).is_none() {
            return fault.map_or(Ok(0), Err);
        }
        let first = self.taken();
        // All sequences before the first message is copied: that is what makes it fast.
        let is_present = |ahead: &u64| {
            // Acquire: as in `sequence_if_present`.
            let sequence = self.slot.slot_of(first + ahead).sequence(Ordering::Acquire);
            sequence == first + ahead + 1
        };
        let taken = 1 + (1..max).take_while(is_present).count() as u64;
        // Ours from the Acquire loads of the sequences to the Release store of the head.
        (first..first + taken).for_each(|position| each(self.slot.slot_of(position).copy_owned()));
        self.expect(first + taken + 1);
        self.slot.go_to(first + taken);
        self.release();
        Ok(taken as usize)
    }

    /// Takes the ring's next message, which the producer may not overwrite before
    /// [`Consumer::release`]. A successor of this consumer takes it again.
    ///
    /// # Errors
    /// As [`Consumer::try_pop`].
    #[inline(always)]
    pub fn take(&mut self) -> Result<Option<[u64; M]>, PeerFault> {
        let mut fault = None;
        let message = self.take_or(&mut fault);
        fault.map_or(Ok(message), Err)
    }

    /// Frees the ring slots of all messages that were taken.
    #[inline(always)]
    pub fn release(&mut self) {
        // Release: pairs with the producer's Acquire load of the head; our reads come before.
        self.head_word.store(self.taken(), Ordering::Release);
    }

    /// Moves back to before the ring's last `count` messages, so that they are taken again. They
    /// must have been taken with [`Consumer::take`] and not yet been released.
    #[inline]
    pub fn rewind(&mut self, count: u64) {
        self.go_to(self.taken().saturating_sub(count));
    }

    /// Returns how many messages of the ring were taken, including by crashed predecessors.
    #[inline(always)]
    pub const fn taken(&self) -> u64 {
        self.expected_sequence - 1
    }

    /// Skips messages that a crashed predecessor had taken and not freed: the next one is the
    /// message at position `taken`.
    pub fn skip_to(&mut self, taken: u64) {
        if taken > self.taken() {
            self.go_to(taken);
            self.release();
        }
    }

    #[inline(always)]
    pub(in crate::ring) fn take_or(&mut self, fault: &mut Option<PeerFault>) -> Option<[u64; M]> {
        let sequence = self.sequence_if_present(fault)?;
        // The slot is ours from the Acquire load of the sequence to the Release store of the head.
        let message = self.slot.slot().copy_owned();
        // The same number, from the counter or from the word that was read.
        if self.slot.mask() + 1 < DEPENDENT_FROM {
            self.slot.go_to(self.expected_sequence);
            self.slot.prefetch_next();
        } else {
            self.slot.go_to(sequence);
        }
        self.expect(self.expected_sequence + 1);
        Some(message)
    }

    /// Returns the next message's sequence if it is there.
    #[inline(always)]
    fn sequence_if_present(&self, fault: &mut Option<PeerFault>) -> Option<u64> {
        // Acquire: pairs with the producer's Release store of the sequence; the message is written.
        let sequence = self.slot.slot().sequence(Ordering::Acquire);
        if equal_unknown_to_compiler(sequence, self.expected_sequence) {
            return Some(sequence);
        }
        if sequence != self.stale_sequence {
            *fault = Some(PeerFault::InvalidSequence { found: sequence, position: self.taken() });
        }
        None
    }
}
