//! The single-producer single-consumer ring whose messages carry their own sequence.
//!
//! ```text
//!       the consumer's part          the producer's part
//! word 0         16             0         16                     24
//!      │ header   │ head (pad) │ header   │ slot 0: message │ seq │ slot 1: message │ seq │ … capacity-1
//!                                           └─ 7 words ───────┘ 1
//! ```
//!
//! Each part has one writer, and the other end maps it read-only: the types say so ([`View`] has no store), and in the
//! sandbox the page tables do. In a run the parts are two segments; tests and benches put them into one region, the
//! consumer's part first.
//!
//! Positions count messages since the start and never wrap (2^64 messages); a slot's place is its position modulo the
//! capacity. The slot of position `p` holds the message and, in the same 64-byte line, the sequence `p + 1` once the
//! message is there. So a message crosses to the other core as one line, and the consumer polls the very line that it
//! wants: there is no shared tail. The head has 128 bytes of its own (two lines: the adjacent-line prefetcher); the
//! producer keeps a copy and refreshes it only when the ring looks full, so a push normally reads no line that the
//! consumer writes.
//!
//! **Why nothing is lost or torn.** The producer writes a message, then its sequence (Release); the consumer loads the
//! sequence (Acquire), so it sees the message. The consumer copies the message, then stores the head (Release); the
//! producer loads the head (Acquire) before it writes into that slot again, so it never overwrites what is still to be
//! read.
//!
//! **What a dead producer leaves:** either it has stored the sequence, or not. What it half wrote is never seen, nobody waits
//! for it, and there is nothing to repair: what it published is taken, then the ring is begun again for its successor
//! ([`Consumer::restart`]); or its successor goes on behind it ([`Producer::resume_parts`]). **What a dead consumer leaves:** its head,
//! behind which [`Consumer::resume`] goes on. The message that it was copying comes out again. A consumer that must have put a message
//! down elsewhere before it may be overwritten takes it with [`Consumer::take`] and gives its slot back with [`Consumer::release`].
//!
//! The peer is not trusted. A slot has two honest sequences, this lap's and the last one's; any other is a
//! [`PeerFault`]. A head that went backwards or ran ahead makes the ring look full, which hurts only the peer who wrote
//! it. A message that is rewritten after it was published gives the consumer mixed words, never undefined behaviour:
//! they are words, and are checked.
//!
//! Source: Lamport 1977 for the ring; the cached cursor after Lee et al., MCRingBuffer (2010), and rtrb; a sequence in
//! each slot after FastForward (Giacomoni et al. 2008) and Vyukov's bounded queue.

use super::step::{reach, write};
use super::{Full, PeerFault, Step};
use crate::memory::{Header, HeaderError, SegmentKind, View, Words, header::HEADER_WORDS};
use crate::ring::MESSAGE_WORDS;
use crate::sync::Ordering;
use core::ops::ControlFlow;

/// Where the consumer's cursor is, within its part; also in a region that holds both parts.
pub const HEAD: usize = HEADER_WORDS;
/// Words in the consumer's part.
pub const HEAD_WORDS: usize = HEAD + 16;
/// Where the slots are, within the producer's part.
pub const SLOTS: usize = HEADER_WORDS;
/// The producer's part.
pub const KIND: SegmentKind =
    SegmentKind::new(2, "ring", &[("slots", SLOTS), ("slot-words", slot_words(MESSAGE_WORDS))]);
/// The consumer's part.
pub const HEAD_KIND: SegmentKind = SegmentKind::new(6, "ring-head", &[("head", HEAD), ("words", HEAD_WORDS)]);

/// Words in a slot: the message and its sequence.
pub const fn slot_words(message_words: usize) -> usize {
    message_words + 1
}

/// Words in the producer's part.
pub const fn tail_words(capacity: usize, message_words: usize) -> usize {
    SLOTS + capacity * slot_words(message_words)
}

/// Words in both parts together.
pub const fn ring_words(capacity: usize, message_words: usize) -> usize {
    HEAD_WORDS + tail_words(capacity, message_words)
}

/// The consumer's and the producer's part of a region that holds both.
///
/// # Errors
/// A region that is too short.
fn split(words: &Words) -> Result<(Words, Words), HeaderError> {
    if words.len() < HEAD_WORDS + SLOTS {
        return Err(HeaderError::TooShort(words.len() as u64 * 8));
    }
    Ok((words.window(0, HEAD_WORDS), words.window(HEAD_WORDS, words.len() - HEAD_WORDS)))
}

