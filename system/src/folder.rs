//! Safe file access in a directory that other users may write: a symbolic link, a named pipe or a
//! device under an expected name is an error, is not followed and cannot block.
//!
//! Writing goes through [`OpenDir`]: the directory is opened once, and its files are made under a
//! random draft name (`O_EXCL`, `O_NOFOLLOW`) and renamed inside the open directory. Reading goes
//! through [`open_regular`].

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, posix_fallocate, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};
use thiserror::Error;

/// The suffix of the names of unfinished files (drafts).
pub const DRAFT_SUFFIX: &str = ".new";

/// Maximum number of draft names tried; one is enough unless it is guessed.
const MAX_NAMES: u32 = 16;

/// Flags to open a file that may be of any kind: no link is followed, and nothing is waited for.
const UNTRUSTED: OFlag =
    OFlag::O_NOFOLLOW.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY).union(OFlag::O_CLOEXEC);

/// The error that a file is a link, a pipe or a device instead of a regular file. It is the inner
/// error of an [`io::Error`] ([`not_regular`] finds it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotRegular {
    /// The file is a symbolic link.
    #[error("a symbolic link, not a regular file: links in a folder of results are not followed")]
    Link,
    /// The file is a named pipe, a socket, a device or a directory.
    #[error("not a regular file")]
    Kind,
    /// The file has several hard links, and a write would change the file under all its names.
    #[error("a file with several names (hard links): writing into it would change the others")]
    Names,
}

impl From<NotRegular> for io::Error {
    fn from(error: NotRegular) -> Self {
        Self::new(ErrorKind::InvalidInput, error)
    }
}

/// Returns the [`NotRegular`] error that an I/O error contains; `None` if it contains none.
pub fn not_regular(error: &io::Error) -> Option<NotRegular> {
    error.get_ref()?.downcast_ref().copied()
}

/// Opens a regular file for reading. A symbolic link as the last part of the path is not followed,
/// and the call does not block.
///
/// # Errors
/// [`NotRegular`] for every other kind of file; an error of the system.
pub fn open_regular(path: &Path) -> io::Result<File> {
    check_regular(open(path, OFlag::O_RDONLY | UNTRUSTED, Mode::empty()))
}

/// Reads a whole regular file of at most `max` bytes.
pub fn read_regular(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let (file, mut bytes) = (open_regular(path)?, Vec::new());
    let is_larger = file.metadata()?.len() > max;
    // The file may grow while it is read.
    if is_larger || file.take(max.saturating_add(1)).read_to_end(&mut bytes)? as u64 > max {
        return Err(io::Error::other(format!("larger than {max} bytes")));
    }
    Ok(bytes)
}

/// Opens for appending a regular file that has no other hard link, and creates it if it does not
/// exist. A symbolic link as the last part of the path is not followed.
///
/// # Errors
/// [`NotRegular`]; an error of the system.
pub fn append_regular(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT | UNTRUSTED;
    let file = check_regular(open(path, flags, default_mode()))?;
    // A file that was removed after it was opened has 0.
    if file.metadata()?.nlink() > 1 { Err(NotRegular::Names.into()) } else { Ok(file) }
}

/// An open directory whose files are accessed through its descriptor, even if it is moved.
#[derive(Debug)]
pub struct OpenDir {
    descriptor: OwnedFd,
}

