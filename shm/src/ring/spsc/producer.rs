//! The sending end.

use super::blocks::{Blocks, MANY, count, sequence};
use super::order::{self, Order};
use super::{HEAD, geometry, slot_words, split};
use crate::memory::{HeaderError, Slot, Slots, View, Words};
use crate::ring::step::{reach, write};
use crate::ring::{Full, MESSAGE_WORDS, Step};
use crate::sync::Ordering;
use core::ops::ControlFlow;

/// Messages of a batch that are shown together, at most: 16 were as fast as more.
const GROUP: usize = 16;

/// Messages of a batch that are shown together in a ring of so many slots, at most. Not all of them: the message before a group stays, for
/// `last_published`.
const fn group(capacity: u64) -> usize {
    let blocks = Blocks::of(capacity);
    let most = if blocks.count() > 1 { blocks.slots() } else { capacity.saturating_sub(1) };
    if most == 0 {
        1
    } else if most < GROUP as u64 {
        most as usize
    } else {
        GROUP
    }
}

/// The sequences of slots.
fn sequences<const M: usize>(slots: &View, capacity: u64) -> impl Iterator<Item = u64> {
    // Acquire: one that is looked at later has what was written when the one before was seen.
    (0..capacity as usize).map(|slot| slots.load(slot * slot_words(M) + M, Ordering::Acquire))
}

/// How many messages have been published in a ring, for somebody who is no end of it: the producer may go on meanwhile. Every slot is
/// looked at.
///
/// # Errors
/// As [`Producer::attach_parts`].
pub fn published<const M: usize>(tail: &View, head: &View) -> Result<u64, HeaderError> {
    let (first, capacity) = geometry::<M>(tail, head)?;
    let slots = tail.window(first, capacity as usize * slot_words(M));
    Ok(order::published(sequences::<M>(&slots, capacity), group(capacity)).min(MANY))
}