/// The capacity, as the attaching end found and checked it in the headers of both parts.
fn geometry<const M: usize>(tail: &View, head: &View) -> Result<u64, HeaderError> {
    let consumers = Header::read(|i, ordering| head.load(i, ordering), head.len(), HEAD_KIND)?;
    consumers.check_geometry(HEAD, 1)?;
    if head.len() < HEAD_WORDS {
        return Err(HeaderError::TooShort(consumers.bytes));
    }
    let header = Header::read(|i, ordering| tail.load(i, ordering), tail.len(), KIND)?;
    let capacity = header.check_geometry(SLOTS, slot_words(M))? as u64;
    let Header { slot_words, bytes, .. } = header;
    if capacity.is_power_of_two() {
        Ok(capacity)
    } else {
        Err(HeaderError::Geometry { capacity, slot_words, bytes })
    }
}

/// The sending end of a ring of messages of `M` words.
pub struct Producer<const M: usize = MESSAGE_WORDS> {
    head_word: View,
    slots: Words,
    mask: u64,
    /// The position of the next message. Private: never read back from shared memory.
    tail: u64,
    /// The consumer's cursor when we last looked: never ahead of the real one.
    head_seen: u64,
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
        let capacity = geometry::<M>(&tail.clone().into(), head)?;
        Ok(Self {
            head_word: head.window(HEAD, 1),
            slots: tail.window(SLOTS, capacity as usize * slot_words(M)),
            mask: capacity - 1,
            tail: 0,
            head_seen: 0,
        })
    }

    /// Attaches a sending end in the place of one that has died: it goes on behind the last message that was published. What the
    /// dead one half wrote is written over. The consumer may go on meanwhile. Every slot is looked at, once.
    ///
    /// # Errors
    /// As [`Producer::attach_parts`].
    pub fn resume_parts(tail: &Words, head: &View) -> Result<Self, HeaderError> {
        let mut producer = Self::attach_parts(tail, head)?;
        // Relaxed: the dead one's death is certain, and so are all its stores. Nobody else writes here.
        let sequences = producer.slots.iter().skip(M).step_by(slot_words(M));
        producer.tail = sequences.map(|word| word.load(Ordering::Relaxed)).max().unwrap_or(0);
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

    /// How many messages were published, by dead predecessors too.
    pub const fn published(&self) -> u64 {
        self.tail
    }

    /// The message that was published last, by a dead predecessor if by nobody else; `None`: none was.
    pub fn last_published(&self) -> Option<[u64; M]> {
        let last = self.tail.checked_sub(1)?;
        let start = (last & self.mask) as usize * slot_words(M);
        // Relaxed: our own stores, or those of one whose death is certain.
        let word = |at: usize| self.slots[start + at].load(Ordering::Relaxed);
        (word(M) == self.tail).then(|| core::array::from_fn(word))
    }

    /// Whether the next push will find room. Only its own pushes can change a yes.
    #[inline(always)]
    pub fn has_room(&mut self) -> bool {
        // `<=` also when a hostile head is ahead of the tail: the difference wraps to a huge number.
        if self.tail.wrapping_sub(self.head_seen) <= self.mask {
            return true;
        }
        // Acquire: pairs with the consumer's Release store of the head; its reads of the slot are over.
        self.head_seen = self.head_word.load(0, Ordering::Acquire);
        self.tail.wrapping_sub(self.head_seen) <= self.mask
    }

    /// Puts a message into the ring.
    ///
    /// # Errors
    /// [`Full`] if every slot is taken by a message that the consumer has not read.
    #[inline(always)]
    pub fn try_push(&mut self, message: &[u64; M]) -> Result<(), Full> {
        self.try_push_with(message, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`Producer::try_push`], and calls `at` at each step; see [`super::Producer::try_push_with`].
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
        let start = (self.tail & self.mask) as usize * slot_words(M);
        let slot = &self.slots[start..start + slot_words(M)];
        write(slot, message, at)?;
        self.tail += 1;
        // Release: pairs with the consumer's Acquire load of the sequence; it sees the message written before.
        slot[M].store(self.tail, Ordering::Release);
        reach(at, Step::Published)
    }

    /// Begins again at position 0: the ring's memory was made anew, all zero but its headers, and a new consumer comes.
    pub fn restart(&mut self) {
        (self.tail, self.head_seen) = (0, 0);
    }
}

impl super::Producer for Producer {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &crate::ring::Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        Producer::try_push_with(self, message, at)
    }
}

