//! Memory limits of processes, so that a leak kills only the leaking process.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use std::io;

/// Memory that a strategy's process may map beyond its setup, in bytes. Its thread's stack and the
/// allocator's reserve use about half of it.
pub const STRATEGY_MEMORY_BYTES: u64 = 256 << 20;

fn soft_limit(resource: Resource) -> Option<u64> {
    getrlimit(resource).ok().map(|(soft, _)| soft).filter(|bytes| *bytes != RLIM_INFINITY)
}

/// Returns the memory limits of this process in bytes, by the letter of `ulimit`. `v` is all mapped
/// memory, `d` private writable memory. Unknown limits are left out.
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

/// Limits this process to mapping `bytes` more bytes than now, within its hard limit. A larger
/// allocation fails, and the process aborts. An ordinary user's process cannot raise the limit
/// again.
pub fn limit_growth(bytes: u64) -> io::Result<()> {
    let (_, hard_limit) = getrlimit(Resource::RLIMIT_AS)?;
    let bytes = mapped()?.saturating_add(bytes).min(hard_limit);
    Ok(setrlimit(Resource::RLIMIT_AS, bytes, bytes)?)
}

/// Returns the mapped memory of this process in bytes.
fn mapped() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix("kB"));
    let kib = size.and_then(|kib| kib.trim().parse::<u64>().ok());
    let kib = kib.ok_or_else(|| io::Error::other("/proc does not say how much is mapped"))?;
    Ok(kib.saturating_mul(1024))
}
