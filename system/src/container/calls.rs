//! The system calls that a container refuses: those that namespaces do not confine. All others stay
//! allowed, since a runtime may need them; this is a deny list.

use crate::sandbox::{ArgCondition, SyscallRule, call};

/// The number is the same on all architectures; the crate does not have it for all.
const FCHMODAT2: i64 = 452;
/// The same (Linux 6.7).
const FUTEX_REQUEUE: i64 = 456;
const SET_USER_ID: i32 = 0o4000;
const SET_GROUP_ID: i32 = 0o2000;

/// `_IOW('X', NUMBER, struct space_resv)`: the older `ioctl` form of `fallocate`.
const fn fallocate_ioctl(number: i32) -> ArgCondition {
    ArgCondition::Is(1, 0x4030_5800 | number)
}

/// The calls that fail with EPERM.
pub(super) const REFUSED: &[SyscallRule] = &[
    // The hypervisor (AF_VSOCK), and whatever else a namespace does not separate.
    SyscallRule {
        number: libc::SYS_socket,
        when: &[&[
            ArgCondition::Not(0, libc::AF_UNIX),
            ArgCondition::Not(0, libc::AF_INET),
            ArgCondition::Not(0, libc::AF_INET6),
            ArgCondition::Not(0, libc::AF_NETLINK),
        ]],
    },
    // Holes in memory that others have mapped as well.
    SyscallRule { number: libc::SYS_madvise, when: &[&[ArgCondition::Is(2, libc::MADV_REMOVE)]] },
    call(libc::SYS_process_madvise), // The same, of its own memory (Linux 6.13).
    // The same by a descriptor: reserve, unreserve, zero a range.
    SyscallRule {
        number: libc::SYS_ioctl,
        when: &[
            &[fallocate_ioctl(40)],
            &[fallocate_ioctl(41)],
            &[fallocate_ioctl(42)],
            &[fallocate_ioctl(43)],
            &[fallocate_ioctl(57)],
        ],
    },
    // A lease, for which reading is enough, delays or fails the next open of the file.
    SyscallRule { number: libc::SYS_fcntl, when: &[&[ArgCondition::Is(1, libc::F_SETLEASE)]] },
    call(libc::SYS_io_uring_setup), // Calls that no filter sees, sockets among them.
    call(libc::SYS_keyctl),         // Keys of the launcher's user.
    call(libc::SYS_add_key),        // The same.
    call(libc::SYS_request_key),    // The same.
    call(libc::SYS_perf_event_open), // Activity of other processes on a core.
    call(libc::SYS_bpf),            // The kernel.
    // Its stderr is a file of the host, which it may write.
    refuse_setuid::<1>(libc::SYS_fchmod),
    refuse_setuid::<2>(libc::SYS_fchmodat),
    refuse_setuid::<2>(FCHMODAT2),
    #[cfg(target_arch = "x86_64")]
    refuse_setuid::<1>(libc::SYS_chmod),
];

/// The calls that fail with ENOSYS, as on a kernel that does not have them. They move the threads
/// that wait on one word to another word, or wake those of two. A container maps words on which
/// other processes wait.
pub(super) const MISSING: &[SyscallRule] = &[
    // Private ones are keyed by the address space: they find its own threads only. Some C libraries
    // (musl, glibc before 2.25) need them for condition variables.
    SyscallRule {
        number: libc::SYS_futex,
        when: &[&[
            ArgCondition::Bits { arg: 1, mask: libc::FUTEX_PRIVATE_FLAG, are: 0 },
            ArgCondition::Not(1, libc::FUTEX_WAIT),
            ArgCondition::Not(1, libc::FUTEX_WAKE),
            ArgCondition::Not(1, libc::FUTEX_WAIT_BITSET),
            ArgCondition::Not(1, libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME),
            ArgCondition::Not(1, libc::FUTEX_WAKE_BITSET),
        ]],
    },
    // Its flags are in memory, which no filter reads.
    call(FUTEX_REQUEUE),
];

/// The calls that fail with EOPNOTSUPP, after which a C library reserves space for a file itself.
/// Holes in memory that others have mapped as well.
pub(super) const UNSUPPORTED: &[SyscallRule] = &[call(libc::SYS_fallocate)];

/// Refuses a call that sets the mode of a file, in that argument, if it sets the set-user-id or
/// set-group-id bit.
const fn refuse_setuid<const ARG: u8>(number: i64) -> SyscallRule {
    SyscallRule {
        number,
        when: &[
            &[ArgCondition::Bits { arg: ARG, mask: SET_USER_ID, are: SET_USER_ID }],
            &[ArgCondition::Bits { arg: ARG, mask: SET_GROUP_ID, are: SET_GROUP_ID }],
        ],
    }
}
