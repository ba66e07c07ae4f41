//! The single-producer single-consumer ring whose messages carry their own sequence, and whose footprint follows its occupancy.
//!
//! ```text
//!       the consumer's part          the producer's part
//! word 0         16             0         16 + 8·colour
//!      │ header   │ head (pad) │ header   │ window: slot 0 … window-1 │ main slots 0 … capacity-1 │ (pad)
//!
//!                                 a slot: │ message, 7 words │ sequence │   one cache line
//! ```
//!
//! Each part has one writer, and the other end maps it read-only: the types say so ([`View`] has no store), and in the
//! sandbox the page tables do. In a run the parts are two segments; tests and benches put them into one region, the
//! consumer's part first.
//!
//! Positions count messages since the start and never wrap (2^62 messages). The message of position `p` is in the window, in
//! its slot `p` modulo the window's size, or in the main slot `p` modulo the capacity; position 0 is in the window. **The sequence
//! says where the next one is**: it is `p + 1` once the message is there, and beside that number one bit, [`OUTSIDE`]: the message
//! of position `p + 1` is, or will be, in the main slots. So the consumer always knows the one line to poll: an empty poll is one load. A message
//! crosses to the other core as one line. The head is the position of the next message to take, with the same bit about it: all that
//! a consumer's successor needs.
//!
//! **Why a window.** What a hand-off costs grows with the lines that it goes round over: a large ring walks through all of its memory,
//! though at most one message waits. While no more than two or three wait, they go round in the window; a burst goes on outside, where there is room for
//! the two ends to keep off each other's lines. The producer looks at the head before it writes over the window's first message
//! again, goes outside if more than that wait, and comes back if it sees at one of its looks (64 messages later, then 128, … 4,096) that
//! nothing does.
//!
//! The head has 128 bytes of its own (two lines: the adjacent-line prefetcher); the
//! producer keeps a copy and refreshes it only when a part looks full, so a push normally reads no line that the
//! consumer writes. Rings are *coloured*: each begins another number of lines after its header (its index), or the lines that a consumer of many polls
//! would all be in one set of its first-level cache.
//!
//! **Why nothing is lost or torn.** The producer writes a message, then its sequence (Release); the consumer loads the
//! sequence (Acquire), so it sees the message. The consumer copies the message, then stores the head (Release); the
//! producer loads the head (Acquire) before it writes into that slot again, so it never overwrites what is still to be
//! read: the window's slot of `p` was last used for `p - window` or before, and the producer chooses the window only if less than
//! `window` messages wait with this one; a main slot was last used for `p - capacity` or before, and no more than `capacity` ever wait.
//!
//! **What a dead producer leaves:** either it has stored the sequence, or not. What it half wrote is never seen, nobody waits
//! for it, and there is nothing to repair: what it published is taken, then the ring is begun again for its successor
//! ([`Consumer::restart`]); or its successor goes on behind it ([`Producer::resume_parts`]). **What a dead consumer leaves:** its head,
//! behind which [`Consumer::resume`] goes on. The message that it was copying comes out again. A consumer that must have put a message
//! down elsewhere before it may be overwritten takes it with [`Consumer::take`] and gives its slot back with [`Consumer::release`].
//!
//! **Several at once.** [`Producer::try_push_many`] and [`Consumer::drain`] are the same pushes and pops with one look at the room
//! and one store of the head. A producer that dies in the middle of a batch has published a prefix of it.
//!
//! The peer is not trusted. A slot's sequence is the awaited one, or an older one of a position that has the same slot, or zero; any other is a
//! [`PeerFault`](super::PeerFault). A head that went backwards or ran ahead makes the ring look full, which hurts only the peer who wrote
//! it. A message that is rewritten after it was published gives the consumer mixed words, never undefined behaviour:
//! they are words, and are checked.
//!
//! Source: Lamport 1977 for the ring; the cached cursor after Lee et al., MCRingBuffer (2010), and rtrb; a sequence in
//! each slot after FastForward (Giacomoni et al. 2008) and Vyukov's bounded queue.

mod consumer;
mod producer;

pub use consumer::Consumer;
pub use producer::Producer;

use crate::memory::{Header, HeaderError, SegmentKind, View, Words, header::HEADER_WORDS};
use crate::ring::MESSAGE_WORDS;

