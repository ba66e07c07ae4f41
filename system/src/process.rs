//! Processes: who they are, that they die with their parent, and how their end is noticed.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::getppid;
use shm::process::start_time;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// Whether the process of that id and start time still runs. A zombie does not run.
pub fn is_running(pid: u32, start: u64) -> bool {
    let state = |stat: String| Some(stat.rsplit_once(')')?.1.trim_start().starts_with(['Z', 'X']));
    start_time(pid) == Some(start)
        && std::fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(state) == Some(false)
}

/// Names the calling thread, as `ps -L` and `top -H` show it; the first thread's name is the
/// process's in `ps`. The kernel keeps 15 bytes.
pub fn set_thread_name(name: &str) {
    let short: Vec<u8> = name.bytes().filter(|b| *b != 0).take(15).collect();
    if let Ok(name) = std::ffi::CString::new(short) {
        // A name is a courtesy: nothing depends on it.
        let _ = prctl::set_name(&name);
    }
}

/// Has the kernel kill this process when its parent dies, and checks that the parent is still the
/// one expected: it may have died before the request.
///
/// # Errors
/// If the parent is another process now, or the kernel refuses.
pub fn die_with_parent(parent: u32) -> io::Result<()> {
    on_parents_death(parent, Signal::SIGKILL)
}

/// The same, but has this process woken up, should it be stopped then. Whoever watches for the
/// parent's end ([`pidfd_open`]) gets to see it.
///
/// # Errors
/// As [`die_with_parent`].
pub fn wake_with_parent(parent: u32) -> io::Result<()> {
    on_parents_death(parent, Signal::SIGCONT)
}

/// Has the kernel kill the process that this command starts when the thread that starts it dies,
/// from its first instruction on, whatever program it is and whether or not it ever asks for that
/// itself.
pub fn die_with_starter(command: &mut Command) {
    let starter = std::process::id();
    let ask = move || -> io::Result<()> {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // It may have died in between.
        if getppid().as_raw() as u32 == starter {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls and nothing else: it
    // allocates nothing, takes no lock and touches no memory but its own copy of a number.
    unsafe { command.pre_exec(ask) };
}

fn on_parents_death(parent: u32, signal: Signal) -> io::Result<()> {
    prctl::set_pdeathsig(signal)?;
    if getppid().as_raw() as u32 == parent {
        Ok(())
    } else {
        Err(io::Error::other(format!("the launcher, process {parent}, is gone")))
    }
}

/// Lets timed waits of this thread end on time: the kernel may otherwise delay them by 50 µs to
/// save wake-ups.
pub fn precise_timers() {
    timer_slack(1);
}

/// How late the kernel may end timed waits of this thread, in nanoseconds, to save wake-ups. 0:
/// what the thread began with, 50 µs where nobody changed it.
pub fn timer_slack(ns: u64) {
    // A kernel that refuses leaves the waits as late as they were.
    let _ = prctl::set_timerslack(ns);
}

/// The calling thread's id, as `top -H` and `/proc/PID/task` show it.
pub fn thread_id() -> u32 {
    nix::unistd::gettid().as_raw() as u32
}

/// Sends SIGKILL to the process behind a pidfd ([`pidfd_open`]). A process id can be given to
/// another process once its owner was waited for; a pidfd never stands for another process.
///
/// # Errors
/// `ESRCH`: the process was waited for already, and nobody got the signal. `EPERM`: it may not be
/// signalled.
pub fn kill(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    send(pidfd, Signal::SIGKILL)
}

/// Sends SIGSTOP to the process behind a pidfd.
///
/// # Errors
/// As [`kill`].
pub fn stop(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    send(pidfd, Signal::SIGSTOP)
}

fn send(pidfd: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    let (fd, no_info, no_flags) = (pidfd.as_raw_fd(), std::ptr::null::<libc::siginfo_t>(), 0);
    // SAFETY: the call takes a descriptor that is open, a signal, no info and no flags, and touches
    // no memory of ours.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal as i32, no_info, no_flags) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// From now on a write that would make a file larger than this process may
/// ([`setrlimit`](nix::sys::resource::setrlimit) of `RLIMIT_FSIZE`) fails with EFBIG; otherwise the
/// process would get SIGXFSZ, which ends it.
///
/// # Errors
/// What the system refused.
pub(crate) fn ignore_file_limit() -> io::Result<()> {
    // SAFETY: the signal is ignored: no handler of ours runs.
    unsafe { nix::sys::signal::signal(Signal::SIGXFSZ, nix::sys::signal::SigHandler::SigIgn) }?;
    Ok(())
}

/// From now on children of this process that end are nobody's to wait for: they are gone at once.
///
/// # Errors
/// What the system refused.
pub(crate) fn leave_no_zombies() -> io::Result<()> {
    // SAFETY: the signal is ignored: no handler of ours runs.
    unsafe { nix::sys::signal::signal(Signal::SIGCHLD, nix::sys::signal::SigHandler::SigIgn) }?;
    Ok(())
}

/// Makes this process the parent of every descendant whose own parent has died. Without it orphans
/// go to process 1, which may never reap them: a namespace of process ids is not gone before all of
/// its processes were reaped.
///
/// # Errors
/// What the system refused.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(prctl::set_child_subreaper(true)?)
}

/// Reaps the process behind a pidfd if it is an ended child of this process, and does nothing
/// otherwise.
pub fn reap(pidfd: BorrowedFd<'_>) {
    // ECHILD: another process is its parent, or it was reaped before.
    let _ = waitid(Id::PIDFd(pidfd), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG);
}

/// Reaps ended children of this process until the next one is among `own`, which the caller reaps
/// itself. No other thread may start processes of its own at that time.
pub fn reap_orphans(own: &[u32]) {
    let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Some(pid) = waitid(Id::All, peek).ok().and_then(|status| status.pid()) {
        let is_own = own.contains(&(pid.as_raw() as u32));
        if is_own || waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG).is_err() {
            return;
        }
    }
}

/// Ends as that other process has ended: with its code, or by the signal that ended it. Leaves no
/// core file.
pub fn end_like(status: ExitStatus) -> ! {
    if let Some(signal) = status.signal().and_then(|number| Signal::try_from(number).ok()) {
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
        // SAFETY: the signal gets its default action: no handler of ours runs.
        let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) };
        let _ = nix::sys::signal::raise(signal);
    }
    std::process::exit(status.code().unwrap_or(1))
}

