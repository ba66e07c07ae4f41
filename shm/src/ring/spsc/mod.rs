//! The single-producer single-consumer ring whose messages carry their own sequence.
//!
//! ```text
//!       the consumer's part          the producer's part
//! word 0         16             0         16 + 8·color
//!      │ header   │ head (pad) │ header   │ slot 0: message │ seq │ slot 1: message │ seq │ …
//!                                           └─ 7 words ───────┘ 1
//! ```
//!
//! Each part has one writer, and the other end maps it read-only: the types enforce it
//! ([`ReadOnlyWords`] has no store), and in the sandbox the page tables do. In a run the parts are
//! two segments; tests and benches put them into one region.
//!
//! **Positions** count messages from 0 and never wrap (2^64 messages). The message at position `p`
//! is in slot `p` modulo the slots: seven words and, in the same 64-byte line, its sequence
//! `p + 1`. A message crosses to the other core as one line, the one that the consumer polls. Until
//! then its slot holds exactly `p + 1 - slots`, the sequence of the previous lap, or 0.
//!
//! **Cache colors.** By its index each ring starts a different number of lines after its header, or
//! the lines polled by a consumer of many rings would all map to one set of its L1 cache. The head
//! has 128 bytes of its own (two lines: the adjacent-line prefetcher). The producer keeps a copy of
//! it, and refreshes that only when the ring looks full.
//!
//! **Messages shorter than a line.** Their slots share lines, and a full ring with as many slots as
//! messages would have the producer write next to the slot that the consumer reads. So such a ring
//! has twice as many slots as it holds messages. Full, its ends are half of the memory apart.
//!
//! **Dependent addressing.** In a ring of 512 slots and more the consumer computes the next slot's
//! address from the sequence that it has just read. So a CPU cannot speculatively load slots that
//! the producer is about to write, which would take their lines away. In a shorter ring most of the
//! next messages are there already: addresses come from a counter. See "Where the nanoseconds go"
//! in the book.
//!
//! **Why nothing is lost or torn.** The producer writes a message, then its sequence (Release); the
//! consumer loads the sequence (Acquire), so it sees the message. The consumer copies the message,
//! then stores the head (Release); the producer loads the head (Acquire) before it writes into that
//! slot again, so it never overwrites what is still to be read.
//!
//! **Crashes.** A half-written message is never seen, so there is nothing to repair. The ring is
//! renewed for a producer's successor ([`Consumer::renew`]), or the successor continues after the
//! last message ([`Producer::resume_parts`]).
//! A consumer's successor continues at the stored head ([`Consumer::resume`]): the message that was
//! being copied comes again. [`Consumer::take`] and [`Consumer::release`] are the two halves of a
//! pop, for a consumer that must store a message elsewhere before it may be overwritten.
//!
//! **Batches** are pushes and pops with one load, or one store, of the head. A batch's first
//! message is written last, and its sequence publishes all of them: the consumer does not poll a
//! line that is being written, and the stores do not wait for a line that is polled. `drain` reads
//! all sequences before it copies a message. Messages that a crashed producer wrote ahead in a
//! batch are not visible, and its successor overwrites them.
//!
//! **The peer is not trusted.** Any sequence other than the two above is a
//! [`PeerFault`](crate::ring::PeerFault). A head that went backwards or ran ahead makes the ring
//! look full, which hurts only the peer that wrote it. A message that is rewritten after it was
//! published gives the consumer mixed words, never undefined behavior: they are words, and are
//! checked.
//!
//! Sources: Lamport 1977; MCRingBuffer (Lee et al. 2010), rtrb for the cached cursor; FastForward
//! (Giacomoni et al. 2008) and Vyukov's bounded queue for a sequence in each slot.

mod consumer;
mod producer;

pub use consumer::Consumer;
pub use producer::{Producer, published};

use crate::memory::{
    AtomicWords, Header, HeaderError, LINE_WORDS, ReadOnlyWords, SegmentKind, header::HEADER_WORDS,
};
use crate::ring::MESSAGE_WORDS;

/// Offset (words) of the consumer's cursor within its part of the ring. Also in a region that holds
/// both parts.
pub const HEAD: usize = HEADER_WORDS;
/// Number of 64-bit words in the consumer's part of a ring: its header and cursor.
pub const HEAD_WORDS: usize = HEAD + 16;
/// Offset in words of the first slot within the producer's part of a ring, to which [`first_slot`]
/// adds the ring's cache color.
pub const SLOTS: usize = HEADER_WORDS;
/// Number of distinct start offsets of rings, in lines: those of a page. Loom has no lines.
const CACHE_COLORS: usize = if cfg!(loom) { 1 } else { 512 / LINE_WORDS };
/// More messages than are ever counted. Scribbled numbers are cut to it.
const POSITION_LIMIT: u64 = u64::MAX >> 8;
/// The segment kind of the producer's part of a ring: the slots.
pub const KIND: SegmentKind = SegmentKind::new(
    2,
    "ring",
    &[("slots", SLOTS), ("slot-words", slot_words(MESSAGE_WORDS)), ("cache-colors", CACHE_COLORS)],
);
/// The segment kind of the consumer's part of a ring: its cursor.
pub const HEAD_KIND: SegmentKind = SegmentKind::new(6, "ring-head", &[("head", HEAD), ("words", HEAD_WORDS)]);

