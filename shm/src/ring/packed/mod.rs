//! The ring of [`queue`](crate::queue): packed messages of one size, and the positions of its two
//! ends in lines of their own.
//!
//! ```text
//!       the receiver's part          the sender's part
//! word 0         16             0         16 + 8·color   + 16
//!      │ header   │ head (pad) │ header   │ tail (pad)   │ place 0 │ place 1 │ …
//! ```
//!
//! Each part has one writer, and the other end only reads it, as in [`spsc`](crate::ring::spsc),
//! whose cache colors and limits it has.
//!
//! **Positions** count messages from 0 and never wrap (2^64 messages). `tail` counts those that
//! were published, `head` those that were freed. Each end keeps its own position, never reads it
//! back, and keeps a copy of the other's: the sender reads `head` once it has used the room that it
//! knew of, the receiver reads `tail` once it has taken the messages that it knew of. So an end
//! that is behind moves a line once for many messages, and there is no slow state: the more
//! messages come, the more of them each read of a position finds.
//!
//! **Places** have no sequence. The message at position `p` is in place `p` modulo the places:
//! `Places` packs them. Places that share lines are twice as many as messages: the ends of a full
//! ring then work in lines that are far apart.
//!
//! **An empty poll asks for the next place, too**, so that a message and the position that shows it
//! cross to the other core at the same time and not one after the other.
//!
//! **A receiver that keeps pace steps back**: a look takes both lines away from the sender. After a
//! look that found few messages, and more than one message or batch, the next one waits for some
//! 100 ns.
//!
//! **A batch reads the other end's position once at most**, and only if the last one that it read
//! is not far enough. Messages of 1, 2 and 4 bytes, which fill their words, are copied word by
//! word.
//!
//! **Why nothing is lost or torn.** The sender writes a message, then `tail` (Release); the
//! receiver loads `tail` (Acquire), so it sees the message. The receiver copies the message, then
//! stores `head` (Release); the sender loads `head` (Acquire) before it writes into that place
//! again.
//!
//! **Crashes.** A message is visible once `tail` counts it, and whole then: one that was being
//! written is not there, and the sender's successor writes over it ([`PackedSender::resume`]). The
//! receiver's successor continues at `head` ([`PackedReceiver::resume`]): a message that was copied
//! and not freed comes again. A batch is published in groups, each with one store, and is freed
//! with one.
//!
//! **The peer is not trusted.** A `tail` that went backwards, or is further than the ring is long,
//! is a [`PeerFault::InvalidTail`](crate::ring::PeerFault). A `head` that went backwards or ran
//! ahead makes the ring look full, which hurts only the peer that wrote it. A message that is
//! rewritten after it was published gives the receiver mixed words.
//!
//! Sources: Lamport 1977; MCRingBuffer (Lee et al. 2010); rtrb and rigtorp's SPSCQueue for the
//! copies of the other end's position.

#[cfg(not(loom))]
mod layout;
mod receiver;
mod sender;

#[cfg(not(loom))]
pub use layout::PackedLayout;
pub use receiver::PackedReceiver;
pub use sender::PackedSender;

use crate::memory::header::HEADER_WORDS;
use crate::memory::{
    AtomicWords, Header, HeaderError, LINE_WORDS, Places, ReadOnlyWords, Region, SegmentKind,
};

/// Maximum size of a packed ring's message in bytes.
pub const MAX_MESSAGE_BYTES: usize = 1 << 16;

/// More messages than are ever counted. Scribbled positions are cut to it.
const POSITION_LIMIT: u64 = u64::MAX >> 8;
/// Words from a position to what follows it: two cache lines, because adjacent ones are fetched
/// together.
const POSITION_WORDS: usize = 16;
/// Number of distinct offsets of the tails of several rings, in lines: those of a page. Loom has no
/// lines.
const CACHE_COLORS: usize = if cfg!(loom) { 1 } else { 512 / LINE_WORDS };
/// Offset (words) of the receiver's position within its part of a packed ring.
pub const HEAD: usize = HEADER_WORDS;
/// Number of 64-bit words in the receiver's part of a packed ring.
pub const HEAD_WORDS: usize = HEAD + POSITION_WORDS;
/// Words of the sender's part that are not places.
const WORDS_BUT_PLACES: usize = HEADER_WORDS + (CACHE_COLORS - 1) * LINE_WORDS + POSITION_WORDS;

/// The segment kind of the sender's part of a packed ring: its position and the messages. Its
/// header's capacity counts messages; its slot words are the bytes of a message.
pub const KIND: SegmentKind = SegmentKind::new(
    35,
    "packed-ring",
    &[
        ("tail", HEADER_WORDS),
        ("places", HEADER_WORDS + POSITION_WORDS),
        ("cache-colors", CACHE_COLORS),
        ("line", 64),
    ],
);
/// The segment kind of the receiver's part of a ring: its position.
pub const HEAD_KIND: SegmentKind =
    SegmentKind::new(36, "packed-head", &[("head", HEAD), ("words", HEAD_WORDS)]);

