//! System calls by which a thread could reach around its protection key: refused for this thread
//! alone.

use crate::sandbox::{ArgCondition, SandboxError, SyscallRule, call, refuse_in_thread};

/// Calls that change the rights of memory, write it by another way, or replace the program.
const REFUSED: &[SyscallRule] = &[
    call(libc::SYS_pkey_alloc),
    call(libc::SYS_pkey_free),
    call(libc::SYS_mprotect),
    call(libc::SYS_process_vm_writev),
    call(libc::SYS_process_madvise),
    call(libc::SYS_ptrace),
    call(libc::SYS_execve),
    call(libc::SYS_execveat),
    // Signals to others.
    call(libc::SYS_kill),
    call(libc::SYS_tkill),
    call(libc::SYS_rt_sigqueueinfo),
    call(libc::SYS_rt_tgsigqueueinfo),
    call(libc::SYS_pidfd_send_signal),
];

/// The call that ends the process. It raises SIGSYS, so that it ends the thread.
const ENDS_THREAD: &[SyscallRule] = &[call(libc::SYS_exit_group)];

/// Refuses these calls to the calling thread, and to those that it starts. It can still give back
/// the key of its stack, and raise signals on itself that its handler contains.
pub(super) fn restrict(stack: usize) -> Result<(), SandboxError> {
    // SAFETY: no arguments.
    let thread = unsafe { libc::gettid() };
    // The lower half of the address, which is what a condition compares.
    let stack = stack as u32;
    let own = [
        rule(libc::SYS_pkey_mprotect, &[ArgCondition::Not(0, stack.cast_signed())]),
        rule(libc::SYS_pkey_mprotect, &[ArgCondition::Not(3, 0)]),
        rule(libc::SYS_tgkill, &[ArgCondition::Not(1, thread)]),
        rule(libc::SYS_tgkill, &[ArgCondition::Is(2, libc::SIGKILL)]),
        rule(libc::SYS_tgkill, &[ArgCondition::Is(2, libc::SIGSTOP)]),
    ];
    refuse_in_thread(REFUSED.iter().chain(&own), Some(libc::EPERM))?;
    refuse_in_thread(ENDS_THREAD.iter(), None)
}

/// Lists a call with conditions that are known when the thread starts. A rule lives as long as the
/// program: there are a few for each start of a strategy.
fn rule(number: i64, conditions: &[ArgCondition]) -> SyscallRule {
    let conditions: &'static [ArgCondition] = conditions.to_vec().leak();
    SyscallRule { number, when: vec![conditions].leak() }
}
