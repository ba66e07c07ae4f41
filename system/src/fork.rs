//! A function that runs in the child of each `fork`.

use std::io;

/// Registers a function that runs in each child of the C library's `fork`, on its only thread,
/// before `fork` returns there (`pthread_atfork`). It does not run after `vfork`, `posix_spawn` or
/// a bare system call, and stays registered.
///
/// # Errors
/// There is too little memory.
pub fn run_in_children(function: extern "C" fn()) -> io::Result<()> {
    // SAFETY: the function lives as long as its program or library; the C library forgets it when
    // that library is unloaded.
    match unsafe { libc::pthread_atfork(None, None, Some(function)) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};
    use shm::sync::{AtomicU64, Ordering};

    static CHILDREN: AtomicU64 = AtomicU64::new(0);

    extern "C" fn count() {
        CHILDREN.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn function_runs_in_child_only() {
        let _only_one = crate::only_one_has_children();
        run_in_children(count).unwrap();
        // SAFETY: the child reads a number and ends.
        match unsafe { fork() }.unwrap() {
            // SAFETY: it ends the process and runs nothing else.
            ForkResult::Child => unsafe { libc::_exit(CHILDREN.load(Ordering::Relaxed) as i32) },
            ForkResult::Parent { child } => {
                assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 1));
            }
        }
        assert_eq!(CHILDREN.load(Ordering::Relaxed), 0);
    }
}
