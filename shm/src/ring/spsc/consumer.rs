//! The receiving end.

use super::blocks::{Blocks, LINK_BITS, MANY, ONE, count, sequence};
use super::{HEAD, geometry, slot_words, split};
use crate::memory::{Cursor, HeaderError, View, Word, Words};
use crate::ring::{MESSAGE_WORDS, PeerFault};
use crate::sync::Ordering;
use core::sync::atomic::compiler_fence;

/// The receiving end of a ring of messages of `M` words.
// What an empty poll looks at stands first, side by side: of many rings each takes one line of the first-level cache, not two.
#[repr(C)]
pub struct Consumer<const M: usize = MESSAGE_WORDS> {
    /// The least that its sequence is when the message is there: kept, not computed, because an empty poll is nothing but this comparison.
    due: u64,
    /// The slot of the next message to take.
    slot: Cursor<M>,
    /// What stood in a slot when we tried to take its message and it was not there yet, and what was due there.
    stale: (u64, u64),
    /// The block of the next message's slot.
    block: u64,
    blocks: Blocks,
    /// Whether the next slot is found by what was read in the one before.
    follows: bool,
    /// Whether the slot after the next is asked for when a message is taken.
    asks_ahead: bool,
    /// Messages that are taken at once, at most.
    at_once: u64,
    head_word: Word,
}

/// Messages of a ring of so many slots that are taken at once, at most: as in the documentation of [`Consumer::drain`].
const fn at_once(capacity: u64) -> u64 {
    let most = if Blocks::of(capacity).count() > 1 { capacity / 4 } else { capacity / 2 };
    if most == 0 { 1 } else { most }
}

impl<const M: usize> Consumer<M> {
    /// Attaches the receiving end to a ring in one region. See [`Consumer::attach_parts`].
    ///
    /// # Errors
    /// As there.
    pub fn attach(words: &Words) -> Result<Self, HeaderError> {
        let (head, tail) = split(words)?;
        Self::attach_parts(&tail.into(), &head)
    }

    /// Attaches the receiving end to a ring whose parts have their headers. At most one in a ring's life.
    ///
    /// # Errors
    /// A header that is not that of a ring of `M`-word messages, or does not fit its part.
    pub fn attach_parts(tail: &View, head: &Words) -> Result<Self, HeaderError> {
        let (first, capacity) = geometry::<M>(tail, &head.clone().into())?;
        Ok(Self {
            slot: Cursor::new(
                tail.window(first, capacity as usize * slot_words(M)),
                Blocks::of(capacity).slots(),
            ),
            due: ONE,
            // Of a ring that nobody has used.
            stale: (0, ONE),
            block: 0,
            blocks: Blocks::of(capacity),
            follows: Blocks::of(capacity).are_long(),
            asks_ahead: Blocks::of(capacity).are_short(),
            at_once: at_once(capacity),
            head_word: Word::new(head, HEAD),
        })
    }

    /// Attaches a receiving end in the place of one that has died: what was not taken comes out, whole and in order. The
    /// message that the dead one was taking comes out again if it had not stored its head. The producer may go on meanwhile.
    ///
    /// # Errors
    /// As [`Consumer::attach_parts`].
    pub fn resume_parts(tail: &View, head: &Words) -> Result<Self, HeaderError> {
        let mut consumer = Self::attach_parts(tail, head)?;
        // Relaxed: the dead one's death is certain, and so are all its stores.
        let head = consumer.head_word.load(Ordering::Relaxed);
        consumer.go_to(head);
        Ok(consumer)
    }

    /// As [`Consumer::resume_parts`], for a ring in one region.
    ///
    /// # Errors
    /// As [`Consumer::attach`].
    pub fn resume(words: &Words) -> Result<Self, HeaderError> {
        let (head, tail) = split(words)?;
        Self::resume_parts(&tail.into(), &head)
    }

    /// Begins again at position 0, for a new producer: call it after the old one's death is certain and before the new one
    /// starts, and take nothing until the producer's part was made anew, all zero but its header.
    pub fn restart(&mut self) {
        self.go_to(0);
        self.stale = (0, self.due); // That memory.
        // Release: as in `try_pop`. The new producer starts later.
        self.head_word.store(0, Ordering::Release);
    }

