//! Process control: identity, death with the parent, signals, reaping, and waiting for the end.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigHandler, Signal, raise, signal};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::getppid;
use shm::process::start_time;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
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

/// Returns the exit status of a process all of whose threads are zombies. Tracers may keep them,
/// and the parent from waiting for the process. `None` in every other case.
pub fn zombie_status(pid: u32) -> Option<ExitStatus> {
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    has_only_zombies(pid).then(|| status_in(&stat()?))?
}

/// Returns `true` if a pidfd's process can run no instruction any more: it has ended, or all its
/// threads are zombies. A tracer may keep such zombies.
///
/// # Errors
/// The pidfd cannot be watched.
pub fn is_dead(pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    let has_ended = wait_readable(&[pidfd], Duration::ZERO)?[0];
    Ok(has_ended || with_pid_of(pidfd, has_only_zombies) == Some(true))
}

/// Calls a function with the id of a pidfd's process. `None` if that was reaped before the function
/// has returned: the id may have been reused.
fn with_pid_of<T>(pidfd: BorrowedFd<'_>, call: impl FnOnce(u32) -> T) -> Option<T> {
    let pid = || {
        let text = read_short(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()).as_ref()).ok()?;
        text.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse::<u32>().ok()
    };
    let id = pid()?;
    let found = call(id);
    // The same id before and after: that process was not reaped, so its id was not reused.
    (pid() == Some(id)).then_some(found)
}

/// The number of a killed process's threads, and how many of them are exiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitingThreads {
    /// Number of threads that the kernel lists.
    pub count: usize,
    /// Number of threads that cannot store to memory any more; 0 if the list changed while it was
    /// read.
    pub exiting: usize,
    /// Exit status of the process; `None` if the kernel does not report it yet.
    pub status: Option<ExitStatus>,
}

impl ExitingThreads {
    /// Returns `true` if no thread of the killed process can store to memory any more.
    pub const fn is_all(&self) -> bool {
        self.count > 0 && self.exiting == self.count
    }
}

/// Sends SIGKILL to a pidfd's process, and reads which of its threads are exiting. A thread counts
/// that has left its address space on its way out of the kernel: no store of it can follow. The
/// memory itself may take the kernel milliseconds more.
///
/// The signal comes first: from then on the kernel starts no thread of the process, so threads only
/// become fewer. What it has asked the kernel to store later, and a process that shares its address
/// space (`CLONE_VM`), is not seen: believe this only where neither was possible.
///
/// # Errors
/// The process may not be signalled.
pub fn kill_and_inspect(pidfd: BorrowedFd<'_>) -> io::Result<ExitingThreads> {
    match kill(pidfd) {
        Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(error),
        _ => Ok(with_pid_of(pidfd, inspect_threads).unwrap_or_default()),
    }
}

/// Reads a file of `/proc` that is shorter than a page, by one call: its texts are made for each.
pub(crate) fn read_short(path: &Path) -> io::Result<String> {
    let mut text = [0; 4096];
    let length = File::open(path)?.read(&mut text)?;
    Ok(String::from_utf8_lossy(&text[..length]).into_owned())
}

fn inspect_threads(pid: u32) -> ExitingThreads {
    let (count, exiting) = count_threads(pid, is_exiting);
    let status = || status_code(&read_short(format!("/proc/{pid}/stat").as_ref()).ok()?);
    ExitingThreads { count, exiting, status: (count > 0 && exiting == count).then(status).flatten() }
}

/// Returns `true` if a thread can store to memory no more, from the text of its `stat` file: it is
/// a zombie; or it is exiting (`PF_EXITING`) and has no address space any more (size 0), so that
/// the kernel has made the last stores of its exit, such as freeing its robust locks.
pub(crate) fn is_exiting(stat: &str) -> bool {
    const PF_EXITING: u32 = 4;
    let flags = || field_in(stat, 9)?.parse::<u32>().ok();
    let has_left = || field_in(stat, 23) == Some("0");
    is_zombie(stat) || (flags().is_some_and(|flags| flags & PF_EXITING > 0) && has_left())
}

/// Returns `true` if all threads of a process are zombies.
fn has_only_zombies(pid: u32) -> bool {
    let (count, zombies) = count_threads(pid, is_zombie);
    count > 0 && zombies == count
}

/// Returns the number of a process's threads, and how many of them `is_so`, by the text of their
/// `stat` files. The second number is 0 if the threads have changed while they were read.
///
/// A thread that starts another one and ends could hide it from one listing. Then the process has
/// more threads than were listed, or one of those listed is gone from the second listing.
fn count_threads(pid: u32, is_so: impl Fn(&str) -> bool) -> (usize, usize) {
    let process = format!("/proc/{pid}");
    let threads = || {
        let tasks = std::fs::read_dir(format!("{process}/task")).into_iter().flatten().flatten();
        tasks.map(|task| task.path()).collect::<BTreeSet<PathBuf>>()
    };
    let stat = |of: &Path| read_short(&of.join("stat")).unwrap_or_default();
    let listed = threads();
    let those = listed.iter().filter(|thread| is_so(&stat(thread))).count();
    let is_stable = || threads_in(&stat(Path::new(&process))) == Some(listed.len()) && threads() == listed;
    (listed.len(), if those > 0 && is_stable() { those } else { 0 })
}

/// Returns `true` if a thread is a zombie, from the text of its `stat` file.
fn is_zombie(stat: &str) -> bool {
    matches!(state_in(stat), Some('Z' | 'X'))
}

/// Returns a field of a `stat` file, numbered as in proc_pid_stat(5). The name is the second one.
pub(crate) fn field_in(stat: &str, number: usize) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(number - 3)
}

