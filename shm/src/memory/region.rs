//! One type owns every mapping: a [`Region`] is a fixed number of zero-initialised atomic words, wherever they
//! live. Rings, logs and headers sit on top as safe code over [`Words`] and never see a file descriptor.
//!
//! This is the whole of the unsafe code that shared memory needs here. Why slices of atomics, and nothing else:
//! another process may write any word at any time, which would be undefined behaviour behind a Rust reference to
//! plain data, but is an ordinary race on an atomic. A hostile peer can therefore make us read nonsense (which is
//! validated after it was copied out), never make the program unsound.

use crate::memory::header::HeaderError;
use crate::sync::{AtomicU64, Ordering, load_owned};
use core::ops::Deref;
use core::ptr::NonNull;
use std::sync::Arc;
use thiserror::Error;

#[cfg(not(loom))]
pub use mapped::{SHM_DIR, list_segments, unlink};

/// Where named segments live.
#[derive(Debug, Error)]
pub enum RegionError {
    /// Not enough room for a segment; found when it is created, not as a SIGBUS later.
    #[error(
        "no room for segment {name} ({bytes} bytes) in /dev/shm: free some with `launcher clean`, run with fewer \
         --orders, or enlarge it (mount -o remount,size=…, or --shm-size for a container)"
    )]
    NoRoom {
        /// The segment's name.
        name: String,
        /// Its size.
        bytes: u64,
    },
    /// The operating system's refusal.
    #[error("segment {name}: cannot {what}: {source}")]
    Os {
        /// The segment's name.
        name: String,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// It is there, but it is not what it should be.
    #[error("segment {name}: {source}")]
    Header {
        /// The segment's name.
        name: String,
        /// What is wrong with it.
        source: HeaderError,
    },
}

