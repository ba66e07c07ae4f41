//! System calls of this crate, with their errors.

use core::time::Duration;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Converts the result of a system call that returns -1 and sets `errno` on an error.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

pub(crate) fn c_string(name: impl Into<Vec<u8>>) -> io::Result<CString> {
    CString::new(name).map_err(io::Error::from)
}

pub(crate) fn effective_user() -> u32 {
    // SAFETY: the call takes nothing and always succeeds.
    unsafe { libc::geteuid() }
}

/// Waits until a file descriptor is readable, at most for `timeout`, rounded up to milliseconds.
/// May return early.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<()> {
    let millis = i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
    let mut polled = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which is ours and outlives the call.
    match checked(unsafe { libc::poll(&raw mut polled, 1, millis) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}
