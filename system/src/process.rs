//! Process control: identity, death with the parent, signals, reaping, and waiting for the end.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigHandler, Signal, raise, signal};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::getppid;
use shm::process::start_time;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// Returns `true` if the process with this id and start time still runs. A zombie does not run.
pub fn is_running(pid: u32, start: u64) -> bool {
    let state = || state_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
    start_time(pid) == Some(start) && state().is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Returns the state in the text of a `stat` file of a process or thread: `R` is runnable, `T`
/// stopped, `Z` or `X` dead. The name before it may hold anything, also parentheses.
pub fn state_in(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Returns how a process has ended that is a zombie without any other thread. A tracer may keep the
/// parent from waiting for it. `None` in every other case.
pub fn zombie_status(pid: u32) -> Option<ExitStatus> {
    zombie_status_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// As [`zombie_status`], from the text of the process's `stat` file.
fn zombie_status_in(stat: &str) -> Option<ExitStatus> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // The fields are numbered as in proc_pid_stat(5); the name is the second one.
    let field = |number: usize| fields.get(number - 3).copied();
    let (state, threads, status) = (field(3)?, field(20)?, field(52)?);
    (state == "Z" && threads == "1").then(|| status.parse().ok().map(ExitStatus::from_raw))?
}

/// Returns the children of this process, each with its start time: those that it has started, and
/// orphans that it has adopted.
pub fn children() -> Vec<(u32, u64)> {
    let me = std::process::id();
    let numbers = |folder: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
    };
    let of_thread = |thread: u32| std::fs::read_to_string(format!("/proc/self/task/{thread}/children")).ok();
    let listed: Vec<String> = numbers("/proc/self/task").filter_map(of_thread).collect();
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let all: Vec<u32> = match listed.is_empty() {
        // A kernel without these lists (CONFIG_PROC_CHILDREN).
        true => numbers("/proc").filter(|pid| parent(pid) == Some(me)).collect(),
        false => listed
            .iter()
            .flat_map(|line| line.split_whitespace())
            .filter_map(|pid| pid.parse().ok())
            .collect(),
    };
    all.into_iter().filter_map(|pid| Some((pid, start_time(pid)?))).collect()
}

/// Sets the name of the calling thread, as `ps -L` and `top -H` show it. The first thread's name is
/// that of the process in `ps`. The kernel keeps 15 bytes.
pub fn set_thread_name(name: &str) {
    let short: Vec<u8> = name.bytes().filter(|b| *b != 0).take(15).collect();
    if let Ok(name) = std::ffi::CString::new(short) {
        // A name is a courtesy: nothing depends on it.
        let _ = prctl::set_name(&name);
    }
}

/// Makes the kernel kill this process when its parent dies, and checks that the parent is still
/// `parent`. It may have died before the request.
pub fn die_with_parent(parent: u32) -> io::Result<()> {
    set_parent_death_signal(parent, Signal::SIGKILL)
}

/// Makes the kernel send SIGCONT to this process when its parent dies. So a stopped process wakes
/// up and can notice it ([`pidfd_open`]).
pub fn wake_with_parent(parent: u32) -> io::Result<()> {
    set_parent_death_signal(parent, Signal::SIGCONT)
}

/// Makes the kernel kill the started process when the thread that starts it dies. That holds from
/// its first instruction on and without its cooperation.
pub fn die_with_starter(command: &mut Command) {
    let starter = std::process::id();
    let before_exec = move || -> io::Result<()> {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The starter may have ended before that.
        if getppid().as_raw() as u32 == starter {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls and nothing else: it
    // allocates nothing, takes no lock and touches no memory but its own copy of a number.
    unsafe { command.pre_exec(before_exec) };
}

fn set_parent_death_signal(parent: u32, signal: Signal) -> io::Result<()> {
    prctl::set_pdeathsig(signal)?;
    if getppid().as_raw() as u32 == parent {
        Ok(())
    } else {
        Err(io::Error::other(format!("the launcher, process {parent}, is gone")))
    }
}

/// Lets timed waits of this thread end within 1 ns of their time (timer slack). By default the
/// kernel may delay them by 50 µs.
pub fn set_precise_timers() {
    set_timer_slack(1);
}

/// Sets how late the kernel may end timed waits of this thread (timer slack), in nanoseconds. 0
/// restores the initial value, usually 50 µs.
pub fn set_timer_slack(ns: u64) {
    // If the kernel refuses, waits stay as imprecise as before.
    let _ = prctl::set_timerslack(ns);
}

/// Returns the calling thread's id, as `top -H` and `/proc/PID/task` show it.
pub fn thread_id() -> u32 {
    nix::unistd::gettid().as_raw() as u32
}

/// Sends SIGKILL to the process of a pidfd ([`pidfd_open`]). A process id can be reused after its
/// process was waited for; a pidfd never refers to another process.
///
/// # Errors
/// `ESRCH`: the process was already waited for. `EPERM`: it may not be signalled.
pub fn kill(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    send(pidfd, Signal::SIGKILL)
}

/// Asks a process to end, by SIGTERM.
///
/// # Errors
/// The process has ended, or belongs to another user.
pub fn terminate(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    send(pidfd, Signal::SIGTERM)
}

/// Sends SIGSTOP to the process of a pidfd.
pub fn stop(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    send(pidfd, Signal::SIGSTOP)
}

/// Interrupts a sleep of a process that handles SIGURG; every other one ignores it.
///
/// # Errors
/// The process has ended, or belongs to another user.
pub fn wake(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    send(pidfd, Signal::SIGURG)
}

fn send(pidfd: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    let (fd, no_info, no_flags) = (pidfd.as_raw_fd(), std::ptr::null::<libc::siginfo_t>(), 0);
    // SAFETY: the call takes a descriptor that is open, a signal, no info and no flags, and touches
    // no memory of ours.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal as i32, no_info, no_flags) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Ignores a signal. SIGXFSZ: writes beyond the file size limit (`RLIMIT_FSIZE`) fail with EFBIG,
/// instead of killing the process. SIGCHLD: the kernel reaps the children of this process.
pub(crate) fn ignore_signal(ignored: Signal) -> io::Result<()> {
    // SAFETY: the signal is ignored: no handler of ours runs.
    unsafe { signal(ignored, SigHandler::SigIgn) }?;
    Ok(())
}

/// Makes this process the parent of every descendant whose own parent has died (subreaper).
/// Otherwise orphans go to process 1, which may never reap them: a PID namespace exists until all
/// its processes were reaped.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(prctl::set_child_subreaper(true)?)
}

/// Reaps the process of a pidfd if it is an ended child of this process.
pub fn reap(pidfd: BorrowedFd<'_>) {
    // ECHILD: another process is its parent, or it was reaped before.
    let _ = waitid(Id::PIDFd(pidfd), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG);
}

/// Reaps this process's ended children until the next one is in `last_id`, which the caller reaps
/// itself. No other thread may start processes at the same time.
pub fn reap_orphans(last_id: &[u32]) {
    let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Some(pid) = waitid(Id::All, peek).ok().and_then(|status| status.pid()) {
        let is_own = last_id.contains(&(pid.as_raw() as u32));
        if is_own || waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG).is_err() {
            return;
        }
    }
}

/// Ends this process by another one's code or signal. Leaves no core file.
pub fn exit_like(status: ExitStatus) -> ! {
    if let Some(fatal) = status.signal().and_then(|number| Signal::try_from(number).ok()) {
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
        // SAFETY: the signal gets its default action: no handler of ours runs.
        let _ = unsafe { signal(fatal, SigHandler::SigDfl) };
        let _ = raise(fatal);
    }
    std::process::exit(status.code().unwrap_or(1))
}

/// Returns `true` if a running process has a thread with this id, or the kernel does not tell.
pub fn has_thread(pid: u32, tid: u64) -> bool {
    std::path::Path::new(&format!("/proc/{pid}/task/{tid}")).try_exists().unwrap_or(true)
}

/// Returns a contained thread's id in the caller's PID namespace; `tid` is its id in its own. `pid`
/// is its process in the caller's namespace. `None` if the thread does not exist.
pub fn host_thread_id(pid: u32, tid: u64) -> Option<u64> {
    let tasks = format!("/proc/{pid}/task");
    if std::path::Path::new(&format!("{tasks}/{tid}")).exists() {
        return Some(tid);
    }
    // The last number is the id in the thread's own namespace.
    let last_id = |status: String| {
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        ids.split_whitespace().next_back()?.parse::<u64>().ok()
    };
    let numbers = std::fs::read_dir(&tasks).ok()?.flatten();
    numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(|number: &u64| {
        std::fs::read_to_string(format!("{tasks}/{number}/status")).ok().and_then(last_id) == Some(tid)
    })
}

/// Opens a file descriptor that becomes readable when a process ends.
pub fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers and returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Waits until a descriptor is readable or the timeout is over. Returns whether each is readable.
pub fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd> = fds.iter().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)).collect();
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
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
    fn process_is_identified_by_pid_and_start() {
        let me = std::process::id();
        let start = start_time(me).unwrap();
        assert!(is_running(me, start));
        assert!(!is_running(me, start + 1), "another start: another process");
        assert_eq!(start_time(0x7fff_fff0), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no /proc")]
    fn thread_exists_until_it_has_ended() {
        let me = std::process::id();
        let (sender, tid) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            sender.send(u64::from(thread_id())).unwrap();
            let _ = ended.recv();
        });
        let tid = tid.recv().unwrap();
        assert!(has_thread(me, tid) && !has_thread(me, 0x7fff_fff0));
        drop(end);
        thread.join().unwrap();
        // The kernel wakes the joining thread shortly before the entry is removed.
        while has_thread(me, tid) {
            std::thread::yield_now();
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn pidfd_reports_process_end() {
        let _guard = crate::only_one_has_children();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let fd = pidfd_open(child.id()).unwrap();
        assert_eq!(wait_readable(&[fd.as_fd()], Duration::ZERO).unwrap(), [false]);
        // Also when it is stopped.
        stop(fd.as_fd()).unwrap();
        kill(fd.as_fd()).unwrap();
        assert_eq!(wait_readable(&[fd.as_fd()], Duration::from_secs(60)).unwrap(), [true]);
        let start = start_time(child.id()).unwrap();
        assert!(!is_running(child.id(), start), "a zombie does not run");
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        for send in [kill, stop] {
            let refused = send(fd.as_fd()).unwrap_err();
            assert_eq!(
                refused.raw_os_error(),
                Some(libc::ESRCH),
                "a process that reuses the id gets no signal"
            );
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn status_of_zombie_is_known_before_it_is_reaped() {
        let _guard = crate::only_one_has_children();
        let mut child = std::process::Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let fds = [child.id(), sleeper.id()].map(|pid| pidfd_open(pid).unwrap());
        assert_eq!(wait_readable(&[fds[0].as_fd()], Duration::from_secs(60)).unwrap(), [true]);
        let found = zombie_status(child.id());
        let mine: Vec<u32> = children().into_iter().map(|(pid, _)| pid).collect();
        assert_eq!(zombie_status(sleeper.id()), None, "it runs");
        kill(fds[1].as_fd()).unwrap();
        sleeper.wait().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(3));
        assert_eq!(found.and_then(|status| status.code()), Some(3));
        assert!(mine.contains(&child.id()) && mine.contains(&sleeper.id()), "{mine:?}");
        assert_eq!(zombie_status(child.id()), None, "it was reaped");
    }

    #[test]
    fn zombie_with_other_threads_has_no_status() {
        let stat = |state: &str, threads: u32| {
            let between = "0 ".repeat(16);
            format!("7 (a) b) {state} {between}{threads} {}9", "0 ".repeat(31))
        };
        assert_eq!(zombie_status_in(&stat("Z", 1)).and_then(|status| status.signal()), Some(9));
        for (state, threads) in [("Z", 2), ("S", 1), ("t", 1), ("X", 1)] {
            assert_eq!(zombie_status_in(&stat(state, threads)), None, "{state} {threads}");
        }
        assert_eq!(zombie_status_in("7 (a) Z 1"), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn orphan_is_reaped_by_its_subreaper() {
        let _guard = crate::only_one_has_children();
        match adopt_orphans() {
            Ok(()) => {}
            // An emulated process cannot ask for it.
            Err(_) if cfg!(not(target_arch = "x86_64")) => return,
            Err(error) => panic!("{error}"),
        }
        // The shell prints its child's id, and exits before it.
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
}
