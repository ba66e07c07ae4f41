//! The single-producer single-consumer ring whose messages carry their own sequence.
//!
//! ```text
//!       the consumer's part          the producer's part
//! word 0         16             0         16 + 8·colour
//!      │ header   │ head (pad) │ header   │ slot 0: message │ seq │ slot 1: message │ seq │ … capacity-1
//!                                           └─ 7 words ───────┘ 1
//! ```
//!
//! Each part has one writer, and the other end maps it read-only: the types say so ([`View`] has no store), and in the
//! sandbox the page tables do. In a run the parts are two segments; tests and benches put them into one region, the
//! consumer's part first.
//!
//! Positions count messages since the start and never wrap (2^51 messages, seven years at ten million a second). The slot of position `p` holds the message and, in the same 64-byte
//! line, its sequence: `p + 1`, above the [`LINK_BITS`] low bits. So a message crosses to the other core as one line, and the consumer polls the very line that it
//! wants: there is no shared tail. Rings are *coloured*: by its index each begins another number of lines behind its header, or the lines that a
//! consumer of many rings polls would all be in one set of its first-level cache. The head has 128 bytes of its own (two lines: the adjacent-line prefetcher); the
//! producer keeps a copy and refreshes it only when the ring looks full or a block is, so a push normally reads no line that the
//! consumer writes.
//!
//! **The footprint follows the occupancy.** Slots are filled in order within *blocks* of 32, but blocks are not filled in order: when the producer comes to the last slot of one, it looks
//! at the head, and if no more than four messages wait it goes on in the block that was emptied last, which is still in both caches. A consumer that keeps up makes two blocks of any ring. One that is further behind, as in a stream,
//! gets them in order, and the producer looks at the head only as many blocks later as waited, and twice as many as the time before. Where the next block is stands in the low bits of the last message's sequence, and in those of the head for a successor.
//! The producer alone keeps the order of blocks: a permutation, in which the block that is due next and the one that was emptied last change places. A ring of less than 32
//! slots is one block. See "where the nanoseconds go" in the book for what it brings.
//!
//! **Who reads does not run ahead.** In a ring of 128 slots and more the consumer computes where the next message will be from the sequence that it has just read, so that no processor looks there before
//! that sequence is there: a look ahead takes the line away from a producer that is about to write it. In a shorter ring, where what is ahead is mostly there already, looks ahead are what makes it fast.
//!
//! **Why nothing is lost or torn.** The producer writes a message, then its sequence (Release); the consumer loads the
//! sequence (Acquire), so it sees the message. The consumer copies the message, then stores the head (Release); the
//! producer loads the head (Acquire) before it writes into that slot again, so it never overwrites what is still to be
//! read. That holds for each slot of the block that was emptied last, as for the next one in order: the head that the producer loads is behind all of them.
//!
//! **What a dead producer leaves:** either it has stored the sequence, or not. What it half wrote is never seen, nobody waits
//! for it, and there is nothing to repair: what it published is taken, then the ring is begun again for its successor
//! ([`Consumer::restart`]); or its successor goes on behind it ([`Producer::resume_parts`]). **What a dead consumer leaves:** its head,
//! behind which [`Consumer::resume`] goes on. The message that it was copying comes out again. A consumer that must have put a message
//! down elsewhere before it may be overwritten takes it with [`Consumer::take`] and gives its slot back with [`Consumer::release`].
//!
//! **Several at once.** [`Producer::try_push_many`] and [`Consumer::drain`] are the same pushes and pops with one look at the head, or one
//! store of it. A group's first message is written last, and its sequence shows all of them: the consumer does not poll a line that is being written, and
//! the stores do not wait behind one to a line that is polled. `drain` looks at all sequences before it copies a message. A producer that dies in a batch has published the groups that it has shown; what it wrote ahead
//! is not seen, and its successor takes it back.
//!
//! The peer is not trusted. What stands in a slot is the next message's sequence or what stood there when the consumer first tried to take it, a lower one; any other is a
//! [`PeerFault`](crate::ring::PeerFault), and whatever block is named is one of the ring's. A head that went backwards or ran ahead makes the ring look full, which hurts only the peer who wrote
//! it. A message that is rewritten after it was published gives the consumer mixed words, never undefined behaviour:
//! they are words, and are checked.
//!
//! Source: Lamport 1977 for the ring; the cached cursor after Lee et al., MCRingBuffer (2010), and rtrb; a sequence in
//! each slot after FastForward (Giacomoni et al. 2008) and Vyukov's bounded queue; to use what was given back last is what memory allocators do (Bonwick,
//! Magazines and Vmem, 2001).

