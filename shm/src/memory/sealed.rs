//! Segments without names: sealed memory that each process is handed as a descriptor, with the rights that it needs.
//!
//! The launcher creates each segment as a memfd, seals its size (nobody can truncate it under a reader, which would be a
//! SIGBUS), and opens it twice: for writing and read-only. A process inherits one of the two, or neither; a read-only
//! descriptor cannot be mapped for writing. Descriptors are closed as soon as they are mapped.

use crate::memory::{Region, RegionError, Words};
use crate::os::process;
use nix::fcntl::{FcntlArg, FdFlag, SealFlag, fcntl};
use nix::sys::stat::{Mode, fchmod};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// What a process may do with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Map it read-only.
    Read,
    /// Map it for reading and writing.
    Write,
}

/// A segment that a process is handed as an open descriptor instead of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handle {
    /// The segment's name within the run.
    pub what: String,
    /// The descriptor's number, the same in the launcher and in each process that inherits it.
    pub fd: i32,
    /// Whether it can be mapped for writing.
    pub writable: bool,
}

/// A segment's memory in the launcher: both descriptors, which children can inherit.
pub struct Shared {
    /// The segment's name within the run.
    pub what: String,
    write: File,
    read: File,
}

impl Shared {
    /// Creates a sealed segment of that many zeroed words. `what` is its name within the run, `name` its full name, for
    /// messages and for `/proc`.
    ///
    /// # Errors
    /// Not enough memory, or what the system refused.
    pub fn create(
        what: &str,
        name: String,
        words: usize,
        prefault: bool,
    ) -> Result<(Self, Words), RegionError> {
        let (region, write) = Region::memfd_and_file(&name, words, prefault)?;
        let os = |what| {
            let name = name.clone();
            move |source: io::Error| RegionError::Os { name, what, source }
        };
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&write, FcntlArg::F_ADD_SEALS(seals)).map_err(|e| os("seal it")(e.into()))?;
        // Opened anew, not duplicated: a duplicate would keep the right to write.
        let read =
            File::open(format!("/proc/self/fd/{}", write.as_raw_fd())).map_err(os("open it read-only"))?;
        // Who has the one could open it anew for writing in the same way: landlock does not look at memory without a name. From here on
        // nobody can but root, and who has it open.
        fchmod(&write, Mode::S_IRUSR).map_err(|e| os("make it read-only")(e.into()))?;
        Ok((Self { what: what.to_owned(), write, read }, region.words()))
    }

    /// A segment that has a name as well, read-only for everybody: the control segment.
    ///
    /// # Errors
    /// What the system refused.
    pub fn read_only(what: &str, path: &str) -> io::Result<Self> {
        Ok(Self { what: what.to_owned(), write: File::open(path)?, read: File::open(path)? })
    }

    /// A segment that has a name as well, and that the process which is handed the right to write may write.
    ///
    /// # Errors
    /// What the system refused.
    pub fn named(what: &str, path: &str) -> io::Result<Self> {
        let write = File::options().read(true).write(true).open(path)?;
        Ok(Self { what: what.to_owned(), write, read: File::open(path)? })
    }

    /// The descriptor for that access.
    pub fn file(&self, access: Access) -> &File {
        match access {
            Access::Read => &self.read,
            Access::Write => &self.write,
        }
    }

    /// Both as the plan lists them.
    pub fn handles(&self) -> [Handle; 2] {
        [(&self.write, true), (&self.read, false)].map(|(file, writable)| Handle {
            what: self.what.clone(),
            fd: file.as_raw_fd(),
            writable,
        })
    }
}

/// Lets the children that are started while `start` runs inherit these descriptors and the standard three, and no others: not
/// either what this process was given by accident, by a shell for example. Nobody inherits them afterwards.
///
/// Whether a descriptor is inherited is a property of the whole process. One call at a time is therefore let through; a thread
/// that starts a child by other means meanwhile hands these descriptors to it too.
///
/// # Errors
/// What the system refused, or what `start` returns.
pub fn inherited_by<T>(files: &[&File], start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let set = |flag: FdFlag| {
        files
            .iter()
            .try_for_each(|file| fcntl(file.as_fd(), FcntlArg::F_SETFD(flag)).map(drop))
            .map_err(io::Error::from)
    };
    // Two at once would take each other's descriptors back, and hand them to each other's children. Nothing is kept under the
    // lock, so one that panicked left nothing half done.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    process::keep_descriptors();
    set(FdFlag::empty())?;
    let started = start();
    set(FdFlag::FD_CLOEXEC)?;
    started
}

/// Takes an inherited descriptor of the plan: each at most once.
///
/// # Errors
/// If there is no such open descriptor.
pub fn take(handle: &Handle) -> io::Result<File> {
    // SAFETY: the number comes from the plan of the launcher that started this process and left this descriptor open for
    // it. Nothing else in this process knows it: the standard library opens none below it by itself, and
    // `Attached`, the only caller beside whoever opens the control segment, asks for each segment once. Should the number be wrong all the same, the
    // check below finds that it is not open, before anything is done with it.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(handle.fd) };
    fcntl(borrowed, FcntlArg::F_GETFD)?;
    // SAFETY: as above; it is open.
    Ok(unsafe { OwnedFd::from_raw_fd(handle.fd) }.into())
}
