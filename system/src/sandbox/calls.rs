//! Seccomp filters: the allowed system calls and their arguments.

use super::SandboxError;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};
use std::collections::{BTreeMap, BTreeSet};

/// A condition on an argument of a system call in a seccomp filter. It compares the lower 32 bits,
/// which are all that the listed calls use.
#[derive(Clone, Copy, Debug)]
pub enum ArgCondition {
    /// The argument with this index has this value.
    Is(u8, i32),
    /// Some bits of an argument, given by a mask, have given values.
    Bits {
        /// The index of the argument.
        arg: u8,
        /// The mask of the compared bits.
        mask: i32,
        /// The values of these bits.
        are: i32,
    },
    /// The argument with this index has another value than this one.
    Not(u8, i32),
    /// The argument with this index is the id of the confined process.
    Own(u8),
}

/// A system call in a seccomp filter's list, with conditions on its arguments.
#[derive(Clone, Copy, Debug)]
pub struct SyscallRule {
    /// The number of the system call.
    pub number: i64,
    /// Alternatives of argument conditions; empty: any arguments.
    pub when: &'static [&'static [ArgCondition]],
}

/// Lists a call with any arguments.
pub(crate) const fn call(number: i64) -> SyscallRule {
    SyscallRule { number, when: &[] }
}

/// Matches an operation of `futex`, with any of its flags.
const fn futex_operation(operation: i32) -> ArgCondition {
    let flags = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;
    ArgCondition::Bits { arg: 1, mask: !flags, are: operation }
}

/// Optional flags of a new mapping, which must be private and anonymous.
const MAP_FLAGS: i32 = libc::MAP_NORESERVE | libc::MAP_STACK | libc::MAP_FIXED;

/// Differences between architectures: aarch64 has no `poll`, and no calls that rename or remove a
/// file by its path alone.
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

/// System calls to wait, to trade through memory, to report an error, and to exit.
pub(super) const TRADING: &[SyscallRule] = &[
    // Wait for a bell, the barrier, a thread. Not the operations that move or wake the waiters of
    // another word: other processes may wait on that memory.
    SyscallRule {
        number: libc::SYS_futex,
        when: &[
            &[futex_operation(libc::FUTEX_WAIT)],
            &[futex_operation(libc::FUTEX_WAKE)],
            &[futex_operation(libc::FUTEX_WAIT_BITSET)],
            &[futex_operation(libc::FUTEX_WAKE_BITSET)],
        ],
    },
    call(libc::SYS_sched_yield),     // Idle.
    call(libc::SYS_nanosleep),       // Idle.
    call(libc::SYS_clock_nanosleep), // Idle.
    call(libc::SYS_restart_syscall), // Continue waiting after a stop.
    call(processor::POLL),           // Detect the launcher's end, on a descriptor open for it.
    call(libc::SYS_clock_gettime),   // The time, where the vDSO asks the kernel.
    call(libc::SYS_getpid),          // Abort.
    call(libc::SYS_gettid),          // Abort.
    call(libc::SYS_getrusage),       // The thread's own figures.
    call(libc::SYS_brk),             // Memory.
    call(libc::SYS_munmap),          // Memory.
    // Memory.
    SyscallRule {
        number: libc::SYS_mmap,
        when: &[&[
            // Anonymous memory only, never executable.
            ArgCondition::Bits { arg: 3, mask: !MAP_FLAGS, are: libc::MAP_PRIVATE | libc::MAP_ANONYMOUS },
            ArgCondition::Bits { arg: 2, mask: libc::PROT_EXEC, are: 0 },
        ]],
    },
    // Give memory back.
    SyscallRule {
        number: libc::SYS_madvise,
        // Not MADV_REMOVE, which removes the pages of all processes, even if the memory is sealed.
        when: &[&[ArgCondition::Is(2, libc::MADV_DONTNEED)], &[ArgCondition::Is(2, libc::MADV_FREE)]],
    },
    call(libc::SYS_rt_sigprocmask), // Abort, the end of a thread.
    call(libc::SYS_rt_sigreturn),   // The end of a signal handler.
    call(libc::SYS_sigaltstack),    // The end of a thread.
    // A fault's handler gives the signal back its default, so that the fault ends the process;
    // otherwise it would repeat forever.
    SyscallRule {
        number: libc::SYS_rt_sigaction,
        when: &[&[ArgCondition::Is(0, libc::SIGSEGV)], &[ArgCondition::Is(0, libc::SIGBUS)]],
    },
    // Abort signals its own thread.
    SyscallRule { number: libc::SYS_tgkill, when: &[&[ArgCondition::Own(0)]] },
    // Print the reason of an abort on stderr.
    SyscallRule { number: libc::SYS_write, when: &[&[ArgCondition::Is(0, 2)]] },
    call(libc::SYS_exit),       // End.
    call(libc::SYS_exit_group), // End.
];

