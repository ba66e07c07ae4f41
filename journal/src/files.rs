//! Opening files of a directory that another user may have filled: symbolic links, pipes and
//! devices are refused, and nothing blocks.

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Flags for a file that is not followed if it is a link, and never waited for.
const SAFE_FLAGS: OFlag =
    OFlag::O_NOFOLLOW.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY).union(OFlag::O_CLOEXEC);

pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    regular(open(path, SAFE_FLAGS | OFlag::O_RDONLY, Mode::empty()))
}

/// Opens a regular file of a directory for reading and writing, and creates it if it does not
/// exist. A file with several names (hard links) is refused, because writing would change the
/// others.
///
/// # Errors
/// A directory that is a link, any other kind of file, or the system's refusal.
pub(crate) fn open_for_update(dir: &Path, name: &str) -> io::Result<File> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let dir = open(dir, flags, Mode::empty())?;
    let file =
        openat(&dir, name, SAFE_FLAGS | OFlag::O_RDWR | OFlag::O_CREAT, Mode::from_bits_truncate(0o666));
    let file = regular(file)?;
    if file.metadata()?.nlink() > 1 {
        Err(refused("a file with several names (hard links)"))
    } else {
        Ok(file)
    }
}

fn regular(opened: nix::Result<OwnedFd>) -> io::Result<File> {
    let file = match opened {
        Ok(file) => File::from(file),
        Err(Errno::ELOOP) => return Err(refused("a symbolic link, not a regular file")),
        // A socket, a pipe without a reader, or a directory opened for writing.
        Err(Errno::ENXIO | Errno::ENODEV | Errno::EISDIR) => return Err(refused("not a regular file")),
        Err(error) => return Err(error.into()),
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused("not a regular file")) }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_file_with_one_name_is_opened_for_update() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        open_for_update(folder.path(), "new").unwrap();
        open_for_update(folder.path(), "new").unwrap();
        std::fs::hard_link(path("new"), path("second name")).unwrap();
        symlink(path("new"), path("link")).unwrap();
        for (name, why) in
            [("new", "several names"), ("second name", "several names"), ("link", "a symbolic link")]
        {
            let error = open_for_update(folder.path(), name).unwrap_err().to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
        symlink(folder.path(), path("folder")).unwrap();
        assert!(open_for_update(&path("folder"), "file").is_err(), "a folder that is a link");
    }
}
