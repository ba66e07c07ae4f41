//! The container of a process: what a program with a runtime of its own sees of the machine, where
//! the sandbox's list of system calls would be too short for it.
//!
//! Three processes make one. Whoever is to be outside calls [`separate`], [`start_init`] and
//! [`give_up`], and then starts the program:
//!
//! ```text
//! outside: new namespaces ─ mounts ─┬─ starts init ───────────────┬─ gives up ─ starts the program ─ waits for it ─ kills init
//!                                   └─ init, process 1: /proc ─ check ─ …       └─ process 2
//! ```
//! Init is the first process of the new namespace of process ids. When it dies the kernel kills
//! whatever else is in there, and its own end is not seen before all of them are gone. It is not
//! the program itself, since the kernel spares process 1 the signals that it sends itself.
//!
//! No part needs root: the user namespace gives the rights for the others, over nothing but them.
//!
//! | [`Part`] | what it takes away |
//! |---|---|
//! | [`Part::Processes`] | other processes: they cannot be seen, signalled or traced; none stays behind |
//! | [`Part::Network`] | all networks and the abstract sockets |
//! | [`Part::Ipc`] | System V's and POSIX' queues, semaphores and memory |
//! | [`Part::Root`] | writing: every file system that was there is read-only; `/tmp` is empty, its own and small |
//! | [`Part::Memory`] | `/dev/shm` and `/dev`: there is what was handed over by name, read-only where it is to be read |
//! | [`Part::Calls`] | what no namespace separates: keys, sockets to the hypervisor, performance counters, holes in shared memory |
//! | [`Part::Rights`] | capabilities, further user namespaces, truncating a file of others, limits |
//!
//! Clocks are the host's: there is no time namespace, and stamps are those of everybody else.

mod calls;
pub mod check;
mod mounts;

use crate::memory::STRATEGY_ROOM;
use crate::process;
use crate::sandbox::{SandboxError, landlock_lengths, limits};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::Resource;
use nix::unistd::{getegid, geteuid};
use shm::attached::Access;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use thiserror::Error;

pub use mounts::{DEVICES, HIDDEN, TMP};

/// The process id of the program in its namespace: init is 1, and starts nothing.
pub const PROGRAM: u32 = 2;

/// How many processes and threads may be in a container, its init among them.
pub const PROCESSES: u64 = 128;

/// How many files the program may have open, which is what most systems allow an ordinary process.
pub const DESCRIPTORS: u64 = 1024;

/// What all processes of a container may take together, in bytes: what one may, and as much again.
pub const MEMORY_BYTES: u64 = 2 * STRATEGY_ROOM;

/// How large a file may get, and all of `/tmp` together, in bytes.
pub const TMP_BYTES: u64 = 64 << 20;

/// What a container is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A namespace of process ids, and `/proc` of it.
    Processes,
    /// A namespace of networks, with none.
    Network,
    /// A namespace of interprocess communication.
    Ipc,
    /// File systems read-only, `/tmp` its own.
    Root,
    /// `/dev` and `/dev/shm` its own.
    Memory,
    /// No system calls past all namespaces.
    Calls,
    /// No capabilities, no further namespaces, limits.
    Rights,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 7] =
        [Part::Processes, Part::Network, Part::Ipc, Part::Root, Part::Memory, Part::Calls, Part::Rights];

    /// Its name: see [`Part::from_name`].
    pub const fn name(self) -> &'static str {
        match self {
            Part::Processes => "processes",
            Part::Network => "network",
            Part::Ipc => "ipc",
            Part::Root => "root",
            Part::Memory => "memory",
            Part::Calls => "calls",
            Part::Rights => "rights",
        }
    }

    /// The part of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// A file in `/dev/shm` that is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    /// Its name.
    pub name: String,
    /// What may be done with it.
    pub access: Access,
}

/// What is in a container.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Of `/dev/shm`.
    pub memory: Vec<Handed>,
    /// Folders that are there although they are in a place that is hidden ([`HIDDEN`]): read-only.
    pub folders: Vec<PathBuf>,
}

