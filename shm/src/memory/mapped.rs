//! Maps and unmaps files and sealed memory: named segments in `/dev/shm`, anonymous files, and the
//! control segment.

use super::calls::{c_string, checked, effective_user};
#[cfg(feature = "control")]
use super::lock;
use super::region::{Backing, ReadOnlyWords, Region, RegionError};
use super::sigbus::Guard;
use super::{SHM_DIR, available, directory, huge_pages};
use core::ptr::NonNull;
use memmap2::{MmapOptions, MmapRaw};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The prefix of the file names, in `/dev/shm`, of all segments of all runs.
pub const PREFIX: &str = "bulkhead.";

/// Maximum number of bytes to touch in one call: other threads that map memory wait for it.
const MAX_TOUCHED_BYTES: usize = 256 << 10;

/// Refuses a region that is larger than the memory that is left. Without a limit of its own, as in
/// sealed memory, reserving it would end with the kernel killing this process.
fn check_memory(name: &str, bytes: u64) -> Result<(), RegionError> {
    if available::is_too_large(bytes) {
        return Err(RegionError::NoRoom { name: name.to_owned(), bytes });
    }
    Ok(())
}

/// Reserves every page now: `ftruncate` on a full tmpfs would succeed and kill us with SIGBUS
/// later.
fn reserve(name: &str, file: &File, bytes: u64) -> Result<(), RegionError> {
    // SAFETY: the descriptor is open. The call returns the number of its error.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as i64) } {
        0 => Ok(()),
        libc::ENOSPC | libc::ENOMEM => Err(RegionError::NoRoom { name: name.to_owned(), bytes }),
        errno => Err(RegionError::os(name, "reserve its memory")(io::Error::from_raw_os_error(errno))),
    }
}

fn options(prefault: bool) -> MmapOptions {
    let mut options = MmapOptions::new();
    if prefault {
        options.populate();
    }
    options
}

fn from_map(map: MmapRaw, is_writable: bool) -> Arc<Region> {
    // Mappings start at a page, so they are aligned for words; a trailing part of a word is left
    // out.
    let start = NonNull::new(map.as_mut_ptr().cast()).expect("mmap never returns null");
    let guard = Guard::new(start.addr().get(), map.len(), is_writable);
    let len = map.len() / 8;
    Arc::new(Region { start, len, header: OnceLock::new(), guard, _backing: Backing::Map(map) })
}

impl Region {
    /// Creates a named segment of `words` zeroed words, with its memory reserved and its pages
    /// touched. Exclusively, mode 0600.
    ///
    /// # Errors
    /// [`RegionError::NoRoom`], or what the system refused (the name exists, no permission).
    /// Nothing is left over then.
    pub fn create(name: &str, words: usize) -> Result<Arc<Self>, RegionError> {
        Self::create_mapped(name, words, true)
    }

    /// Creates a named segment as [`Region::create`] does, but without touching its pages. They are
    /// reserved, so that touching them cannot fail, and mapped one by one as they are touched, at
    /// one minor fault each.
    ///
    /// # Errors
    /// As [`Region::create`].
    pub fn create_reserve(name: &str, words: usize) -> Result<Arc<Self>, RegionError> {
        Self::create_mapped(name, words, false)
    }

    fn create_mapped(name: &str, words: usize, prefault: bool) -> Result<Arc<Self>, RegionError> {
        check_memory(name, words as u64 * 8)?;
        let path = format!("{SHM_DIR}/{name}");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(RegionError::os(name, "create it"))?;
        let mapped = huge_pages::fill(&file, words as u64 * 8)
            .map_err(RegionError::os(name, "fill it with huge pages"))
            .and_then(|()| reserve(name, &file, words as u64 * 8))
            .and_then(|()| options(prefault).map_raw(&file).map_err(RegionError::os(name, "map it")));
        mapped.map(|map| from_map(map, true)).inspect_err(|_| drop(std::fs::remove_file(&path)))
    }

    /// Maps a named segment for reading and writing, and touches its pages.
    ///
    /// # Errors
    /// What the system refused: most often the segment is gone because the run has ended.
    pub fn open(name: &str) -> Result<Arc<Self>, RegionError> {
        Self::open_mapped(name, true)
    }

