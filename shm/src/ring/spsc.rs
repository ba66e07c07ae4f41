//! The single-producer single-consumer ring with cached cursors.
//!
//! ```text
//!       the consumer's part                the producer's part
//! word 0         16               0         16               32
//!      │ header   │ head  (pad) │ │ header   │ tail  (pad)    │ slot 0 │ slot 1 │ … │ slot capacity-1 │
//! ```
//!
//! Each part has one writer, and the other end maps it read-only: the types say so ([`View`] has no store), and in the
//! sandbox the page tables do. In a run the parts are two segments; tests and benches put them into one region, the
//! consumer's part first.
//!
//! Cursors count messages since the start and never wrap (2^64 messages); a slot's place is its number modulo the
//! capacity. Each cursor has one writer and 128 bytes of its own (two lines: the adjacent-line prefetcher).
//! Each end keeps its own cursor private and a copy of the peer's, which it refreshes only when the ring looks
//! full or empty: so a push normally touches no line that the consumer writes.
//!
//! **Why nothing is lost or torn.** The producer writes a slot, then stores the tail (Release); the consumer loads
//! the tail (Acquire), so it sees the slots below it. The consumer copies a slot, then stores the head (Release);
//! the producer loads the head (Acquire) before it writes into a slot again, so it never overwrites what is still
//! to be read. A producer that dies between two instructions has either published a message or not.
//!
//! The peer is not trusted. A tail that went backwards or ran ahead of the capacity is a [`PeerFault`]; a
//! head that did so makes the ring look full, which hurts only the peer who wrote it. A slot that is rewritten after
//! it was published gives the consumer mixed words, never undefined behaviour: they are words, and are checked.
//!
//! Source: Lamport 1977; the cached cursors after Lee et al., MCRingBuffer (2010), and rtrb.

use super::{Full, PeerFault};
use crate::memory::{Header, HeaderError, Kind, View, Words, header::HEADER_WORDS};
use crate::sync::Ordering;

/// Where a part's cursor is, within the part.
pub const CURSOR: usize = HEADER_WORDS;
/// Where the slots are, within the producer's part.
pub const SLOTS: usize = CURSOR + 16;
/// Words in the consumer's part.
pub const HEAD_WORDS: usize = CURSOR + 16;
/// Where the consumer's cursor is in a region that holds both parts.
pub const HEAD: usize = CURSOR;
/// Where the producer's cursor is in a region that holds both parts.
pub const TAIL: usize = HEAD_WORDS + CURSOR;

/// Words in the producer's part.
pub const fn tail_words(capacity: usize, slot_words: usize) -> usize {
    SLOTS + capacity * slot_words
}

