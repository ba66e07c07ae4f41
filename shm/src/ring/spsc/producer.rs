//! The producer of the SPSC ring.

use super::{HEAD, POSITION_LIMIT, geometry, slot_words, slots_per_message_log2, split};
use crate::memory::{AtomicWords, HeaderError, ReadOnlyWords, Slots};
use crate::ring::step::{reach, write};
use crate::ring::{Full, MESSAGE_WORDS, Step};
use crate::sync::Ordering;
use core::ops::ControlFlow;

/// Maximum number of messages that are published together: 16 were as fast as more.
const MAX_BATCH: u64 = 16;

/// Counts the messages ever published in a ring, given its two parts. Reads some 20 slots and one
/// for each bit of their number. The producer may continue concurrently: not fewer than at the
/// call, not more than at the return.
///
/// # Errors
/// As [`Producer::attach_parts`].
pub fn published<const M: usize>(tail: &ReadOnlyWords, head: &ReadOnlyWords) -> Result<u64, HeaderError> {
    first_unpublished::<M>(tail, head)
}

/// Finds the first position whose message was not published. Each slot shows the last position that
/// was written in it; those of the last lap are in front, so that a binary search finds their end.
/// A batch writes at most [`MAX_BATCH`] positions, its first one last.
fn first_unpublished<const M: usize>(tail: &ReadOnlyWords, head: &ReadOnlyWords) -> Result<u64, HeaderError> {
    let (first, slots) = geometry::<M>(tail, head)?;
    let is_written = |position: &u64| {
        let slot = *position as usize & (slots - 1);
        // Acquire: slots looked at later are at least as new as this one.
        let sequence = tail.load(first + slot * slot_words(M) + M, Ordering::Acquire);
        next_position(sequence, slot, slots) > *position
    };
    let sequence = tail.load(first + M, Ordering::Acquire);
    let lap_start = next_position(sequence, 0, slots).saturating_sub(slots as u64);
    let (mut low, mut high) = (lap_start, lap_start + slots as u64);
    if !is_written(&low) {
        high = low;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if is_written(&middle) { low = middle + 1 } else { high = middle }
    }
    // The end of an unpublished batch was found as likely as the end of what was published.
    Ok((low.saturating_sub(MAX_BATCH)..low).find(|at| !is_written(at)).unwrap_or(low))
}

/// Returns the position that is written next in a slot, given the sequence there.
fn next_position(sequence: u64, slot: usize, slots: usize) -> u64 {
    match sequence {
        0 => slot as u64,
        sequence => (sequence - 1).saturating_add(slots as u64).min(POSITION_LIMIT),
    }
}

/// The sending end of an SPSC ring for messages of `M` words; the struct is aligned to 128 bytes,
/// so it shares no cache line.
#[repr(align(128))]
pub struct Producer<const M: usize = MESSAGE_WORDS> {
    head_word: ReadOnlyWords,
    slots: Slots<M>,
    /// Position of the next message. Private: never read back from shared memory.
    tail: u64,
    /// The consumer's head when it was last loaded: never ahead of the real one.
    cached_head: u64,
}

impl<const M: usize> Producer<M> {
    /// Attaches the sending end to a ring whose producer's part and consumer's part are in one
    /// region. See [`Producer::attach_parts`].
    ///
    /// # Errors
    /// A header that is not that of a ring of `M`-word messages, or does not fit its part.
    pub fn attach(words: &AtomicWords) -> Result<Self, HeaderError> {
        let (head, tail) = split(words)?;
        Self::attach_parts(&tail, &head.into())
    }

    /// Attaches the sending end to a ring whose producer's part and consumer's part are in separate
    /// segments. Both must have their headers; only once for each ring.
    ///
    /// # Errors
    /// A header that is not that of a ring of `M`-word messages, or does not fit its part.
    pub fn attach_parts(tail: &AtomicWords, head: &ReadOnlyWords) -> Result<Self, HeaderError> {
        let (first, slots) = geometry::<M>(&tail.clone().into(), head)?;
        Ok(Self {
            head_word: head.slice(HEAD, 1),
            slots: Slots::new(tail.slice(first, slots * slot_words(M))),
            tail: 0,
            cached_head: 0,
        })
    }

