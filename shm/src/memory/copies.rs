//! Copies of messages into the words of their places and out of them.

use crate::sync::{AtomicU64, Ordering, load_owned};

/// Bytes from which on a message is copied in blocks: see [`store_blocks`].
const BLOCKS_FROM: usize = 129;

/// Returns a word that begins with these bytes, of which there are at most 8.
///
/// Their first and their last part, which may overlap: no call of `memcpy`, and no loop, where
/// their number is known when the program runs.
#[inline(always)]
pub(super) fn first_word(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.first_chunk::<8>() {
        u64::from_le_bytes(*word)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let last = u64::from(u32::from_le_bytes(*last)) << (8 * (bytes.len() - 4));
        u64::from(u32::from_le_bytes(*first)) | last
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<2>(), bytes.last_chunk::<2>()) {
        let last = u64::from(u16::from_le_bytes(*last)) << (8 * (bytes.len() - 2));
        u64::from(u16::from_le_bytes(*first)) | last
    } else {
        bytes.first().map_or(0, |byte| u64::from(*byte))
    }
}

/// Copies the first bytes of a word, at most 8, as [`first_word`] does.
#[inline(always)]
pub(super) fn split_word(word: u64, bytes: &mut [u8]) {
    if let Some(bytes) = bytes.first_chunk_mut::<8>() {
        *bytes = word.to_le_bytes();
    } else if !(split_ends::<4>(word, bytes) || split_ends::<2>(word, bytes))
        && let Some(byte) = bytes.first_mut()
    {
        *byte = word as u8;
    }
}

/// Copies the first `N` and the last `N` of the first bytes of a word. Returns `false` if they are
/// fewer.
#[inline(always)]
fn split_ends<const N: usize>(word: u64, bytes: &mut [u8]) -> bool {
    let Some(after_first) = bytes.len().checked_sub(N) else { return false };
    let first = |word: u64| word.to_le_bytes().first_chunk::<N>().copied();
    if let (Some(bytes), Some(first)) = (bytes.first_chunk_mut::<N>(), first(word)) {
        *bytes = first;
    }
    if let (Some(bytes), Some(last)) = (bytes.last_chunk_mut::<N>(), first(word >> (8 * after_first))) {
        *bytes = last;
    }
    true
}

/// Stores a message in its place.
///
/// Short ones word by word, in one way for each number of words. A call of `memcpy` would load
/// words that were just written in pieces of 32 bytes, and wait until they have left the CPU's
/// store buffer.
#[inline(always)]
pub(super) fn store(place: &[AtomicU64], message: &[u8]) {
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
pub(super) fn load(place: &[AtomicU64], message: &mut [u8]) {
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
