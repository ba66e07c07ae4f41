//! Columns that may be larger than memory: of plain values, in memory, or in a file that nobody
//! else has.
//!
//! A column in a file is mapped, so code that uses it is the code that uses one in memory. What of
//! it is resident can be given back at any time ([`Room::relieve`]): the pages go to the file and
//! come again when they are touched.

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

/// A value that is nothing but its bytes: any bytes are one, and none of them are padding.
pub trait Plain: FromBytes + IntoBytes + Immutable + Copy {}

impl<T: FromBytes + IntoBytes + Immutable + Copy> Plain for T {}

/// The least that a column in a file grows by, in bytes.
const STEP: usize = 1 << 20;
/// The name that a scratch file has for a moment where files must have one.
const NAME: &str = ".scratch";

/// Where columns live.
#[derive(Clone, Debug, Default)]
pub struct Room {
    files: Option<Arc<Files>>,
}

#[derive(Debug)]
struct Files {
    folder: PathBuf,
    most_resident: u64,
    /// Broken on purpose: see [`Room::forgetful`].
    forgets: bool,
    /// Where every column is mapped now: address and length.
    mapped: Mutex<Vec<(usize, usize)>>,
}

impl Room {
    /// Columns in memory.
    pub fn memory() -> Self {
        Self::default()
    }

    /// Columns in files of that folder, which have no names and go with their columns;
    /// `most_resident` is for [`Room::relieve`].
    ///
    /// # Errors
    /// No file can be made there.
    pub fn files(folder: &Path, most_resident: u64) -> io::Result<Self> {
        Self::with(folder, most_resident, false)
    }

    /// Broken on purpose, so that tests can show that they would notice: as [`Room::files`], but a
    /// column forgets what was in it when it grows beyond its file.
    #[doc(hidden)]
    pub fn forgetful(folder: &Path) -> io::Result<Self> {
        Self::with(folder, 0, true)
    }

    fn with(folder: &Path, most_resident: u64, forgets: bool) -> io::Result<Self> {
        unnamed(folder)?;
        let mapped = Mutex::default();
        let files = Files { folder: folder.to_owned(), most_resident, forgets, mapped };
        Ok(Self { files: Some(Arc::new(files)) })
    }

    /// Where the files of columns are; `None`: columns are in memory.
    pub fn folder(&self) -> Option<&Path> {
        self.files.as_ref().map(|files| files.folder.as_path())
    }

    /// How much memory this process may have resident, in bytes, before columns are given back;
    /// `None`: nobody said.
    pub fn most_resident(&self) -> Option<u64> {
        self.files.as_ref().map(|files| files.most_resident)
    }

    /// An empty column.
    pub fn column<T: Plain>(&self) -> Column<T> {
        let place = match &self.files {
            None => Place::Memory(Vec::new()),
            Some(files) => Place::File { files: Arc::clone(files), mapped: None, len: 0 },
        };
        Column { place }
    }

    /// Gives back what columns have resident, where this process has more resident than it may. To
    /// be called now and then by whoever goes through columns: a system call or two.
    #[inline]
    pub fn relieve(&self) {
        if let Some(files) = &self.files {
            files.relieve();
        }
    }
}

