//! The scheduler's slice of a thread: how long it keeps a core that others wait for.
//!
//! The scheduler (EEVDF, Linux 6.6) gives a core to the thread whose current slice has to end
//! first. So a thread with short slices is not faster, but is served sooner: when it wakes up, and
//! when it was interrupted. Since Linux 6.12 a thread can have a slice of its own.

use std::io;

/// The short slice, in nanoseconds: the shortest one that the kernel takes.
pub const SHORT_NS: u64 = 100_000;

/// The kernel's `sched_attr`, in its first version.
#[repr(C)]
#[derive(Default)]
struct SchedAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const SIZE: u32 = size_of::<SchedAttributes>() as u32;

/// The id that stands for the calling thread.
const OWN: u32 = 0;

/// `SCHED_FLAG_RESET_ON_FORK`: threads and processes that the thread starts have the usual slice.
const RESET_ON_FORK: u64 = 1;

impl SchedAttributes {
    fn of(thread: u32) -> io::Result<Self> {
        let mut found = Self::default();
        // SAFETY: the kernel writes at most `SIZE` bytes to the attributes, which live longer than
        // the call.
        let result = unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut found, SIZE, 0) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(found) }
    }

    /// Returns `true` for a policy with slices whose threads do not lose a priority when they start
    /// others: `SCHED_OTHER` without a negative nice value.
    fn has_plain_policy(&self) -> bool {
        self.policy == libc::SCHED_OTHER.cast_unsigned() && self.nice >= 0
    }
}

/// Gives the calling thread alone slices of [`SHORT_NS`], so that it waits less for a core whose
/// other threads never sleep. Changes nothing under a real-time policy, with a negative nice value
/// (threads that it starts would lose that) and before Linux 6.12.
///
/// # Errors
/// The system's refusal, such as a filter of system calls.
pub fn shorten_own_slice() -> io::Result<()> {
    shorten(OWN)
}

/// Gives the main thread of a child process slices as [`shorten_own_slice`] does. Takes a process
/// that was not reaped yet, so that its id belongs to no other one.
///
/// # Errors
/// As [`shorten_own_slice`].
pub fn shorten_slice_of(child: u32) -> io::Result<()> {
    shorten(child)
}

fn shorten(thread: u32) -> io::Result<()> {
    let mut wanted = SchedAttributes::of(thread)?;
    if !wanted.has_plain_policy() {
        return Ok(());
    }
    (wanted.size, wanted.runtime_ns) = (SIZE, SHORT_NS);
    wanted.flags |= RESET_ON_FORK;
    // SAFETY: the attributes are read during the call, and live longer.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const wanted, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the calling thread's slice in nanoseconds; `None` under another policy than
/// `SCHED_OTHER`, and on kernels that do not tell it.
pub fn own_slice_ns() -> Option<u64> {
    let found = SchedAttributes::of(OWN).ok()?;
    let is_told = found.policy == libc::SCHED_OTHER.cast_unsigned() && found.runtime_ns != 0;
    is_told.then_some(found.runtime_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no scheduler")]
    fn short_slice_applies_to_one_thread_only() {
        let Some(usual) = own_slice_ns() else {
            eprintln!("SKIPPED short_slice_applies_to_one_thread_only: the kernel tells no slice");
            return;
        };
        let thread = std::thread::spawn(|| {
            shorten_own_slice().unwrap();
            (own_slice_ns(), std::thread::spawn(own_slice_ns).join().unwrap())
        });
        assert_eq!(thread.join().unwrap(), (Some(SHORT_NS), Some(usual)));
        assert_eq!(own_slice_ns(), Some(usual));
    }
}
