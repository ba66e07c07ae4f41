//! How much memory a process may take, so that a leak ends in the death of the one that leaks.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use std::io;

/// What a strategy's process may take beyond what it has mapped before its duty cycles, in bytes:
/// its thread's stack and the allocator's reserve take about half of it.
pub const STRATEGY_ROOM: u64 = 256 << 20;

/// The limits of this process's memory that are set, by the letter of `ulimit` that shows them:
/// `v`, all that it maps; `d`, what of it is its own to write. In bytes. A limit that the system
/// does not tell is not among them.
pub fn limits() -> Vec<(char, u64)> {
    [('v', Resource::RLIMIT_AS), ('d', Resource::RLIMIT_DATA)]
        .into_iter()
        .filter_map(|(letter, resource)| Some((letter, getrlimit(resource).ok()?.0)))
        .filter(|(_, bytes)| *bytes != RLIM_INFINITY)
        .collect()
}

/// How large the stack of this process's first thread may grow, in bytes; `None`: as large as it
/// likes, or nobody says.
pub fn stack_limit() -> Option<u64> {
    getrlimit(Resource::RLIMIT_STACK).ok().map(|(soft, _)| soft).filter(|bytes| *bytes != RLIM_INFINITY)
}

/// How large a file this process may write, in bytes; `None`: as large as it likes, or nobody says.
pub fn file_limit() -> Option<u64> {
    getrlimit(Resource::RLIMIT_FSIZE).ok().map(|(soft, _)| soft).filter(|bytes| *bytes != RLIM_INFINITY)
}

/// From now on this process maps at most so many bytes more, or as many as it may have at all. Past
/// that an allocation fails, and the process aborts. An ordinary user's process cannot take the
/// limit back.
///
/// # Errors
/// If the system does not tell how much is mapped, or refuses the limit.
pub fn limit(room: u64) -> io::Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_AS)?;
    let bytes = mapped("self")?.saturating_add(room).min(most);
    Ok(setrlimit(Resource::RLIMIT_AS, bytes, bytes)?)
}

/// How much a process has mapped, in bytes.
fn mapped(process: &str) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix("kB"));
    let kib = size.and_then(|kib| kib.trim().parse::<u64>().ok());
    let kib = kib.ok_or_else(|| io::Error::other("/proc does not say how much is mapped"))?;
    Ok(kib.saturating_mul(1024))
}