impl Files {
    #[cold]
    fn relieve(&self) {
        // Where nobody says how much that is, it is too much.
        if resident_bytes().is_some_and(|resident| resident <= self.most_resident) {
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

    fn forget(&self, mapped: &Mapped) {
        let start = mapped.map.as_mut_ptr() as usize;
        self.mapped().retain(|(other, _)| *other != start);
    }
}

/// Values one after the other, as many as there is room for on the disk.
#[derive(Debug)]
pub struct Column<T> {
    place: Place<T>,
}

#[derive(Debug)]
enum Place<T> {
    Memory(Vec<T>),
    File { files: Arc<Files>, mapped: Option<Mapped>, len: usize },
}

#[derive(Debug)]
struct Mapped {
    file: File,
    map: MmapRaw,
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self { place: Place::Memory(Vec::new()) }
    }
}

impl<T: Plain> Column<T> {
    /// Makes it as long as that, with values of zero bytes behind those that there are; shorter
    /// values are cut off.
    ///
    /// # Errors
    /// There is no memory, or no room on the disk; then it is as it was.
    pub fn resize(&mut self, len: usize) -> io::Result<()> {
        match &mut self.place {
            Place::Memory(values) => {
                let more = len.saturating_sub(values.len());
                values.try_reserve(more).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
                values.resize(len, T::new_zeroed());
                Ok(())
            }
            Place::File { files, mapped, len: now } => {
                let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
                let has = mapped.as_ref().map_or(0, |mapped| mapped.map.len());
                if bytes > has {
                    const { assert!(align_of::<T>() <= 4096, "a mapping begins at a page") };
                    let wanted = bytes.max(has + has / 4).next_multiple_of(STEP);
                    let file = match &mapped {
                        Some(mapped) if !files.forgets => mapped.file.try_clone()?,
                        _ => unnamed(&files.folder)?,
                    };
                    reserve(&file, wanted)?;
                    let map = MmapOptions::new().len(wanted).map_raw(&file)?;
                    files.mapped().push((map.as_mut_ptr() as usize, wanted));
                    if let Some(before) = mapped.replace(Mapped { file, map }) {
                        files.forget(&before);
                    }
                }
                let before = core::mem::replace(now, len);
                if len < before {
                    // What is cut off is zero if it comes back.
                    *now = before;
                    self[len..].iter_mut().for_each(|value| *value = T::new_zeroed());
                    if let Place::File { len: now, .. } = &mut self.place {
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
        if let Place::File { files, mapped: Some(mapped), .. } = &self.place {
            files.forget(mapped);
        }
    }
}

impl<T: Plain> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.place {
            Place::Memory(values) => values,
            Place::File { mapped: None, .. } => &[],
            Place::File { mapped: Some(mapped), len, .. } => {
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
        match &mut self.place {
            Place::Memory(values) => values,
            Place::File { mapped: None, .. } => &mut [],
            Place::File { mapped: Some(mapped), len, .. } => {
                // SAFETY: as for `deref`; and `self` is borrowed for as long as the slice, so there
                // is no other reference into it.
                unsafe { core::slice::from_raw_parts_mut(mapped.map.as_mut_ptr().cast(), *len) }
            }
        }
    }
}

/// A file without a name in that folder.
fn unnamed(folder: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE).open(folder) {
        // Not every file system has files without names.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            named_for_a_moment(folder, &options)
        }
        made => made,
    }
}

/// A file whose name is taken away before anything is in it. Who is killed in between leaves it
/// there, empty, and the next one takes it away.
fn named_for_a_moment(folder: &Path, options: &OpenOptions) -> io::Result<File> {
    let path = folder.join(NAME);
    // Somebody else's file of the moment loses nothing but a name that it was about to lose.
    let unlink = || match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    unlink()?;
    let file = options.clone().create_new(true).open(&path)?;
    unlink()?;
    Ok(file)
}

/// Reserves so many bytes of a file: a page that the disk has no room for would end the process
/// when it is touched.
fn reserve(file: &File, bytes: usize) -> io::Result<()> {
    let bytes = i64::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
    loop {
        match posix_fallocate(file.as_fd(), 0, bytes) {
            Err(Errno::EINTR) => {}
            done => return Ok(done?),
        }
    }
}

/// What this process has in memory, in bytes; `None`: nobody says.
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
    fn a_column_in_a_file_is_one_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        // Nothing may stay resident: every relief gives all back.
        for room in [Room::memory(), Room::files(folder.path(), 0).unwrap()] {
            let mut column = room.column::<u64>();
            assert!(column.is_empty());
            for len in [1, 5, 200_000, 1_000_000] {
                column.resize(len).unwrap();
                column[len - 1] = len as u64;
                room.relieve();
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
    fn what_is_given_back_is_not_resident() {
        let folder = tempfile::tempdir().unwrap();
        let room = Room::files(folder.path(), 0).unwrap();
        let mut column = room.column::<u64>();
        column.resize(8 << 20).unwrap();
        column.iter_mut().zip(0..).for_each(|(value, place)| *value = place);
        let before = resident_bytes().unwrap();
        room.relieve();
        let after = resident_bytes().unwrap();
        // 64 MiB; other tests of this process may take some meanwhile.
        assert!(before.saturating_sub(after) > 32 << 20, "{before} → {after}");
        assert!(column.iter().zip(0..).all(|(value, place)| *value == place), "and comes again as it was");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no files to map")]
    fn a_file_that_had_a_name_for_a_moment_has_none() {
        let folder = tempfile::tempdir().unwrap();
        // Left behind by one that was killed in that moment.
        std::fs::write(folder.path().join(NAME), "").unwrap();
        let mut options = File::options();
        let file = named_for_a_moment(folder.path(), options.read(true).write(true)).unwrap();
        reserve(&file, 5_000).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 5_000);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no files to map")]
    fn a_forgetful_room_forgets() {
        let folder = tempfile::tempdir().unwrap();
        let mut column = Room::forgetful(folder.path()).unwrap().column::<u64>();
        column.resize(1).unwrap();
        column[0] = 7;
        column.resize(STEP).unwrap();
        assert_eq!(column[0], 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no files to map")]
    fn a_folder_that_takes_no_file_is_said() {
        assert!(Room::files(Path::new("/proc"), 0).is_err());
        assert!(Room::files(Path::new("/no/such/folder"), 0).is_err());
    }
}
