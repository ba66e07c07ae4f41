//! The lock of a journal's directory: one writer at a time.

use crate::error::JournalError;
use crate::files::open_for_update;
use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::sync::Arc;

/// The name of the file in a journal's directory whose lock a writer holds.
pub const LOCK_FILE: &str = "lock";

/// The lock of a journal's directory, which only one writer holds. A writer's own is unlocked
/// explicitly: closing the file is not enough if a child process inherited the descriptor and has
/// not called `exec` yet. An inherited one belongs to the process that has taken it.
pub(crate) enum DirLock {
    Own(File),
    Inherited(#[expect(dead_code, reason = "open for as long as the writer")] Arc<File>),
}

impl Drop for DirLock {
    fn drop(&mut self) {
        if let Self::Own(file) = self {
            drop(file.unlock());
        }
    }
}

/// Locks a journal's directory until the lock is dropped or the process dies.
pub(crate) fn lock(folder: &Path) -> Result<DirLock, JournalError> {
    lock_file(folder).map(DirLock::Own)
}

/// Creates a journal's directory and locks it for one writer. Returns the file that holds the lock:
/// the kernel releases it when the last process that has the file open closes it or dies.
///
/// A process that starts writers hands the file down to them
/// ([`crate::Options::inherited_lock`]), so that no other process can take the lock between a
/// crashed writer and its successor. It must prove a writer's death before it starts the next one,
/// because the lock no longer separates the two.
///
/// # Errors
/// [`JournalError::Locked`], or what the system refused.
pub fn lock_directory(folder: &Path) -> Result<File, JournalError> {
    fs::create_dir_all(folder).map_err(JournalError::io(folder, "make the folder"))?;
    lock_file(folder)
}

fn lock_file(folder: &Path) -> Result<File, JournalError> {
    let path = folder.join(LOCK_FILE);
    let file = open_for_update(folder, LOCK_FILE).map_err(JournalError::io(&path, "open it"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::Locked(folder.to_owned())),
        Err(TryLockError::Error(source)) => Err(JournalError::io(&path, "lock it")(source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlock_works_while_child_holds_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock_file(folder.path()).unwrap();
        assert!(matches!(lock(folder.path()), Err(JournalError::Locked(_))));
        let inherited = held.try_clone().unwrap();
        drop(DirLock::Own(held));
        assert!(lock(folder.path()).is_ok());
        drop(inherited);
    }
}
