//! Folders beside the segments in `/dev/shm`: for transports that make files of their own.
//!
//! POSIX shared memory has no folders, so what such a transport maps stands beside its folder, under names that begin with the folder's
//! and a dot. Both go together: [`unlink`](super::unlink).

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

/// Removes a folder with all that is in it, and before it what stands beside it: while anything of it is there, the folder is.
/// Links are removed and not followed.
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

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::memory::unlink;

    #[test]
    fn a_folder_goes_with_what_stands_beside_it_and_nothing_else() {
        let name = format!("bulkhead-unit-{}-folder", std::process::id());
        let is_there = |name: &str| path(name).symlink_metadata().is_ok();
        create(&name).unwrap();
        assert!(create(&name).is_err(), "it is there");
        std::fs::create_dir(path(&name).join("nodes")).unwrap();
        std::fs::write(path(&name).join("nodes/1"), "node").unwrap();
        std::os::unix::fs::symlink("/dev/null", path(&name).join("link")).unwrap();
        let (beside, other) = (format!("{name}.data"), format!("{name}-2"));
        [&beside, &other].iter().for_each(|name| std::fs::write(path(name), "memory").unwrap());
        unlink(&name).unwrap();
        assert!(!is_there(&name) && !is_there(&beside) && is_there(&other));
        unlink(&name).unwrap();
        unlink(&other).unwrap();
        assert!(std::path::Path::new("/dev/null").exists());
    }
}
