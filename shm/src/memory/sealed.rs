//! Segments without names: sealed memory that each process is handed as a descriptor, with the
//! rights that it needs.
//!
//! The launcher creates each segment as a memfd, seals its size (no process can truncate it while
//! another reads it, which would be a SIGBUS), and opens it twice: for writing and read-only. A
//! process inherits one of the two, or neither; a read-only descriptor cannot be mapped for
//! writing. Descriptors are closed as soon as they are mapped.

use crate::memory::calls::checked;
use crate::memory::mapped::nameless_in;
use crate::memory::{AtomicWords, Region, RegionError};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The access rights of a process to a shared-memory segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The process may map the segment for reading only.
    Read,
    /// The process may map the segment for reading and writing.
    Write,
}

/// A segment that a process inherits as an open descriptor instead of opening it by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Handle {
    /// The segment's name within the run.
    pub name: String,
    /// The descriptor's number, the same in the launcher and in each process that inherits it.
    pub fd: i32,
    /// `true` if the descriptor lets its process map the segment for writing.
    pub writable: bool,
}

/// The launcher's two descriptors, writable and read-only, of a segment that children inherit.
pub struct Shared {
    /// The segment's name within the run.
    pub what: String,
    write: File,
    read: File,
}

impl Shared {
    /// Creates a segment of zeroed words in sealed memory, without a name. `what` is its name
    /// within the run, `name` its full name, for messages and for `/proc`.
    ///
    /// # Errors
    /// Not enough memory, or what the system refused.
    pub fn create(
        what: &str,
        name: String,
        words: usize,
        prefault: bool,
    ) -> Result<(Self, AtomicWords), RegionError> {
        Self::create_with(0, what, name, words, prefault)
    }

    /// Creates a segment as [`Shared::create`] does, but one that no other process can map for
    /// writing, not even with the write descriptor.
    ///
    /// # Errors
    /// As [`Shared::create`].
    pub fn create_read_only(
        what: &str,
        name: String,
        words: usize,
        prefault: bool,
    ) -> Result<(Self, AtomicWords), RegionError> {
        Self::create_with(libc::F_SEAL_FUTURE_WRITE, what, name, words, prefault)
    }

    fn create_with(
        seals: i32,
        what: &str,
        name: String,
        words: usize,
        prefault: bool,
    ) -> Result<(Self, AtomicWords), RegionError> {
        let (region, write) = Region::memfd_and_file(&name, words, prefault)?;
        let os = |what| RegionError::os(&name, what);
        // The mapping above is older than the seals, and stays as it is.
        add_seals(&write, seals | SIZE_SEALS).map_err(os("seal it"))?;
        // Opened again, not duplicated: a duplicate would keep the right to write.
        let read =
            File::open(format!("/proc/self/fd/{}", write.as_raw_fd())).map_err(os("open it read-only"))?;
        // The owner of the read-only descriptor could reopen it for writing in the same way:
        // landlock ignores memory without a name. From here on only root and owners of the other
        // can.
        write.set_permissions(Permissions::from_mode(0o400)).map_err(os("make it read-only"))?;
        Ok((Self { what: what.to_owned(), write, read }, region.words()))
    }

    /// Creates a segment of zeroed words in a file without a name on the file system of `folder`.
    /// Its size is not sealed: only processes with the write descriptor can change it.
    ///
    /// # Errors
    /// No room, or what the system refused: a file system may have no files without a name.
    pub fn create_in(
        folder: &Path,
        what: &str,
        name: String,
        words: usize,
    ) -> Result<(Self, AtomicWords), RegionError> {
        let write = nameless_in(folder, &name, words).map_err(|error| match error {
            RegionError::NoRoom { .. } => {
                RegionError::os(&name, "reserve room for it in the folder")(io::ErrorKind::StorageFull.into())
            }
            error => error,
        })?;
        let region = Region::map(&name, &write, true)?;
        // Opened again, as in `create_with`.
        let read = File::open(format!("/proc/self/fd/{}", write.as_raw_fd()))
            .map_err(RegionError::os(&name, "open it read-only"))?;
        Ok((Self { what: what.to_owned(), write, read }, region.words()))
    }

    /// Opens the named segment at `path`, which children may only read, with a read-only descriptor
    /// for each access right. Used for the run's control segment.
    ///
    /// # Errors
    /// What the system refused.
    pub fn read_only(what: &str, path: &str) -> io::Result<Self> {
        Ok(Self { what: what.to_owned(), write: File::open(path)?, read: File::open(path)? })
    }

    /// Opens the named segment at `path` with a writable and a read-only descriptor, of which each
    /// child inherits one at most.
    ///
    /// # Errors
    /// What the system refused.
    pub fn named(what: &str, path: &str) -> io::Result<Self> {
        let write = File::options().read(true).write(true).open(path)?;
        Ok(Self { what: what.to_owned(), write, read: File::open(path)? })
    }

    /// Returns the descriptor of the segment for an access right.
    pub fn file(&self, access: Access) -> &File {
        match access {
            Access::Read => &self.read,
            Access::Write => &self.write,
        }
    }