mod blocks;
mod consumer;
mod order;
mod producer;

pub use blocks::LINK_BITS;
#[cfg(not(loom))]
pub(in crate::ring) use blocks::waiting;
pub use consumer::Consumer;
pub use producer::{Producer, published};

use crate::memory::{Header, HeaderError, LINE_WORDS, SegmentKind, View, Words, header::HEADER_WORDS};
use crate::ring::MESSAGE_WORDS;

/// Where the consumer's cursor is, within its part; also in a region that holds both parts.
pub const HEAD: usize = HEADER_WORDS;
/// Words in the consumer's part.
pub const HEAD_WORDS: usize = HEAD + 16;
/// Where the slots of a ring of index 0 are, within the producer's part.
pub const SLOTS: usize = HEADER_WORDS;
/// By so many lines, less one, are rings moved at most: those of a page. Loom has no lines.
const COLOURS: usize = if cfg!(loom) { 1 } else { 512 / LINE_WORDS };
/// The producer's part.
pub const KIND: SegmentKind = SegmentKind::new(
    2,
    "ring",
    &[
        ("slots", SLOTS),
        ("slot-words", slot_words(MESSAGE_WORDS)),
        ("colours", COLOURS),
        ("block", blocks::Blocks::of(1 << 16).slots() as usize),
        ("link-bits", LINK_BITS as usize),
    ],
);
/// The consumer's part.
pub const HEAD_KIND: SegmentKind = SegmentKind::new(6, "ring-head", &[("head", HEAD), ("words", HEAD_WORDS)]);

/// Words in a slot: the message and its sequence.
pub const fn slot_words(message_words: usize) -> usize {
    message_words + 1
}

/// Words in the producer's part.
pub const fn tail_words(capacity: usize, message_words: usize) -> usize {
    WORDS_BUT_SLOTS + capacity * slot_words(message_words)
}

/// Words before the first slot, and those behind the last one that a ring of another index has before its first.
const WORDS_BUT_SLOTS: usize = SLOTS + (COLOURS - 1) * LINE_WORDS;

/// Where the slots of the ring of that index are, within the producer's part.
pub const fn first_slot(index: u64) -> usize {
    SLOTS + (index % COLOURS as u64) as usize * LINE_WORDS
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

/// Where the slots are and how many, as the attaching end found and checked it in the headers of both parts.
fn geometry<const M: usize>(tail: &View, head: &View) -> Result<(usize, u64), HeaderError> {
    let consumers = head.header(HEAD_KIND)?;
    consumers.check_geometry(HEAD, 1)?;
    if head.len() < HEAD_WORDS {
        return Err(HeaderError::TooShort(consumers.bytes));
    }
    let header = tail.header(KIND)?;
    let capacity = header.check_geometry(WORDS_BUT_SLOTS, slot_words(M))? as u64;
    let Header { slot_words, bytes, index, .. } = header;
    if capacity.is_power_of_two() {
        Ok((first_slot(index), capacity))
    } else {
        Err(HeaderError::Geometry { capacity, slot_words, bytes })
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
    write_header_of::<M>(words, capacity, 0);
}

/// As [`write_header`], for the ring of that index: its slots begin at [`first_slot`].
///
/// # Panics
/// As there.
pub fn write_header_of<const M: usize>(words: &Words, capacity: usize, index: u64) {
    let (head, tail) = split(words).expect("room for both parts");
    let header = |part: &Words, kind, capacity, slot_words| {
        let bytes = part.len() as u64 * 8;
        Header { kind, bytes, capacity, slot_words, creator_pid: 0, creator_start: 0, run: 0, index }
            .write(part);
    };
    header(&head, HEAD_KIND, 1, 1);
    header(&tail, KIND, capacity as u64, slot_words(M) as u64);
}
