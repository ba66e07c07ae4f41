//! Dropping capabilities and preventing new ones.

use nix::sys::prctl;
use std::io;

/// The first argument of `capset`: version 3 of the call, for the calling thread.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

/// 32 capabilities; the call takes two.
#[repr(C)]
#[derive(Clone, Copy)]
struct Capabilities {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const VERSION_3: u32 = 0x2008_0522;

/// Sets `no_new_privs`: executing a program no longer grants privileges.
pub(super) fn set_no_new_privs() -> io::Result<()> {
    Ok(prctl::set_no_new_privs()?)
}

/// Drops all capabilities of the calling thread and those that it starts.
pub(super) fn drop_capabilities() -> io::Result<()> {
    let header = CapabilityHeader { version: VERSION_3, pid: 0 };
    let none = [Capabilities { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: both pointers are to live locals of the layout that version 3 of the call reads; it
    // writes only `version`, and only if it is unknown, into a local copy that is not read.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Drops all privileges of root permanently.
pub(crate) fn drop_all() -> io::Result<()> {
    set_no_new_privs()?;
    drop_capabilities()
}
