//! The limit of open files of this process and those that it starts.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;

/// Raises this process's limit of open files to `wanted`, or to the hard limit. Returns the new
/// limit.
pub fn raise_limit(wanted: u64) -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= wanted {
        return Ok(soft);
    }
    let allowed = wanted.min(hard);
    setrlimit(Resource::RLIMIT_NOFILE, allowed, hard)?;
    Ok(allowed)
}

/// Returns the maximum number of files that this process may have open.
///
/// # Errors
/// The sandbox refuses the system call.
pub fn limit() -> io::Result<u64> {
    Ok(getrlimit(Resource::RLIMIT_NOFILE)?.0)
}