/// System calls to sleep until one of several senders rings; a strategy has only one sender.
pub(super) const WAITING: &[SyscallRule] = &[call(libc::SYS_futex_waitv)];

/// System calls to send messages through an open pipe or socket. Not file descriptors, which need
/// `sendmsg`.
pub(super) const SENDING: &[SyscallRule] = &[
    // Send through what is open: the link; stderr; the launcher's pidfd, which takes nothing.
    call(libc::SYS_write),
    // Send through a socket, to the one that it is connected to: what the standard library's
    // `write` does.
    SyscallRule {
        number: libc::SYS_sendto,
        when: &[&[ArgCondition::Is(3, libc::MSG_NOSIGNAL), ArgCondition::Is(5, 0)]],
    },
];

/// System calls to write files, in the directory that landlock allows.
pub(super) const JOURNALING: &[SyscallRule] = &[
    call(libc::SYS_openat),     // The next segment, the folder: landlock restricts where.
    call(libc::SYS_close),      // A finished segment.
    call(libc::SYS_newfstatat), // A file's length: the C library's `fstat`.
    call(libc::SYS_fstat),      // The same.
    call(libc::SYS_statx),      // The same by the standard library.
    // No other mode: one of them punches holes.
    // Reserve a segment's space.
    SyscallRule { number: libc::SYS_fallocate, when: &[&[ArgCondition::Is(1, 0)]] },
    call(libc::SYS_fstatfs), // The same, where a file system cannot and the C library does it.
    call(libc::SYS_pread64), // The same.
    call(libc::SYS_pwrite64), // The same.
    SyscallRule { number: libc::SYS_fcntl, when: &[&[ArgCondition::Is(1, libc::F_GETFL)]] }, // The same.
    call(libc::SYS_write),   // A segment's header; stderr.
    call(libc::SYS_fdatasync), // Put records on the disk.
    call(libc::SYS_fsync),   // Put the folder on the disk.
    call(processor::RENAME), // A complete file gets its name.
    call(processor::UNLINK), // A prepared segment that was not used.
    // A segment's memory.
    SyscallRule {
        number: libc::SYS_mmap,
        when: &[&[
            // File mappings only, never executable.
            ArgCondition::Bits { arg: 3, mask: !0, are: libc::MAP_SHARED },
            ArgCondition::Bits { arg: 2, mask: libc::PROT_EXEC, are: 0 },
        ]],
    },
    // Touch a segment's pages ahead.
    SyscallRule { number: libc::SYS_madvise, when: &[&[ArgCondition::Is(2, libc::MADV_POPULATE_WRITE)]] },
];

/// Installs a seccomp filter that allows only these system calls, for all threads of the process.
pub(super) fn restrict<'a>(allowed: impl Iterator<Item = &'a SyscallRule>) -> Result<(), SandboxError> {
    install_filter(allowed, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32))
}

