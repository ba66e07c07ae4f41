//! System calls of a stopped task, in words, and whether they change the world: what a killed
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
    /// Its name, and the file that it is about, if any.
    pub what: String,
    /// It makes, fills or removes a file of the run, starts or ends a process, or takes note of
    /// one.
    pub changes: bool,
}

/// Where a call names a file.
enum CallTarget {
    Path(usize),
    Fd(usize),
    /// Nowhere, and it always changes the world.
    World,
    /// Nowhere that matters.
    Nothing,
}

/// The calls that change the world, or may, and those that a test asks for by name.
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
    (libc::SYS_memfd_create, "memfd_create", CallTarget::World),
    (libc::SYS_clone, "clone", CallTarget::World),
    (libc::SYS_clone3, "clone3", CallTarget::World),
    (libc::SYS_fork, "fork", CallTarget::World),
    (libc::SYS_vfork, "vfork", CallTarget::World),
    (libc::SYS_execve, "execve", CallTarget::World),
    (libc::SYS_pidfd_open, "pidfd_open", CallTarget::World),
    (libc::SYS_kill, "kill", CallTarget::World),
    (libc::SYS_wait4, "wait4", CallTarget::World),
    (libc::SYS_waitid, "waitid", CallTarget::World),
    (libc::SYS_exit_group, "exit_group", CallTarget::World),
    (libc::SYS_bind, "bind", CallTarget::World),
    (libc::SYS_poll, "poll", CallTarget::Nothing),
    (libc::SYS_ppoll, "ppoll", CallTarget::Nothing),
    (libc::SYS_read, "read", CallTarget::Nothing),
    (libc::SYS_sched_yield, "sched_yield", CallTarget::Nothing),
    (libc::SYS_restart_syscall, "restart_syscall", CallTarget::Nothing),
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
        CallTarget::Path(index) => path_at(task, arguments[*index]),
        // An anonymous mapping's descriptor is -1, and has no link.
        CallTarget::Fd(index) => link_of(task, arguments[*index] as i32),
        CallTarget::World | CallTarget::Nothing => None,
    };
    // Not what the start finds there of other runs: that would be another number of stops each
    // time.
    let segment = format!("-{launcher}.");
    let of_run = |file: &String| {
        file.starts_with("/dev/shm/bulkhead.") && file.contains(&segment)
            || file.starts_with("/memfd:")
            || Path::new(file).starts_with(out)
    };
    let changes = matches!(about, CallTarget::World) || file.as_ref().is_some_and(of_run);
    let what = file.map_or_else(|| (*name).to_owned(), |file| format!("{name} {file}"));
    Ok(Call { name, what, changes })
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
