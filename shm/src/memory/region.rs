//! The type that owns every mapping of shared memory. A [`Region`] is a fixed number of
//! zero-initialised atomic words, wherever they live. Rings, logs and headers are safe code over
//! [`AtomicWords`] and see no file descriptor.
//!
//! This is the whole of the unsafe code that shared memory needs here. Why slices of atomics, and
//! nothing else: another process may write any word at any time, which would be undefined behavior
//! for a Rust reference to plain data, but is an ordinary race on an atomic. A hostile peer can
//! therefore make us read nonsense (which is validated after it was copied out), never make the
//! program unsound.

#[cfg(not(loom))]
use super::sigbus::Guard;
use crate::futex;
use crate::memory::header::{Header, HeaderError, SegmentKind};
use crate::sync::{AtomicU64, Ordering, load_read_only};
use core::ops::Deref;
use core::ptr::NonNull;
use core::time::Duration;
use std::sync::{Arc, OnceLock};
use thiserror::Error;

/// Errors of creating or mapping a region of shared memory.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegionError {
    /// Not enough space for a segment; found when it is created, not as a SIGBUS later.
    #[error(
        "no room for segment {name} ({bytes} bytes) in /dev/shm or in memory: free some with `launcher clean`, run with fewer \
         --orders, or enlarge /dev/shm (mount -o remount,size=…, or --shm-size for a container)"
    )]
    NoRoom {
        /// The segment's name.
        name: String,
        /// Size of the segment in bytes.
        bytes: u64,
    },
    /// The operating system refused an operation on the segment.
    #[error("segment {name}: cannot {what}: {source}")]
    Os {
        /// The segment's name.
        name: String,
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The segment exists, but its header is not the expected one.
    #[error("segment {name}: {source}")]
    Header {
        /// The segment's name.
        name: String,
        /// The error of the header.
        source: HeaderError,
    },
}

impl RegionError {
    /// Returns a closure that adds a segment's name and an operation to an error of the system.
    #[cfg(not(loom))]
    pub(crate) fn os(name: impl Into<String>, what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Os { name: name.into(), what, source }
    }
}

