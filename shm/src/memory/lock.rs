//! Tests by a file lock whether a process lives: held while a file is open, and queried without
//! taking it.
//!
//! It belongs to the open file and not to the process (an OFD lock). The kernel releases it when
//! the last descriptor of that open file is closed, so also when its process is killed. It works
//! across PID namespaces, where a process id is meaningless.

use super::calls::checked;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The byte of a file that its owner locks. The bytes after it are for the users of the file; a
/// file does not need to have a byte for it to be locked.
const OWNER_BYTE: u64 = 0;

const fn byte(kind: i32, byte: u64) -> libc::flock {
    let (whence, start) = (libc::SEEK_SET as i16, byte as i64);
    libc::flock { l_type: kind as i16, l_whence: whence, l_start: start, l_len: 1, l_pid: 0 }
}

fn call(file: &File, command: i32, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open, and these commands take a lock, which they may change.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut *lock) }).map(drop)
}

/// Takes the shared lock of a file until the file is closed. Any number of open files can hold it
/// at once. The file must be open for reading.
///
/// # Errors
/// What the system refused.
pub fn lock_shared(file: &File) -> io::Result<()> {
    call(file, libc::F_OFD_SETLK, &mut byte(libc::F_RDLCK, OWNER_BYTE))
}

/// Takes the exclusive lock of a file until the file is closed, if no other open file holds it.
/// Returns `false` if another open file holds it. The file must be open for writing.
///
/// # Errors
/// What the system refused.
pub fn try_lock(file: &File) -> io::Result<bool> {
    try_lock_byte(file, OWNER_BYTE)
}

/// Takes the exclusive lock of one byte of a file until the file is closed. Returns `false` if
/// another open file holds it. Byte 0 is the owner's: see [`try_lock`]. The file must be open for
/// writing.
pub(crate) fn try_lock_byte(file: &File, at: u64) -> io::Result<bool> {
    match call(file, libc::F_OFD_SETLK, &mut byte(libc::F_WRLCK, at)) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns `true` if another open file holds the lock of the file. Takes no lock: two concurrent
/// queries do not see each other.
///
/// # Errors
/// What the system refused.
pub fn is_locked(file: &File) -> io::Result<bool> {
    is_byte_locked(file, OWNER_BYTE)
}

/// Returns `true` if another open file holds the lock of one byte of the file.
pub(crate) fn is_byte_locked(file: &File, at: u64) -> io::Result<bool> {
    let mut asked = byte(libc::F_WRLCK, at);
    call(file, libc::F_OFD_GETLK, &mut asked)?;
    Ok(i32::from(asked.l_type) != libc::F_UNLCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no file locks")]
    fn shared_lock_is_visible_until_its_file_closes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::open(file.path()).unwrap();
        let (first, second, other) = (open(), open(), open());
        assert!(!is_locked(&other).unwrap());
        lock_shared(&first).unwrap();
        lock_shared(&second).unwrap();
        assert!(is_locked(&other).unwrap() && is_locked(&first).unwrap(), "the second's");
        drop(second);
        assert!(!is_locked(&first).unwrap(), "its own is not another's");
        assert!(is_locked(&other).unwrap());
        drop(first);
        assert!(!is_locked(&other).unwrap());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no file locks")]
    fn exclusive_lock_excludes_every_other() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::options().read(true).write(true).open(file.path()).unwrap();
        let (first, second, third) = (open(), open(), open());
        assert!(try_lock(&first).unwrap());
        assert!(!try_lock(&second).unwrap() && lock_shared(&second).is_err() && is_locked(&second).unwrap());
        drop(first);
        lock_shared(&second).unwrap();
        assert!(!try_lock(&third).unwrap());
        drop(second);
        assert!(try_lock(&third).unwrap());
    }
}