    /// Attaches a sending end in place of a crashed one; the new end continues after the last
    /// message that was published. The consumer may continue concurrently. Reads every slot once:
    /// what the crashed one wrote ahead never appears, wherever that is.
    ///
    /// # Errors
    /// As [`Producer::attach_parts`].
    pub fn resume_parts(tail: &AtomicWords, head: &ReadOnlyWords) -> Result<Self, HeaderError> {
        let producer = Self::resume_own_parts(tail, head)?;
        (0..=producer.slots.mask()).for_each(|slot| producer.take_back(slot));
        Ok(producer)
    }

    /// Attaches a sending end as [`Producer::resume_parts`] does, in place of one that was trusted
    /// to write only what such ends write: one batch ahead at most. Reads few slots.
    ///
    /// # Errors
    /// As [`Producer::attach_parts`].
    pub fn resume_own_parts(tail: &AtomicWords, head: &ReadOnlyWords) -> Result<Self, HeaderError> {
        let mut producer = Self::attach_parts(tail, head)?;
        // The crash is certain, and so are all stores before it.
        producer.tail = first_unpublished::<M>(&tail.clone().into(), head)?;
        // What was written ahead in a batch must not appear after our own first message.
        (producer.tail..producer.tail + MAX_BATCH).for_each(|position| producer.take_back(position));
        Ok(producer)
    }

    /// Attaches a sending end in place of a crashed one, to a ring whose producer's part and
    /// consumer's part are in one region.
    ///
    /// # Errors
    /// As [`Producer::attach_parts`].
    pub fn resume(words: &AtomicWords) -> Result<Self, HeaderError> {
        let (head, tail) = split(words)?;
        Self::resume_parts(&tail, &head.into())
    }

    /// Returns how many messages were published in the ring, including those of crashed
    /// predecessors.
    pub const fn published(&self) -> u64 {
        self.tail
    }

    /// Returns the message that was published last in the ring, if any. Also by a crashed
    /// predecessor.
    pub fn last_published(&self) -> Option<[u64; M]> {
        let last = self.tail.checked_sub(1)?;
        let slot = self.slots.slot(last);
        // Relaxed: our own stores, or those of a predecessor whose crash is certain.
        let word = |word: usize| slot.message[word].load(Ordering::Relaxed);
        (slot.sequence.load(Ordering::Relaxed) == self.tail).then(|| core::array::from_fn(word))
    }

    /// Returns `true` if the next push into the ring will fit. Only this end's pushes can change a
    /// yes.
    #[inline(always)]
    pub fn has_room(&mut self) -> bool {
        // `<=` also if a hostile head is ahead of the tail: the difference wraps.
        if self.tail.wrapping_sub(self.cached_head) <= self.max_ahead() {
            return true;
        }
        // Acquire: pairs with the consumer's Release store of the head, after its reads.
        self.cached_head = self.head_word.load(0, Ordering::Acquire);
        self.tail.wrapping_sub(self.cached_head) <= self.max_ahead()
    }

    /// Returns the maximum number of messages in the ring.
    pub const fn capacity(&self) -> u64 {
        self.max_ahead() + 1
    }

    /// Returns how far ahead of the consumer a message can be pushed: the capacity minus one.
    #[inline(always)]
    const fn max_ahead(&self) -> u64 {
        self.slots.mask() >> slots_per_message_log2(M)
    }

    /// Returns the number of messages that can be pushed into the ring now. Only this end's pushes
    /// reduce it.
    pub fn free_slots(&mut self) -> u64 {
        // Acquire: as in `has_room`.
        self.cached_head = self.head_word.load(0, Ordering::Acquire);
        // 0 also if a hostile head is ahead of the tail: the difference wraps.
        self.capacity().saturating_sub(self.tail.wrapping_sub(self.cached_head))
    }

    /// Returns `true` if `count` messages can be pushed into the ring now. Only this end's pushes
    /// can change a yes. Loads the consumer's head only if the last one known does not suffice.
    #[inline]
    pub fn has_room_for(&mut self, count: u64) -> bool {
        // As in `free_slots`, for a hostile head.
        let known = self.capacity().saturating_sub(self.tail.wrapping_sub(self.cached_head));
        known >= count || self.free_slots() >= count
    }

    /// Pushes a message into the ring.
    ///
    /// # Errors
    /// [`Full`] if every slot is taken by a message that the consumer has not read.
    #[inline(always)]
    pub fn try_push(&mut self, message: &[u64; M]) -> Result<(), Full> {
        self.try_push_with(message, &mut |_| ControlFlow::Continue(()))
    }

