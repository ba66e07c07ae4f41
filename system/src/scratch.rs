//! Columns of plain values that may be larger than memory, in memory or in a private file.
//!
//! A column in a file is mapped, so it is used like one in memory. Its resident pages can be
//! released at any time ([`ColumnStore::release_resident`]): they are written to the file and read
//! again on access.

use core::mem::size_of;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use memmap2::{MmapOptions, MmapRaw};
use nix::errno::Errno;
use nix::fcntl::posix_fallocate;
use nix::sys::mman::{MmapAdvise, madvise};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A value of plain bytes, for which any bytes are valid, without padding.
pub trait Plain: FromBytes + IntoBytes + Immutable + Copy {}

impl<T: FromBytes + IntoBytes + Immutable + Copy> Plain for T {}

/// Minimum growth of a column in a file, in bytes.
const STEP: usize = 1 << 20;
/// The temporary name of a scratch file, on file systems without unnamed files.
const NAME: &str = ".scratch";

/// The place where large columns are kept: memory, or unnamed files of a directory.
#[derive(Clone, Debug, Default)]
pub struct ColumnStore {
    files: Option<Arc<ScratchFiles>>,
}

#[derive(Debug)]
struct ScratchFiles {
    folder: PathBuf,
    max_resident: u64,
    /// For tests: see [`ColumnStore::with_data_loss`].
    loses_data: bool,
    /// The current mapping of every column: address and length.
    mapped: Mutex<Vec<(usize, usize)>>,
}

impl ColumnStore {
    /// Creates a store that keeps columns in memory.
    pub fn memory() -> Self {
        Self::default()
    }

    /// Creates a store that keeps columns in unnamed files of a directory, which are freed with
    /// their columns. `max_resident` is the limit of [`ColumnStore::release_resident`].
    ///
    /// # Errors
    /// No file can be made in the directory.
    pub fn files(folder: &Path, most_resident: u64) -> io::Result<Self> {
        Self::with(folder, most_resident, false)
    }

    /// Creates a faulty store, to validate tests: a column loses its values when it grows beyond
    /// its file.
    #[doc(hidden)]
    pub fn with_data_loss(folder: &Path) -> io::Result<Self> {
        Self::with(folder, 0, true)
    }

    fn with(folder: &Path, most_resident: u64, forgets: bool) -> io::Result<Self> {
        unnamed(folder)?;
        let mapped = Mutex::default();
        let files = ScratchFiles {
            folder: folder.to_owned(),
            max_resident: most_resident,
            loses_data: forgets,
            mapped,
        };
        Ok(Self { files: Some(Arc::new(files)) })
    }

    /// Returns the directory with the columns' files; `None` if columns are in memory.
    pub fn folder(&self) -> Option<&Path> {
        self.files.as_ref().map(|files| files.folder.as_path())
    }

    /// Returns the resident memory in bytes above which columns are released. `None` if columns are
    /// in memory.
    pub fn max_resident(&self) -> Option<u64> {
        self.files.as_ref().map(|files| files.max_resident)
    }

    /// Creates an empty column in this store.
    pub fn column<T: Plain>(&self) -> Column<T> {
        let place = match &self.files {
            None => ColumnStorage::Memory(Vec::new()),
            Some(files) => ColumnStorage::File { files: Arc::clone(files), mapped: None, len: 0 },
        };
        Column { storage: place }
    }

    /// Releases the resident pages of all columns if this process exceeds the store's limit. Called
    /// now and then by code that scans columns; costs a system call or two.
    #[inline]
    pub fn release_resident(&self) {
        if let Some(files) = &self.files {
            files.release_resident();
        }
    }
}

impl ScratchFiles {
    #[cold]
    fn release_resident(&self) {
        // If the resident size is unknown, release the pages.
        if resident_bytes().is_some_and(|resident| resident <= self.max_resident) {
            return;
        }
        for (start, len) in self.mapped().iter() {
            let Some(start) = NonNull::new(*start as *mut core::ffi::c_void) else { continue };
            // SAFETY: the range is a mapping that its column has registered and not yet taken back,
            // both under the lock that is held here, so it is mapped. It is shared with a file: the
            // advice drops the pages from this process's map and loses nothing, since what was
            // written to them is the file's by then, and the next access finds the same bytes.
            // References into the column stay valid.
            let _ = unsafe { madvise(start, *len, MmapAdvise::MADV_DONTNEED) };
        }
    }

