//! Privileges: no capabilities, and none to be gained.

use nix::sys::prctl;
use std::io;

/// What `capset` takes first: version 3 of the call, for the calling thread.
#[repr(C)]
struct Header {
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

/// From now on executing something gives no rights that one does not have.
pub(super) fn gain_none() -> io::Result<()> {
    Ok(prctl::set_no_new_privs()?)
}

/// Gives up all capabilities, for the calling thread and those that it starts. Nothing for who has
/// none.
pub(super) fn drop_capabilities() -> io::Result<()> {
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [Capabilities { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: both pointers are to live locals of the layout that version 3 of the call reads; it
    // writes only `version`, and only if it does not know it, which goes into a copy of ours that
    // nobody reads.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives up everything that root has and others do not, for good.
pub(crate) fn give_up() -> io::Result<()> {
    gain_none()?;
    drop_capabilities()
}