    /// Pushes a message as [`Producer::try_push`] does, and calls `at` at each step, where tests
    /// can interrupt the push. See [`crate::ring::Producer::try_push_with`].
    ///
    /// # Errors
    /// [`Full`]; the message was not taken.
    #[inline(always)]
    pub fn try_push_with(
        &mut self,
        message: &[u64; M],
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        reach(at, Step::Entered)?;
        if !self.has_room() {
            return Err(Full);
        }
        let slot = self.slots.slot(self.tail);
        write(&slot.message, message, at)?;
        self.tail += 1;
        // Release: pairs with the consumer's Acquire load of the sequence; the message is there.
        slot.sequence.store(self.tail, Ordering::Release);
        reach(at, Step::Published)
    }

    /// Pushes as many of the messages as fit, from the first on, publishes up to 16 at a time, and
    /// returns the number pushed. A producer that crashes here has published the first ones, or
    /// none.
    #[inline]
    pub fn try_push_many(&mut self, messages: &[[u64; M]]) -> usize {
        self.try_push_iter(messages.iter().copied())
    }

    /// Pushes messages from an iterator as [`Producer::try_push_many`] does, each built directly in
    /// its slot. Takes no more from the iterator than it puts in. If the iterator panics, the batch
    /// in progress is not published.
    #[inline]
    pub fn try_push_iter(&mut self, mut messages: impl ExactSizeIterator<Item = [u64; M]>) -> usize {
        // Also when a hostile head is ahead of the tail: the difference wraps to a huge number.
        let room = |ring: &Self| ring.capacity().saturating_sub(ring.tail.wrapping_sub(ring.cached_head));
        if room(self) < messages.len() as u64 {
            // Acquire: as in `has_room`.
            self.cached_head = self.head_word.load(0, Ordering::Acquire);
        }
        let count = room(self).min(messages.len() as u64) as usize;
        // Not the whole ring: the message before a batch stays, for `last_published`.
        let max_batch = MAX_BATCH.min(self.max_ahead()).max(1) as usize;
        let mut pushed = 0;
        while pushed < count {
            match self.push_batch(&mut messages, max_batch.min(count - pushed)) {
                // It has fewer than its size hint.
                0 => break,
                batch => pushed += batch,
            }
        }
        pushed
    }

    /// Pushes up to `max` of these, for which there is room. Returns how many.
    #[inline(always)]
    fn push_batch(&mut self, messages: &mut impl Iterator<Item = [u64; M]>, max: usize) -> usize {
        let Some(first) = messages.next() else { return 0 };
        let start = self.tail;
        let mut batch = WriteBatch { end: start + 1, producer: self };
        for message in messages.take(max - 1) {
            let slot = batch.producer.slots.slot(batch.end);
            slot.write(&message);
            batch.end += 1;
            // Relaxed: the first message's sequence publishes this one too.
            slot.sequence.store(batch.end, Ordering::Relaxed);
        }
        // Last: the consumer polls this line, and later stores would wait for it.
        let slot = batch.producer.slots.slot(start);
        slot.write(&first);
        // Release: pairs with the consumer's Acquire load of the sequence; all of it is there.
        slot.sequence.store(start + 1, Ordering::Release);
        batch.producer.tail = batch.end;
        (batch.end - start) as usize
    }

    /// Gives a slot that was written ahead its previous sequence.
    fn take_back(&self, position: u64) {
        let word = &self.slots.slot(position).sequence;
        // Relaxed: only this end writes here; the consumer stops at the first unpublished slot.
        let sequence = word.load(Ordering::Relaxed);
        if sequence > self.tail {
            word.store(sequence.saturating_sub(self.slots.mask() + 1), Ordering::Relaxed);
        }
    }

    /// Begins again at position 0 of the ring, after its memory was reset for a new consumer.
    pub fn renew(&mut self) {
        (self.tail, self.cached_head) = (0, 0);
    }
}

/// Messages written ahead of a first one; taken back if their iterator panics.
struct WriteBatch<'a, const M: usize> {
    producer: &'a mut Producer<M>,
    /// Position after the last one.
    end: u64,
}

impl<const M: usize> Drop for WriteBatch<'_, M> {
    fn drop(&mut self) {
        // Empty if it was published.
        let ahead = self.producer.tail + 1..self.end;
        ahead.for_each(|position| self.producer.take_back(position));
    }
}

impl crate::ring::Producer for Producer {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &crate::ring::Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        Producer::try_push_with(self, message, at)
    }
}