/// Words in both parts together.
pub const fn ring_words(capacity: usize, slot_words: usize) -> usize {
    HEAD_WORDS + tail_words(capacity, slot_words)
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
fn geometry<const W: usize>(tail: &View, head: &View) -> Result<u64, HeaderError> {
    let consumers = Header::read(|i, ordering| head.load(i, ordering), head.len(), Kind::RingHead)?;
    consumers.check_geometry(CURSOR, 1)?;
    if head.len() < HEAD_WORDS {
        return Err(HeaderError::TooShort(consumers.bytes));
    }
    let header = Header::read(|i, ordering| tail.load(i, ordering), tail.len(), Kind::Ring)?;
    let capacity = header.check_geometry(SLOTS, W)? as u64;
    let Header { slot_words, bytes, .. } = header;
    if capacity.is_power_of_two() {
        Ok(capacity)
    } else {
        Err(HeaderError::Geometry { capacity, slot_words, bytes })
    }
}

/// The sending end of a ring of messages of `W` words.
pub struct Producer<const W: usize = { crate::wire::MESSAGE_WORDS }> {
    tail_word: Words,
    head_word: View,
    slots: Words,
    mask: u64,
    /// The number of the next message to stage. Private: never read back from shared memory.
    tail: u64,
    /// The consumer's cursor when we last looked: never ahead of the real one.
    head_seen: u64,
}

impl<const W: usize> Producer<W> {
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
    /// A header that is not that of a ring of `W`-word slots, or does not fit its part.
    pub fn attach_parts(tail: &Words, head: &View) -> Result<Self, HeaderError> {
        let capacity = geometry::<W>(&tail.clone().into(), head)?;
        Ok(Self {
            tail_word: tail.window(CURSOR, 1),
            head_word: head.window(CURSOR, 1),
            slots: tail.window(SLOTS, capacity as usize * W),
            mask: capacity - 1,
            tail: 0,
            head_seen: 0,
        })
    }

    /// Writes a message into the next slot without showing it to the consumer yet. [`Producer::publish`] shows all
    /// that was staged with one store: the line with the tail then travels once for a whole batch.
    ///
    /// # Errors
    /// [`Full`] if every slot is taken by a message that the consumer has not read.
    #[inline(always)]
    pub fn stage(&mut self, message: &[u64; W]) -> Result<(), Full> {
        // `>` also when a hostile head is ahead of the tail: the difference wraps to a huge number.
        if self.tail.wrapping_sub(self.head_seen) > self.mask {
            // Acquire: pairs with the consumer's Release store of the head; its reads of the slot are over.
            self.head_seen = self.head_word.load(0, Ordering::Acquire);
            if self.tail.wrapping_sub(self.head_seen) > self.mask {
                return Err(Full);
            }
        }
        let slot = (self.tail & self.mask) as usize * W;
        for (word, value) in self.slots[slot..slot + W].iter().zip(message) {
            // Relaxed: the Release store of the tail publishes it.
            word.store(*value, Ordering::Relaxed);
        }
        self.tail += 1;
        Ok(())
    }

    /// Shows the consumer everything that was staged.
    #[inline(always)]
    pub fn publish(&mut self) {
        // Release: pairs with the consumer's Acquire load of the tail; it sees the slots written before.
        self.tail_word[0].store(self.tail, Ordering::Release);
    }

    /// Stages and publishes one message.
    ///
    /// # Errors
    /// [`Full`].
    #[inline(always)]
    pub fn try_push(&mut self, message: &[u64; W]) -> Result<(), Full> {
        self.stage(message)?;
        self.publish();
        Ok(())
    }
}

impl super::Producer for Producer {
    #[inline(always)]
    fn try_push(&mut self, message: &crate::wire::Message) -> Result<(), Full> {
        Producer::try_push(self, message)
    }
}

/// The receiving end of a ring of messages of `W` words.
pub struct Consumer<const W: usize = { crate::wire::MESSAGE_WORDS }> {
    tail_word: View,
    head_word: Words,
    slots: View,
    mask: u64,
    /// The number of the next message to take. Private.
    head: u64,
    /// The producer's cursor when we last looked; messages below it are published.
    tail_seen: u64,
}

impl<const W: usize> Consumer<W> {
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
    /// A header that is not that of a ring of `W`-word slots, or does not fit its part.
    pub fn attach_parts(tail: &View, head: &Words) -> Result<Self, HeaderError> {
        let capacity = geometry::<W>(tail, &head.clone().into())?;
        Ok(Self {
            tail_word: tail.window(CURSOR, 1),
            head_word: head.window(CURSOR, 1),
            slots: tail.window(SLOTS, capacity as usize * W),
            mask: capacity - 1,
            head: 0,
            tail_seen: 0,
        })
    }

    /// Whether there is nothing to take now. Orders nothing: [`Consumer::try_pop`] does, and checks the peer.
    #[inline(always)]
    pub fn looks_empty(&self) -> bool {
        self.head == self.tail_seen && self.tail_word.load(0, Ordering::Relaxed) == self.head
    }

    /// Takes the next message, or `None` if there is none now.
    ///
    /// # Errors
    /// [`PeerFault::InvalidTail`]: the producer's cursor is impossible. Nothing was read and nothing changed; the
    /// caller decides whether to go on with this peer.
    #[inline(always)]
    pub fn try_pop(&mut self) -> Result<Option<[u64; W]>, PeerFault> {
        if self.head == self.tail_seen {
            // Acquire: pairs with the producer's Release store of the tail; the slots below it are written.
            let tail = self.tail_word.load(0, Ordering::Acquire);
            if tail == self.head {
                return Ok(None);
            }
            if tail.wrapping_sub(self.head) > self.mask + 1 {
                return Err(PeerFault::InvalidTail { tail, head: self.head, capacity: self.mask + 1 });
            }
            self.tail_seen = tail;
        }
        // The slot is ours from the Acquire load of the tail to the Release store of the head.
        let message = self.slots.copy_owned((self.head & self.mask) as usize * W);
        self.head += 1;
        // Release: pairs with the producer's Acquire load of the head; our reads of the slot come before it.
        self.head_word[0].store(self.head, Ordering::Release);
        Ok(Some(message))
    }
}

/// Writes the header of a fresh (zeroed) ring on the heap and attaches both ends: for tests, models and benches.
///
/// # Panics
/// If the capacity is not a power of two.
pub fn heap_ring<const W: usize>(capacity: usize) -> (Producer<W>, Consumer<W>) {
    let words = crate::memory::Region::heap(ring_words(capacity, W)).words();
    write_header::<W>(&words, capacity);
    (
        Producer::attach(&words).expect("a fresh ring has a good header"),
        Consumer::attach(&words).expect("a fresh ring has a good header"),
    )
}

/// Makes a ring of zeroed words by writing its header: for tests and benches; a run's segments get theirs from
/// the launcher.
///
/// # Panics
/// If the region is shorter than [`ring_words`].
pub fn write_header<const W: usize>(words: &Words, capacity: usize) {
    let (head, tail) = split(words).expect("room for both parts");
    let header = |part: &Words, kind, capacity, slot_words| {
        let bytes = part.len() as u64 * 8;
        Header { kind, bytes, capacity, slot_words, creator_pid: 0, creator_start: 0, run: 0, index: 0 }
            .write(part);
    };
    header(&head, Kind::RingHead, 1, 1);
    header(&tail, Kind::Ring, capacity as u64, W as u64);
}
