//! The receiver of the packed ring.

#[cfg(not(loom))]
use super::PackedLayout;
use super::{EndPosition, HEAD, POSITION_LIMIT, POSITION_WORDS, PackedShape};
use crate::memory::{AtomicWords, HeaderError, ReadOnlyPlaces, ReadOnlyWords, Word};
use crate::ring::PeerFault;
use crate::sync::Ordering;

/// Spin-loop hints of a receiver that steps back: the time of one transfer of a cache line or two.
const STEP_BACK_SPINS: usize = 8;

/// The receiving end of a packed ring: messages of one size lie one after the other, without a
/// sequence each.
// An empty poll reads the front of one line.
#[repr(C, align(64))]
pub struct PackedReceiver {
    /// Messages that were taken. Private: never read back from shared memory.
    head: u64,
    /// Messages that are known to be published; not before `head`.
    end: u64,
    /// Messages that waited at the last look at the sender's position.
    found: u64,
    tail_word: ReadOnlyWords,
    places: ReadOnlyPlaces,
    head_word: Word,
    capacity: u64,
}

impl PackedReceiver {
    /// Attaches the receiving end of a ring after the messages that were freed, if any. A
    /// predecessor's crash must be certain; the sender may continue concurrently.
    ///
    /// # Errors
    /// A header that is not that of a ring of this shape, or does not fit its part.
    pub fn resume(shape: PackedShape, tail: &ReadOnlyWords, head: &AtomicWords) -> Result<Self, HeaderError> {
        let at = shape.check(tail, &head.clone().into())?;
        let words = tail.slice(at + POSITION_WORDS, shape.place_words());
        let places = ReadOnlyPlaces::new(words, shape.message_bytes, shape.place_count());
        let head_word = Word::new(head, HEAD);
        // Relaxed: the crash of a predecessor is certain, and so are its stores.
        let head = head_word.load(Ordering::Relaxed).min(POSITION_LIMIT);
        let (tail_word, capacity) = (tail.slice(at, 1), shape.capacity as u64);
        Ok(Self { head, end: head, found: 0, tail_word, places, head_word, capacity })
    }

    /// Returns the size of the ring's messages in bytes.
    #[inline(always)]
    pub const fn message_bytes(&self) -> usize {
        self.places.message_bytes()
    }

    /// Returns how many of the ring's messages were taken, including by crashed predecessors.
    #[inline(always)]
    pub const fn taken(&self) -> u64 {
        self.head
    }

    /// Returns `true` if the ring has no message to take now. [`PackedReceiver::take`] orders and
    /// checks.
    #[inline(always)]
    pub fn looks_empty(&self) -> bool {
        self.head == self.end && self.tail_word.load(0, Ordering::Relaxed) == self.end
    }

    /// Returns `true` if there is a message to take. Reads the sender's position, once, only if
    /// fewer than `wanted` messages are known. A position that is none is stored in `fault`; one
    /// that comes while messages are known is found by a later call.
    #[inline(always)]
    pub(crate) fn has_message(&mut self, wanted: u64, fault: &mut Option<PeerFault>) -> bool {
        if self.head == self.end {
            return self.find_more(fault);
        }
        if self.known() < wanted {
            self.find_more(&mut None);
        }
        true
    }

    /// Returns `true` as [`PackedReceiver::has_message`] does, for a receiver that polls no other
    /// ring: it steps back before a look, unless it has a message.
    #[inline(always)]
    pub(crate) fn has_next(&mut self, wanted: u64, fault: &mut Option<PeerFault>) -> bool {
        if self.head == self.end && self.should_step_back(wanted) {
            (0..STEP_BACK_SPINS).for_each(|_| core::hint::spin_loop());
        }
        self.has_message(wanted, fault)
    }

    /// Returns how many messages are known to be there.
    #[inline(always)]
    pub(crate) const fn known(&self) -> u64 {
        self.end - self.head
    }