/// Why there is no container.
#[derive(Debug, Error)]
pub enum ContainerError {
    /// The kernel gives no namespaces.
    #[error("{what}: {source}")]
    Namespace {
        /// What was asked for.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A mount that cannot be made.
    #[error("{what} {path}: {source}", path = path.display())]
    Mount {
        /// What was to be done.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Init cannot be started: most often since it may not mount `/proc`.
    #[error(
        "start its first process, with a /proc of its own: {0} (a container that hides parts of /proc allows no second one)"
    )]
    Init(#[source] io::Error),
    /// Rights that cannot be given up.
    #[error(transparent)]
    Rights(#[from] SandboxError),
}

/// Puts the calling process into new namespaces, all but that of process ids, which is for those
/// that it starts from now on; and arranges what is to be seen there. It must have one thread.
/// Leaves out what is not among the parts, which is for tests of the check alone.
///
/// # Errors
/// The first step that the kernel refuses. What was done stays done: the process should end.
pub fn separate(contents: &Contents, parts: &[Part]) -> Result<(), ContainerError> {
    let (user, group) = (geteuid(), getegid());
    let flag = |part, flag| if parts.contains(&part) { flag } else { CloneFlags::empty() };
    let flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWUTS
        | flag(Part::Processes, CloneFlags::CLONE_NEWPID)
        | flag(Part::Network, CloneFlags::CLONE_NEWNET)
        | flag(Part::Ipc, CloneFlags::CLONE_NEWIPC);
    unshare(flags).map_err(|error| refused("make namespaces")(error.into()))?;
    // The same user as outside: files are whose they are.
    let map = |file: &str, text: String| std::fs::write(format!("/proc/self/{file}"), text);
    map("setgroups", "deny".into()).map_err(refused("give up further groups"))?;
    map("uid_map", format!("{user} {user} 1")).map_err(refused("map the user"))?;
    map("gid_map", format!("{group} {group} 1")).map_err(refused("map the group"))?;
    if parts.contains(&Part::Rights) {
        // Of this namespace and what is below it.
        std::fs::write("/proc/sys/user/max_user_namespaces", "0")
            .map_err(refused("forbid further user namespaces"))?;
    }
    mounts::arrange(contents, parts)?;
    // Gains no privileges from here on, which is for who has given up those that it has.
    if parts.contains(&Part::Calls) && parts.contains(&Part::Rights) {
        calls::refuse()?;
    }
    Ok(())
}

fn refused(what: &'static str) -> impl FnOnce(io::Error) -> ContainerError {
    move |source| ContainerError::Namespace { what, source }
}

/// Starts process 1 of the namespace that the calling process has made with [`separate`]: with
/// `/proc` of it, without any right, and killed when the calling thread dies.
///
/// # Errors
/// `/proc` cannot be mounted; the program cannot be started.
pub fn start_init(command: &mut Command, parts: &[Part]) -> Result<Child, ContainerError> {
    let (has_proc, has_rights) = (parts.contains(&Part::Processes), !parts.contains(&Part::Rights));
    let ask = move || -> io::Result<()> {
        nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
        if has_proc {
            mounts::proc()?;
        }
        if has_rights { Ok(()) } else { crate::sandbox::give_up_privileges() }
    };
    // SAFETY: the calling process has one thread (the kernel gives no user namespace to one that
    // has more), so what runs between fork and exec finds no lock taken and no memory half changed.
    // The closure makes system calls and nothing else.
    unsafe { command.pre_exec(ask) };
    command.spawn().map_err(ContainerError::Init)
}

/// Gives up what the program is not to have, for the calling process and those that it starts from
/// now on. `priority`: the highest that its threads may take, 0 for none; `weaker_is_fine`: also
/// where this kernel cannot refuse to cut shared files off.
///
/// # Errors
/// [`ContainerError::Rights`].
pub fn give_up(parts: &[Part], priority: u8, weaker_is_fine: bool) -> Result<(), ContainerError> {
    if !parts.contains(&Part::Rights) {
        return Ok(());
    }
    landlock_lengths(&[Path::new(TMP)], weaker_is_fine)?;
    limits::set(LIMITS).map_err(SandboxError::Limits)?;
    let priority = limits::Limit {
        resource: Resource::RLIMIT_RTPRIO,
        value: priority.into(),
        why: "a thread with a higher one than the engine's would have the core for ever",
    };
    limits::set(&[priority]).map_err(SandboxError::Limits)?;
    Ok(())
}

/// What the program and everything that it starts may use, each for itself but the first.
const LIMITS: &[limits::Limit] = &[
    limits::Limit {
        resource: Resource::RLIMIT_NPROC,
        value: PROCESSES,
        why: "processes and threads of the user in this user namespace (Linux 5.14); it does not bind root, whom a control group does",
    },
    limits::Limit {
        resource: Resource::RLIMIT_NOFILE,
        value: DESCRIPTORS,
        why: "what most systems allow an ordinary process",
    },
    limits::Limit {
        resource: Resource::RLIMIT_FSIZE,
        value: TMP_BYTES,
        why: "what it says on stderr goes to a file of the host",
    },
    limits::Limit { resource: Resource::RLIMIT_CORE, value: 0, why: "a core file is as large as its memory" },
];

/// What process 1 does: nothing, for as long as it is wanted. Children of others that have ended
/// are nobody's here, and go by themselves.
///
/// # Errors
/// What the system refused.
pub fn be_init() -> io::Result<()> {
    process::leave_no_zombies()?;
    // Until the one outside is gone, or ends this process.
    while io::Read::read(&mut io::stdin(), &mut [0; 64])? > 0 {}
    Ok(())
}
