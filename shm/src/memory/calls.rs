//! System calls of this crate, with their errors.

use std::ffi::CString;
use std::io;

/// The result of a call that returns -1 and sets `errno` on an error.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A path or a name for the kernel.
pub(crate) fn c_string(name: impl Into<Vec<u8>>) -> io::Result<CString> {
    CString::new(name).map_err(io::Error::from)
}

/// The user whose rights this process has.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: the call takes nothing and always succeeds.
    unsafe { libc::geteuid() }
}
