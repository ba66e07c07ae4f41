//! Confines this process: limits, privileges, Landlock and seccomp, once it has attached to all its
//! segments.
//!
//! A [`SandboxProfile`] describes as data the layers of a role, its allowed system calls and its
//! limits. No layer needs root, and each is independent of the others (defense in
//! depth):
//!
//! | layer | when | refuses |
//! |---|---|---|
//! | descriptors | when the process starts | files and rights that were not handed over |
//! | [`SandboxLayer::Privileges`] | before any second thread | privileges of root, new privileges |
//! | [`SandboxLayer::Landlock`] | before a second thread | files not in [`AllowedFiles`], TCP |
//! | [`SandboxLayer::Limits`] | before any second thread | descriptors, endless files, core files |
//! | [`SandboxLayer::Calls`] | after the threads are pinned | all but about twenty system calls |
//!
//! The first layer is not part of a profile: a process gets only the descriptors meant for it
//! ([`inherited_by`](shm::memory::sealed::inherited_by))and closes them when it has mapped them.
//! The mapped memory can be neither truncated (it is sealed) nor mapped again with more rights.
//!
//! Privileges and landlock bind a thread and those that it starts later. So they are set up while
//! there is one thread: [`SandboxProfile::confine`] refuses a process with more threads.

mod calls;
mod landlock;
pub(crate) mod limits;
mod privileges;

pub use calls::{ArgCondition, SyscallRule};
pub use landlock::AllowedFiles;
pub use limits::{ResourceLimits, STDERR_BYTES};
// Shared with containers and protection keys.
pub(crate) use calls::{call, refuse as refuse_calls, refuse_in_thread, refuse_x32};
pub(crate) use landlock::refuse_truncation as landlock_lengths;
pub(crate) use privileges::drop_all as give_up_privileges;

use thiserror::Error;

/// A layer of the sandbox, such as seccomp or landlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxLayer {
    /// No capabilities, and no way to get any (`no_new_privs`).
    Privileges,
    /// Landlock: file, network and signal restrictions.
    Landlock,
    /// Resource limits, and no capability to raise them.
    Limits,
    /// Seccomp: a list of allowed system calls.
    Calls,
}

impl SandboxLayer {
    /// All layers of the sandbox, in the order in which they are set up.
    pub const ALL: [SandboxLayer; 4] =
        [SandboxLayer::Privileges, SandboxLayer::Landlock, SandboxLayer::Limits, SandboxLayer::Calls];
}

/// The sandbox of a role as data: layers, allowed system calls and resource limits.
#[derive(Clone, Copy, Debug)]
pub struct SandboxProfile {
    /// The profile's name.
    pub name: &'static str,
    /// The layers that the profile sets up; a single one for the layer's tests.
    pub layers: &'static [SandboxLayer],
    /// Lists of allowed system calls; a call is allowed if any list allows it.
    pub calls: &'static [&'static [SyscallRule]],
    /// The resource limits of the confined process.
    pub limits: ResourceLimits,
}

/// The sandbox of a strategy: it can wait, trade through memory, report an error, and exit.
pub const STRATEGY: SandboxProfile = SandboxProfile {
    name: "strategy",
    layers: &SandboxLayer::ALL,
    calls: &[calls::TRADING],
    limits: limits::NO_MORE,
};

/// The sandbox of a gateway: as a strategy's, but it can wait for several senders.
pub const GATEWAY: SandboxProfile =
    SandboxProfile { name: "gateway", calls: &[calls::TRADING, calls::WAITING], ..STRATEGY };

/// The sandbox of a role that also writes a journal: as a gateway's, with files in one directory.
/// Its journal threads are started after landlock is set up, so it binds them too.
pub const JOURNALED: SandboxProfile = SandboxProfile {
    name: "journalled",
    calls: &[calls::TRADING, calls::WAITING, calls::JOURNALING],
    limits: limits::FILES,
    ..STRATEGY
};

