//! The journal's disk operations, one system call each, which tests can make fail.

use crate::error::JournalError;
use crate::segment;
use nix::errno::Errno;
use nix::fcntl::posix_fallocate;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A kind of system call of the journal that changes the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskOperation {
    /// Creates a new file (`O_EXCL`).
    Create,
    /// Reserves all blocks of a file.
    Reserve,
    /// Writes to a file.
    Write,
    /// Syncs a file (`fdatasync`).
    Sync,
    /// Syncs a directory (`fsync`).
    SyncDir,
    /// Renames a file within the directory.
    Rename,
    /// Removes a file.
    Remove,
}

impl DiskOperation {
    /// Returns the operation's description for error messages such as "cannot …".
    pub const fn description(self) -> &'static str {
        match self {
            Self::Create => "create it",
            Self::Reserve => "reserve its space on the disk",
            Self::Write => "write it",
            Self::Sync => "sync it (fdatasync)",
            Self::SyncDir => "sync the directory (fsync)",
            Self::Rename => "rename it",
            Self::Remove => "remove it",
        }
    }
}

/// A hook that is called before each system call of the journal that changes the disk. [`OsDisk`]
/// lets all of them proceed. A test may fail one, or inspect the disk at that moment. Appends call
/// it only under [`crate::Durability::EveryRecord`].
pub trait Disk: Send + Sync {
    /// Inspects a system call that is about to change the disk; an error makes the call fail.
    ///
    /// # Errors
    /// The error that the journal gets in place of the system call.
    fn before(&self, operation: DiskOperation, path: &Path) -> io::Result<()>;
}

/// The operating system's disk, on which every journal operation proceeds.
pub struct OsDisk;

impl Disk for OsDisk {
    fn before(&self, _: DiskOperation, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// A disk whose syncs of the log fail with EIO after a number of successful ones. For tests that a
/// program built on a journal stops then.
#[derive(Debug)]
pub struct FailingDisk {
    successes: u64,
    attempts: AtomicU64,
}

impl FailingDisk {
    /// Creates a disk on which the first `successes` syncs of the log succeed and all later ones
    /// fail.
    pub const fn after(successes: u64) -> Self {
        Self { successes, attempts: AtomicU64::new(0) }
    }

    /// Returns the number of attempted syncs.
    pub fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::Relaxed)
    }
}

impl Disk for FailingDisk {
    fn before(&self, operation: DiskOperation, path: &Path) -> io::Result<()> {
        let is_log = segment::index_of(path).is_some();
        if operation == DiskOperation::Sync
            && is_log
            && self.attempts.fetch_add(1, Ordering::Relaxed) >= self.successes
        {
            return Err(Errno::EIO.into());
        }
        Ok(())
    }
}

fn run<T>(
    disk: &dyn Disk,
    operation: DiskOperation,
    path: &Path,
    call: impl FnOnce() -> io::Result<T>,
) -> Result<T, JournalError> {
    disk.before(operation, path)
        .and_then(|()| call())
        .map_err(JournalError::io(path, operation.description()))
}

pub(crate) fn create(disk: &dyn Disk, path: &Path) -> Result<File, JournalError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    run(disk, DiskOperation::Create, path, || options.open(path))
}

/// Reserves the disk blocks of a file. Without them a store to its mapping would raise SIGBUS on a
/// full disk.
pub(crate) fn reserve(disk: &dyn Disk, path: &Path, file: &File, bytes: u64) -> Result<(), JournalError> {
    run(disk, DiskOperation::Reserve, path, || Ok(posix_fallocate(file.as_fd(), 0, bytes as i64)?))
}

pub(crate) fn write(disk: &dyn Disk, path: &Path, mut file: &File, bytes: &[u8]) -> Result<(), JournalError> {
    run(disk, DiskOperation::Write, path, || file.write_all(bytes))
}

pub(crate) fn sync(disk: &dyn Disk, path: &Path, file: &File) -> Result<(), JournalError> {
    run(disk, DiskOperation::Sync, path, || file.sync_data())
}

pub(crate) fn sync_dir(disk: &dyn Disk, path: &Path) -> Result<(), JournalError> {
    run(disk, DiskOperation::SyncDir, path, || File::open(path)?.sync_all())
}

pub(crate) fn rename(disk: &dyn Disk, from: &Path, to: &Path) -> Result<(), JournalError> {
    run(disk, DiskOperation::Rename, from, || fs::rename(from, to))
}

pub(crate) fn remove(disk: &dyn Disk, path: &Path) -> Result<(), JournalError> {
    run(disk, DiskOperation::Remove, path, || match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_file_counts_as_removed() {
        let folder = tempfile::tempdir().unwrap();
        remove(&OsDisk, &folder.path().join("missing")).unwrap();
        let error = remove(&OsDisk, folder.path()).unwrap_err().to_string();
        assert!(error.contains("cannot remove it"), "{error}");
    }
}
