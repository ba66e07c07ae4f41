//! Real-time priority of threads: `SCHED_FIFO`, which ordinary threads cannot preempt.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;

/// The valid `SCHED_FIFO` priorities on Linux.
pub const FIFO: std::ops::RangeInclusive<u8> = 1..=99;

/// The kernel's `sched_param`. The system calls are made directly, because musl's functions for
/// them always fail with `ENOSYS`.
#[repr(C)]
struct SchedParam {
    priority: i32,
}

/// Gives the calling thread alone a `SCHED_FIFO` priority; threads and processes that it starts
/// later do not inherit the priority.
///
/// # Errors
/// `EPERM`: neither `RLIMIT_RTPRIO` nor `CAP_SYS_NICE` allows it, or the cgroup has no real-time
/// budget. `EINVAL`: outside of [`FIFO`].
pub fn set_fifo(priority: u8) -> io::Result<()> {
    let parameters = SchedParam { priority: i32::from(priority) };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 stands for the calling thread; the parameters are read during the call, and live
    // longer.
    let set = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters) };
    if set < 0 {
        return Err(io::Error::last_os_error());
    }
    match own_fifo() {
        Some(now) if now == priority => Ok(()),
        now => Err(io::Error::other(format!("the kernel accepted the priority but reads back {now:?}"))),
    }
}

/// Returns the calling thread's priority (1 to 99) under `SCHED_FIFO`; `None` under another policy.
pub fn own_fifo() -> Option<u8> {
    let mut parameters = SchedParam { priority: 0 };
    // SAFETY: 0 stands for the calling thread; the first call touches no memory of ours, the second
    // one writes the parameters, which live longer.
    let (policy, result) = unsafe {
        let policy = libc::syscall(libc::SYS_sched_getscheduler, 0);
        (policy, libc::syscall(libc::SYS_sched_getparam, 0, &raw mut parameters))
    };
    if policy & !i64::from(libc::SCHED_RESET_ON_FORK) != i64::from(libc::SCHED_FIFO) || result < 0 {
        return None;
    }
    u8::try_from(parameters.priority).ok()
}

/// Checks that a thread of this process may have a `SCHED_FIFO` priority, by setting it on a
/// short-lived one. Limits, capabilities and cgroups together cannot be checked reliably.
pub fn try_fifo(priority: u8) -> io::Result<()> {
    let trial = std::thread::Builder::new().spawn(move || set_fifo(priority))?;
    trial.join().unwrap_or_else(|_| Err(io::Error::other("the trial panicked")))
}

/// Allows this process and its descendants to use a `SCHED_FIFO` priority without a capability. A
/// sandboxed process drops all capabilities.
///
/// # Errors
/// `EPERM`: the hard limit (`ulimit -Hr`) is lower, and may not be raised.
pub fn allow_fifo(priority: u8) -> io::Result<()> {
    let wanted = u64::from(priority);
    let (soft, hard) = getrlimit(Resource::RLIMIT_RTPRIO)?;
    if soft < wanted {
        setrlimit(Resource::RLIMIT_RTPRIO, wanted, hard.max(wanted))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no scheduler")]
    fn priority_applies_to_one_thread_only() {
        if let Err(error) = try_fifo(1) {
            eprintln!("SKIPPED priority_applies_to_one_thread_only: no SCHED_FIFO here: {error}");
            return;
        }
        let thread = std::thread::spawn(|| {
            set_fifo(1).unwrap();
            (own_fifo(), std::thread::spawn(own_fifo).join().unwrap())
        });
        assert_eq!(thread.join().unwrap(), (Some(1), None), "a thread that it starts has the default policy");
        assert_eq!(own_fifo(), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no scheduler")]
    fn invalid_priority_is_refused() {
        for wrong in [0, 100] {
            assert_eq!(try_fifo(wrong).unwrap_err().raw_os_error(), Some(libc::EINVAL), "{wrong}");
        }
    }
}