/// The sending end of a ring of messages of `M` words. In lines of its own, wherever it is put: it is written at each push, and a receiving end beside it
/// would share a line with it.
#[repr(align(128))]
pub struct Producer<const M: usize = MESSAGE_WORDS> {
    head_word: View,
    slots: Slots<M>,
    /// The position of the next message. Private: never read back from shared memory.
    tail: u64,
    /// The consumer's cursor when we last looked: never ahead of the real one.
    head_seen: u64,
    /// The place of the first slot of the block that we are in.
    first: u64,
    blocks: Blocks,
    order: Order,
    /// Messages of a batch that are shown together, at most.
    group: usize,
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
        let (first, capacity) = geometry::<M>(&tail.clone().into(), head)?;
        Ok(Self {
            head_word: head.window(HEAD, 1),
            slots: Slots::new(tail.window(first, capacity as usize * slot_words(M))),
            tail: 0,
            head_seen: 0,
            first: 0,
            blocks: Blocks::of(capacity),
            order: Order::new(Blocks::of(capacity)),
            group: group(capacity),
        })
    }

    /// Attaches a sending end in the place of one that has died: it goes on behind the last message that was published. What the
    /// dead one half wrote is written over. The consumer may go on meanwhile. Every slot is looked at, once.
    ///
    /// # Errors
    /// As [`Producer::attach_parts`].
    pub fn resume_parts(tail: &Words, head: &View) -> Result<Self, HeaderError> {
        let mut producer = Self::attach_parts(tail, head)?;
        // Its death is certain, and so are all its stores.
        let slots =
            (0..producer.blocks.count() * producer.blocks.slots()).map(|place| producer.slots.slot(place));
        let words: Vec<u64> = slots.map(|slot| slot.sequence.load(Ordering::Relaxed)).collect();
        producer.tail = order::published(words.iter().copied(), group(words.len() as u64)).min(MANY);
        producer.find_order(&words);
        Ok(producer)
    }

    /// Finds out what order a dead producer filled the blocks in, whose sequences these are, and takes back what it wrote ahead in a batch, which must not
    /// appear behind our own first message.
    fn find_order(&mut self, words: &[u64]) {
        let Self { blocks, tail, .. } = *self;
        let published = |word: &u64| count(*word) <= tail;
        let newest = words.chunks(blocks.slots() as usize).map(|block| {
            let shown = block.iter().filter(|word| published(word));
            shown.map(|word| count(*word)).max().unwrap_or(0)
        });
        self.order = Order::found(blocks, &newest.collect::<Vec<_>>());
        // Between two blocks: the consumer has been told which one is next.
        if blocks.within(tail) == 0
            && let Some(last) = words.iter().find(|word| tail > 0 && count(**word) == tail)
        {
            self.order.was_decided(blocks.filled(tail), *last);
        }
        self.enter();
        for (place, _) in (0..).zip(words).filter(|(_, word)| !published(word)) {
            self.slots.slot(place).sequence.store(0, Ordering::Relaxed);
        }
    }

    /// Goes on in the block that was decided for the next message.
    fn enter(&mut self) {
        self.first = self.blocks.first(self.order.block(self.blocks.filled(self.tail)));
    }

    /// As [`Producer::resume_parts`], for a ring in one region.
    ///
    /// # Errors
    /// As there.
    pub fn resume(words: &Words) -> Result<Self, HeaderError> {
        let (head, tail) = split(words)?;
        Self::resume_parts(&tail, &head.into())
    }

    /// How many messages were published, by dead predecessors too.
    pub const fn published(&self) -> u64 {
        self.tail
    }

    /// The message that was published last, by a dead predecessor if by nobody else; `None`: none was.
    pub fn last_published(&self) -> Option<[u64; M]> {
        let last = self.tail.checked_sub(1)?;
        let slot = self.slots.slot(self.order.place(last));
        // Relaxed: our own stores, or those of one whose death is certain.
        let word = |word: usize| slot.message[word].load(Ordering::Relaxed);
        (count(slot.sequence.load(Ordering::Relaxed)) == self.tail).then(|| core::array::from_fn(word))
    }

    /// Whether the next push will find room. Only its own pushes can change a yes.
    #[inline(always)]
    pub fn has_room(&mut self) -> bool {
        // `<=` also when a hostile head is ahead of the tail: the difference wraps to a huge number.
        if self.tail.wrapping_sub(self.head_seen) <= self.slots.mask() {
            return true;
        }
        // Acquire: pairs with the consumer's Release store of the head; its reads of the slot are over.
        self.head_seen = count(self.head_word.load(0, Ordering::Acquire));
        self.tail.wrapping_sub(self.head_seen) <= self.slots.mask()
    }

    /// The place of the message of that position, which is written next, and its sequence. Goes on to the next block behind the last one of a block.
    #[inline(always)]
    fn next(&mut self, position: u64) -> (u64, u64) {
        let place = self.first + self.blocks.within(position);
        let mut sequence = sequence(position + 1, 0);
        if self.blocks.within(position + 1) == 0 {
            sequence |= self.turn(position + 1);
        }
        (place, sequence)
    }

    /// Decides which block is next, that of the message of this position: its number.
    #[inline(never)]
    fn turn(&mut self, position: u64) -> u64 {
        let next = self.blocks.filled(position);
        if self.order.is_to_look(next) {
            // Acquire: as in `has_room`, for the whole block.
            self.head_seen = count(self.head_word.load(0, Ordering::Acquire));
            self.order.looked(next, self.head_seen);
        }
        let block = self.order.decide(next, self.head_seen);
        self.first = self.blocks.first(block);
        block
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
        let (place, sequence) = self.next(self.tail);
        let slot = self.slots.slot(place);
        if let Err(full) = write(&slot.message, message, at) {
            // Whoever comes back from here is still in this block.
            self.enter();
            return Err(full);
        }
        self.tail += 1;
        // Release: pairs with the consumer's Acquire load of the sequence; it sees the message written before.
        slot.sequence.store(sequence, Ordering::Release);
        reach(at, Step::Published)
    }

    /// Puts messages into the ring, the first ones of these, as many as there is room for; how many. As so many pushes, but groups of
    /// them are shown to the consumer at once.
    ///
    /// A producer that dies here has published the first ones, or none.
    #[inline]
    pub fn try_push_many(&mut self, messages: &[[u64; M]]) -> usize {
        self.try_push_iter(messages.iter().copied())
    }

    /// As [`Producer::try_push_many`], but each message is made when its turn comes, where it goes: no array of them is filled and copied.
    /// Takes no more from the iterator than it puts in. If the iterator panics, the group that it was in the middle of is not there.
    #[inline]
    pub fn try_push_iter(&mut self, mut messages: impl ExactSizeIterator<Item = [u64; M]>) -> usize {
        // Also when a hostile head is ahead of the tail: the difference wraps to a huge number.
        let room =
            |ring: &Self| (ring.slots.mask() + 1).saturating_sub(ring.tail.wrapping_sub(ring.head_seen));
        if room(self) < messages.len() as u64 {
            // Acquire: as in `has_room`.
            self.head_seen = count(self.head_word.load(0, Ordering::Acquire));
        }
        let count = room(self).min(messages.len() as u64) as usize;
        let most = self.group;
        let mut pushed = 0;
        while pushed < count {
            match self.push_group(&mut messages, most.min(count - pushed)) {
                // It has fewer than it said.
                0 => break,
                group => pushed += group,
            }
        }
        pushed
    }

    /// That many of these at most, for which there is room; how many.
    #[inline(always)]
    fn push_group(&mut self, messages: &mut impl Iterator<Item = [u64; M]>, most: usize) -> usize {
        let Some(first) = messages.next() else { return 0 };
        // Of one block: its slots are side by side, and only the last one names another block.
        let rest = self.blocks.rest(self.tail);
        let place = self.first + self.blocks.within(self.tail);
        let mut group = Group { end: self.tail + 1, place, producer: self };
        for message in messages.take(most.min(rest as usize) - 1) {
            let slot = group.producer.slots.slot(place + (group.end - group.producer.tail));
            copy(slot, &message);
            // Relaxed: the first one's sequence shows this one too.
            slot.sequence.store(sequence(group.end + 1, 0), Ordering::Relaxed);
            group.end += 1;
        }
        group.show(&first)
    }

    /// Begins again at position 0: the ring's memory was made anew, all zero but its headers, and a new consumer comes.
    pub fn restart(&mut self) {
        (self.tail, self.head_seen, self.order) = (0, 0, Order::new(self.blocks));
        self.enter();
    }
}