    /// Returns both descriptors of the segment, as the plan lists them.
    pub fn handles(&self) -> [Handle; 2] {
        [(&self.write, true), (&self.read, false)].map(|(file, writable)| Handle {
            name: self.what.clone(),
            fd: file.as_raw_fd(),
            writable,
        })
    }
}

const SIZE_SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

fn add_seals(memory: &File, seals: i32) -> io::Result<()> {
    flags(memory.as_raw_fd(), libc::F_ADD_SEALS, seals).map(drop)
}

/// Seals the size of anonymous memory, so that it cannot change.
pub(crate) fn seal_size(memory: &File) -> io::Result<()> {
    add_seals(memory, SIZE_SEALS)
}

/// Returns `true` if the size of anonymous memory is sealed. An error if it is another kind of
/// file.
pub(crate) fn is_size_sealed(memory: &File) -> io::Result<bool> {
    Ok(flags(memory.as_raw_fd(), libc::F_GET_SEALS, 0)? & SIZE_SEALS == SIZE_SEALS)
}

/// Held while inheritance is changed or queried. Two starts at once would take each other's
/// descriptors back, and hand them to each other's children. Nothing is kept under the lock, so one
/// that panicked left nothing half done.
static INHERITANCE_LOCK: Mutex<()> = Mutex::new(());

/// Calls `start`, whose child processes inherit these descriptors and the standard three, and no
/// others. Not even those that this process inherited by accident, from a shell for example.
/// Children started afterwards do not inherit them.
///
/// Whether a descriptor is inherited is a property of the whole process. One call at a time is
/// therefore let through; a thread that concurrently starts a child by other means
/// hands these descriptors to it too.
///
/// # Errors
/// What the system refused, or what `start` returns.
pub fn inherited_by<F: AsFd, T>(files: &[F], start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let fd = |file: &F| file.as_fd().as_raw_fd();
    let set = |flag| files.iter().try_for_each(|file| flags(fd(file), libc::F_SETFD, flag).map(drop));
    let _guard = INHERITANCE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    close_others_on_exec();
    set(0)?;
    let started = start();
    set(libc::FD_CLOEXEC)?;
    started
}

fn flags(fd: i32, command: i32, flags: i32) -> io::Result<i32> {
    // SAFETY: a number that is not open is an error of the call. These commands take an integer:
    // nothing is read, written or closed.
    checked(unsafe { libc::fcntl(fd, command, flags) })
}

/// Keeps descriptors that this process was given by accident (a shell's pipe) from its children:
/// all but the standard three are closed when it executes something.
fn close_others_on_exec() {
    // SAFETY: the call takes three integers and closes nothing now.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

const MIN_INHERITED_FD: i32 = 3;

/// Takes ownership of an inherited descriptor that the plan lists: see [`take_inherited`].
///
/// # Errors
/// As [`take_inherited`].
pub fn take(handle: &Handle) -> io::Result<File> {
    Ok(take_inherited(handle.fd)?.into())
}

/// Takes ownership of an inherited descriptor, which must be open and must not be close-on-exec.
///
/// The number may come from shared memory or a command line, so the number alone proves nothing.
/// The flag does: a descriptor that came through `exec` cannot have it, and the standard library
/// sets it on every descriptor that it opens. A file of this process is therefore refused, and so
/// is a second `take` of one number, since taking sets the flag.
///
/// # Errors
/// The descriptor is not open, is a standard stream, was not inherited, or was taken before.
pub fn take_inherited(fd: i32) -> io::Result<OwnedFd> {
    let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, format!("descriptor {fd}: {why}")));
    if fd < MIN_INHERITED_FD {
        return refused("a standard stream is nobody's to take");
    }
    // While a child is being started, descriptors of this process look like inherited ones.
    let _guard = INHERITANCE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    if flags(fd, libc::F_GETFD, 0)? & libc::FD_CLOEXEC != 0 {
        return refused("it was not inherited, or was taken before");
    }
    flags(fd, libc::F_SETFD, libc::FD_CLOEXEC)?;
    // SAFETY: it is open and came through `exec`, since it was not close-on-exec: no object of this
    // process owns it, because those that the standard library makes are. Only this function takes
    // such descriptors, one at a time, and marks what it took.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::sync::Ordering;

    #[test]
    fn segment_in_a_folder_is_shared_without_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let (shared, words) = Shared::create_in(folder.path(), "board", "unit.board".into(), 16).unwrap();
        words[3].store(7, Ordering::Relaxed);
        let view = Region::map_read_only("board", shared.file(Access::Read)).unwrap();
        assert_eq!((view.len(), view.load(3, Ordering::Relaxed)), (16, 7));
        assert!(Region::map("board", shared.file(Access::Read), false).is_err(), "for reading only");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let error = Shared::create_in(folder.path(), "board", "unit.board".into(), 1 << 50).map(drop);
        assert!(error.is_err(), "no room");
        assert!(Shared::create_in(Path::new("/nowhere"), "board", "unit.board".into(), 16).is_err());
    }
}
