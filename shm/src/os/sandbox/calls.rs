//! Seccomp: the system calls that are left, and with which arguments.

use super::SandboxError;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// What an argument must be: the lower 32 bits of it, which are all that the calls below look at.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    /// That argument is that value.
    Is(u8, i32),
    /// Of that argument, the bits of the mask are those.
    Bits {
        /// Which argument.
        arg: u8,
        /// Which bits of it.
        mask: i32,
        /// What they are.
        are: i32,
    },
    /// That argument is this process's id.
    Own(u8),
}

/// A system call that is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its number.
    pub number: i64,
    /// Any of these combinations of arguments; none: any arguments.
    pub when: &'static [&'static [Arg]],
    /// What for.
    pub why: &'static str,
}

const fn call(number: i64, why: &'static str) -> Call {
    Call { number, when: &[], why }
}

/// What a new mapping may be beside private and anonymous, which it must be.
const MAP_FLAGS: i32 = libc::MAP_NORESERVE | libc::MAP_STACK | libc::MAP_FIXED;

/// The call that waits for descriptors: aarch64 has no `poll` of its own.
#[cfg(target_arch = "x86_64")]
const POLL: i64 = libc::SYS_poll;
#[cfg(not(target_arch = "x86_64"))]
const POLL: i64 = libc::SYS_ppoll;

/// The processor whose numbers of calls these are.
#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(not(target_arch = "x86_64"))]
const ARCH: TargetArch = TargetArch::aarch64;

/// To wait, to trade through memory, to say why one dies, to end.
pub(super) const TRADING: &[Call] = &[
    call(libc::SYS_futex, "wait for a bell, the barrier, a thread"),
    call(libc::SYS_sched_yield, "idle"),
    call(libc::SYS_nanosleep, "idle"),
    call(libc::SYS_clock_nanosleep, "idle"),
    call(libc::SYS_restart_syscall, "go on waiting after a stop"),
    call(POLL, "see the launcher's end, on a descriptor that is open for that"),
    call(libc::SYS_clock_gettime, "the time, where the vDSO asks the kernel"),
    call(libc::SYS_getpid, "abort"),
    call(libc::SYS_gettid, "abort"),
    call(libc::SYS_getrusage, "the thread's own figures"),
    call(libc::SYS_brk, "memory"),
    call(libc::SYS_munmap, "memory"),
    Call {
        number: libc::SYS_mmap,
        when: &[&[
            // Its own, never a file's, never executable.
            Arg::Bits { arg: 3, mask: !MAP_FLAGS, are: libc::MAP_PRIVATE | libc::MAP_ANONYMOUS },
            Arg::Bits { arg: 2, mask: libc::PROT_EXEC, are: 0 },
        ]],
        why: "memory",
    },
    Call {
        number: libc::SYS_madvise,
        // Not MADV_REMOVE, which takes the pages from under everybody, whatever is sealed.
        when: &[&[Arg::Is(2, libc::MADV_DONTNEED)], &[Arg::Is(2, libc::MADV_FREE)]],
        why: "give memory back",
    },
    call(libc::SYS_rt_sigprocmask, "abort, the end of a thread"),
    call(libc::SYS_rt_sigreturn, "the end of a signal handler"),
    call(libc::SYS_sigaltstack, "the end of a thread"),
    Call {
        number: libc::SYS_rt_sigaction,
        when: &[&[Arg::Is(0, libc::SIGSEGV)], &[Arg::Is(0, libc::SIGBUS)]],
        why: "a fault's handler gives the signal back its default, so that the fault ends the process: else it would come for ever",
    },
    Call { number: libc::SYS_tgkill, when: &[&[Arg::Own(0)]], why: "abort signals its own thread" },
    Call { number: libc::SYS_write, when: &[&[Arg::Is(0, 2)]], why: "say on stderr why one dies" },
    call(libc::SYS_exit, "end"),
    call(libc::SYS_exit_group, "end"),
];

/// To send messages through a pipe or a socket that is open. No descriptors: those go with `sendmsg`.
pub(super) const SENDING: &[Call] = &[
    call(
        libc::SYS_write,
        "send through what is open: the link; stderr; the launcher's pidfd, which takes nothing",
    ),
    Call {
        number: libc::SYS_sendto,
        when: &[&[Arg::Is(3, libc::MSG_NOSIGNAL), Arg::Is(5, 0)]],
        why: "send through a socket, to the one that it is connected to: what the standard library's `write` does",
    },
];

/// Refuses all other calls to all threads of the process.
pub(super) fn restrict<'a>(allowed: impl Iterator<Item = &'a Call>) -> Result<(), SandboxError> {
    let fail = |error: &dyn core::fmt::Display| SandboxError::Calls(error.to_string());
    let program = filter(allowed).map_err(|error| fail(&error))?;
    seccompiler::apply_filter_all_threads(&program).map_err(|error| fail(&error))
}

fn filter<'a>(allowed: impl Iterator<Item = &'a Call>) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in allowed {
        let combinations = call.when.iter().map(|args| SeccompRule::new(conditions(args)?));
        // No rule at all allows any arguments. A call that is listed twice is allowed as it is listed last.
        rules.insert(call.number, combinations.collect::<Result<_, _>>()?);
    }
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, ARCH)?.try_into()
}

fn conditions(args: &[Arg]) -> Result<Vec<SeccompCondition>, BackendError> {
    let condition = |arg: &Arg| {
        let (index, how, value) = match *arg {
            Arg::Is(index, value) => (index, SeccompCmpOp::Eq, value.cast_unsigned()),
            Arg::Bits { arg, mask, are } => {
                (arg, SeccompCmpOp::MaskedEq(mask.cast_unsigned().into()), are.cast_unsigned())
            }
            Arg::Own(index) => (index, SeccompCmpOp::Eq, std::process::id()),
        };
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, how, value.into())
    };
    args.iter().map(condition).collect()
}
