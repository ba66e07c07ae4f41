//! Containers: isolation by namespaces for programs with a runtime, which need more system calls
//! than the sandbox allows.
//!
//! Three processes make a container. The outer process calls [`enter_namespaces`], [`start_init`]
//! and [`drop_rights`], and then starts the program:
//!
//! ```text
//! outside: new namespaces ─ mounts ─┬─ starts init ─ drops rights ─┬─ waits ─ kills init
//!                                   └─ init, process 1: /proc      └─ the program, process 2
//! ```
//! Init is the first process of the new PID namespace. When it dies, the kernel kills all other
//! processes in the namespace, and reports init's end only after theirs. The program itself is not
//! init, because the kernel does not deliver to process 1 the signals that it sends itself.
//!
//! No part needs root: the user namespace gives the rights for the other namespaces only.
//!
//! | [`ContainerPart`] | what it takes away |
//! |---|---|
//! | [`ContainerPart::Processes`] | seeing, signalling or tracing other processes |
//! | [`ContainerPart::Network`] | all networks and the abstract sockets |
//! | [`ContainerPart::Ipc`] | System V's and POSIX' queues, semaphores and memory |
//! | [`ContainerPart::Root`] | writing, except to a small private `/tmp` |
//! | [`ContainerPart::Memory`] | `/dev/shm` and `/dev`, except what was handed over |
//! | [`ContainerPart::Calls`] | calls that no namespace separates, such as keys |
//! | [`ContainerPart::Rights`] | capabilities, user namespaces, truncation |
//!
//! Clocks are the host's, without a time namespace, so stamps are comparable.

mod calls;
pub mod check;
mod mounts;

use crate::memory::STRATEGY_MEMORY_BYTES;
use crate::named_enum;
use crate::sandbox::{SandboxError, landlock_lengths, limits, refuse_calls, refuse_x32};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::Resource;
use nix::sys::signal::Signal;
use nix::unistd::{getegid, geteuid};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use thiserror::Error;

pub use mounts::{DEVICES, HIDDEN, TMP};

/// The process id of a contained program within its container's PID namespace. Init is 1, and
/// starts no process.
pub const PROGRAM: u32 = 2;

/// Maximum number of processes and threads in a container, init included.
pub const PROCESSES: u64 = 128;

/// Number of processes of a container in addition to its program: the outer process that sets it
/// up, and its init. They count towards its limit.
pub const OWN_PROCESSES: u64 = 2;

/// Maximum number of open files of a contained program, the usual default of a process.
pub const DESCRIPTORS: u64 = 1024;

/// Memory limit of all processes of a container together, in bytes, unless a user sets another. A
/// single process meets its own limit first: its allocation fails, as outside of a container.
pub const MEMORY_BYTES: u64 = STRATEGY_MEMORY_BYTES / 4 * 5;

/// Maximum total size of a container's `/tmp`, and of each file in it, in bytes.
pub const TMP_BYTES: u64 = 64 << 20;

named_enum! {
    /// A part of a container's isolation. Parts are set up in the order of their definition.
    ContainerPart {
        /// A PID namespace with a `/proc` of its own, so that other processes are invisible.
        Processes = "processes",
        /// A network namespace without networks.
        Network = "network",
        /// An IPC namespace: System V IPC and POSIX message queues of the host are out of reach.
        Ipc = "ipc",
        /// Read-only file systems and a private `/tmp`.
        Root = "root",
        /// A private `/dev` and `/dev/shm`.
        Memory = "memory",
        /// Refused system calls that namespaces do not confine.
        Calls = "calls",
        /// No capabilities, no further namespaces, resource limits.
        Rights = "rights",
    }
}

/// The files and directories that a container may use.
#[derive(Clone, Debug, Default)]
pub struct ContainerContents {
    /// The files of `/dev/shm`, and whether each is writable.
    pub memory: Vec<(String, bool)>,
    /// Directories below hidden ones ([`HIDDEN`]) that stay visible, read-only.
    pub folders: Vec<PathBuf>,
    /// Further directories that are empty in the container, wherever they are.
    pub hidden: Vec<PathBuf>,
}

