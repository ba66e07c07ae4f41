//! Faults that a process does to itself, also inside the sandbox. Also from inside the sandbox.

use core::num::NonZeroUsize;
use core::time::Duration;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use shm::sync::AtomicU64;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;

/// Sends itself SIGKILL.
pub fn kill() -> ! {
    let _ = raise(Signal::SIGKILL);
    // Not reached: nothing can be done against that signal.
    std::process::abort()
}

/// Sends itself SIGSTOP; goes on when somebody sends SIGCONT.
pub fn stop() {
    let _ = raise(Signal::SIGSTOP);
}

/// Writes to memory that it has no right to: SIGSEGV.
pub fn segv() -> ! {
    const PAGE: NonZeroUsize = NonZeroUsize::new(4096).expect("4096");
    // SAFETY: a new mapping, at a place of the kernel's choice, of memory that nobody else uses.
    let page = unsafe { mmap_anonymous(None, PAGE, ProtFlags::PROT_NONE, MapFlags::MAP_PRIVATE) };
    if let Ok(page) = page {
        // SAFETY: the pointer is aligned and not null. The page may not be accessed, so the write
        // does not take place: the kernel sends SIGSEGV instead, and the program does not go on
        // behind it.
        unsafe { page.cast::<u8>().write_volatile(1) }
    }
    std::process::abort()
}

/// Punches a hole into the file behind a region, as far as it is mapped: everybody who has it
/// mapped reads zeros from there on.
///
/// # Errors
/// What the system refused.
pub fn punch(words: &[AtomicU64]) -> io::Result<()> {
    let start = words.as_ptr().cast_mut().cast::<libc::c_void>();
    // SAFETY: the words are mapped and stay so during the call. It makes them zero, which any
    // process that has them mapped may do by a store; they are atomics.
    let result = unsafe { libc::madvise(start, size_of_val(words), libc::MADV_REMOVE) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends with that code at once: nothing is dropped, flushed or said.
pub fn exit(code: i32) -> ! {
    // SAFETY: takes an integer and does not return; no memory is touched.
    unsafe { libc::_exit(code) }
}

/// Processes that this one has started for nothing but to be there: each holds some memory. They
/// end with this value, with the process that has it, and after [`Crowd::AT_MOST`].
#[derive(Debug)]
pub struct Crowd {
    /// What they wait on: its other end is this process's alone.
    wait: PipeReader,
    hold: PipeWriter,
}

impl Crowd {
    /// How long one of them lives at most.
    pub const AT_MOST: Duration = Duration::from_secs(10);

    /// Nobody yet.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn new() -> io::Result<Self> {
        let (wait, hold) = io::pipe()?;
        Ok(Self { wait, hold })
    }

    /// Starts one more, and waits until it has written to so many bytes of memory of its own.
    ///
    /// # Errors
    /// The system lets no process be started, or one has ended: before it had its memory, or since.
    pub fn add(&mut self, bytes: usize) -> io::Result<()> {
        let (mut told, tell) = io::pipe()?;
        let (wait, hold, tell_fd) = (self.wait.as_raw_fd(), self.hold.as_raw_fd(), tell.as_raw_fd());
        // SAFETY: the child calls nothing but `stand`, which makes system calls and writes to
        // memory that it has mapped itself: it takes no lock, allocates nothing and drops nothing,
        // and it does not return.
        if let ForkResult::Child = unsafe { fork() }? {
            stand(bytes, wait, hold, tell_fd)
        }
        drop(tell);
        // Nothing comes from one that is dead.
        told.read_exact(&mut [0])?;
        // Where memory is short the kernel may have taken it from another one of them.
        match waitpid(None, Some(WaitPidFlag::WNOHANG))? {
            WaitStatus::StillAlive => Ok(()),
            _ => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }
}

/// What one of a crowd does, in a process that is a copy of one with other threads.
fn stand(bytes: usize, wait: i32, hold: i32, tell: i32) -> ! {
    const PAGE: usize = 4096;
    if let Some(length) = NonZeroUsize::new(bytes) {
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, at a place of the kernel's choice, of memory that nobody else
        // uses.
        let Ok(memory) = (unsafe { mmap_anonymous(None, length, access, MapFlags::MAP_PRIVATE) }) else {
            exit(1)
        };
        for place in (0..bytes).step_by(PAGE) {
            // SAFETY: the place is within what was just mapped for writing, and nobody else has it.
            unsafe { memory.cast::<u8>().add(place).write_volatile(1) };
        }
    }
    let mut ends = libc::pollfd { fd: wait, events: libc::POLLIN, revents: 0 };
    // SAFETY: three system calls on descriptors that are open in this copy; `write` reads one byte
    // of a constant, `poll` one structure that lives until it has returned. The end that keeps
    // `wait` from ending is closed here, so that only the first process has it.
    unsafe {
        libc::close(hold);
        libc::write(tell, [1u8].as_ptr().cast(), 1);
        libc::poll(&raw mut ends, 1, Crowd::AT_MOST.as_millis() as i32);
    }
    exit(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn a_crowd_holds_its_memory_and_goes_with_its_owner() {
        let _guard = crate::only_one_has_children();
        let mut crowd = Crowd::new().unwrap();
        for bytes in [0, 1, 1 << 20] {
            crowd.add(bytes).unwrap();
        }
        assert!(crowd.add(1 << 60).is_err(), "more than there is");
        let mut tell = crowd.wait.try_clone().unwrap();
        drop(crowd);
        assert_eq!(tell.read(&mut [0]).unwrap(), 0, "nobody holds the other end");
    }
}
