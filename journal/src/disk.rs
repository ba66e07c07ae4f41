//! Disk operations of the journal, one system call a step, each of which tests can refuse.

use crate::error::JournalError;
use crate::segment;
use nix::errno::Errno;
use nix::fcntl::posix_fallocate;
use shm::sync::{AtomicU64, Ordering};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A system call that changes the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A new file, exclusively.
    Create,
    /// Reserving all of a file's blocks.
    Reserve,
    /// Writing into a file.
    Write,
    /// `fdatasync` of a file.
    Sync,
    /// `fsync` of a folder.
    SyncFolder,
    /// A rename within the folder.
    Rename,
    /// Removing a file.
    Remove,
}

impl Step {
    /// In a message: cannot …
    pub const fn what(self) -> &'static str {
        match self {
            Self::Create => "create it",
            Self::Reserve => "reserve its room on the disk",
            Self::Write => "write it",
            Self::Sync => "write it to the disk (fdatasync)",
            Self::SyncFolder => "write the folder to the disk (fsync)",
            Self::Rename => "rename it",
            Self::Remove => "remove it",
        }
    }
}

/// Is asked before each system call that changes the disk. [`Os`] lets all of them through; a test
/// refuses one, or looks at what is on the disk at that moment. Appends ask only under
/// [`crate::Durability::Each`].
pub trait Disk: Send + Sync {
    /// Lets the system call go on, or gives the error that it ends with.
    ///
    /// # Errors
    /// What the caller shall be told in its place.
    fn before(&self, step: Step, path: &Path) -> io::Result<()>;
}

/// The operating system's disk.
pub struct Os;

impl Disk for Os {
    fn before(&self, _: Step, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// A disk that takes so many syncs of the log and refuses all that follow, with EIO: to see that
/// what is built on a journal stops then.
#[derive(Debug)]
pub struct Refusing {
    takes: u64,
    asked: AtomicU64,
}

impl Refusing {
    /// One that takes so many.
    pub const fn behind(takes: u64) -> Self {
        Self { takes, asked: AtomicU64::new(0) }
    }

    /// How often it was asked.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Disk for Refusing {
    fn before(&self, step: Step, path: &Path) -> io::Result<()> {
        let is_log = segment::index_of(path).is_some();
        if step == Step::Sync && is_log && self.asked.fetch_add(1, Ordering::Relaxed) >= self.takes {
            return Err(Errno::EIO.into());
        }
        Ok(())
    }
}

fn step<T>(
    disk: &dyn Disk,
    step: Step,
    path: &Path,
    call: impl FnOnce() -> io::Result<T>,
) -> Result<T, JournalError> {
    disk.before(step, path).and_then(|()| call()).map_err(JournalError::io(path, step.what()))
}

/// A new file for reading and writing, mode 0600.
pub(crate) fn create(disk: &dyn Disk, path: &Path) -> Result<File, JournalError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    step(disk, Step::Create, path, || options.open(path))
}

/// Reserves the file's blocks now: later a full disk would be a SIGBUS.
pub(crate) fn reserve(disk: &dyn Disk, path: &Path, file: &File, bytes: u64) -> Result<(), JournalError> {
    step(disk, Step::Reserve, path, || Ok(posix_fallocate(file.as_fd(), 0, bytes as i64)?))
}

pub(crate) fn write(disk: &dyn Disk, path: &Path, mut file: &File, bytes: &[u8]) -> Result<(), JournalError> {
    step(disk, Step::Write, path, || file.write_all(bytes))
}

pub(crate) fn sync(disk: &dyn Disk, path: &Path, file: &File) -> Result<(), JournalError> {
    step(disk, Step::Sync, path, || file.sync_data())
}

pub(crate) fn sync_folder(disk: &dyn Disk, path: &Path) -> Result<(), JournalError> {
    step(disk, Step::SyncFolder, path, || File::open(path)?.sync_all())
}

pub(crate) fn rename(disk: &dyn Disk, from: &Path, to: &Path) -> Result<(), JournalError> {
    step(disk, Step::Rename, from, || fs::rename(from, to))
}

/// Removes a file. One that is gone already is no error.
pub(crate) fn remove(disk: &dyn Disk, path: &Path) -> Result<(), JournalError> {
    step(disk, Step::Remove, path, || match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    })
}
