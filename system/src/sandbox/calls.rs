//! Seccomp: the system calls that are left, and with which arguments.

use super::SandboxError;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::{BTreeMap, BTreeSet};

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
    /// That argument is anything but that value.
    Not(u8, i32),
    /// That argument is this process's id.
    Own(u8),
}

/// A system call that is allowed, or whatever else a list is for.
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

/// What differs between processors: aarch64 has no `poll` of its own, and none that renames or
/// removes a file by its path alone.
#[cfg(target_arch = "x86_64")]
mod processor {
    pub const NUMBERS: seccompiler::TargetArch = seccompiler::TargetArch::x86_64;
    pub const POLL: i64 = libc::SYS_poll;
    pub const RENAME: i64 = libc::SYS_rename;
    pub const UNLINK: i64 = libc::SYS_unlink;
}

#[cfg(not(target_arch = "x86_64"))]
mod processor {
    pub const NUMBERS: seccompiler::TargetArch = seccompiler::TargetArch::aarch64;
    pub const POLL: i64 = libc::SYS_ppoll;
    pub const RENAME: i64 = libc::SYS_renameat;
    pub const UNLINK: i64 = libc::SYS_unlinkat;
}

/// To wait, to trade through memory, to say why one dies, to end.
pub(super) const TRADING: &[Call] = &[
    call(libc::SYS_futex, "wait for a bell, the barrier, a thread"),
    call(libc::SYS_sched_yield, "idle"),
    call(libc::SYS_nanosleep, "idle"),
    call(libc::SYS_clock_nanosleep, "idle"),
    call(libc::SYS_restart_syscall, "go on waiting after a stop"),
    call(processor::POLL, "see the launcher's end, on a descriptor that is open for that"),
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

/// To sleep until one of several senders rings: a strategy has but one.
pub(super) const HEARING: &[Call] = &[call(libc::SYS_futex_waitv, "wait for the bells of several senders")];

/// To send messages through a pipe or a socket that is open. No descriptors: those go with
/// `sendmsg`.
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

/// To write files, in the folder that landlock leaves.
pub(super) const JOURNALLING: &[Call] = &[
    call(libc::SYS_openat, "the next segment, the folder: landlock says where"),
    call(libc::SYS_close, "a segment that is done with"),
    call(libc::SYS_newfstatat, "how long a file is: what the C library makes of `fstat`"),
    call(libc::SYS_fstat, "the same"),
    call(libc::SYS_statx, "the same by the standard library"),
    // No other mode: one punches holes.
    Call { number: libc::SYS_fallocate, when: &[&[Arg::Is(1, 0)]], why: "reserve a segment's room" },
    call(libc::SYS_fstatfs, "the same, where a file system cannot and the C library does it"),
    call(libc::SYS_pread64, "the same"),
    call(libc::SYS_pwrite64, "the same"),
    Call { number: libc::SYS_fcntl, when: &[&[Arg::Is(1, libc::F_GETFL)]], why: "the same" },
    call(libc::SYS_write, "a segment's header; stderr"),
    call(libc::SYS_fdatasync, "put records on the disk"),
    call(libc::SYS_fsync, "put the folder on the disk"),
    call(processor::RENAME, "a file that is whole gets its name"),
    call(processor::UNLINK, "a segment that was prepared for nothing"),
    call(libc::SYS_flock, "give the folder back"),
    Call {
        number: libc::SYS_mmap,
        when: &[&[
            // A file's, never executable.
            Arg::Bits { arg: 3, mask: !0, are: libc::MAP_SHARED },
            Arg::Bits { arg: 2, mask: libc::PROT_EXEC, are: 0 },
        ]],
        why: "a segment's memory",
    },
    Call {
        number: libc::SYS_madvise,
        when: &[&[Arg::Is(2, libc::MADV_POPULATE_WRITE)]],
        why: "touch a segment's pages ahead",
    },
];

/// Refuses all other calls to all threads of the process.
pub(super) fn restrict<'a>(allowed: impl Iterator<Item = &'a Call>) -> Result<(), SandboxError> {
    put_up(allowed, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32))
}

/// Refuses these calls, and no others, to all threads of the process, with that error.
pub(crate) fn refuse<'a>(refused: impl Iterator<Item = &'a Call>, error: i32) -> Result<(), SandboxError> {
    put_up(refused, SeccompAction::Errno(error.cast_unsigned()), SeccompAction::Allow)
}

fn put_up<'a>(
    listed: impl Iterator<Item = &'a Call>,
    action: SeccompAction,
    otherwise: SeccompAction,
) -> Result<(), SandboxError> {
    let fail = |error: &dyn core::fmt::Display| SandboxError::Calls(error.to_string());
    let program = filter(listed, action, otherwise).map_err(|error| fail(&error))?;
    seccompiler::apply_filter_all_threads(&program).map_err(|error| fail(&error))
}

/// The kernel's program that does this at the calls that are listed, and that at all others.
fn filter<'a>(
    listed: impl Iterator<Item = &'a Call>,
    action: SeccompAction,
    otherwise: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut in_any_way = BTreeSet::new();
    for call in listed {
        let combinations = call.when.iter().map(|args| SeccompRule::new(conditions(args)?));
        let combinations: Vec<_> = combinations.collect::<Result<_, _>>()?;
        if combinations.is_empty() {
            in_any_way.insert(call.number);
        }
        // A call that is listed twice is meant as either says.
        rules.entry(call.number).or_default().extend(combinations);
    }
    // No rule at all means any arguments.
    in_any_way.into_iter().for_each(|number| drop(rules.insert(number, Vec::new())));
    SeccompFilter::new(rules, otherwise, action, processor::NUMBERS)?.try_into()
}

fn conditions(args: &[Arg]) -> Result<Vec<SeccompCondition>, BackendError> {
    let condition = |arg: &Arg| {
        let (index, how, value) = match *arg {
            Arg::Is(index, value) => (index, SeccompCmpOp::Eq, value.cast_unsigned()),
            Arg::Bits { arg, mask, are } => {
                (arg, SeccompCmpOp::MaskedEq(mask.cast_unsigned().into()), are.cast_unsigned())
            }
            Arg::Not(index, value) => (index, SeccompCmpOp::Ne, value.cast_unsigned()),
            Arg::Own(index) => (index, SeccompCmpOp::Eq, std::process::id()),
        };
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, how, value.into())
    };
    args.iter().map(condition).collect()
}
