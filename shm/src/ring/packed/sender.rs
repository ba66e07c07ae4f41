//! The sender of the packed ring.

#[cfg(not(loom))]
use super::PackedLayout;
use super::{EndPosition, HEAD, POSITION_LIMIT, POSITION_WORDS, PackedShape};
use crate::memory::{AtomicWords, HeaderError, Places, ReadOnlyWords, Word};
use crate::ring::Full;
use crate::sync::Ordering;

/// Maximum number of messages of a batch that are published together.
const MAX_BATCH: u64 = 16;

/// The sending end of a packed ring, whose messages have one size and no sequence numbers of their
/// own.
#[repr(align(128))]
pub struct PackedSender {
    /// Position of the next message. Private: never read back from shared memory.
    tail: u64,
    /// Position up to which there is room, at least.
    limit: u64,
    /// Published messages that share a word with the next one.
    shared: u64,
    places: Places,
    tail_word: Word,
    head_word: ReadOnlyWords,
    capacity: u64,
}

impl PackedSender {
    /// Attaches the sending end of a ring after the last message that was published, if any. A
    /// predecessor's crash must be certain; the receiver may continue concurrently.
    ///
    /// # Errors
    /// A header that is not that of a ring of this shape, or does not fit its part.
    pub fn resume(shape: PackedShape, tail: &AtomicWords, head: &ReadOnlyWords) -> Result<Self, HeaderError> {
        let at = shape.check(&tail.clone().into(), head)?;
        let words = tail.slice(at + POSITION_WORDS, shape.place_words());
        let places = Places::new(words, shape.message_bytes, shape.place_count());
        let tail_word = Word::new(tail, at);
        // Relaxed: the crash of a predecessor is certain, and so are its stores.
        let tail = tail_word.load(Ordering::Relaxed).min(POSITION_LIMIT);
        Ok(Self {
            tail,
            limit: tail,
            shared: places.shared_before(tail),
            places,
            tail_word,
            head_word: head.slice(HEAD, 1),
            capacity: shape.capacity as u64,
        })
    }

    /// Returns the size of the ring's messages in bytes.
    #[inline(always)]
    pub const fn message_bytes(&self) -> usize {
        self.places.message_bytes()
    }

    /// Returns `true` if the receiver has freed all messages of the ring.
    pub fn is_taken(&mut self) -> bool {
        self.free_places() == self.capacity
    }

    /// Returns how many messages of the ring were published, also by crashed predecessors.
    pub const fn published(&self) -> u64 {
        self.tail
    }

    /// Returns `true` if the next push into the ring will fit. Only this end's pushes can change a
    /// yes.
    #[inline(always)]
    pub fn has_room(&mut self) -> bool {
        self.tail != self.limit || self.free_places() > 0
    }

    /// Returns the number of messages that can be pushed into the ring now. Only this end's pushes
    /// reduce it.
    #[inline]
    pub fn free_places(&mut self) -> u64 {
        // Acquire: pairs with the receiver's Release store of the head, after its reads.
        let waiting = self.tail.wrapping_sub(self.head_word.load(0, Ordering::Acquire));
        // None also if a hostile head is ahead of the tail: the difference wraps.
        let room = self.capacity.saturating_sub(waiting);
        self.limit = self.tail.saturating_add(room);
        room
    }

    /// Pushes a message into the ring.
    ///
    /// # Errors
    /// [`Full`] if all places are taken by messages that the receiver has not freed.
    ///
    /// # Panics
    /// If the message has another size than the ring's.
    #[inline(always)]
    pub fn push(&mut self, message: &[u8]) -> Result<(), Full> {
        if !self.has_room() {
            return Err(Full);
        }
        self.write(message);
        self.publish();
        Ok(())
    }

    /// Writes a message after those that were written, without publishing it. There must be room.
    #[inline(always)]
    fn write(&mut self, message: &[u8]) {
        self.places.write(self.tail, message, &mut self.shared);
        self.tail += 1;
    }

    /// Publishes the messages that were written.
    #[inline(always)]
    fn publish(&self) {
        // Release: pairs with the receiver's Acquire load of the tail; the messages are there.
        self.tail_word.store(self.tail, Ordering::Release);
    }

    /// Pushes as many of the messages as fit, from the first on, publishes up to 16 at a time, and
    /// returns the number pushed. In `messages` they are next to each other; an incomplete last one
    /// is left out. A sender that crashes here has published the first ones, or none.
    #[inline]
    pub fn push_many(&mut self, messages: &[u8]) -> usize {
        let len = messages.len();
        match self.message_bytes() {
            1 => self.push_next(len, messages, 1),
            2 => self.push_next(len / 2, messages, 2),
            4 => self.push_next(len / 4, messages, 4),
            8 => self.push_next(len / 8, messages, 8),
            16 => self.push_next(len / 16, messages, 16),
            32 => self.push_next(len / 32, messages, 32),
            64 => self.push_next(len / 64, messages, 64),
            _ => self.push_others(messages),
        }
    }

    // Out of line: what its loop needs for each size would be computed for all of them.
    #[inline(never)]
    fn push_others(&mut self, messages: &[u8]) -> usize {
        let bytes = self.message_bytes();
        self.push_next(messages.len().checked_div(bytes).unwrap_or(0), messages, bytes)
    }

    /// Pushes as [`PackedSender::push_many`] does, at most `count` messages of the ring's size.
    #[inline(always)]
    pub(crate) fn push_next(&mut self, count: usize, mut messages: &[u8], bytes: usize) -> usize {
        let known = self.limit - self.tail;
        let room = if known < count as u64 { self.free_places() } else { known };
        let (start, end) = (self.tail, self.tail + room.min(count as u64));
        while self.tail < end {
            let batch = (end - self.tail).min(MAX_BATCH);
            let (now, later) = messages.split_at(batch as usize * bytes);
            self.places.write_many(self.tail, batch as usize, now, bytes, &mut self.shared);
            self.tail += batch;
            self.publish();
            messages = later;
        }
        (end - start) as usize
    }

    /// Writes a message without publishing it, as a sender that crashes in the middle of a push.
    /// The sender is not used again.
    ///
    /// # Errors
    /// As [`PackedSender::push`].
    pub fn push_half(&mut self, message: &[u8]) -> Result<(), Full> {
        if !self.has_room() {
            return Err(Full);
        }
        self.write(message);
        Ok(())
    }

    /// Returns the ring's memory layout, for code in another language that pushes messages in
    /// memory without calling this library.
    #[cfg(not(loom))]
    pub fn layout(&self) -> PackedLayout {
        let words = [self.places.first_word(), &self.tail_word, self.head_word.futex()];
        PackedLayout::new(words, self.places.mask(), self.message_bytes(), self.capacity)
    }

    /// Returns the sender's position (messages pushed so far), and the position up to which it may
    /// push without reading the receiver's.
    pub const fn position(&self) -> EndPosition {
        EndPosition { own: self.tail, known: self.limit }
    }

    /// Sets the sender's position, in messages, to the one that code in another language has
    /// reached by pushing directly in memory.
    #[inline]
    pub fn set_position(&mut self, position: EndPosition) {
        self.tail = position.own.min(POSITION_LIMIT);
        self.limit = position.known.max(self.tail);
        self.shared = self.places.shared_before(self.tail);
    }
}