    /// Makes the message of which that head says how many are before it and which block it is in the next one to take.
    fn go_to(&mut self, head: u64) {
        // A scribbled one must not make numbers overflow.
        let taken = count(head).min(MANY);
        self.due = sequence(taken + 1, 0);
        self.block = self.blocks.number(head);
        self.slot.enter(self.block);
        self.slot.go_to::<0>(taken);
    }

    /// Whether there is nothing to take now. Orders nothing, and takes whatever is lower than what is due for nothing: [`Consumer::try_pop`] checks the peer.
    #[inline(always)]
    pub fn looks_empty(&self) -> bool {
        self.slot.sequence(Ordering::Relaxed) < self.due
    }

    /// Takes the next message, or `None` if there is none now.
    ///
    /// # Errors
    /// [`PeerFault::InvalidSequence`]: the slot's sequence is impossible. Nothing was read and nothing changed; the
    /// caller decides whether to go on with this peer.
    #[inline(always)]
    pub fn try_pop(&mut self) -> Result<Option<[u64; M]>, PeerFault> {
        let mut fault = None;
        let message = self.pop(&mut fault);
        fault.map_or(Ok(message), Err)
    }

    /// The same, and what is wrong is put into `fault`: in a `Result` the message would be copied through memory once more.
    #[inline(always)]
    pub(in crate::ring) fn pop(&mut self, fault: &mut Option<PeerFault>) -> Option<[u64; M]> {
        let message = self.take_or(fault)?;
        self.release();
        Some(message)
    }

    /// Takes messages, `most` at most, and no more than a quarter of the ring, or half of one of less than 32 slots, so that the producer has room meanwhile; gives each to
    /// `each`; how many. Their slots are given back together, when the last one was taken.
    ///
    /// A consumer that dies here has taken none of them: all come out again. So do some that `each` was given before, if it panics.
    ///
    /// # Errors
    /// As [`Consumer::try_pop`], if not even one could be taken.
    #[inline(always)]
    pub fn drain(&mut self, most: usize, mut each: impl FnMut([u64; M])) -> Result<usize, PeerFault> {
        let mut fault = None;
        let taken = self.drain_or(most, &mut each, &mut fault);
        match fault {
            Some(fault) if taken == 0 => Err(fault),
            _ => Ok(taken),
        }
    }

    /// The same; a fault behind messages that were taken is found again by the next call.
    #[inline(always)]
    pub(in crate::ring) fn drain_or(
        &mut self,
        most: usize,
        each: &mut impl FnMut([u64; M]),
        fault: &mut Option<PeerFault>,
    ) -> usize {
        let most = self.at_once.min(most as u64);
        let mut taken = 0;
        while taken < most {
            // Of one block: its slots are side by side.
            let of_block = self.blocks.rest(self.taken()).min(most - taken);
            let more = self.take_side_by_side(of_block, each, fault);
            taken += more;
            if more < of_block {
                break;
            }
        }
        if taken > 0 {
            self.release();
        }
        taken as usize
    }

    /// Takes messages of this block, as many as are there, `most` at most, which is no more than it has; how many.
    #[inline(always)]
    fn take_side_by_side(
        &mut self,
        most: u64,
        each: &mut impl FnMut([u64; M]),
        fault: &mut Option<PeerFault>,
    ) -> u64 {
        if self.sequence_if_there(fault).is_none() {
            return 0;
        }
        let place = self.blocks.first(self.block) + self.blocks.within(self.taken());
        // All sequences before the first message is copied: that is what makes it fast, see "where the nanoseconds go" in the book. Each by its position: over slots side by
        // side this loop has so few instructions that a processor looks further ahead than the producer is.
        let is_there = |ahead: &u64| {
            // Acquire: as in `sequence_if_there`.
            let sequence = self.slot.sequence_of(place + ahead, Ordering::Acquire);
            is_of(sequence, self.due + ahead * ONE)
        };
        let more = (1..most).take_while(is_there).count();
        let slots = self.slot.side_by_side(place, most);
        let Some(last) = slots.get(more) else { return 0 };
        // The slots are ours from the Acquire loads of their sequences to the Release store of the head.
        slots.iter().take(1 + more).for_each(|slot| each(slot.copy_owned()));
        // Relaxed: it was loaded before. A peer that has changed it meanwhile sends us to another of its slots.
        let (taken, last) = (1 + more as u64, last.sequence.load(Ordering::Relaxed));
        self.pass(taken, last);
        taken
    }