/// The receiving end of a ring of messages of `M` words.
pub struct Consumer<const M: usize = MESSAGE_WORDS> {
    head_word: Words,
    slots: View,
    mask: u64,
    /// The position of the next message to take. Private.
    head: u64,
    /// Where that message's sequence is, and what it is before the message is there: kept, not computed, because an
    /// empty poll is nothing but this comparison.
    sequence_at: usize,
    last_lap: u64,
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
        let capacity = geometry::<M>(tail, &head.clone().into())?;
        Ok(Self {
            head_word: head.window(HEAD, 1),
            slots: tail.window(SLOTS, capacity as usize * slot_words(M)),
            mask: capacity - 1,
            head: 0,
            sequence_at: M,
            last_lap: 0,
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
        let taken = consumer.head_word[0].load(Ordering::Relaxed);
        // A scribbled one must not make numbers overflow.
        consumer.go_to(taken.min(u64::MAX >> 8));
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
        // Release: as in `try_pop`. The new producer starts later.
        self.head_word[0].store(0, Ordering::Release);
    }

    /// Makes that message the next one to take.
    fn go_to(&mut self, head: u64) {
        self.head = head;
        self.sequence_at = (head & self.mask) as usize * slot_words(M) + M;
        // At first zero, then what the last lap left there.
        self.last_lap = head.saturating_sub(self.mask);
    }

    /// Whether there is nothing to take now. Orders nothing: [`Consumer::try_pop`] does, and checks the peer.
    #[inline(always)]
    pub fn looks_empty(&self) -> bool {
        self.slots.load(self.sequence_at, Ordering::Relaxed) == self.last_lap
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
    pub(super) fn pop(&mut self, fault: &mut Option<PeerFault>) -> Option<[u64; M]> {
        let message = self.take_or(fault)?;
        self.release();
        Some(message)
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
        self.head_word[0].store(self.head, Ordering::Release);
    }

    /// How many messages were taken, by dead predecessors too.
    pub const fn taken(&self) -> u64 {
        self.head
    }

    /// Passes over messages that were taken before and never given back: makes the one after `taken` messages the next. Does nothing
    /// if so many were given back.
    pub fn skip_to(&mut self, taken: u64) {
        if taken > self.head {
            self.go_to(taken);
            self.release();
        }
    }

    #[inline(always)]
    pub(super) fn take_or(&mut self, fault: &mut Option<PeerFault>) -> Option<[u64; M]> {
        // Acquire: pairs with the producer's Release store of the sequence; the message is written.
        let sequence = self.slots.load(self.sequence_at, Ordering::Acquire);
        if sequence != self.head + 1 {
            if sequence != self.last_lap {
                *fault = Some(PeerFault::InvalidSequence { found: sequence, position: self.head });
            }
            return None;
        }
        // The slot is ours from the Acquire load of the sequence to the Release store of the head.
        let message = self.slots.copy_owned(self.sequence_at - M);
        self.head += 1;
        self.sequence_at = (self.head & self.mask) as usize * slot_words(M) + M;
        // At first zero, then what the last lap left there.
        self.last_lap = self.head.saturating_sub(self.mask);
        Some(message)
    }
}

/// Writes the header of a fresh (zeroed) ring on the heap and attaches both ends: for tests, models and benches.
///
/// # Panics
/// If the capacity is not a power of two.
pub fn heap_ring<const M: usize>(capacity: usize) -> (Producer<M>, Consumer<M>) {
    let words = crate::memory::Region::heap(ring_words(capacity, M)).words();
    write_header::<M>(&words, capacity);
    (
        Producer::attach(&words).expect("a fresh ring has a good header"),
        Consumer::attach(&words).expect("a fresh ring has a good header"),
    )
}

/// Makes a ring of zeroed words by writing its headers: for tests and benches; a run's segments get theirs from
/// the launcher.
///
/// # Panics
/// If the region is shorter than [`ring_words`].
pub fn write_header<const M: usize>(words: &Words, capacity: usize) {
    let (head, tail) = split(words).expect("room for both parts");
    let header = |part: &Words, kind, capacity, slot_words| {
        let bytes = part.len() as u64 * 8;
        Header { kind, bytes, capacity, slot_words, creator_pid: 0, creator_start: 0, run: 0, index: 0 }
            .write(part);
    };
    header(&head, HEAD_KIND, 1, 1);
    header(&tail, KIND, capacity as u64, slot_words(M) as u64);
}
