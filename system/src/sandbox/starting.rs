//! The system calls of a program that is not ours: those that it starts with, and those that it keeps once it has attached.

use super::calls::{Arg, Call, call};

/// What a C library makes of `fork` and of a new thread alike.
const NEW_THREAD: Call = Call {
    number: libc::SYS_clone,
    when: &[&[Arg::Bits { arg: 0, mask: libc::CLONE_THREAD, are: libc::CLONE_THREAD }]],
    why: "the thread that watches the launcher; no process",
};

/// Beside what a strategy keeps: to be executed, to be linked with its libraries, to read what it is to know, to attach, to go into the sandbox.
pub(super) const STARTING: &[Call] = &[
    call(libc::SYS_execve, "become the program; a script becomes it at its end"),
    call(libc::SYS_mmap, "libraries, segments"),
    call(libc::SYS_mprotect, "libraries, the end of a stack"),
    call(libc::SYS_mremap, "memory"),
    call(libc::SYS_openat, "libraries, what is to be known: landlock says which, and that none is written"),
    call(libc::SYS_read, "the same"),
    call(libc::SYS_pread64, "the same"),
    call(libc::SYS_readv, "the same"),
    call(libc::SYS_lseek, "the same"),
    call(libc::SYS_close, "the same; descriptors that are mapped"),
    call(libc::SYS_close_range, "the same"),
    call(libc::SYS_getdents64, "which files there are, which threads"),
    call(libc::SYS_readlinkat, "where the program is"),
    call(libc::SYS_newfstatat, "which file that is, and how long"),
    call(libc::SYS_fstat, "the same"),
    call(libc::SYS_statx, "the same"),
    call(libc::SYS_faccessat, "whether there is such a file"),
    call(libc::SYS_faccessat2, "the same"),
    call(libc::SYS_getcwd, "the folder"),
    call(libc::SYS_fcntl, "whether a descriptor is open"),
    call(libc::SYS_dup, "standard input"),
    call(libc::SYS_dup3, "the same"),
    call(libc::SYS_write, "say something"),
    call(libc::SYS_writev, "the same"),
    call(libc::SYS_set_tid_address, "the first thread"),
    call(libc::SYS_set_robust_list, "a thread"),
    call(libc::SYS_rseq, "a thread"),
    NEW_THREAD,
    Call {
        number: libc::SYS_prctl,
        when: &[
            &[Arg::Is(0, libc::PR_SET_NAME)],
            &[Arg::Is(0, libc::PR_SET_PDEATHSIG)],
            &[Arg::Is(0, libc::PR_SET_TIMERSLACK)],
            &[Arg::Is(0, libc::PR_SET_NO_NEW_PRIVS)],
        ],
        why: "a thread's name, the launcher's death, timers, no more privileges",
    },
    call(libc::SYS_sched_getaffinity, "the cores that there are"),
    Call {
        number: libc::SYS_sched_setaffinity,
        when: &[&[Arg::Is(0, 0)]],
        why: "its own core; not the engine's",
    },
    call(libc::SYS_rt_sigaction, "handlers"),
    call(libc::SYS_ppoll, "wait"),
    Call {
        number: libc::SYS_prlimit64,
        when: &[&[Arg::Is(0, 0)], &[Arg::Own(0)]],
        why: "its own limits, which it has no right to raise; not the engine's",
    },
    call(libc::SYS_getrlimit, "the same"),
    call(libc::SYS_setrlimit, "the same"),
    call(libc::SYS_clock_getres, "the time"),
    call(libc::SYS_uname, "the kernel"),
    call(libc::SYS_sysinfo, "how much memory there is"),
    call(libc::SYS_getuid, "who it is"),
    call(libc::SYS_geteuid, "the same"),
    call(libc::SYS_getgid, "the same"),
    call(libc::SYS_getegid, "the same"),
    call(libc::SYS_getppid, "the launcher"),
    call(libc::SYS_pidfd_open, "the launcher, to see its end"),
    Call {
        number: libc::SYS_madvise,
        when: &[&[Arg::Is(2, libc::MADV_POPULATE_WRITE)], &[Arg::Is(2, libc::MADV_HUGEPAGE)]],
        why: "touch memory ahead",
    },
    call(libc::SYS_capset, "give up what it has not"),
    call(libc::SYS_landlock_create_ruleset, "the sandbox"),
    call(libc::SYS_landlock_add_rule, "the sandbox"),
    call(libc::SYS_landlock_restrict_self, "the sandbox"),
    call(libc::SYS_seccomp, "the sandbox"),
];

