//! Places for messages of one size, which lie next to each other: a power of two of them, so that
//! every position of a stream maps to one.
//!
//! A message of up to 64 bytes has a place of the next power of two bytes, so that it never crosses
//! a cache line. A longer one has a place of whole words.

use super::copies::{first_word, load, split_word, store};
use super::{AtomicWords, LINE_WORDS, ReadOnlyWords};
#[cfg(not(loom))]
use crate::prefetch::prefetch_lines;
use crate::sync::{AtomicU64, Ordering};

/// Returns the bytes of the place of a message.
pub(crate) const fn place_bytes(message_bytes: usize) -> usize {
    if message_bytes <= 64 { message_bytes.next_power_of_two() } else { message_bytes.next_multiple_of(8) }
}

/// Returns `true` if the place of a message shares its word with others.
#[inline(always)]
const fn is_part_of_word(message_bytes: usize) -> bool {
    message_bytes <= 4
}

/// Returns `true` if places that share a word have no gaps: messages that lie next to each other
/// are then the bytes of their places.
#[inline(always)]
const fn has_no_gaps(message_bytes: usize) -> bool {
    is_part_of_word(message_bytes) && message_bytes.is_power_of_two()
}

/// Contiguous places for messages of the same size.
pub(crate) struct Places {
    /// Words of `mask + 1` places.
    words: AtomicWords,
    mask: u64,
    message_bytes: usize,
    place_bytes: usize,
}

impl Places {
    /// Returns `true` if places of messages of this size are shorter than a cache line.
    pub(crate) const fn share_lines(message_bytes: usize) -> bool {
        // Loom has no lines, and its models must go round the ring.
        !cfg!(loom) && place_bytes(message_bytes) < 8 * LINE_WORDS
    }

    /// Returns the number of places that share a word; 0 for places of whole words.
    pub(crate) const fn in_a_word(message_bytes: usize) -> usize {
        if is_part_of_word(message_bytes) { 8 / place_bytes(message_bytes) } else { 0 }
    }

    /// Returns the words of `count` places for messages of this size.
    pub(crate) const fn words(message_bytes: usize, count: usize) -> usize {
        (place_bytes(message_bytes) * count).div_ceil(8)
    }

    /// Makes places for messages of this size that fill a whole slice.
    pub(crate) fn new(words: AtomicWords, message_bytes: usize, count: usize) -> Self {
        let fits =
            words.len() == Self::words(message_bytes, count) && count >= Self::in_a_word(message_bytes);
        assert!(count.is_power_of_two() && fits, "checked geometries only");
        Self { words, mask: count as u64 - 1, message_bytes, place_bytes: place_bytes(message_bytes) }
    }

    /// Returns the size of the messages in bytes.
    #[inline(always)]
    pub(crate) const fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// Returns the number of places minus one, which maps a position to its place.
    #[cfg(not(loom))]
    pub(crate) const fn mask(&self) -> u64 {
        self.mask
    }

    /// Returns the first word of the places.
    #[cfg(not(loom))]
    pub(crate) fn first_word(&self) -> &AtomicU64 {
        &self.words[0]
    }

    /// Returns the words of a position's place, or the word that it shares with others, and the
    /// first bit of the place in the first of them.
    #[inline(always)]
    fn place(&self, position: u64, message_bytes: usize) -> (&[AtomicU64], u32) {
        assert!(message_bytes == self.message_bytes, "messages of the size of their places");
        let byte = (position & self.mask) as usize * self.place_bytes;
        let (first, len, bit) = match is_part_of_word(message_bytes) {
            true => (byte / 8, 1, byte as u32 % 8 * 8),
            false => (byte / 8, message_bytes.div_ceil(8), 0),
        };
        // SAFETY: the index is at most the mask, and `new` has checked that the window has
        // `mask + 1` places of messages of this size. Nobody changes the window, which keeps its
        // memory, and its words are initialised atomics. A message is not longer than its place.
        let place = unsafe { core::slice::from_raw_parts(self.words.as_ptr().add(first), len) };
        (place, bit)
    }

    /// Writes a message, which nothing shows yet. `shared` has the sender's messages that share a
    /// word with the last one, and is kept for it.
    #[inline(always)]
    pub(crate) fn write(&self, position: u64, message: &[u8], shared: &mut u64) {
        let (place, bit) = self.place(position, message.len());
        if !is_part_of_word(message.len()) {
            return store(place, message);
        }
        if bit == 0 {
            *shared = 0;
        }
        *shared |= first_word(message) << bit;
        // Relaxed: the Release store of the position publishes it. The other messages of the word
        // keep their values, or were taken.
        place[0].store(*shared, Ordering::Relaxed);
    }