    /// Maps a named segment as [`Region::open`] does, but without touching its pages: see
    /// [`Region::create_reserve`].
    ///
    /// # Errors
    /// As [`Region::open`].
    pub fn open_reserve(name: &str) -> Result<Arc<Self>, RegionError> {
        Self::open_mapped(name, false)
    }

    fn open_mapped(name: &str, prefault: bool) -> Result<Arc<Self>, RegionError> {
        Self::map(name, &open_named(name, true)?, prefault)
    }

    /// Maps a named segment for reading only, and touches its pages.
    ///
    /// # Errors
    /// As [`Region::open`].
    pub fn open_read_only(name: &str) -> Result<ReadOnlyWords, RegionError> {
        Self::map_read_only(name, &open_named(name, false)?)
    }

    /// Creates an anonymous shared file of `words` zeroed 64-bit words (`memfd_create`).
    ///
    /// # Errors
    /// What the system refused.
    pub fn memfd(name: &str, words: usize) -> Result<Arc<Self>, RegionError> {
        Ok(Self::memfd_and_file(name, words, true)?.0)
    }

    /// Creates an anonymous region as [`Region::memfd`] does, and returns its file too. The file's
    /// size can be sealed and its descriptor handed over.
    pub(crate) fn memfd_and_file(
        name: &str,
        words: usize,
        prefault: bool,
    ) -> Result<(Arc<Self>, File), RegionError> {
        check_memory(name, words as u64 * 8)?;
        let create = |name: CString| {
            // SAFETY: the name ends with a zero byte, and is valid during the call.
            checked(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) })
        };
        let fd = c_string(name).and_then(create).map_err(RegionError::os(name, "create it"))?;
        // SAFETY: the descriptor is new, and nothing else owns it.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        huge_pages::fill(&file, words as u64 * 8)
            .map_err(RegionError::os(name, "fill it with huge pages"))?;
        reserve(name, &file, words as u64 * 8)?;
        let region = Self::map(name, &file, prefault)?;
        Ok((region, file))
    }

    /// Maps an open file as a region of memory for reading and writing. The mapping outlives the
    /// file.
    ///
    /// # Errors
    /// What the system refused, for example because the file is open for reading only.
    pub fn map(name: &str, file: &File, prefault: bool) -> Result<Arc<Self>, RegionError> {
        let map = options(prefault).map_raw(file).map_err(RegionError::os(name, "map it"))?;
        Ok(from_map(map, true))
    }

    /// Touches every page of the region for writing now, so that no later store faults. Its words
    /// keep their values; pages of a file count as written afterwards. Other threads may use the
    /// region concurrently, and map other regions: the process's memory map is locked for a few
    /// pages at a time. Words on the heap have their pages already.
    ///
    /// # Errors
    /// What the system refused: no room on the disk or in memory, or a kernel before 5.14.
    pub fn touch(&self) -> io::Result<()> {
        match &self._backing {
            Backing::Map(map) => (0..map.len()).step_by(MAX_TOUCHED_BYTES).try_for_each(|start| {
                let bytes = MAX_TOUCHED_BYTES.min(map.len() - start);
                map.advise_range(memmap2::Advice::PopulateWrite, start, bytes)
            }),
            _ => Ok(()),
        }
    }

    /// Maps an open file for reading only, and touches its pages.
    ///
    /// # Errors
    /// What the system refused.
    pub fn map_read_only(name: &str, file: &File) -> Result<ReadOnlyWords, RegionError> {
        let map =
            MmapOptions::new().populate().map_raw_read_only(file).map_err(RegionError::os(name, "map it"))?;
        Ok(from_map(map, false).words().into())
    }

    /// Creates the named control segment, which holds a run's plan and state and by whose name
    /// other processes find the run. It appears under its name whole: reserved, and locked for as
    /// long as this process has it mapped ([`lock::lock_shared`]). It is never visible unlocked
    /// while its creator lives. Its name outlives the region: the launcher unlinks it last.
    ///
    /// # Errors
    /// As [`Region::create`].
    #[cfg(feature = "control")]
    pub fn create_control(name: &str, words: usize) -> Result<Arc<Self>, RegionError> {
        let path = format!("{SHM_DIR}/{name}");
        let file = nameless(name, words)?;
        lock::lock_shared(&file).map_err(RegionError::os(name, "lock it"))?;
        give_name(name, &file)?;
        let mapped = map_control(name, file);
        mapped.inspect_err(|_| drop(std::fs::remove_file(&path)))
    }
}

