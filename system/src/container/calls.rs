//! The system calls that a container refuses: what reaches the machine past every namespace. All
//! others are left, since a runtime may need them: this is no list of what is allowed.

use crate::sandbox::{Arg, Call, SandboxError, refuse_calls};

/// The same number for all processors; the crate does not have it for all.
const FCHMODAT2: i64 = 452;
const SET_USER_ID: i32 = 0o4000;
const SET_GROUP_ID: i32 = 0o2000;

/// `_IOW('X', NUMBER, struct space_resv)`: what `fallocate` does, by the older way of `ioctl`.
const fn space(number: i32) -> Arg {
    Arg::Is(1, 0x4030_5800 | number)
}

/// Refused with EPERM.
const REFUSED: &[Call] = &[
    Call {
        number: libc::SYS_socket,
        when: &[&[
            Arg::Not(0, libc::AF_UNIX),
            Arg::Not(0, libc::AF_INET),
            Arg::Not(0, libc::AF_INET6),
            Arg::Not(0, libc::AF_NETLINK),
        ]],
        why: "the hypervisor (AF_VSOCK) and what else is no network of a namespace",
    },
    Call {
        number: libc::SYS_madvise,
        when: &[&[Arg::Is(2, libc::MADV_REMOVE)]],
        why: "holes in memory that others have mapped as well",
    },
    refused(libc::SYS_process_madvise, "the same, of its own memory (Linux 6.13)"),
    Call {
        number: libc::SYS_ioctl,
        when: &[&[space(40)], &[space(41)], &[space(42)], &[space(43)], &[space(57)]],
        why: "the same by a descriptor: reserve, unreserve, zero a range",
    },
    refused(libc::SYS_io_uring_setup, "calls that no filter sees, sockets among them"),
    refused(libc::SYS_keyctl, "keys of whoever started the launcher"),
    refused(libc::SYS_add_key, "the same"),
    refused(libc::SYS_request_key, "the same"),
    refused(libc::SYS_perf_event_open, "what others do on a core"),
    refused(libc::SYS_bpf, "the kernel"),
    // What it says goes to a file of the host's, which it may write.
    rights(libc::SYS_fchmod, 1),
    rights(libc::SYS_fchmodat, 2),
    rights(FCHMODAT2, 2),
    #[cfg(target_arch = "x86_64")]
    rights(libc::SYS_chmod, 1),
];

/// Refused with EOPNOTSUPP, after which a C library reserves room for a file in its own way.
const UNSUPPORTED: &[Call] =
    &[refused(libc::SYS_fallocate, "holes in memory that others have mapped as well")];

const fn refused(number: i64, why: &'static str) -> Call {
    Call { number, when: &[], why }
}

/// A call that gives a file rights, in that argument, where these let who executes it be another
/// user.
const fn rights(number: i64, arg: u8) -> Call {
    const FIRST: &[&[Arg]] = &[
        &[Arg::Bits { arg: 1, mask: SET_USER_ID, are: SET_USER_ID }],
        &[Arg::Bits { arg: 1, mask: SET_GROUP_ID, are: SET_GROUP_ID }],
    ];
    const SECOND: &[&[Arg]] = &[
        &[Arg::Bits { arg: 2, mask: SET_USER_ID, are: SET_USER_ID }],
        &[Arg::Bits { arg: 2, mask: SET_GROUP_ID, are: SET_GROUP_ID }],
    ];
    Call { number, when: if arg == 1 { FIRST } else { SECOND }, why: "a file that makes others this user" }
}

/// Refuses them, to the calling thread and all that it starts.
pub(super) fn refuse() -> Result<(), SandboxError> {
    refuse_calls(REFUSED.iter(), libc::EPERM)?;
    refuse_calls(UNSUPPORTED.iter(), libc::EOPNOTSUPP)
}
