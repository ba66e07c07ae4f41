//! System calls of a stopped task, in words, and whether they change the world: what a killed
//! launcher would leave behind.

use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A system call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its name.
    pub name: &'static str,
    /// Its name, and the file that it is about, if any.
    pub what: String,
    /// It makes, fills or removes a file of the run, starts or ends a process, or takes note of
    /// one.
    pub changes: bool,
}

/// Where a call names a file.
enum About {
    /// In a path: the index of the argument.
    Path(usize),
    /// By a descriptor: the index of the argument.
    Fd(usize),
    /// Nowhere, and it always changes the world.
    World,
    /// Nowhere that matters.
    Nothing,
}

/// The calls that a launcher was seen to make, and what may take their place in another C library.
const CALLS: &[(libc::c_long, &str, About)] = &[
    (libc::SYS_openat, "openat", About::Path(1)),
    (libc::SYS_open, "open", About::Path(0)),
    (libc::SYS_unlink, "unlink", About::Path(0)),
    (libc::SYS_unlinkat, "unlinkat", About::Path(1)),
    (libc::SYS_mkdir, "mkdir", About::Path(0)),
    (libc::SYS_mkdirat, "mkdirat", About::Path(1)),
    (libc::SYS_rmdir, "rmdir", About::Path(0)),
    (libc::SYS_mknod, "mknod", About::Path(0)),
    (libc::SYS_mknodat, "mknodat", About::Path(1)),
    (libc::SYS_rename, "rename to", About::Path(1)),
    (libc::SYS_renameat, "renameat to", About::Path(3)),
    (libc::SYS_renameat2, "renameat2 to", About::Path(3)),
    (libc::SYS_chmod, "chmod", About::Path(0)),
    (libc::SYS_write, "write", About::Fd(0)),
    (libc::SYS_pwrite64, "pwrite64", About::Fd(0)),
    (libc::SYS_ftruncate, "ftruncate", About::Fd(0)),
    (libc::SYS_fallocate, "fallocate", About::Fd(0)),
    (libc::SYS_fchmod, "fchmod", About::Fd(0)),
    (libc::SYS_fsync, "fsync", About::Fd(0)),
    (libc::SYS_fdatasync, "fdatasync", About::Fd(0)),
    (libc::SYS_close, "close", About::Fd(0)),
    (libc::SYS_mmap, "mmap", About::Fd(4)),
    (libc::SYS_memfd_create, "memfd_create", About::World),
    (libc::SYS_clone, "clone", About::World),
    (libc::SYS_clone3, "clone3", About::World),
    (libc::SYS_fork, "fork", About::World),
    (libc::SYS_vfork, "vfork", About::World),
    (libc::SYS_execve, "execve", About::World),
    (libc::SYS_pidfd_open, "pidfd_open", About::World),
    (libc::SYS_kill, "kill", About::World),
    (libc::SYS_wait4, "wait4", About::World),
    (libc::SYS_waitid, "waitid", About::World),
    (libc::SYS_exit_group, "exit_group", About::World),
    (libc::SYS_bind, "bind", About::World),
    (libc::SYS_futex, "futex", About::Nothing),
    (libc::SYS_poll, "poll", About::Nothing),
    (libc::SYS_ppoll, "ppoll", About::Nothing),
    (libc::SYS_read, "read", About::Nothing),
    (libc::SYS_pread64, "pread64", About::Nothing),
    (libc::SYS_getdents64, "getdents64", About::Nothing),
    (libc::SYS_statx, "statx", About::Nothing),
    (libc::SYS_newfstatat, "newfstatat", About::Nothing),
    (libc::SYS_statfs, "statfs", About::Nothing),
    (libc::SYS_fstatfs, "fstatfs", About::Nothing),
    (libc::SYS_readlink, "readlink", About::Nothing),
    (libc::SYS_access, "access", About::Nothing),
    (libc::SYS_fcntl, "fcntl", About::Nothing),
    (libc::SYS_ioctl, "ioctl", About::Nothing),
    (libc::SYS_close_range, "close_range", About::Nothing),
    (libc::SYS_lseek, "lseek", About::Nothing),
    (libc::SYS_getcwd, "getcwd", About::Nothing),
    (libc::SYS_socketpair, "socketpair", About::Nothing),
    (libc::SYS_sendto, "sendto", About::Nothing),
    (libc::SYS_recvfrom, "recvfrom", About::Nothing),
    (libc::SYS_munmap, "munmap", About::Nothing),
    (libc::SYS_mremap, "mremap", About::Nothing),
    (libc::SYS_mprotect, "mprotect", About::Nothing),
    (libc::SYS_madvise, "madvise", About::Nothing),
    (libc::SYS_brk, "brk", About::Nothing),
    (libc::SYS_rt_sigaction, "rt_sigaction", About::Nothing),
    (libc::SYS_rt_sigprocmask, "rt_sigprocmask", About::Nothing),
    (libc::SYS_rt_sigreturn, "rt_sigreturn", About::Nothing),
    (libc::SYS_sigaltstack, "sigaltstack", About::Nothing),
    (libc::SYS_sched_yield, "sched_yield", About::Nothing),
    (libc::SYS_sched_getaffinity, "sched_getaffinity", About::Nothing),
    (libc::SYS_sched_setaffinity, "sched_setaffinity", About::Nothing),
    (libc::SYS_clock_nanosleep, "clock_nanosleep", About::Nothing),
    (libc::SYS_restart_syscall, "restart_syscall", About::Nothing),
    (libc::SYS_prlimit64, "prlimit64", About::Nothing),
    (libc::SYS_prctl, "prctl", About::Nothing),
    (libc::SYS_arch_prctl, "arch_prctl", About::Nothing),
    (libc::SYS_set_tid_address, "set_tid_address", About::Nothing),
    (libc::SYS_set_robust_list, "set_robust_list", About::Nothing),
    (libc::SYS_rseq, "rseq", About::Nothing),
    (libc::SYS_getrandom, "getrandom", About::Nothing),
    (libc::SYS_getpid, "getpid", About::Nothing),
    (libc::SYS_gettid, "gettid", About::Nothing),
    (libc::SYS_exit, "exit", About::Nothing),
    (libc::SYS_landlock_create_ruleset, "landlock_create_ruleset", About::Nothing),
];