    /// As [`Consumer::try_pop`], but the producer may not write over the message before [`Consumer::release`]: a successor of this
    /// consumer takes it again.
    ///
    /// # Errors
    /// As there.
    #[inline(always)]
    pub fn take(&mut self) -> Result<Option<[u64; M]>, PeerFault> {
        let mut fault = None;
        let message = self.take_or(&mut fault);
        fault.map_or(Ok(message), Err)
    }

    /// Gives the slots of all messages back that were taken.
    #[inline(always)]
    pub fn release(&mut self) {
        // Release: pairs with the producer's Acquire load of the head; our reads of the slots come before it.
        self.head_word.store(self.head(), Ordering::Release);
    }

    /// The word that says how many messages were taken, and in which block the next one will be.
    #[inline(always)]
    const fn head(&self) -> u64 {
        (self.due - ONE) | self.block
    }

    /// How many messages were taken, by dead predecessors too.
    #[inline(always)]
    pub const fn taken(&self) -> u64 {
        count(self.due) - 1
    }

    /// Passes over messages that were taken before and never given back: makes the one after `taken` messages the next. Does nothing
    /// if so many were given back.
    pub fn skip_to(&mut self, taken: u64) {
        if taken <= self.taken() {
            return;
        }
        // They are all there. If this peer has made them disappear, so that nobody can follow them, it has nothing more to say.
        while self.taken() < taken.min(MANY) {
            // Acquire: as in `sequence_if_there`.
            match self.slot.sequence(Ordering::Acquire) {
                sequence if is_of(sequence, self.due) => self.pass(1, sequence),
                _ => break,
            }
        }
        self.go_to(sequence(taken.min(MANY), self.block));
        self.release();
    }

    #[inline(always)]
    pub(in crate::ring) fn take_or(&mut self, fault: &mut Option<PeerFault>) -> Option<[u64; M]> {
        let sequence = self.sequence_if_there(fault)?;
        // The slot is ours from the Acquire load of the sequence to the Release store of the head.
        let message = self.slot.copy_owned();
        self.pass(1, sequence);
        // The one after the next, while the caller is busy with this one and then looks at the next.
        if self.asks_ahead {
            self.slot.ask_ahead();
        }
        Some(message)
    }

    /// The next message's sequence, if it is there.
    #[inline(always)]
    pub(in crate::ring) fn sequence_if_there(&mut self, fault: &mut Option<PeerFault>) -> Option<u64> {
        // Acquire: pairs with the producer's Release store of the sequence; the message is written.
        let sequence = self.slot.sequence(Ordering::Acquire);
        if is_of(sequence, self.due) {
            return Some(sequence);
        }
        if !self.is_stale(sequence) {
            *fault = Some(PeerFault::InvalidSequence { found: count(sequence), position: self.taken() });
        }
        None
    }

    /// Whether that is what stands in the next slot before the next message: whatever is lower, and then still that, as nobody writes there.
    #[inline(always)]
    const fn is_stale(&mut self, sequence: u64) -> bool {
        if self.stale.1 != self.due && sequence < self.due {
            self.stale = (sequence, self.due);
        }
        self.stale.1 == self.due && sequence == self.stale.0
    }

    /// Goes on behind so many messages of this block, which are there; that is the last one's sequence.
    #[inline(always)]
    fn pass(&mut self, messages: u64, last: u64) {
        let taken = self.taken() + messages;
        self.due += messages * ONE;
        if self.blocks.within(taken) == 0 {
            self.block = self.blocks.number(last);
            self.slot.enter(self.block);
        } else if self.follows {
            // The same place, from the word that was read: no processor looks there before that word is here. With the fence (which is no instruction) this stays
            // a branch; one word or the other, chosen without one, would always be waited for.
            compiler_fence(core::sync::atomic::Ordering::Acquire);
            self.slot.go_to::<LINK_BITS>(last);
        } else {
            self.slot.go_to::<LINK_BITS>(self.due - ONE);
        }
    }
}

/// Whether that is the sequence that is due, whatever block it names.
#[inline(always)]
const fn is_of(sequence: u64, due: u64) -> bool {
    sequence.wrapping_sub(due) < ONE
}
