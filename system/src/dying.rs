//! Dying processes, which take the kernel milliseconds of a core to dismantle: others come first.
//!
//! A killed process is dismantled by the last of its threads that leaves its memory, on that
//! thread's core. Whoever becomes ready on that core then may wait for a tick of the scheduler, up
//! to 4 ms at 250 ticks a second.

use crate::pin::{allow_on, allowed_cores, restrict_to};
use crate::process::{field_in, is_exiting, read_short, state_in};
use std::thread;
use std::time::{Duration, Instant};

/// The lowest priority under `SCHED_OTHER`.
const LOWEST_NICE: i32 = 19;
/// Time for which a thread sleeps on the core to which it has moved: one that wakes up there is
/// served sooner than one that was moved.
const NAP: Duration = Duration::from_micros(10);

/// Gives the threads of a dying process the lowest priority as soon as each is exiting, and waits
/// for that, at most for `limit`. Returns at once if a thread sleeps: then the process is not
/// dying. From then on other threads mostly get their cores at once. Where none of the caller's
/// cores idles, such a process takes seconds to end. Returns whether a thread was exiting.
///
/// Meant for a thread that does nothing else: it moves away from the cores on which threads have
/// yet to exit. Only threads that run none of their instructions any more are changed, so a wrong
/// process would lose nothing.
pub fn hasten_exit(pid: u32, limit: Duration) -> bool {
    let allowed = allowed_cores();
    let began = Instant::now();
    let (mut has_moved, mut is_dying) = (false, false);
    while let Some(awaited) = demote_exiting(pid, &allowed, &mut is_dying)
        && !awaited.is_empty()
        && began.elapsed() < limit
    {
        // A thread that is to exit would wait for this one.
        match allowed.iter().find(|core| !awaited.contains(core)) {
            Some(free) => {
                has_moved |= restrict_to(&[*free]).is_ok();
                thread::sleep(NAP);
            }
            None => thread::yield_now(),
        }
    }
    if has_moved {
        // Refused: the thread stays on its core.
        let _ = restrict_to(&allowed);
    }
    is_dying
}

/// Demotes the threads of a process that are exiting, and returns the cores of the others; `None`
/// if one sleeps.
fn demote_exiting(pid: u32, allowed: &[u32], is_dying: &mut bool) -> Option<Vec<u32>> {
    let mut awaited = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        // It may be gone.
        let Ok(stat) = read_short(&task.path().join("stat")) else { continue };
        let id = task.file_name().to_str().and_then(|name| name.parse().ok());
        match (id, state_in(&stat)) {
            (Some(id), _) if is_exiting(&stat) => {
                *is_dying = true;
                demote(id, allowed);
            }
            (_, Some('S')) => return None,
            _ => awaited.extend(field_in(&stat, 39).and_then(|core| core.parse::<u32>().ok())),
        }
    }
    Some(awaited)
}

/// Gives a thread the lowest priority: `SCHED_IDLE`, to which the kernel prefers every thread that
/// wakes up. A higher nice value makes it choose again at once, also for those that wait. It may
/// move to any of the allowed cores. Refused or ended: it stays as it is.
fn demote(thread: u32, allowed: &[u32]) {
    let no_priority = 0_i32;
    // SAFETY: the kernel reads the parameter, which lives longer than the call. Neither call
    // touches other memory of ours.
    unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, thread, libc::SCHED_IDLE, &raw const no_priority);
        libc::setpriority(libc::PRIO_PROCESS, thread, LOWEST_NICE);
    }
    let _ = allow_on(thread, allowed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    /// The scheduling policy of a process's main thread.
    fn policy(child: &Child) -> Option<i32> {
        let stat = read_short(format!("/proc/{}/stat", child.id()).as_ref()).ok()?;
        field_in(&stat, 41)?.parse().ok()
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn exiting_process_comes_last_and_a_living_one_keeps_its_priority() {
        let _only = crate::only_one_has_children();
        let before = allowed_cores();
        let (mut dying, mut living) = (sleeper(), sleeper());
        let is_asleep = |child: &Child| {
            let stat = read_short(format!("/proc/{}/stat", child.id()).as_ref()).unwrap();
            state_in(&stat) == Some('S') && stat.contains("(sleep)")
        };
        while !is_asleep(&living) || !is_asleep(&dying) {
            thread::yield_now();
        }
        assert!(!hasten_exit(living.id(), Duration::from_secs(600)));
        assert_eq!(policy(&living), Some(libc::SCHED_OTHER), "it sleeps, so it is not dying");
        dying.kill().unwrap();
        assert!(hasten_exit(dying.id(), Duration::from_secs(600)));
        assert_eq!(policy(&dying), Some(libc::SCHED_IDLE));
        assert_eq!(allowed_cores(), before);
        living.kill().unwrap();
        living.wait().unwrap();
        dying.wait().unwrap();
        assert!(!hasten_exit(dying.id(), Duration::from_secs(600)), "it is gone");
    }
}