    /// Writes `count` messages that lie next to each other, as [`Places::write`] does each of them.
    #[inline(always)]
    pub(crate) fn write_many(
        &self,
        position: u64,
        count: usize,
        messages: &[u8],
        message_bytes: usize,
        shared: &mut u64,
    ) {
        if has_no_gaps(message_bytes) {
            return self.write_run(position, messages, message_bytes, shared);
        }
        for number in 0..count {
            let message = &messages[number * message_bytes..][..message_bytes];
            self.write(position + number as u64, message, shared);
        }
    }

    /// Writes messages whose places have no gaps, with one store for each word.
    #[inline(always)]
    fn write_run(&self, position: u64, mut messages: &[u8], message_bytes: usize, shared: &mut u64) {
        let mut byte = self.first_byte(position, message_bytes);
        while !messages.is_empty() {
            let (now, later) = messages.split_at(messages.len().min(8 - byte % 8));
            let before = if byte.is_multiple_of(8) { 0 } else { *shared };
            *shared = before | first_word(now) << (byte % 8 * 8);
            // Relaxed: as in `write`.
            self.words[byte / 8].store(*shared, Ordering::Relaxed);
            byte = self.next_byte(byte + now.len());
            messages = later;
        }
    }

    /// Returns the offset of the place of a position among places without gaps.
    #[inline(always)]
    fn first_byte(&self, position: u64, message_bytes: usize) -> usize {
        assert!(message_bytes == self.message_bytes, "messages of the size of their places");
        (position & self.mask) as usize * message_bytes
    }

    /// Returns the offset of the byte that follows among places without gaps, which fill their
    /// words: after the last one it is the first.
    #[inline(always)]
    fn next_byte(&self, byte: usize) -> usize {
        if byte == 8 * self.words.len() { 0 } else { byte }
    }

    /// Returns the messages that share a word with that position and come before it.
    pub(crate) fn shared_before(&self, position: u64) -> u64 {
        if !is_part_of_word(self.message_bytes) {
            return 0;
        }
        let (place, bit) = self.place(position, self.message_bytes);
        // Relaxed: the stores of a predecessor whose crash is certain.
        place[0].load(Ordering::Relaxed) & ((1 << bit) - 1)
    }

    /// Copies a message, which must have been published and not been freed.
    #[inline(always)]
    pub(crate) fn read(&self, position: u64, message: &mut [u8]) {
        let (place, bit) = self.place(position, message.len());
        if !is_part_of_word(message.len()) {
            return load(place, message);
        }
        // Relaxed: the sender may store later messages of the word.
        split_word(place[0].load(Ordering::Relaxed) >> bit, message);
    }

    /// Copies `count` messages next to each other, as [`Places::read`] does each of them.
    #[inline(always)]
    pub(crate) fn read_many(&self, position: u64, count: usize, messages: &mut [u8], message_bytes: usize) {
        if has_no_gaps(message_bytes) {
            return self.read_run(position, &mut messages[..count * message_bytes], message_bytes);
        }
        for number in 0..count {
            let message = &mut messages[number * message_bytes..][..message_bytes];
            self.read(position + number as u64, message);
        }
    }

    /// Copies messages whose places have no gaps, with one load for each word.
    #[inline(always)]
    fn read_run(&self, position: u64, mut messages: &mut [u8], message_bytes: usize) {
        let mut byte = self.first_byte(position, message_bytes);
        while !messages.is_empty() {
            let (now, later) = messages.split_at_mut(messages.len().min(8 - byte % 8));
            // Relaxed: as in `read`.
            split_word(self.words[byte / 8].load(Ordering::Relaxed) >> (byte % 8 * 8), now);
            byte = self.next_byte(byte + now.len());
            messages = later;
        }
    }

    /// Fetches the first line of a position's place, so that it arrives together with the sender's
    /// position and not after it.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn prefetch(&self, position: u64) {
        let (place, _) = self.place(position, self.message_bytes);
        prefetch_lines(place, 1);
    }
}

/// Places that are only read.
pub(crate) struct ReadOnlyPlaces(Places);

impl ReadOnlyPlaces {
    /// Makes places that fill a whole slice, as [`Places::new`] does.
    pub(crate) fn new(words: ReadOnlyWords, message_bytes: usize, count: usize) -> Self {
        Self(Places::new(words.0, message_bytes, count))
    }

    /// Returns the size of the messages in bytes.
    #[inline(always)]
    pub(crate) const fn message_bytes(&self) -> usize {
        self.0.message_bytes()
    }

    /// Returns the number of places minus one.
    #[cfg(not(loom))]
    pub(crate) const fn mask(&self) -> u64 {
        self.0.mask()
    }

    /// Returns the first word of the places.
    #[cfg(not(loom))]
    pub(crate) fn first_word(&self) -> &AtomicU64 {
        self.0.first_word()
    }

    /// Copies a message as [`Places::read`] does.
    #[inline(always)]
    pub(crate) fn read(&self, position: u64, message: &mut [u8]) {
        self.0.read(position, message);
    }