/// Returns the number of words of a ring's slot: the message and its sequence.
pub const fn slot_words(message_words: usize) -> usize {
    message_words + 1
}

/// Slots of a ring per message that it holds, as a power of two: 1 for slots that fill cache lines,
/// else 2. Loom has no lines.
const fn slots_per_message_log2(message_words: usize) -> u32 {
    (!cfg!(loom) && !slot_words(message_words).is_multiple_of(LINE_WORDS)) as u32
}

/// Returns the number of slots of a ring that holds `capacity` messages.
pub const fn slot_count(capacity: usize, message_words: usize) -> usize {
    capacity << slots_per_message_log2(message_words)
}

/// Returns the number of words of the producer's part of a ring: header and slots.
pub const fn tail_words(capacity: usize, message_words: usize) -> usize {
    WORDS_BUT_SLOTS + slot_count(capacity, message_words) * slot_words(message_words)
}

/// Words before the first slot of a ring, and after its last one; their sum for any index.
const WORDS_BUT_SLOTS: usize = SLOTS + (CACHE_COLORS - 1) * LINE_WORDS;

/// Returns the offset (words) of the first slot, which depends on the ring's index (cache color).
pub const fn first_slot(index: u64) -> usize {
    SLOTS + (index % CACHE_COLORS as u64) as usize * LINE_WORDS
}

/// Returns the size in words of an SPSC ring's two parts together.
pub const fn ring_words(capacity: usize, message_words: usize) -> usize {
    HEAD_WORDS + tail_words(capacity, message_words)
}

/// The consumer's and the producer's part of a region that holds both.
fn split(words: &AtomicWords) -> Result<(AtomicWords, AtomicWords), HeaderError> {
    if words.len() < HEAD_WORDS + SLOTS {
        return Err(HeaderError::TooShort(words.len() as u64 * 8));
    }
    Ok((words.slice(0, HEAD_WORDS), words.slice(HEAD_WORDS, words.len() - HEAD_WORDS)))
}

/// Returns the offset (words) of the slots and their number, checked in the headers of both parts.
fn geometry<const M: usize>(
    tail: &ReadOnlyWords,
    head: &ReadOnlyWords,
) -> Result<(usize, usize), HeaderError> {
    let consumers = head.header(HEAD_KIND)?;
    consumers.check_geometry(HEAD, 1)?;
    if head.len() < HEAD_WORDS {
        return Err(HeaderError::TooShort(consumers.bytes));
    }
    let header = tail.header(KIND)?;
    let capacity = header.check_geometry(WORDS_BUT_SLOTS, slot_count(1, M) * slot_words(M))?;
    if capacity.is_power_of_two() {
        Ok((first_slot(header.index), slot_count(capacity, M)))
    } else {
        Err(header.bad_geometry())
    }
}

/// Creates a ring on the heap and attaches both ends, for tests, models and benches.
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

/// Writes the headers of a ring's two parts into zeroed words, for tests and benches.
///
/// # Panics
/// If the region is shorter than [`ring_words`].
pub fn write_header<const M: usize>(words: &AtomicWords, capacity: usize) {
    write_header_of::<M>(words, capacity, 0);
}

/// Writes the headers as [`write_header`] does, for the ring with this index. Its slots begin at
/// [`first_slot`].
///
/// # Panics
/// If the region is shorter than [`ring_words`].
pub fn write_header_of<const M: usize>(words: &AtomicWords, capacity: usize, index: u64) {
    let (head, tail) = split(words).expect("room for both parts");
    Header::anonymous(HEAD_KIND, head.len(), 1, 1, index).write(&head);
    let words_per_message = (slot_count(1, M) * slot_words(M)) as u64;
    Header::anonymous(KIND, tail.len(), capacity as u64, words_per_message, index).write(&tail);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::Region;

    #[test]
    fn ring_parts_of_other_sizes_are_refused() {
        const M: usize = MESSAGE_WORDS;
        let geometry_of = |head_words: usize, capacity: usize| {
            let words = Region::heap(ring_words(4, M)).words();
            let head = words.slice(0, head_words);
            Header::anonymous(HEAD_KIND, head_words, 1, 1, 0).write(&head);
            let tail = words.slice(HEAD_WORDS, words.len() - HEAD_WORDS);
            let words_per_message = (slot_count(1, M) * slot_words(M)) as u64;
            Header::anonymous(KIND, tail.len(), capacity as u64, words_per_message, 0).write(&tail);
            geometry::<M>(&tail.into(), &head.into())
        };
        assert_eq!(geometry_of(HEAD_WORDS, 4), Ok((first_slot(0), slot_count(4, M))));
        let short = HEAD_WORDS - 1;
        assert_eq!(geometry_of(short, 4), Err(HeaderError::TooShort(short as u64 * 8)));
        for capacity in [0, 3, 8] {
            let refused = geometry_of(HEAD_WORDS, capacity);
            assert!(matches!(refused, Err(HeaderError::Geometry { .. })), "{capacity}: {refused:?}");
        }
    }
}