/// The owner of a region's memory: a mapping or a heap allocation. Dropped with the region: the
/// memory is unmapped, a name in `/dev/shm` stays.
pub(super) enum Backing {
    /// Memory on the heap: for tests, for loom and for Miri.
    Heap(#[expect(dead_code, reason = "kept alive, reached through the pointer")] Vec<AtomicU64>),
    /// A mapped file, named segment or memfd.
    #[cfg(not(loom))]
    Map(memmap2::MmapRaw),
    /// Words of another region.
    #[cfg(not(loom))]
    Part(#[expect(dead_code, reason = "kept alive, reached through the pointer")] Arc<Region>),
    /// The control segment, which the crate `shared_memory` maps by its name, and the open file
    /// that has it locked.
    #[cfg(all(feature = "control", not(loom)))]
    Named(
        #[expect(dead_code, reason = "kept alive, reached through the pointer")]
        Box<(shared_memory::Shmem, std::fs::File)>,
    ),
}

/// A region of memory: a fixed number of atomic 64-bit words and the owner of their memory.
pub struct Region {
    pub(super) start: NonNull<AtomicU64>,
    pub(super) len: usize,
    /// The mapping's entry in the table of [`sigbus`](super::sigbus); `None` on the heap. Dropped
    /// before the memory.
    #[cfg(not(loom))]
    pub(super) guard: Option<Guard>,
    /// The plan's header: the one in memory is then not read, since other processes may have
    /// overwritten it.
    pub(super) header: OnceLock<Header>,
    pub(super) _backing: Backing,
}

// SAFETY: a region is memory full of atomics and the owner of that memory. Atomics may be used from
// any thread; the owner is never used after construction except to be dropped, and unmapping may
// happen on any thread.
unsafe impl Send for Region {}
// SAFETY: as above; `&Region` gives out `&[AtomicU64]` only, and `AtomicU64` is `Sync`.
unsafe impl Sync for Region {}

impl Region {
    /// Creates a region of `words` zeroed 64-bit words on the heap.
    pub fn heap(words: usize) -> Arc<Self> {
        // Padding to start at a pair of cache lines, as a mapping does: a ring's cursors must not
        // share lines. Loom has words of its own size, and no lines.
        let padding = if cfg!(loom) { 0 } else { 16 };
        let mut backing: Vec<AtomicU64> = (0..words + padding).map(|_| AtomicU64::new(0)).collect();
        let first = backing.as_mut_ptr();
        let skipped = if cfg!(loom) { 0 } else { first.align_offset(128) };
        assert!(
            skipped <= padding,
            "words are aligned for themselves, so a line begins among the next sixteen"
        );
        // Moving a `Vec` leaves its buffer, and this pointer into it, as they are. (Moving a box
        // would not: it retags its contents, and Miri objects.)
        let start = NonNull::new(first.wrapping_add(skipped)).expect("a vector is never at null");
        Arc::new(Self {
            start,
            len: words,
            header: OnceLock::new(),
            #[cfg(not(loom))]
            guard: None,
            _backing: Backing::Heap(backing),
        })
    }

    /// Returns a region that consists of `len` words of this one, from `offset` on.
    #[cfg(not(loom))]
    pub(crate) fn part(self: &Arc<Self>, offset: usize, len: usize) -> Arc<Self> {
        let start = self.words().slice(offset, len).start;
        let backing = Backing::Part(Arc::clone(self));
        Arc::new(Self { start, len, header: OnceLock::new(), guard: None, _backing: backing })
    }

    /// Returns all words of the region.
    pub fn words(self: &Arc<Self>) -> AtomicWords {
        AtomicWords { start: self.start, len: self.len, region: Arc::clone(self) }
    }

    /// Sets the header that later checks use instead of the one in shared memory. The first one
    /// that is given stays.
    #[cfg(not(loom))]
    pub(crate) fn set_header(&self, header: Header) -> Result<(), HeaderError> {
        let found = self.len as u64 * 8;
        if header.bytes != found {
            return Err(HeaderError::Size { promised: header.bytes, found });
        }
        let _ = self.header.set(header);
        Ok(())
    }
}

/// A slice of a region's words that may be written, and that keeps the region alive.
#[derive(Clone)]
pub struct AtomicWords {
    start: NonNull<AtomicU64>,
    len: usize,
    region: Arc<Region>,
}

// SAFETY: a window is a shared reference to atomics plus a counted reference to their owner, both
// of which may cross threads.
unsafe impl Send for AtomicWords {}
// SAFETY: as above.
unsafe impl Sync for AtomicWords {}

impl AtomicWords {
    /// Returns the part of the slice that has `len` words from word `offset` on.
    ///
    /// # Panics
    /// If they are not inside this window. Offsets come from our own constants and checked
    /// geometries.
    pub fn slice(&self, offset: usize, len: usize) -> AtomicWords {
        let start = NonNull::from(&self[offset..offset + len]).cast();
        AtomicWords { start, len, region: Arc::clone(&self.region) }
    }

    /// Returns the segment's checked header: the one that was given when the segment was attached,
    /// as by a plan, else the one in memory.
    ///
    /// # Errors
    /// The first field that is not as it must be.
    pub fn header(&self, expected: SegmentKind) -> Result<Header, HeaderError> {
        // A window is a part of a segment, and what it begins with is its own.
        let is_whole = self.start == self.region.start && self.len == self.region.len;
        match self.region.header.get().filter(|_| is_whole) {
            Some(header) if header.kind == expected => Ok(*header),
            Some(header) => Err(HeaderError::WrongKind { expected, found: header.kind.code }),
            None => Header::read(|i, ordering| self[i].load(ordering), self.len, expected),
        }
    }

    /// Sets the header that later checks use, as [`Region::set_header`] does.
    #[cfg(not(loom))]
    pub(crate) fn set_header(&self, header: Header) -> Result<(), HeaderError> {
        self.region.set_header(header)
    }

    /// Returns `true` if this process has accessed a page of the region whose memory was lost, as
    /// by truncation, and got zeros instead. See [`sigbus`](super::sigbus).
    #[cfg(not(loom))]
    pub fn is_lost(&self) -> bool {
        self.region.guard.as_ref().is_some_and(Guard::is_lost)
    }
}

impl Deref for AtomicWords {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `start` and `len` describe words inside the region (established by `Region` and
        // kept by `window`'s bounds check); the counted reference keeps the region mapped for as
        // long as `self`; the words are initialised (zeroed by the allocator or by the kernel) and
        // are only ever accessed as atomics here. Another process may change them at any time,
        // which is a race between atomics and not undefined. The mapping is as long as the file was
        // when it was checked. Of named segments (0600) a process of the same user can cut the file
        // off: an access past its end is then a SIGBUS, which reads and writes nothing. It ends
        // this process, or a zeroed page takes the lost one's place (`sigbus`). Sealed memory,
        // which is handed over, cannot be cut off.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

/// A slice of a region's words that may only be read. The type gives no way to store, and the pages
/// may be mapped without write permission.
///
/// From such pages the standard library promises Relaxed loads of a word. One that is to acquire is
/// therefore followed by a fence, which costs no instruction on x86-64.
#[derive(Clone)]
pub struct ReadOnlyWords(pub(super) AtomicWords);

impl ReadOnlyWords {
    /// Loads the word at `index` of the read-only slice.
    ///
    /// # Panics
    /// If `index` is outside the window.
    #[inline(always)]
    pub fn load(&self, index: usize, ordering: Ordering) -> u64 {
        load_read_only(&self.0[index], ordering)
    }

    /// Returns `true` if this process has accessed a page of the region whose memory was lost: see
    /// [`AtomicWords::is_lost`].
    #[cfg(not(loom))]
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// Returns the number of 64-bit words of the slice.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "never empty: a header is the least")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the part of the read-only slice that has `len` words from word `offset` on.
    ///
    /// # Panics
    /// If they are not inside this window.
    pub fn slice(&self, offset: usize, len: usize) -> ReadOnlyWords {
        ReadOnlyWords(self.0.slice(offset, len))
    }

    /// Returns the segment's checked header, as [`AtomicWords::header`] does.
    ///
    /// # Errors
    /// The first field that is not as it must be.
    pub fn header(&self, expected: SegmentKind) -> Result<Header, HeaderError> {
        self.0.header(expected)
    }

    /// Sets the header that later checks use, as [`Region::set_header`] does.
    #[cfg(not(loom))]
    pub(crate) fn set_header(&self, header: Header) -> Result<(), HeaderError> {
        self.0.set_header(header)
    }

    /// Returns the addresses of the words, for system calls that take one.
    pub fn addresses(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|word| core::ptr::from_ref(word) as usize)
    }

    /// Returns the slice's first word, for a wait on it together with other words. Only for this
    /// crate, which does not store there.
    pub(crate) fn futex(&self) -> &AtomicU64 {
        &self.0[0]
    }

    /// Sleeps while the low 32 bits of the word at `index` are `expected`, for at most `timeout`.
    /// May return for no reason.
    ///
    /// # Panics
    /// If `index` is outside the window.
    pub fn wait(&self, index: usize, expected: u32, timeout: Duration) {
        // The word itself is not returned: its owner could store to it, on pages that may not be
        // writable.
        futex::wait(&self.0[index], expected, timeout);
    }

    /// Copies words that a writer may change concurrently, each Relaxed, calling `at` before each
    /// load. It copies from `offset` on, and `at` receives the index.
    #[inline(always)]
    pub(crate) fn copy(&self, offset: usize, into: &mut [u64], at: &mut impl FnMut(usize)) {
        let words = &self.0[offset..offset + into.len()];
        for (place, (value, word)) in into.iter_mut().zip(words).enumerate() {
            at(place);
            *value = word.load(Ordering::Relaxed);
        }
    }
}

impl From<AtomicWords> for ReadOnlyWords {
    fn from(words: AtomicWords) -> Self {
        Self(words)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slices_share_their_region() {
        let words = Region::heap(32).words();
        let window = words.slice(8, 4);
        window[1].store(7, Ordering::Relaxed);
        assert_eq!(words[9].load(Ordering::Relaxed), 7);
        drop(words);
        assert_eq!(window[1].load(Ordering::Relaxed), 7, "a window keeps its region alive");
    }

    #[test]
    fn given_header_counts_for_its_kind_and_whole_region() {
        let (kind, other) = (SegmentKind::new(98, "test", &[]), SegmentKind::new(99, "other", &[]));
        let region = Region::heap(32);
        let header = Header::anonymous(kind, 32, 1, 4, 5);
        let wrong_size = Header::anonymous(kind, 31, 1, 4, 5);
        assert_eq!(region.set_header(wrong_size), Err(HeaderError::Size { promised: 248, found: 256 }));
        region.set_header(header).expect("a header of its size");
        let words = region.words();
        assert_eq!(words.header(kind), Ok(header));
        assert_eq!(words.header(other), Err(HeaderError::WrongKind { expected: other, found: 98 }));
        assert_eq!(words.slice(0, 31).header(kind), Err(HeaderError::Magic(0)), "a part has its own");
    }

    #[test]
    fn heap_regions_begin_at_a_pair_of_cache_lines() {
        for words in [1, 17, 1000] {
            assert_eq!(Region::heap(words).words().as_ptr().addr() % 128, 0);
        }
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn slice_outside_its_region_panics() {
        let _ = Region::heap(8).words().slice(4, 5);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no shared file mappings")]
    fn failed_creation_reports_missing_space_and_leaves_nothing() {
        let name = format!("bulkhead.unit-{}.huge", std::process::id());
        let Err(RegionError::NoRoom { bytes, .. }) = Region::create(&name, 1 << 50) else {
            panic!("a petabyte fitted")
        };
        assert_eq!(bytes, 1 << 53);
        assert!(Region::open(&name).is_err(), "nothing is left behind");
    }
}