/// Beside what a strategy keeps.
pub(super) const KEPT: &[Call] = &[
    Call { number: libc::SYS_write, when: &[&[Arg::Is(0, 1)]], why: "what it says on stdout" },
    call(libc::SYS_getrandom, "random numbers"),
];

/// The call whose arguments a filter cannot see: without it a C library makes threads by the older one.
pub(super) const UNSEEN: &[Call] = &[call(libc::SYS_clone3, "a thread, or a process")];

/// What no strategy does by mistake, or should know that it must not: the process is ended.
pub(super) const DEADLY: &[Call] = &[
    call(libc::SYS_openat, "a file"),
    call(libc::SYS_openat2, "a file"),
    call(libc::SYS_unlinkat, "the end of a file"),
    call(libc::SYS_renameat2, "another file in its place"),
    call(libc::SYS_memfd_create, "memory that nobody counts"),
    call(libc::SYS_socket, "a network"),
    call(libc::SYS_socketpair, "a network"),
    call(libc::SYS_connect, "a network"),
    call(libc::SYS_bind, "a network"),
    call(libc::SYS_execve, "another program"),
    call(libc::SYS_execveat, "another program"),
    Call {
        number: libc::SYS_clone,
        when: &[&[Arg::Bits { arg: 0, mask: libc::CLONE_THREAD, are: 0 }]],
        why: "a process",
    },
    call(libc::SYS_kill, "a signal to somebody"),
    call(libc::SYS_tkill, "the same"),
    call(libc::SYS_pidfd_send_signal, "the same"),
    call(libc::SYS_pidfd_getfd, "somebody's descriptor"),
    call(libc::SYS_ptrace, "somebody's memory"),
    call(libc::SYS_process_vm_readv, "the same"),
    call(libc::SYS_process_vm_writev, "the same"),
    call(libc::SYS_unshare, "a namespace"),
    call(libc::SYS_setns, "a namespace"),
    call(libc::SYS_mount, "a file system"),
    call(libc::SYS_bpf, "the kernel"),
    call(libc::SYS_perf_event_open, "the kernel"),
    call(libc::SYS_io_uring_setup, "calls that no filter sees"),
];

/// The same calls by their older numbers, which only x86-64 has.
#[cfg(target_arch = "x86_64")]
pub(super) mod older {
    use super::{Call, call};

    pub const STARTING: &[Call] = &[
        call(libc::SYS_arch_prctl, "the first thread"),
        call(libc::SYS_open, "a file: landlock says which"),
        call(libc::SYS_access, "whether there is such a file"),
        call(libc::SYS_readlink, "where the program is"),
        call(libc::SYS_stat, "which file that is"),
        call(libc::SYS_lstat, "the same"),
        call(libc::SYS_dup2, "standard input"),
        call(libc::SYS_getpgrp, "a shell"),
    ];

    pub const DEADLY: &[Call] = &[
        call(libc::SYS_open, "a file"),
        call(libc::SYS_creat, "a file"),
        call(libc::SYS_unlink, "the end of a file"),
        call(libc::SYS_rename, "another file in its place"),
        call(libc::SYS_fork, "a process"),
        call(libc::SYS_vfork, "a process"),
    ];
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) mod older {
    use super::Call;

    pub const STARTING: &[Call] = &[];
    pub const DEADLY: &[Call] = &[];
}