/// An error while creating a container.
#[derive(Debug, Error)]
pub enum ContainerError {
    /// The kernel refuses a namespace.
    #[error("{0}: {1}")]
    Namespace(&'static str, #[source] io::Error),
    /// A mount of the container fails.
    #[error("{0} {path}: {2}", path = .1.display())]
    Mount(&'static str, PathBuf, #[source] io::Error),
    /// Init cannot be started, most often because it may not mount `/proc`.
    #[error(
        "start its first process, with a /proc of its own: {0} (a container that hides parts of /proc allows no second one)"
    )]
    Init(#[source] io::Error),
    /// The rights of the process cannot be dropped.
    #[error(transparent)]
    Rights(#[from] SandboxError),
}

/// Moves the calling single-threaded process into new namespaces and sets up its mounts. The PID
/// namespace applies to the processes that it starts afterwards. Omits parts that are not in
/// `parts`, for tests of the check only.
///
/// # Errors
/// The first step that the kernel refuses. Earlier steps stay in effect: the process should exit.
pub fn enter_namespaces(contents: &ContainerContents, parts: &[ContainerPart]) -> Result<(), ContainerError> {
    let (user, group) = (geteuid(), getegid());
    let flag = |part, flag| if parts.contains(&part) { flag } else { CloneFlags::empty() };
    let flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWUTS
        | flag(ContainerPart::Processes, CloneFlags::CLONE_NEWPID)
        | flag(ContainerPart::Network, CloneFlags::CLONE_NEWNET)
        | flag(ContainerPart::Ipc, CloneFlags::CLONE_NEWIPC);
    unshare(flags).map_err(|error| namespace_error("make namespaces")(error.into()))?;
    // The same user id as outside, so that the owners of files stay the same.
    let map = |file: &str, text: String| std::fs::write(format!("/proc/self/{file}"), text);
    map("setgroups", "deny".into()).map_err(namespace_error("give up further groups"))?;
    map("uid_map", format!("{user} {user} 1")).map_err(namespace_error("map the user"))?;
    map("gid_map", format!("{group} {group} 1")).map_err(namespace_error("map the group"))?;
    if parts.contains(&ContainerPart::Rights) {
        // Applies to this namespace and those below it.
        std::fs::write("/proc/sys/user/max_user_namespaces", "0")
            .map_err(namespace_error("forbid further user namespaces"))?;
    }
    mounts::arrange(contents, parts)?;
    // Sets `no_new_privs`, so the process must already have dropped its own privileges.
    if parts.contains(&ContainerPart::Calls) && parts.contains(&ContainerPart::Rights) {
        refuse_calls(calls::REFUSED.iter(), libc::EPERM)?;
        refuse_calls(calls::UNSUPPORTED.iter(), libc::EOPNOTSUPP)?;
        refuse_calls(calls::MISSING.iter(), libc::ENOSYS)?;
        refuse_x32()?;
    }
    Ok(())
}

fn namespace_error(what: &'static str) -> impl FnOnce(io::Error) -> ContainerError {
    move |error| ContainerError::Namespace(what, error)
}

/// Starts the container's process 1 after [`enter_namespaces`], with its own `/proc` and without
/// rights. It is killed when the calling thread dies.
pub fn start_init(command: &mut Command, parts: &[ContainerPart]) -> Result<Child, ContainerError> {
    let (has_proc, has_rights) =
        (parts.contains(&ContainerPart::Processes), !parts.contains(&ContainerPart::Rights));
    let before_exec = move || -> io::Result<()> {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        if has_proc {
            mounts::proc()?;
        }
        if has_rights { Ok(()) } else { crate::sandbox::give_up_privileges() }
    };
    // SAFETY: the calling process has one thread (the kernel gives no user namespace to one that
    // has more), so what runs between fork and exec finds no lock taken and no memory half changed.
    // The closure makes system calls and nothing else.
    unsafe { command.pre_exec(before_exec) };
    command.spawn().map_err(ContainerError::Init)
}

/// The limits that are set on each process in a container, which the kernel enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerLimits {
    /// Maximum number of processes and threads of the container's user.
    pub processes: u64,
    /// Maximum number of open files of each process.
    pub files: u64,
    /// Highest real-time priority of threads in the container; 0 for none.
    pub priority: u8,
}

impl Default for ContainerLimits {
    fn default() -> Self {
        Self { processes: PROCESSES, files: DESCRIPTORS, priority: 0 }
    }
}

/// Drops the capabilities of this process and its descendants, limits their resources, and forbids
/// them to truncate files outside their `/tmp`. Does nothing without [`ContainerPart::Rights`] in
/// `parts`. With `allow_weaker`, a kernel is accepted that cannot refuse the truncation of shared
/// files.
pub fn drop_rights(
    parts: &[ContainerPart],
    limits: &ContainerLimits,
    allow_weaker: bool,
) -> Result<(), ContainerError> {
    if !parts.contains(&ContainerPart::Rights) {
        return Ok(());
    }
    landlock_lengths(&[Path::new(TMP)], allow_weaker)?;
    let limits = [
        // Processes and threads of the user in this user namespace (Linux 5.14). It does not bind
        // root, whom a cgroup binds.
        (Resource::RLIMIT_NPROC, limits.processes),
        (Resource::RLIMIT_NOFILE, limits.files),
        // Its stderr goes to a file of the host.
        (Resource::RLIMIT_FSIZE, TMP_BYTES),
        (Resource::RLIMIT_CORE, 0),
        // A thread with a higher priority than the engine's would have the core for ever.
        (Resource::RLIMIT_RTPRIO, limits.priority.into()),
    ];
    limits::set(&limits).map_err(SandboxError::Limits)?;
    Ok(())
}

/// Waits, as process 1 of the container, until the outer process closes the pipe that is this
/// process's stdin. Orphans are reaped by the kernel.
pub fn run_init() -> io::Result<()> {
    crate::process::ignore_signal(Signal::SIGCHLD)?;
    // Until the outer process has ended, or kills this process.
    while io::Read::read(&mut io::stdin(), &mut [0; 64])? > 0 {}
    Ok(())
}
