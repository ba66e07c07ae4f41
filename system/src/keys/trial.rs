//! Whether this machine has protection keys that can separate threads.

use super::register::{Key, Rights};
use core::ffi::{c_int, c_void};
use core::{mem, ptr};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use std::sync::OnceLock;

/// The child's exit code if the handler ran.
const HANDLED: i32 = 7;

/// Returns why this machine cannot isolate by memory protection keys; `None` if it can. Tries it
/// once, in a child process.
pub fn missing() -> Option<String> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    FOUND.get_or_init(find_missing).clone()
}

fn find_missing() -> Option<String> {
    if cfg!(not(all(target_arch = "x86_64", target_env = "gnu"))) {
        return Some("protection keys are supported on x86-64 with the GNU C library".into());
    }
    let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = facts.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    for (flag, why) in
        [("pku", "the CPU has no protection keys"), ("ospke", "the kernel has them switched off")]
    {
        if !flags.split_ascii_whitespace().any(|found| found == flag) {
            return Some(format!("{why} (no {flag} in /proc/cpuinfo)"));
        }
    }
    // SAFETY: the child makes system calls on memory that it has mapped itself, and ends: it takes
    // no lock, allocates nothing, and does not return.
    match unsafe { fork() } {
        Ok(ForkResult::Child) => try_in_child(),
        Ok(ForkResult::Parent { child }) => match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, HANDLED)) => None,
            Ok(WaitStatus::Exited(_, _)) => Some("the kernel gives this process no protection key".into()),
            _ => Some(
                "the kernel delivers no signal to a thread that may not write key 0 (Linux 6.12 does)".into(),
            ),
        },
        Err(error) => Some(format!("protection keys could not be tried: {error}")),
    }
}

/// Closes the rights to key 0 and writes to its memory: a signal on a stack of key 0 must follow.
fn try_in_child() -> ! {
    extern "C" fn handled(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        // SAFETY: ends the process.
        unsafe { libc::_exit(HANDLED) }
    }
    const STACK_BYTES: usize = 64 << 10;
    // SAFETY: a new private mapping, plain structures of C that live until the process ends, and a
    // store of the value that is there already.
    unsafe {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = libc::mmap(ptr::null_mut(), STACK_BYTES, rights, flags, -1, 0);
        let stack = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: STACK_BYTES };
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handled as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if memory == libc::MAP_FAILED
            || Key::allocate().is_err()
            || libc::sigaltstack(&raw const stack, ptr::null_mut()) != 0
            || libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut()) != 0
        {
            libc::_exit(1)
        }
        let word = memory.cast::<u64>();
        Rights::writing([]).apply();
        word.write_volatile(0);
        libc::_exit(2)
    }
}
