//! Folders beside the segments in `/dev/shm`: for transports that make files of their own.
//!
//! POSIX shared memory has no folders, so what such a transport maps stands beside its folder,
//! under names that begin with the folder's and a dot. Both go together: [`unlink`](super::unlink).

use super::{RegionError, SHM_DIR};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Makes a folder, mode 0700.
///
/// # Errors
/// What the system refused (the name exists, no permission).
pub fn create(name: &str) -> Result<(), RegionError> {
    let made = std::fs::DirBuilder::new().mode(0o700).create(path(name));
    made.map_err(|source| RegionError::Os { name: name.into(), what: "make a folder of that name", source })
}

/// Where it is.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(format!("{SHM_DIR}/{name}"))
}

/// Removes a folder with all that is in it, and before it what stands beside it: while anything of
/// it is there, the folder is. Links are removed and not followed.
///
/// # Errors
/// What the system refused. What was gone meanwhile is no error.
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