    fn mapped(&self) -> std::sync::MutexGuard<'_, Vec<(usize, usize)>> {
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unregister(&self, mapped: &MappedFile) {
        let start = mapped.map.as_mut_ptr() as usize;
        self.mapped().retain(|(other, _)| *other != start);
    }
}

/// A growable array of plain values, limited by the disk.
#[derive(Debug)]
pub struct Column<T> {
    storage: ColumnStorage<T>,
}

#[derive(Debug)]
enum ColumnStorage<T> {
    Memory(Vec<T>),
    File { files: Arc<ScratchFiles>, mapped: Option<MappedFile>, len: usize },
}

#[derive(Debug)]
struct MappedFile {
    file: File,
    map: MmapRaw,
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self { storage: ColumnStorage::Memory(Vec::new()) }
    }
}

impl<T: Plain> Column<T> {
    /// Changes the column's length; new values are zero.
    ///
    /// # Errors
    /// Not enough memory or disk space; the column is unchanged then.
    pub fn resize(&mut self, len: usize) -> io::Result<()> {
        match &mut self.storage {
            ColumnStorage::Memory(values) => {
                let more = len.saturating_sub(values.len());
                values.try_reserve(more).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
                values.resize(len, T::new_zeroed());
                Ok(())
            }
            ColumnStorage::File { files, mapped, len: now } => {
                let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
                let has = mapped.as_ref().map_or(0, |mapped| mapped.map.len());
                if bytes > has {
                    const { assert!(align_of::<T>() <= 4096, "a mapping begins at a page") };
                    let wanted = bytes.max(has + has / 4).next_multiple_of(STEP);
                    let file = match &mapped {
                        Some(mapped) if !files.loses_data => mapped.file.try_clone()?,
                        _ => unnamed(&files.folder)?,
                    };
                    reserve(&file, wanted)?;
                    let map = MmapOptions::new().len(wanted).map_raw(&file)?;
                    files.mapped().push((map.as_mut_ptr() as usize, wanted));
                    if let Some(before) = mapped.replace(MappedFile { file, map }) {
                        files.unregister(&before);
                    }
                }
                let before = core::mem::replace(now, len);
                if len < before {
                    // Removed values are zero if the column grows again.
                    *now = before;
                    self[len..].iter_mut().for_each(|value| *value = T::new_zeroed());
                    if let ColumnStorage::File { len: now, .. } = &mut self.storage {
                        *now = len;
                    }
                }
                Ok(())
            }
        }
    }
}

impl<T> Drop for Column<T> {
    fn drop(&mut self) {
        if let ColumnStorage::File { files, mapped: Some(mapped), .. } = &self.storage {
            files.unregister(mapped);
        }
    }
}

impl<T: Plain> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.storage {
            ColumnStorage::Memory(values) => values,
            ColumnStorage::File { mapped: None, .. } => &[],
            ColumnStorage::File { mapped: Some(mapped), len, .. } => {
                // SAFETY: the mapping begins at a page and so is aligned for a value (`resize` maps
                // none that wants more), is at least `len` values long (`resize`), readable and
                // writable, and lives as long as `self`. Every byte is initialised, by the kernel
                // with zeros, and any bytes are a `T` (`Plain`). The file has no name and its
                // descriptor never leaves this module, so nobody else writes to it or cuts it; and
                // this process reaches it through `self` only.
                unsafe { core::slice::from_raw_parts(mapped.map.as_ptr().cast(), *len) }
            }
        }
    }
}