/// Creates a file of reserved memory in `/dev/shm` without a name, mode 0600.
pub(super) fn nameless(name: &str, words: usize) -> Result<File, RegionError> {
    nameless_in(Path::new(SHM_DIR), name, words)
}

/// Creates a file of reserved bytes in a folder without a name, mode 0600. Nothing of it is left
/// once no process has it open.
pub(super) fn nameless_in(folder: &Path, name: &str, words: usize) -> Result<File, RegionError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE);
    let file = options.open(folder).map_err(RegionError::os(name, "create it"))?;
    reserve(name, &file, words as u64 * 8)?;
    Ok(file)
}

/// Gives a nameless file of memory a name in `/dev/shm`, which must be free.
pub(super) fn give_name(name: &str, file: &File) -> Result<(), RegionError> {
    let (nameless, path) = (format!("/proc/self/fd/{}", file.as_raw_fd()), format!("{SHM_DIR}/{name}"));
    let link = |from: CString, to: CString| {
        let (cwd, flags) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
        // SAFETY: both paths end with a zero byte, and are valid during the call.
        checked(unsafe { libc::linkat(cwd, from.as_ptr(), cwd, to.as_ptr(), flags) })
    };
    let linked = c_string(nameless).and_then(|from| link(from, c_string(path)?));
    linked.map(drop).map_err(RegionError::os(name, "create it"))
}

/// Maps the control segment by its name, through the crate `shared_memory`.
#[cfg(feature = "control")]
fn map_control(name: &str, locked: File) -> Result<Arc<Region>, RegionError> {
    let fail =
        |e: shared_memory::ShmemError| RegionError::os(name, "map it")(io::Error::other(e.to_string()));
    let shmem = shared_memory::ShmemConf::new().os_id(name).open().map_err(fail)?;
    let start = NonNull::new(shmem.as_ptr().cast())
        .ok_or_else(|| RegionError::os(name, "map it")(io::Error::other("mapped at null")))?;
    let len = shmem.len() / 8;
    let guard = Guard::new(start.addr().get(), shmem.len(), true);
    let backing = Backing::Named(Box::new((shmem, locked)));
    Ok(Arc::new(Region { start, len, header: OnceLock::new(), guard, _backing: backing }))
}

/// Opens the file with a segment's name as [`open_safely`] does, for reading and also for writing.
pub(super) fn open_named(name: &str, is_writable: bool) -> Result<File, RegionError> {
    let opened = open_safely(name, OpenOptions::new().read(true).write(is_writable));
    opened.map_err(RegionError::os(name, "open it"))
}

/// Opens the file with a segment's name in `/dev/shm`, which must be a regular file that this
/// process's user owns. Follows no link and does not block on a FIFO.
///
/// # Errors
/// What the system refused; [`io::ErrorKind::InvalidInput`] for a file of another kind or user.
pub fn open_safely(name: &str, options: &mut OpenOptions) -> io::Result<File> {
    let options = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(format!("{SHM_DIR}/{name}"))?;
    let facts = file.metadata()?;
    let refused = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    match (facts.is_file(), facts.uid() == effective_user()) {
        (false, _) => refused("not memory"),
        (true, false) => refused("of another user"),
        (true, true) => Ok(file),
    }
}

/// Removes the file or directory with this name from `/dev/shm`. A directory's contents are removed
/// too, and the files whose names begin with its name and a dot. The memory is freed when the last
/// process unmaps it. Names that are already gone are ignored.
///
/// # Errors
/// What the system refused.
pub fn unlink(name: &str) -> io::Result<()> {
    match std::fs::remove_file(format!("{SHM_DIR}/{name}")) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => directory::remove(name),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the names of all of bulkhead's segments on this machine, sorted.
///
/// # Errors
/// If `/dev/shm` cannot be listed.
pub fn list_segments() -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(SHM_DIR)?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(PREFIX))
        .collect();
    names.sort();
    Ok(names)
}