    /// Copies messages as [`Places::read_many`] does.
    #[inline(always)]
    pub(crate) fn read_many(&self, position: u64, count: usize, messages: &mut [u8], message_bytes: usize) {
        self.0.read_many(position, count, messages, message_bytes);
    }

    /// Fetches the first line of a position's place as [`Places::prefetch`] does.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn prefetch(&self, position: u64) {
        self.0.prefetch(position);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::Region;

    /// Returns the bytes of a message, which depend on its position.
    fn message(position: u64, bytes: usize) -> Vec<u8> {
        (0..bytes).map(|byte| (position * 31 + byte as u64 + 1) as u8).collect()
    }

    fn places(bytes: usize, count: usize) -> Places {
        let words = Region::heap(Places::words(bytes, count) + 4).words();
        Places::new(words.slice(2, words.len() - 4), bytes, count)
    }

    #[test]
    fn messages_of_every_size_survive_their_places() {
        let sizes =
            if cfg!(miri) { vec![0, 1, 2, 3, 4, 8, 12, 24, 64, 65, 129] } else { (0..=700).collect() };
        for bytes in sizes {
            let (places, mut shared) = (places(bytes, 8), 0);
            for first in [0, 8, u64::MAX - 7] {
                (first..=first + 7).for_each(|at| places.write(at, &message(at % 256, bytes), &mut shared));
                for at in first..=first + 7 {
                    let mut copy = vec![0; bytes];
                    places.read(at, &mut copy);
                    assert_eq!(copy, message(at % 256, bytes), "{bytes} bytes at {at}");
                }
            }
        }
    }

    /// Batches write and read what single messages do, from every place on and round the end.
    #[test]
    fn batches_are_the_messages_that_they_consist_of() {
        for (bytes, first) in
            [0, 1, 2, 3, 4, 5, 8, 64, 130].into_iter().flat_map(|b| (0..16).map(move |at| (b, at)))
        {
            // Half of the places, as in a ring: a word that begins overwrites older messages.
            for count in 0..=8 {
                let [singly, together] = [places(bytes, 16), places(bytes, 16)];
                let messages: Vec<_> = (first..first + count).flat_map(|at| message(at, bytes)).collect();
                let mut shared = [0; 2];
                (0..first + count).for_each(|at| singly.write(at, &message(at, bytes), &mut shared[0]));
                (0..first).for_each(|at| together.write(at, &message(at, bytes), &mut shared[1]));
                together.write_many(first, count as usize, &messages, bytes, &mut shared[1]);
                let words = |places: &Places| -> Vec<u64> {
                    places.words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
                };
                assert_eq!(
                    (words(&together), shared[1]),
                    (words(&singly), shared[0]),
                    "{bytes} {first} {count}"
                );
                let mut copies = vec![0; messages.len()];
                together.read_many(first, count as usize, &mut copies, bytes);
                assert_eq!(copies, messages, "{bytes} {first} {count}");
            }
        }
    }

    /// No place reaches outside of its window, into the two words on either side.
    #[test]
    fn places_stay_within_their_words() {
        for bytes in [1, 3, 4, 8, 56, 64, 65, 128, 129, 250, 256, 1000] {
            let words = Region::heap(Places::words(bytes, 8) + 4).words();
            let places = Places::new(words.slice(2, words.len() - 4), bytes, 8);
            (0..40).for_each(|at| places.write(at, &vec![0xff; bytes], &mut 0));
            let outside = [0, 1, words.len() - 2, words.len() - 1];
            assert_eq!(outside.map(|word| words[word].load(Ordering::Relaxed)), [0; 4], "{bytes}");
        }
    }

    #[test]
    fn successor_keeps_messages_that_share_its_word() {
        let (places, mut shared) = (places(2, 8), 0);
        (0..3).for_each(|at| places.write(at, &message(at, 2), &mut shared));
        // Written and not published.
        places.write(3, &[0xff; 2], &mut shared.clone());
        let mut successor = places.shared_before(3);
        assert_eq!(successor, shared);
        places.write(3, &message(3, 2), &mut successor);
        for at in 0..4 {
            let mut copy = [0; 2];
            places.read(at, &mut copy);
            assert_eq!(copy[..], message(at, 2));
        }
    }

    #[test]
    fn short_places_never_cross_a_line() {
        for bytes in 1..=64 {
            assert!(place_bytes(bytes) >= bytes && 64_usize.is_multiple_of(place_bytes(bytes)));
        }
        assert_eq!([65, 72, 1000].map(place_bytes), [72, 72, 1000]);
    }

    #[test]
    #[should_panic(expected = "messages of the size of their places")]
    fn message_of_another_size_panics() {
        places(8, 2).write(0, &[0; 16], &mut 0);
    }
}
