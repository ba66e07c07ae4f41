//! Resource limits of a sandboxed role: open files, file size, core files.

use crate::sandbox::privileges;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use std::io;

/// Maximum size in bytes of the file with a sandboxed process's stderr.
pub const STDERR_BYTES: u64 = 1 << 20;

/// A limit for a resource such as open files, which the process cannot raise again.
#[derive(Clone, Copy, Debug)]
pub struct ResourceLimit {
    /// The limited resource.
    pub resource: Resource,
    /// The limit.
    pub value: u64,
    /// The reason for the value.
    pub why: &'static str,
}

pub(crate) const NO_CORE_FILE: ResourceLimit =
    ResourceLimit { resource: Resource::RLIMIT_CORE, value: 0, why: "a core file is as large as its memory" };

/// The resource limits of a process that has opened all its files.
pub(super) const NO_MORE: &[ResourceLimit] = &[
    ResourceLimit {
        resource: Resource::RLIMIT_NOFILE,
        value: 1,
        why: "no descriptor more: the only place below the limit is taken; `poll` wants one for the one that it watches",
    },
    ResourceLimit {
        resource: Resource::RLIMIT_FSIZE,
        value: STDERR_BYTES,
        why: "what it says on stderr goes to a file",
    },
    NO_CORE_FILE,
];

/// The resource limits of a process that keeps opening files.
pub(super) const FILES: &[ResourceLimit] = &[
    ResourceLimit {
        resource: Resource::RLIMIT_NOFILE,
        value: 256,
        why: "what it was handed over until that is mapped; then a lock, a folder, a snapshot and a handful of segments",
    },
    ResourceLimit {
        resource: Resource::RLIMIT_FSIZE,
        value: 4 << 30,
        why: "a segment of a journal has a few megabytes, a snapshot is as large as what it is of",
    },
    NO_CORE_FILE,
];

/// Lowers the resource limits of this process, and drops the capability to raise them again. A
/// write beyond the file size limit fails without a signal.
pub(crate) fn set(limits: &[ResourceLimit]) -> io::Result<()> {
    crate::process::ignore_signal(Signal::SIGXFSZ)?;
    for limit in limits {
        let value = limit.value.min(getrlimit(limit.resource)?.1);
        setrlimit(limit.resource, value, value)?;
    }
    privileges::drop_capabilities()
}