/// The call that a task of `launcher` has stopped at the begin or the end of. `out` is where the
/// run's folder is.
pub fn call_of(launcher: Pid, task: Pid, out: &Path) -> nix::Result<Call> {
    let registers = ptrace::getregs(task)?;
    let number = registers.orig_rax as libc::c_long;
    let arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
    let Some((_, name, about)) = CALLS.iter().find(|(known, ..)| *known == number) else {
        return Ok(Call { name: "another", what: format!("system call {number}"), changes: false });
    };
    let file = match about {
        About::Path(index) => path_at(task, arguments[*index]),
        // An anonymous mapping's descriptor is -1, and has no link.
        About::Fd(index) => link_of(task, arguments[*index] as i32),
        About::World | About::Nothing => None,
    };
    // Not what the start finds there of other runs: that would be another number of stops each
    // time.
    let segment = format!("-{launcher}.");
    let of_run = |file: &String| {
        file.starts_with("/dev/shm/bulkhead.") && file.contains(&segment)
            || file.starts_with("/memfd:")
            || Path::new(file).starts_with(out)
    };
    let changes = matches!(about, About::World) || file.as_ref().is_some_and(of_run);
    let what = file.map_or_else(|| (*name).to_owned(), |file| format!("{name} {file}"));
    Ok(Call { name, what, changes })
}

/// The string at an address of the task.
fn path_at(task: Pid, address: u64) -> Option<String> {
    let mut bytes = [0; 512];
    let read = File::open(format!("/proc/{task}/mem")).ok()?.read_at(&mut bytes, address).ok()?;
    let end = bytes[..read].iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// The file behind a descriptor of the task.
fn link_of(task: Pid, fd: i32) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/{task}/fd/{fd}")).ok()?;
    Some(link.to_string_lossy().into_owned())
}