/// Returns the number of a process's threads, from the text of its `stat` file.
fn threads_in(stat: &str) -> Option<usize> {
    field_in(stat, 20)?.parse().ok()
}

/// Returns how a zombie has ended, from the text of its `stat` file.
fn status_in(stat: &str) -> Option<ExitStatus> {
    is_zombie(stat).then(|| status_code(stat))?
}

/// Returns the exit code of a process that ends, from the text of its `stat` file.
fn status_code(stat: &str) -> Option<ExitStatus> {
    field_in(stat, 52)?.parse().ok().map(ExitStatus::from_raw)
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

/// Makes the kernel kill the process that `command` starts when the thread that starts it ends.
/// That holds from its first instruction on and without its cooperation.
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

/// Sets the timer slack of the calling thread to 1 ns: by default the kernel may let its timed
/// waits end 50 µs late.
pub fn set_precise_timers() {
    set_timer_slack(1);
}

/// Sets how late the kernel may end timed waits of this thread (timer slack), in nanoseconds; 0
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

/// Asks a process to end, by SIGINT, as Ctrl-C does.
///
/// # Errors
/// The process has ended, or belongs to another user.
pub fn interrupt(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    send(pidfd, Signal::SIGINT)
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

/// Interrupts a sleep of the pidfd's process if that handles SIGURG; every other one ignores it.
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

/// Reaps ended children of this process until it meets one whose id is in `last_id`, which is left
/// for the caller to reap. No other thread may start processes at the same time.
pub fn reap_orphans(last_id: &[u32]) {
    let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Some(pid) = waitid(Id::All, peek).ok().and_then(|status| status.pid()) {
        let is_own = last_id.contains(&(pid.as_raw() as u32));
        if is_own || waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG).is_err() {
            return;
        }
    }
}

/// Ends this process with the exit code or the signal of another process's `status`. Leaves no core
/// file.
pub fn exit_like(status: ExitStatus) -> ! {
    if let Some(fatal) = status.signal().and_then(|number| Signal::try_from(number).ok()) {
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
        // SAFETY: the signal gets its default action: no handler of ours runs.
        let _ = unsafe { signal(fatal, SigHandler::SigDfl) };
        let _ = raise(fatal);
    }
    std::process::exit(status.code().unwrap_or(1))
}

/// Returns `true` if a running process has a thread with this id, or if that cannot be read from
/// `/proc`.
pub fn has_thread(pid: u32, tid: u64) -> bool {
    std::path::Path::new(&format!("/proc/{pid}/task/{tid}")).try_exists().unwrap_or(true)
}

/// Returns a contained thread's id in the caller's PID namespace, given the id in the thread's own
/// namespace (`tid`). `pid` is its process in the caller's namespace. `None` if the thread does not
/// exist.
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

/// Waits until one of the descriptors is readable or the timeout is over. Returns whether each is
/// readable.
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
    fn stat_of_zombie_has_threads_and_status() {
        let stat = |state: &str, threads: u32| {
            format!("7 (a) b) {state} {}{threads} {}9", "0 ".repeat(16), "0 ".repeat(31))
        };
        assert_eq!(status_in(&stat("Z", 1)).and_then(|status| status.signal()), Some(9));
        assert_eq!(threads_in(&stat("Z", 2)), Some(2));
        for text in ["S", "t", "D", "R"].map(|state| stat(state, 1)).into_iter().chain(["7 (a) Z 1".into()]) {
            assert_eq!(status_in(&text), None, "{text}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn process_that_runs_is_not_dead() {
        let _guard = crate::only_one_has_children();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let fd = pidfd_open(child.id()).unwrap();
        assert!(!has_only_zombies(child.id()) && !is_dead(fd.as_fd()).unwrap());
        kill(fd.as_fd()).unwrap();
        assert!(wait_readable(&[fd.as_fd()], Duration::from_secs(60)).unwrap()[0]);
        assert!(has_only_zombies(child.id()) && is_dead(fd.as_fd()).unwrap(), "it is not reaped");
        child.wait().unwrap();
        assert!(!has_only_zombies(child.id()) && is_dead(fd.as_fd()).unwrap());
    }

    #[test]
    fn thread_is_exiting_once_it_has_left_its_memory() {
        let stat = |state: &str, flags: u32, size: u64| {
            format!("7 (a) b) {state} {}{flags} {}{size} 9", "0 ".repeat(5), "0 ".repeat(13))
        };
        assert!(is_exiting(&stat("R", 0x40_0104, 0)));
        assert!(is_exiting(&stat("Z", 0, 8192)), "a zombie");
        assert!(!is_exiting(&stat("R", 0x40_0104, 8192)), "the kernel may free its locks yet");
        assert!(!is_exiting(&stat("R", 0x40_0100, 0)), "as of a thread of the kernel");
        assert!(!is_exiting("") && !is_exiting("7 (a) R 1"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn inspected_process_is_killed_and_found_exiting() {
        let _guard = crate::only_one_has_children();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let fd = pidfd_open(child.id()).unwrap();
        assert!(!inspect_threads(child.id()).is_all(), "it runs");
        let found = loop {
            let found = kill_and_inspect(fd.as_fd()).unwrap();
            if found.is_all() {
                break found;
            }
            assert_ne!(found, ExitingThreads::default(), "nobody else reaps it");
        };
        assert_eq!(found.status.and_then(|status| status.signal()), Some(libc::SIGKILL));
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert_eq!(kill_and_inspect(fd.as_fd()).unwrap(), ExitingThreads::default(), "it was reaped");
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