/// The id, for who looks from outside, of a thread that calls itself `tid`, in a process whose id
/// is `pid` for who looks: in a namespace of process ids of their own threads have numbers of their
/// own. `None`: that process has no such thread.
pub fn thread_outside(pid: u32, tid: u64) -> Option<u64> {
    let tasks = format!("/proc/{pid}/task");
    if std::path::Path::new(&format!("{tasks}/{tid}")).exists() {
        return Some(tid);
    }
    // The last one is what the thread itself sees.
    let own = |status: String| {
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        ids.split_whitespace().next_back()?.parse::<u64>().ok()
    };
    let numbers = std::fs::read_dir(&tasks).ok()?.flatten();
    numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(|number: &u64| {
        std::fs::read_to_string(format!("{tasks}/{number}/status")).ok().and_then(own) == Some(tid)
    })
}

/// A descriptor that becomes readable when a process ends.
///
/// # Errors
/// If there is no such process.
pub fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers and returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Waits until one of the descriptors is readable (a process ended, a signal came) or the time is
/// over; returns which ones are.
///
/// # Errors
/// What the system refused; a signal that interrupts the wait is no error.
pub fn wait_readable(fds: &[BorrowedFd<'_>], at_most: Duration) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd> = fds.iter().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)).collect();
    let timeout = PollTimeout::try_from(at_most).unwrap_or(PollTimeout::MAX);
    match poll(&mut polled, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {
            Ok(polled.iter().map(|fd| fd.revents().is_some_and(|events| !events.is_empty())).collect())
        }
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no /proc")]
    fn a_process_is_known_by_pid_and_start() {
        let me = std::process::id();
        let start = start_time(me).unwrap();
        assert!(is_running(me, start));
        assert!(!is_running(me, start + 1), "another start: another process");
        assert_eq!(start_time(0x7fff_fff0), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn a_pidfd_tells_the_end() {
        let _guard = crate::only_one_has_children();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let fd = pidfd_open(child.id()).unwrap();
        assert_eq!(wait_readable(&[fd.as_fd()], Duration::ZERO).unwrap(), [false]);
        kill(fd.as_fd()).unwrap();
        assert_eq!(wait_readable(&[fd.as_fd()], Duration::from_secs(60)).unwrap(), [true]);
        let start = start_time(child.id()).unwrap();
        assert!(!is_running(child.id(), start), "a zombie does not run");
        child.wait().unwrap();
        for send in [kill, stop] {
            let refused = send(fd.as_fd()).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::ESRCH), "whoever has the id now gets nothing");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn an_orphan_is_reaped_by_whoever_adopts_it() {
        let _guard = crate::only_one_has_children();
        match adopt_orphans() {
            Ok(()) => {}
            // An emulated process cannot ask for it.
            Err(_) if cfg!(not(target_arch = "x86_64")) => return,
            Err(error) => panic!("{error}"),
        }
        // The shell says who its child is, and leaves it behind.
        let orphan = std::process::Command::new("sh")
            .args(["-c", "sleep 60 >/dev/null 2>&1 & echo $!"])
            .output()
            .unwrap();
        let orphan: u32 = String::from_utf8(orphan.stdout).unwrap().trim().parse().unwrap();
        let pidfd = pidfd_open(orphan).unwrap();
        kill(pidfd.as_fd()).unwrap();
        assert_eq!(wait_readable(&[pidfd.as_fd()], Duration::from_secs(60)).unwrap(), [true]);
        assert!(start_time(orphan).is_some(), "its new parent has not reaped it yet");
        for _ in 0..2 {
            reap(pidfd.as_fd());
            assert_eq!(start_time(orphan), None);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn a_stopped_process_is_killed_all_the_same() {
        let _guard = crate::only_one_has_children();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let fd = pidfd_open(child.id()).unwrap();
        stop(fd.as_fd()).unwrap();
        kill(fd.as_fd()).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
    }
}
