//! Ordinary work of a process that may disturb its neighbors: each function does one step of it.
//!
//! Threads of one process share page tables, the lock of the address space, descriptors and signal
//! handlers; processes do not. So these steps may stop other threads of the process for a while.

use super::fault::exit;
use core::num::NonZeroUsize;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};
use std::io;

const PAGE: usize = 4096;

/// Starts and reaps a child process that ends at once, at the cost of a copy of all page tables.
/// Returns its id, which is free again.
///
/// # Errors
/// The system refuses to start a process.
pub fn fork_and_wait() -> io::Result<Pid> {
    // SAFETY: the child calls nothing but `_exit`: it takes no lock, allocates nothing and drops
    // nothing.
    match unsafe { fork() }? {
        ForkResult::Child => exit(0),
        // Reaped already: the process ignores its children.
        ForkResult::Parent { child } => match waitpid(child, None) {
            Err(nix::Error::ECHILD) | Ok(_) => Ok(child),
            Err(error) => Err(error.into()),
        },
    }
}

/// Maps `bytes` of new memory, writes to every page if `touch` is set and else to the first page
/// only, and unmaps the memory. This changes the address space, which the kernel announces to every
/// core that runs a thread of the process.
///
/// # Errors
/// The system refuses the mapping.
pub fn map_and_unmap(bytes: NonZeroUsize, touch: bool) -> io::Result<()> {
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new private mapping at an address that the kernel chooses.
    let memory = unsafe { mmap_anonymous(None, bytes, access, MapFlags::MAP_PRIVATE) }?;
    let touched = if touch { bytes.get() } else { PAGE.min(bytes.get()) };
    for offset in (0..touched).step_by(PAGE) {
        // SAFETY: the offset is within the writable mapping made above, which no other thread uses.
        unsafe { memory.cast::<u8>().add(offset).write_volatile(1) };
    }
    // SAFETY: the mapping was made above with this length, and nothing refers to it.
    Ok(unsafe { munmap(memory, bytes.get()) }?)
}

extern "C" fn ignore(_: i32) {}

/// Installs an empty handler for SIGURG, the signal that [`signal_process`] sends.
///
/// # Errors
/// The system refuses the handler.
pub fn handle_signal() -> io::Result<()> {
    let action = SigAction::new(SigHandler::Handler(ignore), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does nothing, so it may interrupt anything.
    unsafe { sigaction(Signal::SIGURG, &action) }?;
    Ok(())
}

/// Sends SIGURG to the calling process, any of whose threads may have to handle it.
///
/// # Errors
/// The system refuses it.
#[expect(clippy::disallowed_methods, reason = "to this process, whose id is no other's while it runs")]
pub fn signal_process() -> io::Result<()> {
    Ok(nix::sys::signal::kill(getpid(), Signal::SIGURG)?)
}

/// Makes a system call that does nearly nothing: it reads the id of the parent process.
///
/// # Errors
/// The system call is refused.
pub fn ask_kernel() -> io::Result<()> {
    // A filter's refusal is the only way in which it fails.
    if getppid().as_raw() < 0 { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn children_leave_nothing_behind() {
        let _guard = crate::only_one_has_children();
        let children: Vec<Pid> = (0..10).map(|_| fork_and_wait().unwrap()).collect();
        let is_there = |child: &&Pid| std::path::Path::new(&format!("/proc/{child}")).exists();
        // An id may have been given to another process meanwhile.
        assert!(children.iter().filter(is_there).count() < 2, "each was waited for");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no address spaces")]
    fn memory_is_given_back() {
        let bytes = NonZeroUsize::new(64 << 20).unwrap();
        let mapped = || std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages = |text: String| text.split(' ').next().unwrap().parse::<u64>().unwrap();
        let before = pages(mapped());
        (0..200).for_each(|round| map_and_unmap(bytes, round == 0).unwrap());
        // Other tests map memory as well.
        assert!(pages(mapped()) < before + 1_000_000, "not 16,384 pages for each round");
        assert!(map_and_unmap(NonZeroUsize::new(1 << 60).unwrap(), false).is_err());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri sends no signals")]
    fn signals_are_survived() {
        handle_signal().unwrap();
        (0..100).for_each(|_| signal_process().unwrap());
        ask_kernel().unwrap();
    }
}
