//! Publishes a child's process id in shared memory before `exec`.

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, getpid, sysconf};
use shm::memory::AtomicWords;
use shm::sync::Ordering;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the process that `command` starts publish its process id in `word`, before `exec`. It is
/// in the lower half, and in the upper half the lower half of the current time in clock ticks since
/// boot, an upper bound of its start time ([`start_time`](shm::process::start_time)). So it is
/// known even if its starter dies before [`Command::spawn`] returns. A process with that id and a
/// later start time is another process.
///
/// The store is a Release, in memory that the starter and the child share.
pub fn publish_pid_before_exec(command: &mut Command, word: &AtomicWords) {
    // 100 on today's Linux; read here, where allocations and locks are harmless.
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().map_or(100, i64::from);
    let word = word.slice(0, 1);
    let publish = move || -> io::Result<()> {
        let now = clock_gettime(ClockId::CLOCK_BOOTTIME)?;
        let ticks = now.tv_sec() * per_second + now.tv_nsec() * per_second / 1_000_000_000;
        word[0].store(u64::from(getpid().as_raw() as u32) | (ticks as u64) << 32, Ordering::Release);
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls and stores to a word of a
    // mapping, which fork has not taken away: it allocates nothing and takes no lock.
    unsafe { command.pre_exec(publish) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::memory::Region;
    use shm::process::start_time;

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn pid_is_published_before_exec() {
        let _guard = crate::only_one_has_children();
        let word = Region::memfd("pid-slot", 64).unwrap().words().slice(60, 1);
        let mut command = std::process::Command::new("sleep");
        publish_pid_before_exec(command.arg("60"), &word);
        let mut child = command.spawn().unwrap();
        // `spawn` returns after exec.
        let published = word[0].load(Ordering::Acquire);
        let start = start_time(child.id()).unwrap();
        let _ = (child.kill(), child.wait());
        assert_eq!(published as u32, child.id());
        assert!((published >> 32) as u32 >= start as u32, "{} of {start}", published >> 32);
        let mut none = std::process::Command::new("/nowhere/at/all");
        publish_pid_before_exec(&mut none, &word);
        assert!(none.spawn().is_err());
    }
}