/// Where the consumer's cursor is, within its part; also in a region that holds both parts.
pub const HEAD: usize = HEADER_WORDS;
/// Words in the consumer's part.
pub const HEAD_WORDS: usize = HEAD + 16;
/// Where the slots of a ring of colour 0 are, within the producer's part.
pub const SLOTS: usize = HEADER_WORDS;
/// In a sequence and in the head: the next message is in the main slots and not in the window.
pub const OUTSIDE: u64 = 1;
/// In a sequence: this message was written before the one before it was shown, and both are shown together.
const AHEAD: u64 = 2;
/// Where the message's number, which is its position and one, begins in its sequence.
pub const NUMBER: u32 = 2;
/// Slots of the window, at most.
const WINDOW: usize = 8;
/// By how many lines rings can be moved: a page of them. Loom has no lines.
const COLOURS: usize = if cfg!(loom) { 1 } else { 64 };
/// Words in a line.
const LINE: usize = 8;
/// The producer's part.
pub const KIND: SegmentKind = SegmentKind::new(
    2,
    "ring",
    &[("slots", SLOTS), ("slot-words", slot_words(MESSAGE_WORDS)), ("window", WINDOW), ("colours", COLOURS)],
);
/// The consumer's part.
pub const HEAD_KIND: SegmentKind = SegmentKind::new(6, "ring-head", &[("head", HEAD), ("words", HEAD_WORDS)]);

/// Words in a slot: the message and its sequence.
pub const fn slot_words(message_words: usize) -> usize {
    message_words + 1
}

/// Slots of the window of a ring of that capacity: a half, from 2 to 8.
pub const fn window(capacity: usize) -> usize {
    if capacity >= 2 * WINDOW {
        WINDOW
    } else if capacity >= 4 {
        capacity / 2
    } else {
        2
    }
}

/// Words before the first slot, and those that other colours would use behind the last one.
const fn words_but_slots() -> usize {
    SLOTS + (COLOURS - 1) * LINE
}

/// Words in the producer's part.
pub const fn tail_words(capacity: usize, message_words: usize) -> usize {
    words_but_slots() + (window(capacity) + capacity) * slot_words(message_words)
}

/// Words in both parts together.
pub const fn ring_words(capacity: usize, message_words: usize) -> usize {
    HEAD_WORDS + tail_words(capacity, message_words)
}

/// Where the slots of a ring are, within the producer's part. `index`: the header's.
pub const fn first_slot(index: u64) -> usize {
    SLOTS + (index as usize % COLOURS) * LINE
}

/// Where the sequence of a position is, within the producer's part of a ring of that index; `None`: in no ring. For who looks at a ring and is no
/// end of it. The capacity is a power of two.
pub fn sequence_at(
    position: u64,
    outside: bool,
    capacity: u64,
    index: u64,
    message_words: usize,
) -> Option<usize> {
    let window = window(usize::try_from(capacity).ok()?) as u64;
    let slot =
        if outside { (position & (capacity - 1)).checked_add(window)? } else { position & (window - 1) };
    let word = usize::try_from(slot).ok()?.checked_mul(slot_words(message_words))?;
    word.checked_add(first_slot(index) + message_words)
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

/// Where the slots of a ring are, and how many.
#[derive(Clone, Copy)]
struct Shape<const M: usize> {
    /// Within the producer's part.
    first: usize,
    capacity: u64,
    window: u64,
}

impl<const M: usize> Shape<M> {
    /// As the attaching end found and checked it in the headers of both parts.
    fn of(tail: &View, head: &View) -> Result<Self, HeaderError> {
        let consumers = Header::read(|i, ordering| head.load(i, ordering), head.len(), HEAD_KIND)?;
        consumers.check_geometry(HEAD, 1)?;
        if head.len() < HEAD_WORDS {
            return Err(HeaderError::TooShort(consumers.bytes));
        }
        let header = Header::read(|i, ordering| tail.load(i, ordering), tail.len(), KIND)?;
        let window = window(usize::try_from(header.capacity).unwrap_or(usize::MAX));
        let capacity =
            header.check_geometry(words_but_slots() + window * slot_words(M), slot_words(M))? as u64;
        let Header { slot_words, bytes, index, .. } = header;
        if capacity.is_power_of_two() {
            Ok(Self { first: first_slot(index), capacity, window: window as u64 })
        } else {
            Err(HeaderError::Geometry { capacity, slot_words, bytes })
        }
    }

    /// Words in all slots.
    const fn words(self) -> usize {
        (self.window + self.capacity) as usize * slot_words(M)
    }

    /// Where the slot of a position begins.
    #[inline(always)]
    const fn slot(self, position: u64, outside: bool) -> usize {
        let slot = if outside {
            self.window + (position & (self.capacity - 1))
        } else {
            position & (self.window - 1)
        };
        slot as usize * slot_words(M)
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