/// Installs a seccomp filter that refuses only these system calls, with the given error.
pub(crate) fn refuse<'a>(
    refused: impl Iterator<Item = &'a SyscallRule>,
    error: i32,
) -> Result<(), SandboxError> {
    install_filter(refused, SeccompAction::Errno(error.cast_unsigned()), SeccompAction::Allow)
}

/// Installs a seccomp filter that refuses these system calls to the calling thread and to those
/// that it starts: with an error, or by SIGSYS (`None`).
pub(crate) fn refuse_in_thread<'a>(
    refused: impl Iterator<Item = &'a SyscallRule>,
    error: Option<i32>,
) -> Result<(), SandboxError> {
    let action = error.map_or(SeccompAction::Trap, |error| SeccompAction::Errno(error.cast_unsigned()));
    let program = filter(refused, action, SeccompAction::Allow);
    let program = program.map_err(|error| SandboxError::Calls(error.to_string()))?;
    seccompiler::apply_filter(&program).map_err(|error| SandboxError::Calls(error.to_string()))
}

/// Makes every call of the x32 interface fail with EPERM. Its numbers are those of x86-64 with one
/// more bit, which a list of refused calls does not have.
#[cfg(target_arch = "x86_64")]
pub(crate) fn refuse_x32() -> Result<(), SandboxError> {
    /// `__X32_SYSCALL_BIT`.
    const X32: u32 = 0x4000_0000;
    let step = |code: u32, if_true: u8, k: u32| sock_filter { code: code as u16, jt: if_true, jf: 0, k };
    let program = [
        // The number comes first in the data of a filter.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, X32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
    ];
    seccompiler::apply_filter_all_threads(&program).map_err(|error| SandboxError::Calls(error.to_string()))
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn refuse_x32() -> Result<(), SandboxError> {
    Ok(())
}

fn install_filter<'a>(
    listed: impl Iterator<Item = &'a SyscallRule>,
    action: SeccompAction,
    otherwise: SeccompAction,
) -> Result<(), SandboxError> {
    let fail = |error: &dyn core::fmt::Display| SandboxError::Calls(error.to_string());
    let program = filter(listed, action, otherwise).map_err(|error| fail(&error))?;
    seccompiler::apply_filter_all_threads(&program).map_err(|error| fail(&error))
}

/// Builds a filter program with one action for the listed calls and another for all others.
fn filter<'a>(
    listed: impl Iterator<Item = &'a SyscallRule>,
    action: SeccompAction,
    otherwise: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut unconditional = BTreeSet::new();
    for call in listed {
        let combinations = call.when.iter().map(|args| SeccompRule::new(conditions(args)?));
        let combinations: Vec<_> = combinations.collect::<Result<_, _>>()?;
        if combinations.is_empty() {
            unconditional.insert(call.number);
        }
        // A call that is listed twice matches either entry.
        rules.entry(call.number).or_default().extend(combinations);
    }
    // No rules at all mean any arguments.
    unconditional.into_iter().for_each(|number| drop(rules.insert(number, Vec::new())));
    SeccompFilter::new(rules, otherwise, action, processor::NUMBERS)?.try_into()
}

fn conditions(args: &[ArgCondition]) -> Result<Vec<SeccompCondition>, BackendError> {
    let condition = |arg: &ArgCondition| {
        let (index, how, value) = match *arg {
            ArgCondition::Is(index, value) => (index, SeccompCmpOp::Eq, value.cast_unsigned()),
            ArgCondition::Bits { arg, mask, are } => {
                (arg, SeccompCmpOp::MaskedEq(mask.cast_unsigned().into()), are.cast_unsigned())
            }
            ArgCondition::Not(index, value) => (index, SeccompCmpOp::Ne, value.cast_unsigned()),
            ArgCondition::Own(index) => (index, SeccompCmpOp::Eq, std::process::id()),
        };
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, how, value.into())
    };
    args.iter().map(condition).collect()
}
