//! Reads files that a user names, of any kind: a pipe may have no writer and a device no end, so
//! every read can be interrupted by Ctrl-C and has a maximum size.

use crate::host::signals;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Poll interval for Ctrl-C during a read, in milliseconds.
const POLL_MS: u16 = 50;

/// A file that a user named; reading it stops when the process receives a termination signal.
#[derive(Debug)]
pub struct UserFile(File);

impl UserFile {
    /// Opens a file of any kind for reading, without blocking on a pipe that has no writer.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?))
    }

    /// Reads a complete file that a user named as text, up to `max_bytes` bytes.
    pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
        let mut text = String::new();
        // Bounded, whatever the file is: /dev/zero has no end.
        Self::open(path)?.take(max_bytes + 1).read_to_string(&mut text)?;
        if text.len() as u64 > max_bytes {
            return Err(io::Error::other(format!("more than {max_bytes} bytes is too much for such a file")));
        }
        Ok(text)
    }
}

impl Read for UserFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if signals::is_end_requested() {
                // Not `ErrorKind::Interrupted`: readers try that again.
                return Err(io::Error::other("interrupted while it was read"));
            }
            let mut ready = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, PollTimeout::from(POLL_MS)) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match self.0.read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }
}
