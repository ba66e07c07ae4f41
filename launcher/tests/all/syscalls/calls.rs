//! Descriptions of a stopped task's system calls, and whether they change state that a killed
//! launcher would leave behind.

use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

#[derive(Clone, Debug)]
pub struct Call {
    pub name: &'static str,
    /// The call's name and its file, if any.
    pub description: String,
    /// `true` if the call creates, fills or removes a file of the run, or starts, ends or awaits a
    /// process.
    pub changes_state: bool,
}

/// Where a call names its file, which decides whether it changes state.
enum CallTarget {
    Path(usize),
    Fd(usize),
    /// No file; the call always changes state.
    Always,
    /// No file; the call never changes state.
    Never,
}

/// The calls that can change state, and those that a test needs by name.
const CALLS: &[(libc::c_long, &str, CallTarget)] = &[
    (libc::SYS_openat, "openat", CallTarget::Path(1)),
    (libc::SYS_open, "open", CallTarget::Path(0)),
    (libc::SYS_unlink, "unlink", CallTarget::Path(0)),
    (libc::SYS_unlinkat, "unlinkat", CallTarget::Path(1)),
    (libc::SYS_mkdir, "mkdir", CallTarget::Path(0)),
    (libc::SYS_mkdirat, "mkdirat", CallTarget::Path(1)),
    (libc::SYS_rmdir, "rmdir", CallTarget::Path(0)),
    (libc::SYS_mknod, "mknod", CallTarget::Path(0)),
    (libc::SYS_mknodat, "mknodat", CallTarget::Path(1)),
    (libc::SYS_rename, "rename to", CallTarget::Path(1)),
    (libc::SYS_renameat, "renameat to", CallTarget::Path(3)),
    (libc::SYS_renameat2, "renameat2 to", CallTarget::Path(3)),
    (libc::SYS_chmod, "chmod", CallTarget::Path(0)),
    (libc::SYS_write, "write", CallTarget::Fd(0)),
    (libc::SYS_pwrite64, "pwrite64", CallTarget::Fd(0)),
    (libc::SYS_ftruncate, "ftruncate", CallTarget::Fd(0)),
    (libc::SYS_fallocate, "fallocate", CallTarget::Fd(0)),
    (libc::SYS_fchmod, "fchmod", CallTarget::Fd(0)),
    (libc::SYS_fsync, "fsync", CallTarget::Fd(0)),
    (libc::SYS_fdatasync, "fdatasync", CallTarget::Fd(0)),
    (libc::SYS_close, "close", CallTarget::Fd(0)),
    (libc::SYS_mmap, "mmap", CallTarget::Fd(4)),
    (libc::SYS_memfd_create, "memfd_create", CallTarget::Always),
    (libc::SYS_clone, "clone", CallTarget::Always),
    (libc::SYS_clone3, "clone3", CallTarget::Always),
    (libc::SYS_fork, "fork", CallTarget::Always),
    (libc::SYS_vfork, "vfork", CallTarget::Always),
    (libc::SYS_execve, "execve", CallTarget::Always),
    (libc::SYS_pidfd_open, "pidfd_open", CallTarget::Always),
    (libc::SYS_kill, "kill", CallTarget::Always),
    (libc::SYS_wait4, "wait4", CallTarget::Always),
    (libc::SYS_waitid, "waitid", CallTarget::Always),
    (libc::SYS_exit_group, "exit_group", CallTarget::Always),
    (libc::SYS_bind, "bind", CallTarget::Always),
    (libc::SYS_poll, "poll", CallTarget::Never),
    (libc::SYS_ppoll, "ppoll", CallTarget::Never),
    (libc::SYS_read, "read", CallTarget::Never),
    (libc::SYS_sched_yield, "sched_yield", CallTarget::Never),
    (libc::SYS_restart_syscall, "restart_syscall", CallTarget::Never),
];

/// Returns the call at whose entry or exit a task of `launcher` has stopped. `out` contains the
/// run's folder.
pub fn call_of(launcher: Pid, task: Pid, out: &Path) -> nix::Result<Call> {
    let registers = ptrace::getregs(task)?;
    let number = registers.orig_rax as libc::c_long;
    let arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
    let Some((_, name, target)) = CALLS.iter().find(|(other, ..)| *other == number) else {
        return Ok(Call {
            name: "another",
            description: format!("system call {number}"),
            changes_state: false,
        });
    };
    let file = match target {
        CallTarget::Path(index) => path_at(task, arguments[*index]),
        // An anonymous mapping's descriptor is -1, and has no link.
        CallTarget::Fd(index) => link_of(task, arguments[*index] as i32),
        CallTarget::Always | CallTarget::Never => None,
    };
    // Files of other runs do not count: their number differs from start to start.
    let segment = format!("-{launcher}.");
    let of_run = |file: &String| {
        file.starts_with("/dev/shm/bulkhead.") && file.contains(&segment)
            || file.starts_with("/memfd:")
            || Path::new(file).starts_with(out)
    };
    let changes_state = matches!(target, CallTarget::Always) || file.as_ref().is_some_and(of_run);
    let description = file.map_or_else(|| (*name).to_owned(), |file| format!("{name} {file}"));
    Ok(Call { name, description, changes_state })
}

fn path_at(task: Pid, address: u64) -> Option<String> {
    let mut bytes = [0; 512];
    let read = File::open(format!("/proc/{task}/mem")).ok()?.read_at(&mut bytes, address).ok()?;
    let end = bytes[..read].iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

fn link_of(task: Pid, fd: i32) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/{task}/fd/{fd}")).ok()?;
    Some(link.to_string_lossy().into_owned())
}
