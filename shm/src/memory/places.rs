//! Places for messages of one size, which lie next to each other: a power of two of them, so that
//! every position of a stream maps to one.
//!
//! A message of up to 64 bytes has a place of the next power of two bytes, so that it never crosses
//! a cache line. A longer one has a place of whole words.

use super::{AtomicWords, LINE_WORDS, ReadOnlyWords};
#[cfg(not(loom))]
use crate::prefetch::prefetch_lines;
use crate::sync::{AtomicU64, Ordering, load_owned};

/// Bytes from which on a message is copied in blocks: see [`store_blocks`].
const BLOCKS_FROM: usize = 129;

/// Returns the bytes of the place of a message.
pub(crate) const fn place_bytes(message_bytes: usize) -> usize {
    if message_bytes <= 64 { message_bytes.next_power_of_two() } else { message_bytes.next_multiple_of(8) }
}

/// Returns `true` if the place of a message shares its word with others.
#[inline(always)]
const fn is_part_of_word(message_bytes: usize) -> bool {
    message_bytes <= 4
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
        let fits = words.len() == Self::words(message_bytes, count);
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
        let bytes = (place[0].load(Ordering::Relaxed) >> bit).to_le_bytes();
        let len = message.len();
        match (message.first_chunk_mut::<4>(), bytes.first_chunk::<4>()) {
            (Some(message), Some(bytes)) if len == 4 => *message = *bytes,
            _ => message.copy_from_slice(&bytes[..len]),
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

    /// Fetches the first line of a position's place as [`Places::prefetch`] does.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn prefetch(&self, position: u64) {
        self.0.prefetch(position);
    }
}

/// Returns a word that begins with the bytes of a message of at most 8.
#[inline(always)]
fn first_word(message: &[u8]) -> u64 {
    if let (4, Some(bytes)) = (message.len(), message.first_chunk::<4>()) {
        return u32::from_le_bytes(*bytes).into();
    }
    let mut bytes = [0; 8];
    bytes[..message.len()].copy_from_slice(message);
    u64::from_le_bytes(bytes)
}

/// Stores a message in its place.
///
/// Short ones word by word, in one way for each number of words. A call of `memcpy` would load
/// words that were just written in pieces of 32 bytes, and wait until they have left the CPU's
/// store buffer.
#[inline(always)]
fn store(place: &[AtomicU64], message: &[u8]) {
    match message.len() {
        8 => store_words::<1>(place, message),
        16 => store_words::<2>(place, message),
        24 => store_words::<3>(place, message),
        32 => store_words::<4>(place, message),
        40 => store_words::<5>(place, message),
        48 => store_words::<6>(place, message),
        56 => store_words::<7>(place, message),
        64 => store_words::<8>(place, message),
        ..BLOCKS_FROM => store_any(place, message),
        _ => store_blocks(place, message),
    }
}