impl OpenDir {
    /// Opens a directory whose files are then accessed through its descriptor. A symbolic link as
    /// the last part of the path is not followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match open(path, flags, Mode::empty()) {
            Ok(descriptor) => Ok(Self { descriptor }),
            Err(Errno::ENOTDIR | Errno::ELOOP) if path.is_symlink() => Err(io::Error::new(
                ErrorKind::NotADirectory,
                "a symbolic link to a folder: name the folder itself",
            )),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates an unfinished file under a random name; [`Draft::save`] renames it to `name`.
    pub fn draft(&self, name: impl AsRef<OsStr>) -> io::Result<Draft<'_>> {
        let name = file_name(name.as_ref())?.to_owned();
        for _ in 0..MAX_NAMES {
            let mut draft = OsString::from(".");
            draft.push(&name);
            draft.push(format!(".{:016x}{DRAFT_SUFFIX}", RandomState::new().hash_one(&name)));
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
            let flags = flags | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
            match openat(&self.descriptor, draft.as_os_str(), flags, default_mode()) {
                Ok(file) => return Ok(Draft { folder: self, name, draft: Some(draft), file: file.into() }),
                Err(Errno::EEXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EEXIST.into())
    }

    /// Writes a file of the directory atomically: completely or not at all. An existing file or
    /// link of that name is replaced, not written to. With `synced` the bytes are on disk before
    /// the file has its name.
    pub fn write_whole(&self, name: impl AsRef<OsStr>, bytes: &[u8], synced: bool) -> io::Result<()> {
        let mut draft = self.draft(name)?;
        draft.write_all(bytes)?;
        if synced {
            draft.file.sync_data()?;
        }
        draft.save()
    }

    /// Reserves `bytes` bytes of the disk in an unnamed file, so that they cannot be taken by
    /// others. They are free again when the file is dropped or its process dies.
    pub fn reserve(&self, bytes: u64) -> io::Result<File> {
        let flags = OFlag::O_TMPFILE | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let file = openat(&self.descriptor, ".", flags, Mode::from_bits_truncate(0o600))?;
        posix_fallocate(&file, 0, i64::try_from(bytes).map_err(|_| ErrorKind::FileTooLarge)?)?;
        Ok(file.into())
    }

    /// Removes a file of the directory; of a link, the link itself. A missing file is not an error.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        match unlinkat(&self.descriptor, file_name(name.as_ref())?, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// An unfinished file under a random name, which is removed again unless it is saved.
#[derive(Debug)]
pub struct Draft<'a> {
    folder: &'a OpenDir,
    name: OsString,
    /// The random name; `None` once it is saved.
    draft: Option<OsString>,
    file: File,
}

impl Draft<'_> {
    /// Returns the unfinished file, to truncate it or to write at an offset.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Renames the finished file to its final name, replacing an existing one.
    ///
    /// # Errors
    /// An error of the system, such as a directory of that name. The draft is removed then.
    pub fn save(mut self) -> io::Result<()> {
        let Some(draft) = self.draft.take() else { return Ok(()) };
        let folder = &self.folder.descriptor;
        renameat(folder, draft.as_os_str(), folder, self.name.as_os_str()).map_err(|error| {
            let _ = self.folder.remove(&draft);
            error.into()
        })
    }
}

impl Write for Draft<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if let Some(draft) = self.draft.take() {
            let _ = self.folder.remove(draft);
        }
    }
}

/// Read and write access for all, as far as the process's umask allows.
const fn default_mode() -> Mode {
    Mode::from_bits_truncate(0o666)
}

fn check_regular(opened: nix::Result<OwnedFd>) -> io::Result<File> {
    let file = match opened {
        Ok(file) => File::from(file),
        Err(Errno::ELOOP) => return Err(NotRegular::Link.into()),
        // A socket; a pipe without a reader; a directory opened for writing.
        Err(Errno::ENXIO | Errno::ENODEV | Errno::EISDIR) => return Err(NotRegular::Kind.into()),
        Err(error) => return Err(error.into()),
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(NotRegular::Kind.into()) }
}