/// Writes a message, but not its sequence, which shows it.
#[inline(always)]
fn copy<const M: usize>(slot: &Slot<M>, message: &[u64; M]) {
    for (word, value) in slot.message.iter().zip(message) {
        // Relaxed: a sequence shows them.
        word.store(*value, Ordering::Relaxed);
    }
}

/// Messages that are written ahead, behind a first one that is not there yet. They are taken back if it never comes: the iterator that makes
/// them may panic.
struct Group<'a, const M: usize> {
    producer: &'a mut Producer<M>,
    /// The place of the first one.
    place: u64,
    /// The position behind the last one.
    end: u64,
}

impl<const M: usize> Group<'_, M> {
    /// Writes the first one and shows all of them; how many. It is written last: the consumer polls its line, and all stores behind one to
    /// it would wait until that line is here.
    #[inline(always)]
    fn show(self, first: &[u64; M]) -> usize {
        let (end, place) = (self.end, self.place);
        let producer = &mut *self.producer;
        let count = end - producer.tail;
        let mut link = 0;
        if producer.blocks.within(end) == 0 {
            link = producer.turn(end);
            if count > 1 {
                // Relaxed: as the others.
                producer.slots.slot(place + count - 1).sequence.store(sequence(end, link), Ordering::Relaxed);
                link = 0;
            }
        }
        let slot = producer.slots.slot(place);
        copy(slot, first);
        // Release: pairs with the consumer's Acquire load of the sequence; it sees the whole group written.
        slot.sequence.store(sequence(producer.tail + 1, link), Ordering::Release);
        producer.tail = end;
        count as usize
    }
}

impl<const M: usize> Drop for Group<'_, M> {
    fn drop(&mut self) {
        let Producer { slots, tail, .. } = &mut *self.producer;
        for ahead in 1..self.end - *tail {
            // Relaxed: the consumer does not look beyond the first that is not there.
            slots.slot(self.place + ahead).sequence.store(0, Ordering::Relaxed);
        }
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
