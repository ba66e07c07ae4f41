//! Memory of processes: limits, so that a leak kills only the leaking process, and locked memory.

use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use std::io;

/// Private memory that a strategy's process may map beyond its setup, in bytes, unless a user sets
/// another limit.
pub const STRATEGY_MEMORY_BYTES: u64 = 1 << 30;

/// Returns the default limit, in bytes, of the private memory that a strategy in an external
/// program may map after its setup. It is half of the machine's memory, at least
/// [`STRATEGY_MEMORY_BYTES`]. Java commits a heap of a quarter of the machine's memory, and more,
/// whatever its program needs.
pub fn program_memory_bytes() -> u64 {
    let facts = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    (kib_in(&facts, "MemTotal:").unwrap_or(0).saturating_mul(1024) / 2).max(STRATEGY_MEMORY_BYTES)
}

/// Returns the number of a line such as `VmData:  123 kB`.
fn kib_in(text: &str, field: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix("kB"))?.trim().parse().ok()
}

fn soft_limit(resource: Resource) -> Option<u64> {
    getrlimit(resource).ok().map(|(soft, _)| soft).filter(|bytes| *bytes != RLIM_INFINITY)
}

/// Returns the soft memory limits of this process in bytes, each with its letter in `ulimit`. `v`
/// is all mapped memory, `d` private writable memory. Unknown limits are left out.
pub fn limits() -> Vec<(char, u64)> {
    let all = [('v', Resource::RLIMIT_AS), ('d', Resource::RLIMIT_DATA)];
    all.into_iter().filter_map(|(letter, resource)| Some((letter, soft_limit(resource)?))).collect()
}

/// Returns the stack limit of this process's first thread in bytes, if it is known.
pub fn stack_limit() -> Option<u64> {
    soft_limit(Resource::RLIMIT_STACK)
}

/// Returns the file size limit of this process in bytes; `None` if it is unlimited or unknown.
pub fn file_limit() -> Option<u64> {
    soft_limit(Resource::RLIMIT_FSIZE)
}

/// Raises the limit of locked memory of this process and of those that it starts as far as it may.
/// Returns the limit in bytes; `None`: there is none.
pub fn raise_lock_limit() -> io::Result<Option<u64>> {
    let unlimited = || setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY);
    if unlimited().is_err() {
        let (_, hard) = getrlimit(Resource::RLIMIT_MEMLOCK)?;
        setrlimit(Resource::RLIMIT_MEMLOCK, hard, hard)?;
    }
    let (soft, _) = getrlimit(Resource::RLIMIT_MEMLOCK)?;
    Ok((soft != RLIM_INFINITY).then_some(soft))
}

/// Locks in memory all pages that this process has mapped (`mlockall`). The kernel neither swaps
/// them out nor drops those of files, and all of them are resident when the call returns.
pub fn lock_all() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::MCL_CURRENT)?)
}

/// Limits this process to mapping `bytes` more bytes of private writable memory than now, within
/// its hard limit (`RLIMIT_DATA`). Address space that a runtime only reserves does not count, nor
/// does shared memory. A larger allocation fails; a program that does not handle that aborts. An
/// ordinary user's process cannot raise the limit again.
pub fn limit_growth(bytes: u64) -> io::Result<()> {
    let (_, hard_limit) = getrlimit(Resource::RLIMIT_DATA)?;
    let bytes = private()?.saturating_add(bytes).min(hard_limit);
    Ok(setrlimit(Resource::RLIMIT_DATA, bytes, bytes)?)
}

/// Limits the number of files that this process may have open at once, within its hard limit.
pub fn limit_files(files: u64) -> io::Result<()> {
    let (_, hard_limit) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, files.min(hard_limit), files.min(hard_limit))?)
}

/// Returns the private writable memory of this process in bytes, without its first thread's stack.
fn private() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = kib_in(&status, "VmData:")
        .ok_or_else(|| io::Error::other("/proc does not tell how much is mapped"))?;
    Ok(kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no /proc")]
    fn sizes_are_read_and_never_below_minimum() {
        assert_eq!(kib_in("MemFree: 7 kB\nMemTotal:  12 kB\n", "MemTotal:"), Some(12));
        assert_eq!([kib_in("", "MemTotal:"), kib_in("MemTotal: x kB", "MemTotal:")], [None, None]);
        assert!(program_memory_bytes() >= STRATEGY_MEMORY_BYTES && private().unwrap() > 0);
    }
}