/// Who keeps the words alive. Dropped with the region: the mapping goes, a name in `/dev/shm` stays.
enum Backing {
    /// On the heap: for tests, for loom and for Miri.
    Heap(#[expect(dead_code, reason = "kept alive, reached through the pointer")] Vec<AtomicU64>),
    /// A mapped file, named segment or memfd.
    #[cfg(not(loom))]
    Map(#[expect(dead_code, reason = "kept alive, reached through the pointer")] memmap2::MmapRaw),
    /// The control segment, which the crate `shared_memory` opens and maps by its name.
    #[cfg(not(loom))]
    Named(#[expect(dead_code, reason = "kept alive, reached through the pointer")] Box<shared_memory::Shmem>),
}

/// A fixed number of atomic words and the owner of their memory.
pub struct Region {
    start: NonNull<AtomicU64>,
    len: usize,
    _backing: Backing,
}

// SAFETY: a region is memory full of atomics and the owner of that memory. Atomics may be used from any thread;
// the owner is never used after construction except to be dropped, and unmapping may happen on any thread.
unsafe impl Send for Region {}
// SAFETY: as above; `&Region` gives out `&[AtomicU64]` only, and `AtomicU64` is `Sync`.
unsafe impl Sync for Region {}

impl Region {
    /// A region of zeroed words on the heap.
    pub fn heap(words: usize) -> Arc<Self> {
        // Room to begin at a pair of cache lines, as a mapping does: a ring's cursors must not share theirs. Loom has
        // words of its own size, and no lines.
        let spare = if cfg!(loom) { 0 } else { 16 };
        let mut backing: Vec<AtomicU64> = (0..words + spare).map(|_| AtomicU64::new(0)).collect();
        let first = backing.as_mut_ptr();
        let skipped = if cfg!(loom) { 0 } else { first.align_offset(128) };
        assert!(
            skipped <= spare,
            "words are aligned for themselves, so a line begins among the next sixteen"
        );
        // Moving a `Vec` leaves its buffer, and this pointer into it, as they are. (Moving a box would not: it claims
        // its contents anew, and Miri objects.)
        let start = NonNull::new(first.wrapping_add(skipped)).expect("a vector is never at null");
        Arc::new(Self { start, len: words, _backing: Backing::Heap(backing) })
    }

    /// All of its words.
    pub fn words(self: &Arc<Self>) -> Words {
        Words { start: self.start, len: self.len, _region: Arc::clone(self) }
    }
}

/// A window into a region: a handle that keeps the region alive and derefs to its words.
#[derive(Clone)]
pub struct Words {
    start: NonNull<AtomicU64>,
    len: usize,
    _region: Arc<Region>,
}

// SAFETY: a window is a shared reference to atomics plus a counted reference to their owner, both of which may
// cross threads.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// The `len` words from `offset` on.
    ///
    /// # Panics
    /// If they are not inside this window. Offsets come from our own constants and checked geometries.
    pub fn window(&self, offset: usize, len: usize) -> Words {
        let start = NonNull::from(&self[offset..offset + len]).cast();
        Words { start, len, _region: Arc::clone(&self._region) }
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `start` and `len` describe words inside the region (established by `Region` and kept by
        // `window`'s bounds check); the counted reference keeps the region mapped for as long as `self`; the words
        // are initialised (zeroed by the allocator or by the kernel) and are only ever accessed as atomics here.
        // Another process may change them at any time, which is a race between atomics and not undefined.
        // Nobody truncates a mapped file: segments are ours (0600), and saved logs are never mapped.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

/// A read-only window: the type gives no way to store, and the pages may be mapped without write permission.
#[derive(Clone)]
pub struct View(Words);

impl View {
    /// Loads one word.
    ///
    /// # Panics
    /// If `index` is outside the window.
    #[inline(always)]
    pub fn load(&self, index: usize, ordering: Ordering) -> u64 {
        self.0[index].load(ordering)
    }

    /// Words in the window.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "never empty: a header is the least")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl View {
    /// The `len` words from `offset` on.
    ///
    /// # Panics
    /// If they are not inside this window.
    pub fn window(&self, offset: usize, len: usize) -> View {
        View(self.0.window(offset, len))
    }

    /// One word, for waiting on it: whoever has it can store to it, so it stays in this crate.
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        &self.0[index]
    }

    /// Copies the `N` words from `offset` on, which nobody writes now: see [`load_owned`].
    ///
    /// # Panics
    /// If they are not inside this window.
    #[inline(always)]
    pub fn copy_owned<const N: usize>(&self, offset: usize) -> [u64; N] {
        let mut copy = [0; N];
        for (value, word) in copy.iter_mut().zip(&self.0[offset..offset + N]) {
            *value = load_owned(word);
        }
        copy
    }
}

impl From<Words> for View {
    fn from(words: Words) -> Self {
        Self(words)
    }
}

#[cfg(not(loom))]
mod mapped {
    use super::{Arc, Backing, NonNull, Region, RegionError, View};
    use crate::plan::Plan;
    use memmap2::{MmapOptions, MmapRaw};
    use nix::fcntl::posix_fallocate;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::fd::AsFd;
    use std::os::unix::fs::OpenOptionsExt;

    /// Where named segments live.
    pub const SHM_DIR: &str = "/dev/shm";

    fn os(name: &str, what: &'static str) -> impl FnOnce(io::Error) -> RegionError {
        let name = name.to_owned();
        move |source| RegionError::Os { name, what, source }
    }

    /// Reserves every page now: `ftruncate` on a full tmpfs would succeed and kill us with SIGBUS later.
    fn reserve(name: &str, file: &File, bytes: u64) -> Result<(), RegionError> {
        posix_fallocate(file.as_fd(), 0, bytes as i64).map_err(|errno| match errno {
            nix::errno::Errno::ENOSPC | nix::errno::Errno::ENOMEM => {
                RegionError::NoRoom { name: name.to_owned(), bytes }
            }
            errno => os(name, "reserve its memory")(errno.into()),
        })
    }

    fn from_map(map: MmapRaw) -> Arc<Region> {
        // Mappings start at a page, so they are aligned for words; a trailing part of a word is left out.
        let start = NonNull::new(map.as_mut_ptr().cast()).expect("mmap never returns null");
        Arc::new(Region { start, len: map.len() / 8, _backing: Backing::Map(map) })
    }

    impl Region {
        /// Creates a named segment of zeroed words: exclusively, mode 0600, reserved and prefaulted.
        ///
        /// # Errors
        /// [`RegionError::NoRoom`], or what the system refused (the name exists, no permission). Nothing is left
        /// behind then.
        pub fn create(name: &str, words: usize) -> Result<Arc<Self>, RegionError> {
            let path = format!("{SHM_DIR}/{name}");
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .map_err(os(name, "create it"))?;
            let mapped = reserve(name, &file, words as u64 * 8)
                .and_then(|()| MmapOptions::new().populate().map_raw(&file).map_err(os(name, "map it")));
            mapped.map(from_map).inspect_err(|_| drop(std::fs::remove_file(&path)))
        }

        /// Maps a named segment for reading and writing, prefaulted.
        ///
        /// # Errors
        /// What the system refused: most often the segment is gone because the run has ended.
        pub fn open(name: &str) -> Result<Arc<Self>, RegionError> {
            let path = format!("{SHM_DIR}/{name}");
            let file = OpenOptions::new().read(true).write(true).open(path).map_err(os(name, "open it"))?;
            Self::map(name, &file)
        }

        /// Maps a named segment read-only, prefaulted.
        ///
        /// # Errors
        /// As [`Region::open`].
        pub fn open_read_only(name: &str) -> Result<View, RegionError> {
            let file = File::open(format!("{SHM_DIR}/{name}")).map_err(os(name, "open it"))?;
            Self::map_read_only(name, &file)
        }

        /// An anonymous shared file of zeroed words (`memfd_create`).
        ///
        /// # Errors
        /// What the system refused.
        pub fn memfd(name: &str, words: usize) -> Result<Arc<Self>, RegionError> {
            Ok(Self::memfd_and_file(name, words)?.0)
        }

        /// As [`Region::memfd`], with the file: its size can be sealed and its descriptor handed over.
        ///
        /// # Errors
        /// What the system refused.
        pub fn memfd_and_file(name: &str, words: usize) -> Result<(Arc<Self>, File), RegionError> {
            let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
            let fd = memfd_create(name, flags).map_err(|e| os(name, "create it")(e.into()))?;
            let file = File::from(fd);
            reserve(name, &file, words as u64 * 8)?;
            let region = Self::map(name, &file)?;
            Ok((region, file))
        }

        /// Maps an open file for reading and writing, prefaulted. The mapping outlives the file.
        ///
        /// # Errors
        /// What the system refused, for example because the file is open for reading only.
        pub fn map(name: &str, file: &File) -> Result<Arc<Self>, RegionError> {
            MmapOptions::new().populate().map_raw(file).map(from_map).map_err(os(name, "map it"))
        }

        /// Maps an open file read-only, prefaulted.
        ///
        /// # Errors
        /// What the system refused.
        pub fn map_read_only(name: &str, file: &File) -> Result<View, RegionError> {
            let map = MmapOptions::new().populate().map_raw_read_only(file).map_err(os(name, "map it"))?;
            Ok(from_map(map).words().into())
        }

        /// Creates the control segment, the one that a run is found by, through the crate `shared_memory`. Its
        /// name outlives the region: the launcher unlinks it last.
        ///
        /// # Errors
        /// As [`Region::create`].
        pub fn create_control(name: &str, words: usize) -> Result<Arc<Self>, RegionError> {
            let fail = |e: shared_memory::ShmemError| os(name, "create it")(io::Error::other(e.to_string()));
            let mut shmem =
                shared_memory::ShmemConf::new().os_id(name).size(words * 8).create().map_err(fail)?;
            // The crate only truncates to size; reserve the pages before anybody touches them.
            let file = OpenOptions::new().write(true).open(format!("{SHM_DIR}/{name}"));
            file.map_err(os(name, "open it")).and_then(|file| reserve(name, &file, words as u64 * 8))?;
            shmem.set_owner(false);
            from_shmem(name, shmem)
        }

        /// Attaches to a control segment by its name.
        ///
        /// # Errors
        /// What the system refused: most often there is no such run.
        pub fn open_control(name: &str) -> Result<Arc<Self>, RegionError> {
            let fail = |e: shared_memory::ShmemError| os(name, "open it")(io::Error::other(e.to_string()));
            let shmem = shared_memory::ShmemConf::new().os_id(name).open().map_err(fail)?;
            from_shmem(name, shmem)
        }
    }

    fn from_shmem(name: &str, shmem: shared_memory::Shmem) -> Result<Arc<Region>, RegionError> {
        let start = NonNull::new(shmem.as_ptr().cast())
            .ok_or_else(|| os(name, "map it")(io::Error::other("mapped at null")))?;
        let len = shmem.len() / 8;
        Ok(Arc::new(Region { start, len, _backing: Backing::Named(Box::new(shmem)) }))
    }

    /// Removes a segment's name. The memory goes when the last process unmaps it. A name that is gone already is
    /// no error.
    ///
    /// # Errors
    /// What the system refused.
    pub fn unlink(name: &str) -> io::Result<()> {
        match std::fs::remove_file(format!("{SHM_DIR}/{name}")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The names of all of bulkhead's segments on this machine, sorted.
    ///
    /// # Errors
    /// If `/dev/shm` cannot be listed.
    pub fn list_segments() -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(SHM_DIR)?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with(Plan::PREFIX))
            .collect();
        names.sort();
        Ok(names)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn windows_share_their_words() {
        let words = Region::heap(32).words();
        let window = words.window(8, 4);
        window[1].store(7, Ordering::Relaxed);
        assert_eq!(words[9].load(Ordering::Relaxed), 7);
        drop(words);
        assert_eq!(window[1].load(Ordering::Relaxed), 7, "a window keeps its region alive");
    }

    #[test]
    fn heap_regions_begin_at_a_pair_of_cache_lines() {
        for words in [1, 17, 1000] {
            assert_eq!(Region::heap(words).words().as_ptr().addr() % 128, 0);
        }
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn a_window_stays_inside() {
        let _ = Region::heap(8).words().window(4, 5);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no shared file mappings")]
    fn two_mappings_of_a_named_segment_are_one_memory() {
        let name = format!("bulkhead.unit-{}.region", std::process::id());
        let created = Region::create(&name, 1024).unwrap().words();
        assert!(Region::create(&name, 1024).is_err(), "created exclusively");
        let opened = Region::open(&name).unwrap().words();
        let view = Region::open_read_only(&name).unwrap();
        unlink(&name).unwrap();
        assert_eq!((opened.len(), view.len()), (1024, 1024));
        created[1000].store(42, Ordering::Relaxed);
        assert_eq!((opened[1000].load(Ordering::Relaxed), view.load(1000, Ordering::Relaxed)), (42, 42));
        assert!(Region::open(&name).is_err());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no shared file mappings")]
    fn too_little_room_is_an_error_and_leaves_nothing() {
        let name = format!("bulkhead.unit-{}.huge", std::process::id());
        let Err(RegionError::NoRoom { bytes, .. }) = Region::create(&name, 1 << 50) else {
            panic!("a petabyte fitted")
        };
        assert_eq!(bytes, 1 << 53);
        assert!(Region::open(&name).is_err(), "nothing is left behind");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no shared file mappings")]
    fn the_control_segment_is_found_by_name() {
        let name = format!("bulkhead.unit-{}.control", std::process::id());
        let created = Region::create_control(&name, 512).unwrap();
        let opened = Region::open_control(&name).unwrap();
        created.words()[511].store(9, Ordering::Release);
        assert_eq!(opened.words()[511].load(Ordering::Acquire), 9);
        drop(created);
        assert!(list_segments().unwrap().contains(&name), "the name outlives the region");
        unlink(&name).unwrap();
    }
}
