//! The sandbox of a role: what its process cannot do any more once it has attached to everything it
//! needs.
//!
//! A [`Profile`] says as data which layers a role gets, which system calls it keeps and why, and
//! how much it may use. No layer needs root, and each holds if another has a gap:
//!
//! | layer | when | refuses |
//! |---|---|---|
//! | descriptors | when the process starts | every file and segment that was not handed over, and more rights than it was handed over with |
//! | [`Layer::Privileges`] | before any second thread | what root may and others may not; gaining rights by executing something |
//! | [`Layer::Landlock`] | before any second thread | every file but those that are left to it ([`Files`]), TCP ports, abstract sockets and signals to the outside |
//! | [`Layer::Limits`] | before any second thread | another descriptor, a file that grows without end, a core file |
//! | [`Layer::Calls`] | after the threads are pinned | every system call that is not on a list of about twenty |
//!
//! The first one is not of a profile: a process gets no descriptor but those that are meant for it
//! ([`inherited_by`](shm::memory::sealed::inherited_by)), closes them when it has mapped them, and
//! what is mapped can be neither truncated (the memory is sealed) nor mapped again with more
//! rights.
//!
//! Privileges and landlock bind a thread and those that it starts later. So they come while there
//! is one thread: [`Profile::confine`] refuses a process that has more.

mod calls;
mod landlock;
pub(crate) mod limits;
mod privileges;

pub use calls::{Arg, Call};
pub use landlock::Files;
pub use limits::{Limit, STDERR_BYTES};
// What a container takes of it.
pub(crate) use calls::refuse as refuse_calls;
pub(crate) use landlock::keep_lengths as landlock_lengths;
pub(crate) use privileges::give_up as give_up_privileges;

use thiserror::Error;

/// A layer of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// No capabilities, and no way to get any (`no_new_privs`).
    Privileges,
    /// Landlock.
    Landlock,
    /// Resource limits, and no capability to raise them.
    Limits,
    /// Seccomp.
    Calls,
}

impl Layer {
    /// All of them, in the order in which they are put up.
    pub const ALL: [Layer; 4] = [Layer::Privileges, Layer::Landlock, Layer::Limits, Layer::Calls];
}

/// What a role's process may do.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The profile's name.
    pub name: &'static str,
    /// The layers that are put up. One alone for a test of that one.
    pub layers: &'static [Layer],
    /// The system calls that are allowed, in lists: what any of them allows is.
    pub calls: &'static [&'static [Call]],
    /// Those that are allowed as well where messages go through the kernel.
    pub through_kernel: &'static [Call],
    /// How much of what it may use.
    pub limits: &'static [Limit],
}

/// A strategy: waits, trades through memory, says why it dies, ends.
pub const STRATEGY: Profile = Profile {
    name: "strategy",
    layers: &Layer::ALL,
    calls: &[calls::TRADING],
    through_kernel: calls::SENDING,
    limits: limits::NO_MORE,
};

/// A gateway in a process of its own: as a strategy, and it sleeps until one of several senders
/// rings.
pub const GATEWAY: Profile =
    Profile { name: "gateway", calls: &[calls::TRADING, calls::HEARING], ..STRATEGY };

/// Who writes a journal as well: as a gateway, and files in the folder that is left to it. Its
/// threads for that are started behind landlock, so that they have it too.
pub const JOURNALLED: Profile = Profile {
    name: "journalled",
    calls: &[calls::TRADING, calls::HEARING, calls::JOURNALLING],
    limits: limits::FILES,
    ..STRATEGY
};

/// A layer that could not be put up.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// There are other threads already, which would stay outside.
    #[error("sandbox: the process has {0} threads already, and all but one would stay outside")]
    Threads(usize),
    /// How many threads there are cannot be found out, or which folders.
    #[error("sandbox: /proc/self/task, or what is in /: {0}")]
    Unknown(std::io::Error),
    /// [`Layer::Privileges`].
    #[error("sandbox: privileges cannot be given up: {0}")]
    Privileges(std::io::Error),
    /// [`Layer::Landlock`].
    #[error("sandbox: landlock: {0}")]
    Landlock(#[from] ::landlock::RulesetError),
    /// A path that is to be left to it cannot be opened.
    #[error("sandbox: landlock: {0}")]
    Path(#[from] ::landlock::PathFdError),
    /// Landlock took only a part of what was asked for.
    #[error("sandbox: landlock is only {0}: a newer kernel, or --allow-weaker-sandbox")]
    Weaker(&'static str),
    /// [`Layer::Limits`].
    #[error("sandbox: limits: {0}")]
    Limits(std::io::Error),
    /// [`Layer::Calls`].
    #[error("sandbox: seccomp: {0}")]
    Calls(String),
}

impl Profile {
    /// Puts up all layers but the last, for this process: while it has one thread, and everything
    /// is attached. With `weaker_is_fine` a kernel that enforces only a part of landlock is good
    /// enough.
    ///
    /// # Errors
    /// [`SandboxError::Threads`], or the layer that could not be put up. What was put up stays.
    pub fn confine(&self, weaker_is_fine: bool) -> Result<(), SandboxError> {
        self.confine_to(&Files::default(), weaker_is_fine)
    }

    /// The same where some files are left to it, also to threads that it starts from then on.
    ///
    /// # Errors
    /// As [`Profile::confine`]; [`SandboxError::Path`].
    pub fn confine_to(&self, files: &Files<'_>, weaker_is_fine: bool) -> Result<(), SandboxError> {
        // As long as /proc can be read.
        alone()?;
        for layer in self.layers {
            match layer {
                Layer::Privileges => privileges::give_up().map_err(SandboxError::Privileges)?,
                Layer::Landlock => landlock::restrict(files, weaker_is_fine)?,
                Layer::Limits => limits::set(self.limits).map_err(SandboxError::Limits)?,
                Layer::Calls => {}
            }
        }
        Ok(())
    }

    /// Puts up the last layer, for all threads of the process: from now on every system call that
    /// the profile does not list fails with EPERM. `through_kernel`: messages of this process go
    /// through the kernel.
    ///
    /// # Errors
    /// [`SandboxError::Calls`].
    pub fn restrict_calls(&self, through_kernel: bool) -> Result<(), SandboxError> {
        if !self.layers.contains(&Layer::Calls) {
            return Ok(());
        }
        let extra = if through_kernel { self.through_kernel } else { &[] };
        calls::restrict(self.calls.iter().copied().flatten().chain(extra))
    }
}

/// That the process has one thread.
fn alone() -> Result<(), SandboxError> {
    match std::fs::read_dir("/proc/self/task").map(Iterator::count) {
        Ok(1) => Ok(()),
        Ok(threads) => Err(SandboxError::Threads(threads)),
        Err(error) => Err(SandboxError::Unknown(error)),
    }
}

/// What of the sandbox this kernel cannot give, in words; empty if it gives all.
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