/// Returns the name if it is a plain file name without a path.
fn file_name(name: &OsStr) -> io::Result<&OsStr> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(component)), None) if component == name => Ok(name),
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "not the name of a file in this folder")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::mkfifo;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use tempfile::TempDir;

    /// Makes a directory with traps of another user, and a file outside that must not change.
    fn folder_with_traps() -> (TempDir, PathBuf, PathBuf) {
        let outside = tempfile::tempdir().unwrap();
        let (victim, folder) = (outside.path().join("victim"), outside.path().join("folder"));
        fs::write(&victim, "precious").unwrap();
        fs::create_dir(&folder).unwrap();
        symlink(&victim, folder.join("link")).unwrap();
        symlink(outside.path().join("not-there"), folder.join("dangling")).unwrap();
        fs::hard_link(&victim, folder.join("hard")).unwrap();
        mkfifo(&folder.join("fifo"), Mode::S_IRWXU).unwrap();
        drop(std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap());
        fs::create_dir(folder.join("folder")).unwrap();
        (outside, victim, folder)
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no openat")]
    fn written_files_replace_traps_and_follow_none() {
        let (outside, victim, folder) = folder_with_traps();
        let open = OpenDir::open(&folder).unwrap();
        for name in ["link", "dangling", "hard", "fifo", "socket", "new"] {
            open.write_whole(name, b"ours", name == "new").unwrap();
            assert!(fs::symlink_metadata(folder.join(name)).unwrap().is_file(), "{name}");
            assert_eq!(fs::read(folder.join(name)).unwrap(), b"ours", "{name}");
        }
        assert!(open.write_whole("folder", b"ours", false).is_err());
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert!(!outside.path().join("not-there").exists());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 7, "no draft is left");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no openat")]
    fn opened_files_are_regular_and_have_one_name() {
        let (_outside, victim, folder) = folder_with_traps();
        for (name, wrong) in [
            ("link", NotRegular::Link),
            ("dangling", NotRegular::Link),
            ("fifo", NotRegular::Kind),
            ("socket", NotRegular::Kind),
            ("folder", NotRegular::Kind),
        ] {
            for error in [
                append_regular(&folder.join(name)).unwrap_err(),
                open_regular(&folder.join(name)).unwrap_err(),
                read_regular(&folder.join(name), 100).unwrap_err(),
            ] {
                assert_eq!(not_regular(&error), Some(wrong), "{name}: {error}");
            }
        }
        assert_eq!(not_regular(&append_regular(&folder.join("hard")).unwrap_err()), Some(NotRegular::Names));
        assert_eq!(read_regular(&folder.join("hard"), 8).unwrap(), b"precious");
        assert!(read_regular(&folder.join("hard"), 7).is_err());
        append_regular(&folder.join("log")).unwrap().write_all(b"a").unwrap();
        append_regular(&folder.join("log")).unwrap().write_all(b"b").unwrap();
        assert_eq!(fs::read(folder.join("log")).unwrap(), b"ab");
        assert_eq!(fs::read(victim).unwrap(), b"precious");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no openat")]
    fn linked_directories_and_names_with_paths_are_refused() {
        let (outside, _, folder) = folder_with_traps();
        symlink(&folder, outside.path().join("elsewhere")).unwrap();
        let error = OpenDir::open(&outside.path().join("elsewhere")).unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
        let open = OpenDir::open(&folder).unwrap();
        for name in ["", ".", "..", "../victim", "/tmp/x", "folder/x", "x/"] {
            assert!(open.draft(name).is_err() && open.remove(name).is_err(), "{name}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no openat")]
    fn drafts_that_are_not_saved_leave_nothing() {
        let (_outside, _, folder) = folder_with_traps();
        let open = OpenDir::open(&folder).unwrap();
        let before = fs::read_dir(&folder).unwrap().count();
        let mut draft = open.draft("new").unwrap();
        draft.write_all(b"half").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), before + 1);
        drop(draft);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), before);
        if let Ok(reserved) = open.reserve(5_000) {
            assert_eq!(reserved.metadata().unwrap().len(), 5_000);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), before, "a reserved file has no name");
        }
        // The directory is still accessible after it is moved.
        fs::rename(&folder, folder.with_file_name("moved")).unwrap();
        open.write_whole("new", b"whole", false).unwrap();
        assert_eq!(fs::read(folder.with_file_name("moved").join("new")).unwrap(), b"whole");
    }
}