    /// Returns `true` if the last look found few messages, but more than one and not just as many
    /// as are `wanted` at a time.
    ///
    /// Each look takes the line of the position, and that of the messages, away from the sender,
    /// which needs them for its next push. A receiver that is as fast as its sender would move both
    /// for every few messages: it waits for a moment before it looks again. One message, or one
    /// batch, is that of an exchange, which nothing follows; many are worth a look. In a ring of
    /// less than 16 none are few: its sender would soon be out of room.
    #[inline(always)]
    const fn should_step_back(&self, wanted: u64) -> bool {
        self.found > 1 && self.found != wanted && self.found * 8 <= self.capacity
    }

    /// Reads the sender's position. Returns `true` if there is a message to take.
    #[inline(always)]
    fn find_more(&mut self, fault: &mut Option<PeerFault>) -> bool {
        // Acquire: pairs with the sender's Release store of the tail; the messages are written.
        let tail = self.tail_word.load(0, Ordering::Acquire);
        let waiting = tail.wrapping_sub(self.head);
        // Not before the last one: the difference wraps.
        if waiting.wrapping_sub(self.known()) <= self.capacity && waiting <= self.capacity {
            self.found = waiting;
            self.end = tail;
            return waiting > 0;
        }
        *fault = Some(PeerFault::InvalidTail { tail, position: self.head });
        false
    }