/// Returns the number of places of a ring that holds `capacity` messages.
///
/// Places that share a word have two words at least: the sender stores whole words, and must find
/// none of the messages that wait in the one that it begins.
const fn place_count(message_bytes: usize, capacity: usize) -> usize {
    let count = capacity << Places::share_lines(message_bytes) as u32;
    let min_count = 2 * Places::in_a_word(message_bytes);
    if count > min_count { count } else { min_count }
}

/// Returns the size in words of the sender's part of a packed ring.
pub const fn tail_words(message_bytes: usize, capacity: usize) -> usize {
    WORDS_BUT_PLACES + Places::words(message_bytes, place_count(message_bytes, capacity))
}

/// Returns the offset of the sender's position within the sender's part of the ring, in words; it
/// depends on the ring's index (cache color).
pub const fn tail_word(index: u64) -> usize {
    HEADER_WORDS + (index % CACHE_COLORS as u64) as usize * LINE_WORDS
}

/// The dimensions of a packed ring, in which small messages share cache lines: bytes of each
/// message, and maximum number of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedShape {
    /// Bytes of each message, at most [`MAX_MESSAGE_BYTES`].
    pub message_bytes: usize,
    /// Messages that the ring holds, a power of two.
    pub capacity: usize,
}

impl PackedShape {
    /// Checks the headers of both parts against the expected shape. Returns the offset of the tail.
    /// Nothing is read from the headers again.
    fn check(self, tail: &ReadOnlyWords, head: &ReadOnlyWords) -> Result<usize, HeaderError> {
        let Self { message_bytes, capacity } = self;
        head.header(HEAD_KIND)?.check_geometry(HEAD, 1)?;
        let header = tail.header(KIND)?;
        let is_shape = message_bytes <= MAX_MESSAGE_BYTES && capacity.is_power_of_two();
        let is_stated = header.capacity == capacity as u64 && header.slot_words == message_bytes as u64;
        let fits = head.len() >= HEAD_WORDS && tail.len() >= tail_words(message_bytes, capacity);
        if is_shape && is_stated && fits { Ok(tail_word(header.index)) } else { Err(header.bad_geometry()) }
    }

    /// Returns the number of places of the ring.
    const fn place_count(self) -> usize {
        place_count(self.message_bytes, self.capacity)
    }

    /// Returns the words of all places of the ring.
    const fn place_words(self) -> usize {
        Places::words(self.message_bytes, self.place_count())
    }
}

/// The position of one end of a packed ring, and the position up to which it may go without reading
/// the other end's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndPosition {
    /// Number of messages that this end has published or taken.
    pub own: u64,
    /// Position up to which this end may push or take without reading the other end's position.
    pub known: u64,
}

/// The two parts of a ring on the heap, for tests, models and benches.
#[derive(Clone)]
pub struct HeapRing {
    /// The sender's part.
    pub tail: AtomicWords,
    /// The receiver's part.
    pub head: AtomicWords,
    /// The ring's shape.
    pub shape: PackedShape,
}

impl HeapRing {
    /// Creates an empty ring for `capacity` messages of `message_bytes` bytes.
    pub fn new(message_bytes: usize, capacity: usize) -> Self {
        let shape = PackedShape { message_bytes, capacity };
        let tail = Region::heap(tail_words(message_bytes, capacity)).words();
        Header::anonymous(KIND, tail.len(), capacity as u64, message_bytes as u64, 0).write(&tail);
        let head = Region::heap(HEAD_WORDS).words();
        Header::anonymous(HEAD_KIND, head.len(), 1, 1, 0).write(&head);
        Self { tail, head, shape }
    }

    /// Attaches the ring's sending end after the messages that were published.
    ///
    /// # Panics
    /// If the shape is none, or the headers were overwritten.
    pub fn sender(&self) -> PackedSender {
        let sender = PackedSender::resume(self.shape, &self.tail, &self.head.clone().into());
        sender.expect("the headers of a ring")
    }

    /// Attaches the ring's receiving end after the messages that were freed.
    ///
    /// # Panics
    /// As [`HeapRing::sender`].
    pub fn receiver(&self) -> PackedReceiver {
        let receiver = PackedReceiver::resume(self.shape, &self.tail.clone().into(), &self.head);
        receiver.expect("the headers of a ring")
    }
}

/// Creates a ring on the heap and attaches both ends, for tests, models and benches.
///
/// # Panics
/// If the capacity is not a power of two, or there are no messages of that size.
pub fn heap_ring(message_bytes: usize, capacity: usize) -> (PackedSender, PackedReceiver) {
    let ring = HeapRing::new(message_bytes, capacity);
    (ring.sender(), ring.receiver())
}