impl<T: Plain> DerefMut for Column<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.storage {
            ColumnStorage::Memory(values) => values,
            ColumnStorage::File { mapped: None, .. } => &mut [],
            ColumnStorage::File { mapped: Some(mapped), len, .. } => {
                // SAFETY: as for `deref`; and `self` is borrowed for as long as the slice, so no
                // other reference into it exists.
                unsafe { core::slice::from_raw_parts_mut(mapped.map.as_mut_ptr().cast(), *len) }
            }
        }
    }
}

/// Makes an unnamed file in a directory.
fn unnamed(folder: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE).open(folder) {
        // Not every file system supports unnamed files.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            named_for_a_moment(folder, &options)
        }
        made => made,
    }
}

/// Makes a file and removes its name while it is empty. A process killed in between leaves the
/// empty file, and the next call removes it.
fn named_for_a_moment(folder: &Path, options: &OpenOptions) -> io::Result<File> {
    let path = folder.join(NAME);
    // Another process's file of that name only loses the name, which it was about to remove.
    let unlink = || match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    unlink()?;
    let file = options.clone().create_new(true).open(&path)?;
    unlink()?;
    Ok(file)
}

/// Reserves `bytes` bytes of a file: an access to a page without disk space would kill the process.
fn reserve(file: &File, bytes: usize) -> io::Result<()> {
    let bytes = i64::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
    loop {
        match posix_fallocate(file.as_fd(), 0, bytes) {
            Err(Errno::EINTR) => {}
            done => return Ok(done?),
        }
    }
}

/// Returns the resident memory of this process in bytes; `None` if it is unknown.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    Some(pages * u64::try_from(page).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no files to map")]
    fn column_in_file_equals_column_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        // Nothing may stay resident: every relief gives all back.
        for room in [ColumnStore::memory(), ColumnStore::files(folder.path(), 0).unwrap()] {
            let mut column = room.column::<u64>();
            assert!(column.is_empty());
            for len in [1, 5, 200_000, 1_000_000] {
                column.resize(len).unwrap();
                column[len - 1] = len as u64;
                room.release_resident();
            }
            assert_eq!([column[0], column[4], column[199_999], column[999_999]], [1, 5, 200_000, 1_000_000]);
            assert_eq!(column.iter().sum::<u64>(), 1_200_006, "what nobody wrote is zero");
            column.resize(3).unwrap();
            column.resize(10).unwrap();
            assert_eq!(column[..], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0], "what was cut off comes back as zero");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file has a name");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no files to map")]
    fn released_pages_are_not_resident() {
        let folder = tempfile::tempdir().unwrap();
        let room = ColumnStore::files(folder.path(), 0).unwrap();
        let mut column = room.column::<u64>();
        column.resize(8 << 20).unwrap();
        column.iter_mut().zip(0..).for_each(|(value, place)| *value = place);
        let before = resident_bytes().unwrap();
        room.release_resident();
        let after = resident_bytes().unwrap();
        // 64 MiB; other tests of this process may use some concurrently.
        assert!(before.saturating_sub(after) > 32 << 20, "{before} → {after}");
        assert!(column.iter().zip(0..).all(|(value, place)| *value == place), "and comes again as it was");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no files to map")]
    fn temporarily_named_file_loses_its_name() {
        let folder = tempfile::tempdir().unwrap();
        // A leftover of a process that was killed at that moment.
        std::fs::write(folder.path().join(NAME), "").unwrap();
        let mut options = File::options();
        let file = named_for_a_moment(folder.path(), options.read(true).write(true)).unwrap();
        reserve(&file, 5_000).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 5_000);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no files to map")]
    fn store_with_data_loss_loses_values() {
        let folder = tempfile::tempdir().unwrap();
        let mut column = ColumnStore::with_data_loss(folder.path()).unwrap().column::<u64>();
        column.resize(1).unwrap();
        column[0] = 7;
        column.resize(STEP).unwrap();
        assert_eq!(column[0], 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no files to map")]
    fn unwritable_directory_is_reported() {
        assert!(ColumnStore::files(Path::new("/proc"), 0).is_err());
        assert!(ColumnStore::files(Path::new("/no/such/folder"), 0).is_err());
    }
}