    /// Asks for the place of the next message, and so for its sender's line.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn prefetch_next(&self) {
        self.places.prefetch(self.head);
    }

    /// Copies the next message, which must be there, and goes on to the one after it.
    ///
    /// # Panics
    /// If the message has another size than the ring's.
    #[inline(always)]
    pub(crate) fn copy_next(&mut self, message: &mut [u8]) {
        self.places.read(self.head, message);
        self.head += 1;
    }

    /// Frees the slots of all messages that were taken, so that the ring's sender can use them
    /// again.
    #[inline(always)]
    pub fn release(&mut self) {
        // Release: pairs with the sender's Acquire load of the head; our reads come before.
        self.head_word.store(self.head, Ordering::Release);
    }

    /// Moves back to before the last `count` messages, which must have been taken and not yet been
    /// released.
    #[inline]
    pub fn rewind(&mut self, count: u64) {
        self.head = self.head.saturating_sub(count);
    }

    /// Takes the ring's next message and frees its slot. Returns `false` if there is none now.
    ///
    /// # Errors
    /// [`PeerFault::InvalidTail`]; nothing was taken.
    ///
    /// # Panics
    /// If the message has another size than the ring's.
    #[inline(always)]
    pub fn pop(&mut self, message: &mut [u8]) -> Result<bool, PeerFault> {
        let is_taken = self.take(message)?;
        if is_taken {
            self.release();
        }
        Ok(is_taken)
    }

    /// Takes the ring's next message, whose slot the sender may not use before
    /// [`PackedReceiver::release`]. A successor of this receiver takes it again.
    ///
    /// # Errors
    /// As [`PackedReceiver::pop`].
    ///
    /// # Panics
    /// If the message has another size than the ring's.
    #[inline(always)]
    pub fn take(&mut self, message: &mut [u8]) -> Result<bool, PeerFault> {
        let mut fault = None;
        let has_message = self.has_next(1, &mut fault);
        if has_message {
            self.copy_next(message);
        }
        fault.map_or(Ok(has_message), Err)
    }

    /// Copies up to `max` messages that are known to be there, next to each other, and goes on to
    /// the one after them. Returns their number.
    ///
    /// # Panics
    /// If the messages have another size than the ring's, or lack room.
    #[inline(always)]
    pub(crate) fn copy_many(&mut self, max: usize, messages: &mut [u8], bytes: usize) -> usize {
        let count = self.known().min(max as u64);
        self.places.read_many(self.head, count as usize, messages, bytes);
        self.head += count;
        count as usize
    }

    /// Copies messages as [`PackedReceiver::copy_many`] does, of a size that is known when the
    /// program runs.
    #[inline]
    pub(crate) fn copy_any(&mut self, max: usize, messages: &mut [u8]) -> usize {
        match self.message_bytes() {
            1 => self.copy_many(max, messages, 1),
            2 => self.copy_many(max, messages, 2),
            4 => self.copy_many(max, messages, 4),
            8 => self.copy_many(max, messages, 8),
            16 => self.copy_many(max, messages, 16),
            32 => self.copy_many(max, messages, 32),
            64 => self.copy_many(max, messages, 64),
            _ => self.copy_others(max, messages),
        }
    }

    // Out of line: what its loop needs for each size would be computed for all of them.
    #[inline(never)]
    fn copy_others(&mut self, max: usize, messages: &mut [u8]) -> usize {
        self.copy_many(max, messages, self.message_bytes())
    }

    /// Copies waiting messages into `messages`, next to each other, as many as fit, and frees their
    /// slots together. Returns their number.
    ///
    /// # Errors
    /// [`PeerFault::InvalidTail`], if not even one could be taken.
    #[inline]
    pub fn pop_many(&mut self, messages: &mut [u8]) -> Result<usize, PeerFault> {
        let max = messages.len().checked_div(self.message_bytes()).unwrap_or(0);
        let mut fault = None;
        if max == 0 || !self.has_next(max as u64, &mut fault) {
            return fault.map_or(Ok(0), Err);
        }
        let count = self.copy_any(max, messages);
        self.release();
        Ok(count)
    }

    /// Moves the receiver back to position 0 for a new sender, once the old one's crash is
    /// certain. Take nothing until the sender's part was reset, all zero but its header.
    pub fn renew(&mut self) {
        (self.head, self.end) = (0, 0);
        // Release: as in `release`. The new sender starts later.
        self.head_word.store(0, Ordering::Release);
    }

    /// Returns the ring's memory layout, for code in another language that pops messages in memory
    /// without calling this library.
    #[cfg(not(loom))]
    pub fn layout(&self) -> PackedLayout {
        let words = [self.places.first_word(), self.tail_word.futex(), &self.head_word];
        PackedLayout::new(words, self.places.mask(), self.message_bytes(), self.capacity)
    }

    /// Returns the receiver's position (messages taken so far), and the position up to which it may
    /// pop without reading the sender's.
    pub const fn position(&self) -> EndPosition {
        EndPosition { own: self.head, known: self.end }
    }

    /// Sets the receiver's position, in messages, to the one that code in another language has
    /// reached by popping directly in memory.
    #[inline]
    pub fn set_position(&mut self, position: EndPosition) {
        self.head = position.own.min(POSITION_LIMIT);
        self.end = position.known.max(self.head);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::ring::packed::heap_ring;

    /// Returns whether a receiver of single messages steps back after looks that found these
    /// numbers of messages.
    fn steps_back(capacity: usize, found: &[usize]) -> bool {
        let (mut sender, mut receiver) = heap_ring(8, capacity);
        for &count in found {
            assert_eq!(sender.push_many(&vec![1; 8 * count]), count);
            (0..count).for_each(|_| assert_eq!(receiver.pop(&mut [0; 8]), Ok(true)));
            if count == 0 {
                assert_eq!(receiver.pop(&mut [0; 8]), Ok(false));
            }
        }
        receiver.should_step_back(1)
    }

    #[test]
    fn receiver_steps_back_after_few_messages() {
        assert!(steps_back(1024, &[2]) && steps_back(1024, &[128]) && steps_back(16, &[2]));
    }

    #[test]
    fn receiver_looks_again_after_one_none_or_many() {
        assert!(!steps_back(1024, &[]) && !steps_back(1024, &[1]) && !steps_back(1024, &[129]));
        assert!(!steps_back(1024, &[2, 0]) && !steps_back(1024, &[2, 1]));
    }

    #[test]
    fn receiver_of_batches_looks_again_after_one_batch() {
        let (mut sender, mut receiver) = heap_ring(1, 1024);
        for (count, steps_back) in [(3, false), (2, true), (6, true), (1, false)] {
            assert_eq!(sender.push_many(&vec![1; count]), count);
            let popped: usize = (0..count.div_ceil(3)).map(|_| receiver.pop_many(&mut [0; 3]).unwrap()).sum();
            assert_eq!((popped, receiver.should_step_back(3)), (count, steps_back));
        }
    }

    #[test]
    fn receiver_of_short_ring_never_steps_back() {
        (0..=8).for_each(|found| assert!(!steps_back(8, &[found]), "{found}"));
    }
}
