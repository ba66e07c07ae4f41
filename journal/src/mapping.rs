//! A mapped segment as a slice of atomic words. This file holds all unsafe code of the crate.
//!
//! Words are atomics because the kernel and readers of the file see them while they are written: a
//! plain store could be split, or moved past the store that makes a record visible.
#![allow(unsafe_code)]

use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const TOUCH_BYTES: usize = 256 << 10;

#[derive(Clone)]
enum Backing {
    Heap(#[expect(dead_code, reason = "kept alive, accessed through the pointer")] Arc<[AtomicU64]>),
    File(Arc<MmapRaw>),
}

/// Words of 64 bits in a file that is mapped for writing, or on the heap. Clones share them.
#[derive(Clone)]
pub(crate) struct MappedWords {
    start: NonNull<AtomicU64>,
    len: usize,
    backing: Backing,
}

// SAFETY: the words are atomics, which any thread may use. Their owner is only dropped, which any
// thread may do.
unsafe impl Send for MappedWords {}
// SAFETY: as for `Send`; a shared reference gives access to atomics only.
unsafe impl Sync for MappedWords {}

impl MappedWords {
    /// Allocates `words` zeroed 64-bit words on the heap, in place of a mapped file.
    pub fn heap(words: usize) -> Self {
        let words: Arc<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { start: NonNull::from(&*words).cast(), len: words.len(), backing: Backing::Heap(words) }
    }

    /// Maps a file into memory for reading and writing. Its length must not change while it is
    /// mapped.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn map(file: &File) -> io::Result<Self> {
        let map = Arc::new(MmapOptions::new().map_raw(file)?);
        let start = NonNull::new(map.as_mut_ptr().cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, len: map.len() / 8, backing: Backing::File(map) })
    }

    /// Populates the page tables of a range of bytes for writing, so that no later store faults.
    /// The words keep their values, and other threads may use them at the same time. The file's
    /// pages become dirty. Does nothing on the heap.
    ///
    /// # Errors
    /// The system's refusal: no space left, or a kernel before 5.14.
    pub fn touch(&self, bytes: Range<usize>) -> io::Result<()> {
        let Backing::File(map) = &self.backing else { return Ok(()) };
        map.advise_range(Advice::PopulateWrite, bytes.start, bytes.len())
    }

    /// Enables or disables the kernel's read-ahead for the mapped file, which is enabled by
    /// default. With a read-ahead of 8 MiB, a segment's first store takes milliseconds, in which
    /// all pages of the segment are zeroed. Advice: a refusal is ignored.
    pub fn read_ahead(&self, is_wanted: bool) {
        if let Backing::File(map) = &self.backing {
            let _ = map.advise(if is_wanted { Advice::Normal } else { Advice::Random });
        }
    }

    /// Splits the bytes of the mapped file into ranges for [`MappedWords::touch`]. The kernel holds
    /// the process's memory map during a call, which delays page faults of other threads.
    pub fn touch_ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let bytes = self.len * 8;
        (0..bytes).step_by(TOUCH_BYTES).map(move |start| start..bytes.min(start + TOUCH_BYTES))
    }
}

impl Deref for MappedWords {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `start` and `len` describe the memory of `backing`, which lives as long as
        // `self`, is aligned to a word, writable and initialized (by the allocator or the kernel),
        // and is accessed as atomics only. If another process shortens the file, an access past its
        // end raises SIGBUS, which ends this process and reads or writes nothing.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

/// Prefetches the cache line that is `bytes` bytes after a word, possibly past the end of the
/// mapping.
#[inline(always)]
pub(crate) fn prefetch(word: &AtomicU64, bytes: usize) {
    let address = std::ptr::from_ref(word).cast::<u8>().wrapping_add(bytes);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: PREFETCHT0 is part of every x86-64 CPU (SSE). It never faults, whatever the address.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast::<i8>());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: PRFM is part of every aarch64 CPU. It never faults, whatever the address.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