/// The error that a layer of the sandbox could not be set up.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// The process has other threads, which would not be confined.
    #[error("sandbox: the process has {0} threads already, and all but one would stay outside")]
    Threads(usize),
    /// The number of threads, or the list of directories, is unknown.
    #[error("sandbox: /proc/self/task, or what is in /: {0}")]
    Unknown(std::io::Error),
    /// [`SandboxLayer::Privileges`] failed.
    #[error("sandbox: privileges cannot be given up: {0}")]
    Privileges(std::io::Error),
    /// [`SandboxLayer::Landlock`] failed.
    #[error("sandbox: landlock: {0}")]
    Landlock(#[from] ::landlock::RulesetError),
    /// An allowed path cannot be opened.
    #[error("sandbox: landlock: {0}")]
    Path(#[from] ::landlock::PathFdError),
    /// Landlock enforces only a part of the rules.
    #[error("sandbox: landlock is only {0}: a newer kernel, or --allow-weaker-sandbox")]
    Weaker(&'static str),
    /// [`SandboxLayer::Limits`] failed.
    #[error("sandbox: limits: {0}")]
    Limits(std::io::Error),
    /// [`SandboxLayer::Calls`] failed.
    #[error("sandbox: seccomp: {0}")]
    Calls(String),
}

impl SandboxProfile {
    /// Confines this single-threaded process by all layers of the sandbox except the last one, the
    /// list of allowed system calls. It must be fully attached. With `allow_weaker`, a kernel is
    /// accepted that enforces only a part of landlock.
    ///
    /// # Errors
    /// [`SandboxError::Threads`], or the layer that could not be put up. What was put up stays.
    pub fn confine(&self, allow_weaker: bool) -> Result<(), SandboxError> {
        self.confine_to(&AllowedFiles::default(), allow_weaker)
    }

    /// Confines this process as [`SandboxProfile::confine`] does, with access to some files. Also
    /// for threads that it starts later.
    pub fn confine_to(&self, files: &AllowedFiles<'_>, allow_weaker: bool) -> Result<(), SandboxError> {
        // While /proc can still be read.
        ensure_single_thread()?;
        for layer in self.layers {
            match layer {
                SandboxLayer::Privileges => privileges::drop_all().map_err(SandboxError::Privileges)?,
                SandboxLayer::Landlock => landlock::restrict(files, allow_weaker)?,
                SandboxLayer::Limits => limits::set(self.limits).map_err(SandboxError::Limits)?,
                SandboxLayer::Calls => {}
            }
        }
        Ok(())
    }

    /// Makes system calls that the profile does not list fail with EPERM, for all threads: the last
    /// layer. `through_kernel` is `true` if messages of this process go through the kernel.
    pub fn restrict_calls(&self, through_kernel: bool) -> Result<(), SandboxError> {
        if !self.layers.contains(&SandboxLayer::Calls) {
            return Ok(());
        }
        let extra = if through_kernel { calls::SENDING } else { &[] };
        calls::restrict(self.calls.iter().copied().flatten().chain(extra))
    }
}

/// Fails if the process has more than one thread.
fn ensure_single_thread() -> Result<(), SandboxError> {
    match std::fs::read_dir("/proc/self/task").map(Iterator::count) {
        Ok(1) => Ok(()),
        Ok(threads) => Err(SandboxError::Threads(threads)),
        Err(error) => Err(SandboxError::Unknown(error)),
    }
}

/// Returns the sandbox features that this kernel lacks, as text; empty if it has all.
pub fn missing() -> Vec<String> {
    let mut missing: Vec<String> = landlock::missing().into_iter().collect();
    if !std::path::Path::new("/proc/sys/kernel/seccomp/actions_avail").exists() {
        missing.push("seccomp filters are not there (CONFIG_SECCOMP_FILTER)".into());
    }
    if cfg!(not(target_arch = "x86_64")) {
        missing.push("the seccomp filter was tried on x86-64 only".into());
    }
    missing
}
