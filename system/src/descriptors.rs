//! How many files this process, and those that it starts, may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;

/// Lets this process have so many files open, as far as the hard limit goes, and returns how many
/// it may have then.
///
/// # Errors
/// What the system refused.
pub fn allow(wanted: u64) -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= wanted {
        return Ok(soft);
    }
    let allowed = wanted.min(hard);
    setrlimit(Resource::RLIMIT_NOFILE, allowed, hard)?;
    Ok(allowed)
}
