//! The sending end.

use super::{AHEAD, NUMBER, OUTSIDE, Shape, slot_words, split};
use crate::memory::{HeaderError, View, Words};
use crate::ring::step::{reach, write};
use crate::ring::{Full, MESSAGE_WORDS, Step};
use crate::sync::Ordering;
use core::ops::ControlFlow;

/// Messages that may wait, beside the one that is pushed, while the window is gone round: if more do, the next one goes outside.
const FEW: u64 = 2;
/// After so many messages outside, the producer looks for the first time whether none waits; then after twice as many, and so on.
const PATIENCE: u64 = if cfg!(loom) { 1 } else { 64 };
/// As many at most.
const PATIENCE_MAX: u64 = 4096;
/// Messages of a batch that are shown together, at most.
const GROUP: usize = 32;
/// As many at once are pushed one by one: they stay in the window if they can.
const HANDFUL: usize = if cfg!(loom) { 2 } else { 4 };

/// The sending end of a ring of messages of `M` words.
pub struct Producer<const M: usize = MESSAGE_WORDS> {
    head_word: View,
    slots: Words,
    shape: Shape<M>,
    /// The position of the next message. Private: never read back from shared memory.
    tail: u64,
    /// The consumer's cursor when we last looked: never ahead of the real one.
    head_seen: u64,
    /// Whether the next message goes to the main slots.
    outside: bool,
    /// The position whose push decides anew where the one after it goes.
    look_at: u64,
    /// Messages outside until the next look.
    patience: u64,
}

impl<const M: usize> Producer<M> {
    /// Attaches the sending end to a ring in one region. See [`Producer::attach_parts`].
    ///
    /// # Errors
    /// As there.
    pub fn attach(words: &Words) -> Result<Self, HeaderError> {
        let (head, tail) = split(words)?;
        Self::attach_parts(&tail, &head.into())
    }

    /// Attaches the sending end to a ring whose parts have their headers. At most one in a ring's life.
    ///
    /// # Errors
    /// A header that is not that of a ring of `M`-word messages, or does not fit its part.
    pub fn attach_parts(tail: &Words, head: &View) -> Result<Self, HeaderError> {
        let shape = Shape::<M>::of(&tail.clone().into(), head)?;
        Ok(Self {
            head_word: head.window(super::HEAD, 1),
            slots: tail.window(shape.first, shape.words()),
            shape,
            tail: 0,
            head_seen: 0,
            outside: false,
            look_at: 0,
            patience: PATIENCE,
        })
    }

    /// Attaches a sending end in the place of one that has died: it goes on behind the last message that was published. What the
    /// dead one half wrote is written over. The consumer may go on meanwhile. Every slot is looked at, once.
    ///
    /// # Errors
    /// As [`Producer::attach_parts`].
    pub fn resume_parts(tail: &Words, head: &View) -> Result<Self, HeaderError> {
        let mut producer = Self::attach_parts(tail, head)?;
        // Relaxed, here and below: the dead one's death is certain, and so are all its stores. Nobody else writes here.
        let sequences = producer.slots.iter().skip(M).step_by(slot_words(M));
        let last = sequences.map(|word| word.load(Ordering::Relaxed)).max().unwrap_or(0);
        producer.go_to(last);
        producer.take_back(last);
        Ok(producer)
    }

    /// As [`Producer::resume_parts`], for a ring in one region.
    ///
    /// # Errors
    /// As there.
    pub fn resume(words: &Words) -> Result<Self, HeaderError> {
        let (head, tail) = split(words)?;
        Self::resume_parts(&tail, &head.into())
    }

    /// Goes on behind the message of that sequence; 0: at the beginning.
    const fn go_to(&mut self, last: u64) {
        self.tail = last >> NUMBER;
        self.outside = last & OUTSIDE != 0;
        self.look_at = self.tail;
    }

    /// The sequence of the `number`th message, if it is still there.
    fn sequence(&self, number: u64) -> Option<u64> {
        let position = number.checked_sub(1)?;
        let word = |outside| self.slots[self.shape.slot(position, outside) + M].load(Ordering::Relaxed);
        [false, true].map(word).into_iter().find(|word| word >> NUMBER == number)
    }

    /// The dead one may have written messages of a batch and not lived to show the first of them: they do not exist, and must not
    /// appear behind the first message of ours.
    fn take_back(&mut self, last: u64) {
        let mut first = last;
        // Back to the one that shows the others.
        for _ in 0..GROUP {
            if first & AHEAD == 0 {
                return;
            }
            let number = (first >> NUMBER).saturating_sub(1);
            let Some(before) = self.sequence(number) else { break };
            first = before;
        }
        let first = first >> NUMBER;
        // From the last one back: whoever dies here leaves what a batch leaves.
        for number in (first..=last >> NUMBER).rev() {
            self.slots[self.shape.slot(number.saturating_sub(1), true) + M].store(0, Ordering::Relaxed);
        }
        // That one's slot is not among those of the batch. Nothing was published before the very first message.
        let shown = first.saturating_sub(2);
        self.go_to(self.sequence(shown).unwrap_or(shown << NUMBER));
    }

    /// How many messages were published, by dead predecessors too.
    pub const fn published(&self) -> u64 {
        self.tail
    }

    /// The message that was published last, by a dead predecessor if by nobody else; `None`: none was.
    pub fn last_published(&self) -> Option<[u64; M]> {
        let last = self.tail.checked_sub(1)?;
        // Relaxed: our own stores, or those of one whose death is certain.
        let word = |at: usize| self.slots[at].load(Ordering::Relaxed);
        let slots = [false, true].map(|outside| self.shape.slot(last, outside));
        let start = slots.into_iter().find(|start| word(start + M) >> NUMBER == self.tail)?;
        Some(core::array::from_fn(|place| word(start + place)))
    }

