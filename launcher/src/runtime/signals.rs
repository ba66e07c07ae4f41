//! Ctrl-C and its relatives, as something to poll.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Counts requests to end: the first one ends the run in order, the second one at once.
pub struct Signals {
    stream: UnixStream,
}

impl Signals {
    /// From now on SIGINT, SIGTERM and SIGHUP no longer kill this process but can be asked for here.
    ///
    /// # Errors
    /// If the system refuses a pipe or a handler.
    pub fn catch() -> io::Result<Self> {
        let (stream, write) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Self { stream })
    }

    /// How many came since the last call.
    pub fn take(&self) -> usize {
        let mut bytes = [0; 16];
        (&self.stream).read(&mut bytes).unwrap_or(0)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
