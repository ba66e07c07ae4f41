//! Directories in `/dev/shm`, for transports that create files of their own.
//!
//! POSIX shared memory has no directories, so such a transport maps files next to its directory,
//! whose names begin with the directory's name and a dot. [`unlink`](super::unlink) removes both.

use super::{RegionError, SHM_DIR};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Creates a directory in `/dev/shm`, mode 0700.
///
/// # Errors
/// What the system refused (the name exists, no permission).
pub fn create(name: &str) -> Result<(), RegionError> {
    let made = std::fs::DirBuilder::new().mode(0o700).create(path(name));
    made.map_err(RegionError::os(name, "create a directory of that name"))
}

/// Returns the path of a directory in `/dev/shm`.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(format!("{SHM_DIR}/{name}"))
}

/// Removes the files next to a directory, then the directory with its contents. Links are removed
/// and not followed; what is gone already is ignored.
pub(super) fn remove(name: &str) -> io::Result<()> {
    let beside = format!("{name}.");
    for entry in std::fs::read_dir(SHM_DIR)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&beside) && !entry.file_type()?.is_dir() {
            unless_gone(std::fs::remove_file(entry.path()))?;
        }
    }
    unless_gone(std::fs::remove_dir_all(path(name)))
}

fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
