//! Limits: nothing more is opened, and nothing grows without end. How much memory is
//! [`memory::limit`](crate::memory::limit)'s.

use crate::sandbox::privileges;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;

/// How long the file may get that a role's stderr goes to, in bytes.
pub const STDERR_BYTES: u64 = 1 << 20;

/// A resource limit, which cannot be raised again.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Of what.
    pub resource: Resource,
    /// How much.
    pub value: u64,
    /// Why so much.
    pub why: &'static str,
}

/// What a role keeps that has opened all that it needs.
pub(super) const NO_MORE: &[Limit] = &[
    Limit {
        resource: Resource::RLIMIT_NOFILE,
        value: 1,
        why: "no descriptor more: the only place below the limit is taken; `poll` wants one for the one that it watches",
    },
    Limit {
        resource: Resource::RLIMIT_FSIZE,
        value: STDERR_BYTES,
        why: "what it says on stderr goes to a file",
    },
    Limit { resource: Resource::RLIMIT_CORE, value: 0, why: "a core file is as large as its memory" },
];

/// What a role keeps that goes on opening files.
pub(super) const FILES: &[Limit] = &[
    Limit {
        resource: Resource::RLIMIT_NOFILE,
        value: 256,
        why: "what it was handed over until that is mapped; then a lock, a folder, a snapshot and a handful of segments",
    },
    Limit {
        resource: Resource::RLIMIT_FSIZE,
        value: 4 << 30,
        why: "a segment of a journal has a few megabytes, a snapshot is as large as what it is of",
    },
    Limit { resource: Resource::RLIMIT_CORE, value: 0, why: "a core file is as large as its memory" },
];

/// Sets them, or what is less already, and gives up the capability to raise them again. A write
/// beyond the limit of a file fails and sends no signal.
pub(crate) fn set(limits: &[Limit]) -> io::Result<()> {
    crate::process::ignore_file_limit()?;
    for limit in limits {
        let value = limit.value.min(getrlimit(limit.resource)?.1);
        setrlimit(limit.resource, value, value)?;
    }
    privileges::drop_capabilities()
}
