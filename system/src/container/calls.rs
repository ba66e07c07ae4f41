//! The system calls that a container refuses: those that namespaces do not confine. All others stay
//! allowed, since a runtime may need them; this is a deny list.

use crate::sandbox::{ArgCondition, SandboxError, SyscallRule, refuse_calls};

/// The number is the same on all architectures; the crate does not have it for all.
const FCHMODAT2: i64 = 452;
const SET_USER_ID: i32 = 0o4000;
const SET_GROUP_ID: i32 = 0o2000;

/// `_IOW('X', NUMBER, struct space_resv)`: the older `ioctl` form of `fallocate`.
const fn fallocate_ioctl(number: i32) -> ArgCondition {
    ArgCondition::Is(1, 0x4030_5800 | number)
}

/// The calls that fail with EPERM.
const REFUSED: &[SyscallRule] = &[
    SyscallRule {
        number: libc::SYS_socket,
        when: &[&[
            ArgCondition::Not(0, libc::AF_UNIX),
            ArgCondition::Not(0, libc::AF_INET),
            ArgCondition::Not(0, libc::AF_INET6),
            ArgCondition::Not(0, libc::AF_NETLINK),
        ]],
        why: "the hypervisor (AF_VSOCK) and what else is no network of a namespace",
    },
    SyscallRule {
        number: libc::SYS_madvise,
        when: &[&[ArgCondition::Is(2, libc::MADV_REMOVE)]],
        why: "holes in memory that others have mapped as well",
    },
    refused(libc::SYS_process_madvise, "the same, of its own memory (Linux 6.13)"),
    SyscallRule {
        number: libc::SYS_ioctl,
        when: &[
            &[fallocate_ioctl(40)],
            &[fallocate_ioctl(41)],
            &[fallocate_ioctl(42)],
            &[fallocate_ioctl(43)],
            &[fallocate_ioctl(57)],
        ],
        why: "the same by a descriptor: reserve, unreserve, zero a range",
    },
    refused(libc::SYS_io_uring_setup, "calls that no filter sees, sockets among them"),
    refused(libc::SYS_keyctl, "keys of whoever started the launcher"),
    refused(libc::SYS_add_key, "the same"),
    refused(libc::SYS_request_key, "the same"),
    refused(libc::SYS_perf_event_open, "what others do on a core"),
    refused(libc::SYS_bpf, "the kernel"),
    // Its stderr is a file of the host, which it may write.
    refuse_setuid::<1>(libc::SYS_fchmod),
    refuse_setuid::<2>(libc::SYS_fchmodat),
    refuse_setuid::<2>(FCHMODAT2),
    #[cfg(target_arch = "x86_64")]
    refuse_setuid::<1>(libc::SYS_chmod),
];

/// The calls that fail with EOPNOTSUPP, after which a C library reserves space for a file itself.
const UNSUPPORTED: &[SyscallRule] =
    &[refused(libc::SYS_fallocate, "holes in memory that others have mapped as well")];

const fn refused(number: i64, why: &'static str) -> SyscallRule {
    SyscallRule { number, when: &[], why }
}

/// Refuses a call that sets the mode of a file, in that argument, if it sets the set-user-id or
/// set-group-id bit.
const fn refuse_setuid<const ARG: u8>(number: i64) -> SyscallRule {
    SyscallRule {
        number,
        when: &[
            &[ArgCondition::Bits { arg: ARG, mask: SET_USER_ID, are: SET_USER_ID }],
            &[ArgCondition::Bits { arg: ARG, mask: SET_GROUP_ID, are: SET_GROUP_ID }],
        ],
        why: "a file that makes others this user",
    }
}

/// Refuses the system calls that namespaces do not confine, for the calling thread and its
/// descendants.
pub(super) fn refuse_listed() -> Result<(), SandboxError> {
    refuse_calls(REFUSED.iter(), libc::EPERM)?;
    refuse_calls(UNSUPPORTED.iter(), libc::EOPNOTSUPP)
}