#[inline(always)]
fn store_words<const W: usize>(place: &[AtomicU64], message: &[u8]) {
    let words = message.as_chunks::<8>().0.first_chunk::<W>();
    if let (Some(words), Some(place)) = (words, place.first_chunk::<W>()) {
        for (place, word) in place.iter().zip(words) {
            // Relaxed: the Release store of the position publishes it.
            place.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
    }
}

/// Stores a message of any size, word by word.
#[inline(never)]
fn store_any(place: &[AtomicU64], message: &[u8]) {
    let (whole, last) = message.as_chunks::<8>();
    for (word, bytes) in place.iter().zip(whole) {
        // Relaxed: the Release store of the position publishes it.
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if let (Some(word), false) = (place.get(whole.len()), last.is_empty()) {
        let mut bytes = [0; 8];
        bytes[..last.len()].copy_from_slice(last);
        // Relaxed: as above.
        word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
    }
}

/// Copies a message out of its place, as [`store`] does.
#[inline(always)]
fn load(place: &[AtomicU64], message: &mut [u8]) {
    match message.len() {
        8 => load_words::<1>(place, message),
        16 => load_words::<2>(place, message),
        24 => load_words::<3>(place, message),
        32 => load_words::<4>(place, message),
        40 => load_words::<5>(place, message),
        48 => load_words::<6>(place, message),
        56 => load_words::<7>(place, message),
        64 => load_words::<8>(place, message),
        ..BLOCKS_FROM => load_any(place, message),
        _ => load_blocks(place, message),
    }
}

#[inline(always)]
fn load_words<const W: usize>(place: &[AtomicU64], message: &mut [u8]) {
    let words = message.as_chunks_mut::<8>().0.first_chunk_mut::<W>();
    if let (Some(words), Some(place)) = (words, place.first_chunk::<W>()) {
        for (word, place) in words.iter_mut().zip(place) {
            *word = load_owned(place).to_ne_bytes();
        }
    }
}

/// Copies a message of any size, word by word.
#[inline(never)]
fn load_any(place: &[AtomicU64], message: &mut [u8]) {
    let (whole, last) = message.as_chunks_mut::<8>();
    for (bytes, word) in whole.iter_mut().zip(place) {
        *bytes = load_owned(word).to_ne_bytes();
    }
    if let (Some(word), false) = (place.get(whole.len()), last.is_empty()) {
        last.copy_from_slice(&load_owned(word).to_ne_bytes()[..last.len()]);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use blocks::{load_blocks, store_blocks};
#[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
use {load_any as load_blocks, store_any as store_blocks};

/// Copies of long messages in blocks of two cache lines.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod blocks {
    use super::{AtomicU64, BLOCKS_FROM};
    use core::arch::asm;

    /// Bytes of a block.
    const BLOCK: usize = 128;

    /// Stores a message that is longer than a block.
    #[inline(never)]
    pub(super) fn store_blocks(place: &[AtomicU64], message: &[u8]) {
        assert!(message.len() >= BLOCKS_FROM && size_of_val(place) >= message.len(), "a place is as long");
        // SAFETY: the message is readable and its place writable memory for that many bytes, which
        // are more than a block.
        unsafe { copy(message.as_ptr(), place.as_ptr().cast_mut().cast(), message.len()) }
    }

    /// Copies a message that is longer than a block out of its place.
    #[inline(never)]
    pub(super) fn load_blocks(place: &[AtomicU64], message: &mut [u8]) {
        assert!(message.len() >= BLOCKS_FROM && size_of_val(place) >= message.len(), "a place is as long");
        // SAFETY: as in `store_blocks`, from the place to the message.
        unsafe { copy(place.as_ptr().cast(), message.as_mut_ptr(), message.len()) }
    }

    /// Copies `bytes` bytes, more than a block: whole blocks, and the last one, which may overlap
    /// the one before it.
    ///
    /// Assembly, which the memory model of the language does not reach into: a peer that breaks the
    /// protocol and stores to the place gives nonsense, as for a load of an atomic word.
    ///
    /// # Safety
    /// `from` and `to` are valid for `bytes` bytes, and do not overlap.
    #[inline(always)]
    unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
        if std::arch::is_x86_feature_detected!("avx") {
            // SAFETY: by this function's contract, and the CPU has AVX. `at` is less than the start
            // of the last block at each pass. The upper halves are cleared for code without AVX.
            unsafe {
                asm!(
                    "2:",
                    "vmovups ymm0, [{from} + {at}]",
                    "vmovups ymm1, [{from} + {at} + 32]",
                    "vmovups ymm2, [{from} + {at} + 64]",
                    "vmovups ymm3, [{from} + {at} + 96]",
                    "vmovups [{to} + {at}], ymm0",
                    "vmovups [{to} + {at} + 32], ymm1",
                    "vmovups [{to} + {at} + 64], ymm2",
                    "vmovups [{to} + {at} + 96], ymm3",
                    "add {at}, 128",
                    "cmp {at}, {last}",
                    "jb 2b",
                    "vmovups ymm0, [{from} + {last}]",
                    "vmovups ymm1, [{from} + {last} + 32]",
                    "vmovups ymm2, [{from} + {last} + 64]",
                    "vmovups ymm3, [{from} + {last} + 96]",
                    "vmovups [{to} + {last}], ymm0",
                    "vmovups [{to} + {last} + 32], ymm1",
                    "vmovups [{to} + {last} + 64], ymm2",
                    "vmovups [{to} + {last} + 96], ymm3",
                    "vzeroupper",
                    at = inout(reg) 0_usize => _, last = in(reg) bytes - BLOCK,
                    from = in(reg) from, to = in(reg) to,
                    out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
                    options(nostack),
                );
            }
        } else {
            // SAFETY: as above, with SSE2, which every x86-64 has, in halves of blocks.
            unsafe {
                asm!(
                    "2:",
                    "movups xmm0, [{from} + {at}]",
                    "movups xmm1, [{from} + {at} + 16]",
                    "movups xmm2, [{from} + {at} + 32]",
                    "movups xmm3, [{from} + {at} + 48]",
                    "movups [{to} + {at}], xmm0",
                    "movups [{to} + {at} + 16], xmm1",
                    "movups [{to} + {at} + 32], xmm2",
                    "movups [{to} + {at} + 48], xmm3",
                    "add {at}, 64",
                    "cmp {at}, {last}",
                    "jb 2b",
                    "movups xmm0, [{from} + {last}]",
                    "movups xmm1, [{from} + {last} + 16]",
                    "movups xmm2, [{from} + {last} + 32]",
                    "movups xmm3, [{from} + {last} + 48]",
                    "movups [{to} + {last}], xmm0",
                    "movups [{to} + {last} + 16], xmm1",
                    "movups [{to} + {last} + 32], xmm2",
                    "movups [{to} + {last} + 48], xmm3",
                    at = inout(reg) 0_usize => _, last = in(reg) bytes - BLOCK / 2,
                    from = in(reg) from, to = in(reg) to,
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                    options(nostack),
                );
            }
        }
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

    /// No place reaches outside of its window, into the two words on either side.
    #[test]
    fn places_stay_within_their_words() {
        for bytes in [1, 3, 4, 8, 56, 64, 65, 128, 129, 250, 256, 1000] {
            let words = Region::heap(Places::words(bytes, 4) + 4).words();
            let places = Places::new(words.slice(2, words.len() - 4), bytes, 4);
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
