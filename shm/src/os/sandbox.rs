//! The sandbox of a strategy: what its process cannot do any more once it has attached to everything it needs.
//!
//! Three layers, none of which needs root, each of which holds if another has a gap:
//!
//! | layer | when | refuses |
//! |---|---|---|
//! | `no_new_privs` | before all | gaining rights by executing something |
//! | landlock | before the strategy's thread starts | every file, TCP ports, abstract sockets and signals to the outside |
//! | seccomp | after the thread is pinned | every system call that is not on a list of about twenty |
//!
//! Descriptors are closed before: what is mapped stays mapped, and can be neither truncated (the memory is sealed) nor
//! mapped again with more rights.

use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus, Scope};
use nix::sys::prctl;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use std::collections::BTreeMap;
use thiserror::Error;

/// The newest landlock features that are asked for; a kernel with fewer is a weaker sandbox.
const LANDLOCK: ABI = ABI::V6;

/// What of the sandbox this kernel cannot give, in words; empty if it gives all.
pub fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    match landlock_version() {
        0 => missing.push(
            "landlock is not there (kernel 5.13 or newer, CONFIG_SECURITY_LANDLOCK, lsm=landlock)".into(),
        ),
        version if version < LANDLOCK as i64 => missing.push(format!(
            "landlock is version {version} of {}: {} cannot be refused by it",
            LANDLOCK as i32,
            if version < 4 { "TCP ports and signals" } else { "signals" }
        )),
        _ => {}
    }
    if !std::path::Path::new("/proc/sys/kernel/seccomp/actions_avail").exists() {
        missing.push("seccomp filters are not there (CONFIG_SECCOMP_FILTER)".into());
    }
    if cfg!(not(target_arch = "x86_64")) {
        missing.push("the seccomp filter is written for x86-64".into());
    }
    missing
}

/// The kernel's landlock version; 0 if it has none.
fn landlock_version() -> i64 {
    const CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with this flag the call reads no memory and returns a number; the null attribute and its size of zero are
    // what the flag asks for.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            core::ptr::null::<u8>(),
            0usize,
            CREATE_RULESET_VERSION,
        )
    };
    version.max(0)
}

/// A layer that could not be put up.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// `no_new_privs`.
    #[error("sandbox: no_new_privs is refused: {0}")]
    NoNewPrivs(nix::errno::Errno),
    /// Landlock.
    #[error("sandbox: landlock: {0}")]
    Landlock(#[from] landlock::RulesetError),
    /// Landlock took only a part of what was asked for.
    #[error("sandbox: landlock is only {0}: a newer kernel, or --allow-weaker-sandbox")]
    Weaker(&'static str),
    /// Seccomp.
    #[error("sandbox: seccomp: {0}")]
    Seccomp(String),
}

/// The first two layers, for the calling thread and those it starts from now on. With `weaker_is_fine` a kernel that
/// enforces only a part of landlock is good enough.
///
/// # Errors
/// The layer that could not be put up. What was put up stays.
pub fn restrict_thread(weaker_is_fine: bool) -> Result<(), SandboxError> {
    prctl::set_no_new_privs().map_err(SandboxError::NoNewPrivs)?;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .restrict_self()?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        _ if weaker_is_fine => Ok(()),
        RulesetStatus::PartiallyEnforced => Err(SandboxError::Weaker("partially enforced")),
        RulesetStatus::NotEnforced => Err(SandboxError::Weaker("not enforced")),
    }
}

/// The last layer, for all threads of the process: from now on every system call that is not needed to trade, to log, to
/// say why one dies and to end fails with EPERM. With `through_kernel` writing and sending on any descriptor that is
/// still open is among the needed ones: for the techniques that hand over through the kernel.
///
/// # Errors
/// [`SandboxError::Seccomp`].
pub fn restrict_syscalls(through_kernel: bool) -> Result<(), SandboxError> {
    let fail = |error: &dyn core::fmt::Display| SandboxError::Seccomp(error.to_string());
    let program = filter(through_kernel).map_err(|error| fail(&error))?;
    seccompiler::apply_filter_all_threads(&program).map_err(|error| fail(&error))
}

/// Argument `index` equals `value`.
fn equals(index: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn filter(through_kernel: bool) -> Result<BpfProgram, seccompiler::BackendError> {
    let always = [
        // To wait and to be woken.
        libc::SYS_futex,
        libc::SYS_sched_yield,
        libc::SYS_nanosleep,
        libc::SYS_clock_nanosleep,
        libc::SYS_restart_syscall,
        // To see the launcher's end, on a descriptor that is open for that.
        libc::SYS_poll,
        // To know the time where the vDSO asks the kernel, who one is, and what one has used.
        libc::SYS_clock_gettime,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_getrusage,
        // To free memory and to end.
        libc::SYS_brk,
        libc::SYS_munmap,
        libc::SYS_madvise,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        always.into_iter().map(|call| (call, Vec::new())).collect();
    // Memory of one's own: never a file's, never executable.
    let anonymous = SeccompCondition::new(
        3,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(libc::MAP_ANONYMOUS as u64),
        libc::MAP_ANONYMOUS as u64,
    )?;
    let not_executable = || {
        SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0)
    };
    rules.insert(libc::SYS_mmap, vec![SeccompRule::new(vec![anonymous, not_executable()?])?]);
    // To say on stderr why one dies.
    rules.insert(libc::SYS_write, vec![SeccompRule::new(vec![equals(0, 2)?])?]);
    if through_kernel {
        for call in [libc::SYS_write, libc::SYS_sendto, libc::SYS_sendmsg] {
            rules.insert(call, Vec::new());
        }
    }
    // A fault's handler gives the signal back its default, so that the fault ends the process. Else it would come for ever.
    rules.insert(
        libc::SYS_rt_sigaction,
        vec![
            SeccompRule::new(vec![equals(0, libc::SIGSEGV as u64)?])?,
            SeccompRule::new(vec![equals(0, libc::SIGBUS as u64)?])?,
        ],
    );
    // `abort` signals its own thread.
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![equals(0, u64::from(std::process::id()))?])?]);
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, TargetArch::x86_64)?.try_into()
}
