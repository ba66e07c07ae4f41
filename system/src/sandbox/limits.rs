//! Resource limits of a sandboxed role: open files, file size, core files.

use crate::sandbox::privileges;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use std::io;

/// Maximum size in bytes of the file with a sandboxed process's stderr.
pub const STDERR_BYTES: u64 = 1 << 20;

/// Limits on a sandboxed process's resources, such as its number of open files; the process cannot
/// raise the limits again.
pub type ResourceLimits = &'static [(Resource, u64)];

/// The resource limits of a process that has opened all its files.
pub(super) const NO_MORE: ResourceLimits = &[
    // The only number below the limit is in use; `poll` needs one for the descriptor that it
    // watches.
    (Resource::RLIMIT_NOFILE, 1),
    (Resource::RLIMIT_FSIZE, STDERR_BYTES),
    (Resource::RLIMIT_CORE, 0),
];

/// The resource limits of a process that keeps opening files.
pub(super) const FILES: ResourceLimits = &[
    // The descriptors handed over, until they are mapped; then a lock, a folder, a snapshot and a
    // few segments.
    (Resource::RLIMIT_NOFILE, 256),
    // A journal segment has a few megabytes; a snapshot is as large as the saved state.
    (Resource::RLIMIT_FSIZE, 4 << 30),
    (Resource::RLIMIT_CORE, 0),
];

/// Lowers the resource limits of this process, and drops the capability to raise them again.
pub(crate) fn set(limits: &[(Resource, u64)]) -> io::Result<()> {
    crate::process::ignore_signal(Signal::SIGXFSZ)?;
    for (resource, limit) in limits {
        let value = (*limit).min(getrlimit(*resource)?.1);
        setrlimit(*resource, value, value)?;
    }
    privileges::drop_capabilities()
}