    /// Whether the next push will find room. Only its own pushes can change a yes.
    #[inline(always)]
    pub fn has_room(&mut self) -> bool {
        // `<` also when a hostile head is ahead of the tail: the difference wraps to a huge number.
        if self.tail.wrapping_sub(self.head_seen) < self.shape.capacity {
            return true;
        }
        self.look();
        self.tail.wrapping_sub(self.head_seen) < self.shape.capacity
    }

    /// Refreshes the copy of the head.
    #[inline(always)]
    fn look(&mut self) {
        // Acquire: pairs with the consumer's Release store of the head; its reads of the slots before it are over.
        self.head_seen = self.head_word.load(0, Ordering::Acquire) >> 1;
    }

    /// Puts a message into the ring.
    ///
    /// # Errors
    /// [`Full`] if every slot is taken by a message that the consumer has not read.
    #[inline(always)]
    pub fn try_push(&mut self, message: &[u64; M]) -> Result<(), Full> {
        self.try_push_with(message, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`Producer::try_push`], and calls `at` at each step; see [`crate::ring::Producer::try_push_with`].
    ///
    /// # Errors
    /// [`Full`], as there.
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
        let start = self.shape.slot(self.tail, self.outside);
        let sequence = self.next_sequence();
        let slot = &self.slots[start..start + slot_words(M)];
        write(slot, message, at)?;
        // Release: pairs with the consumer's Acquire load of the sequence; it sees the message written before.
        slot[M].store(sequence, Ordering::Release);
        reach(at, Step::Published)
    }

    /// Counts a message, decides where the next one goes, and says so.
    #[inline(always)]
    fn next_sequence(&mut self) -> u64 {
        if self.tail >= self.look_at {
            self.choose();
        }
        self.tail += 1;
        self.tail << NUMBER | u64::from(self.outside)
    }

    /// Whether the message after this one goes to the window.
    #[cold]
    #[inline(never)]
    fn choose(&mut self) {
        self.look();
        // Beside this one. A hostile head that is ahead: a huge number.
        let waiting = self.tail.wrapping_sub(self.head_seen);
        let few = if self.outside { 0 } else { FEW.min(self.shape.window - 2) };
        if waiting <= few {
            // The window has room for the next message while it and those before it that wait are no more than its slots.
            self.look_at = self.head_seen + self.shape.window - 1;
            if !self.outside {
                self.patience = PATIENCE;
            }
            self.outside = false;
        } else {
            if self.outside {
                self.patience = (2 * self.patience).min(PATIENCE_MAX);
            }
            self.look_at = self.tail + self.patience;
            self.outside = true;
        }
    }

    /// Puts messages into the ring, the first ones of these, as many as there is room for; how many. The same as that many pushes,
    /// but several are shown to the consumer together.
    ///
    /// A producer that dies here has put a part of them into the ring: the first ones, or none.
    #[inline]
    pub fn try_push_many(&mut self, messages: &[[u64; M]]) -> usize {
        let room = |ring: &Self| ring.shape.capacity.saturating_sub(ring.tail.wrapping_sub(ring.head_seen));
        if room(self) < messages.len() as u64 {
            self.look();
        }
        let count = room(self).min(messages.len() as u64) as usize;
        // Fewer than the slots: the message before the group is never written over by it, and says where its first one is.
        for group in messages[..count].chunks(GROUP.min(self.shape.capacity as usize - 1).max(1)) {
            self.push_group(group);
        }
        count
    }

    /// There is room for them.
    fn push_group(&mut self, group: &[[u64; M]]) {
        let ([first, middle @ .., last], true) = (group, group.len() > HANDFUL) else {
            return group.iter().for_each(|message| _ = self.try_push(message));
        };
        let shows = self.shape.slot(self.tail, self.outside);
        self.put(shows, first);
        self.tail += 1;
        let shown = self.tail << NUMBER | OUTSIDE;
        // The others go outside, wherever the first one is.
        if !self.outside {
            self.outside = true;
            self.look_at = self.tail + self.patience;
        }
        for message in middle {
            let start = self.shape.slot(self.tail, true);
            self.put(start, message);
            self.tail += 1;
            // Relaxed: the first one's sequence shows this one too.
            self.slots[start + M].store(self.tail << NUMBER | AHEAD | OUTSIDE, Ordering::Relaxed);
        }
        let start = self.shape.slot(self.tail, true);
        self.put(start, last);
        let sequence = self.next_sequence() | AHEAD;
        self.slots[start + M].store(sequence, Ordering::Relaxed);
        // Release: pairs with the consumer's Acquire load of this sequence; it sees all of the group.
        self.slots[shows + M].store(shown, Ordering::Release);
    }

    /// Writes a message's words into the slot that begins there.
    #[inline(always)]
    fn put(&self, start: usize, message: &[u64; M]) {
        for (word, value) in self.slots[start..start + M].iter().zip(message) {
            // Relaxed: a sequence shows them.
            word.store(*value, Ordering::Relaxed);
        }
    }

    /// Begins again at position 0: the ring's memory was made anew, all zero but its headers, and a new consumer comes.
    pub fn restart(&mut self) {
        (self.tail, self.head_seen) = (0, 0);
        (self.outside, self.look_at, self.patience) = (false, 0, PATIENCE);
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

    #[inline]
    fn try_push_many(&mut self, messages: &[crate::ring::Message]) -> usize {
        Producer::try_push_many(self, messages)
    }
}
