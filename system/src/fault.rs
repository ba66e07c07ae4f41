//! Faults that a process injects into itself, also inside the sandbox.

use core::num::NonZeroUsize;
use core::time::Duration;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use shm::sync::AtomicU64;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;
use std::path::Path;

/// Kills the calling process with SIGKILL.
pub fn kill() -> ! {
    let _ = raise(Signal::SIGKILL);
    // Not reached: the signal cannot be blocked.
    std::process::abort()
}

/// Stops the calling process with SIGSTOP; it continues after SIGCONT.
pub fn stop() {
    let _ = raise(Signal::SIGSTOP);
}

/// Writes to memory without access rights, which raises SIGSEGV.
pub fn segv() -> ! {
    const PAGE: NonZeroUsize = NonZeroUsize::new(4096).expect("4096");
    // SAFETY: a new private mapping at an address that the kernel chooses.
    let page = unsafe { mmap_anonymous(None, PAGE, ProtFlags::PROT_NONE, MapFlags::MAP_PRIVATE) };
    if let Ok(page) = page {
        // SAFETY: the pointer is aligned and not null. The page may not be accessed, so the write
        // does not take place: the kernel sends SIGSEGV instead, and the program does not continue
        // after it.
        unsafe { page.cast::<u8>().write_volatile(1) }
    }
    std::process::abort()
}

/// Writes to the code of this function, which raises SIGSEGV.
pub fn write_code() -> ! {
    let code = core::ptr::with_exposed_provenance_mut::<u8>(write_code as *const () as usize);
    // SAFETY: code may not be written, so the write does not take place: the kernel sends SIGSEGV
    // instead, and the program does not continue after it.
    unsafe { code.write_volatile(0xc3) }
    std::process::abort()
}

/// Aborts this process with core dumps enabled. The kernel writes its memory, up to `max_bytes`,
/// into a file in `folder`, or gives it to the program of `core_pattern`. None is written where
/// that names a fixed place for the files, which nobody here cleans up, or where the process may
/// not have one.
pub fn dump_core(folder: &Path, max_bytes: u64) -> ! {
    // Without any of this it aborts, and leaves less.
    let _ = allow_core(folder, max_bytes);
    std::process::abort()
}

fn allow_core(folder: &Path, max_bytes: u64) -> io::Result<()> {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern")?;
    if pattern.starts_with('/') {
        return Ok(());
    }
    if !pattern.starts_with('|') {
        std::fs::create_dir_all(folder)?;
        std::env::set_current_dir(folder)?;
    }
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE)?;
    setrlimit(Resource::RLIMIT_CORE, max_bytes.min(hard), hard)?;
    Ok(prctl::set_dumpable(true)?)
}

/// Removes pages from the file of a mapped region (hole punching), which then read as zeros in
/// every process.
pub fn punch(words: &[AtomicU64]) -> io::Result<()> {
    let start = words.as_ptr().cast_mut().cast::<libc::c_void>();
    // SAFETY: the words are mapped and stay so during the call. It makes them zero, which any
    // process that has them mapped may do by a store; they are atomics.
    let result = unsafe { libc::madvise(start, size_of_val(words), libc::MADV_REMOVE) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Moves all threads that wait on the futex at `address` to the futex `own`, so that they miss
/// later wake-ups of the first.
pub fn move_waiters(address: usize, own: &AtomicU64) -> io::Result<()> {
    let (max, to) = (i32::MAX as usize, core::ptr::from_ref(own) as usize);
    // SAFETY: the kernel uses both addresses as keys only: this operation neither reads nor writes
    // memory, and an address that is not mapped is an error.
    let result = unsafe { libc::syscall(libc::SYS_futex, address, libc::FUTEX_REQUEUE, 0, max, to, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Exits the calling process with a code immediately: nothing is dropped, flushed or printed.
pub fn exit(code: i32) -> ! {
    // SAFETY: takes an integer and does not return; no memory is touched.
    unsafe { libc::_exit(code) }
}

/// Idle child processes that hold memory, to exhaust the limits of a container in tests. They exit
/// when this value is dropped, when the parent dies, and after [`Self::MAX_LIFETIME`].
#[derive(Debug)]
pub struct ChildCrowd {
    /// The pipe on which they wait; only this process has its other end.
    wait: PipeReader,
    keep_open: PipeWriter,
}

impl ChildCrowd {
    /// Maximum lifetime of an idle child process.
    pub const MAX_LIFETIME: Duration = Duration::from_secs(10);

    /// Creates a crowd of idle child processes, which is empty at first.
    pub fn new() -> io::Result<Self> {
        let (wait, keep_open) = io::pipe()?;
        Ok(Self { wait, keep_open })
    }

    /// Starts one more child process, and waits until it has written to `bytes` bytes of its
    /// memory.
    ///
    /// # Errors
    /// The system refuses to start a process, or a child has ended, before or after it had its
    /// memory.
    pub fn add(&mut self, bytes: usize) -> io::Result<()> {
        let (mut ready_reader, ready_writer) = io::pipe()?;
        let (wait, keep_open, ready_fd) =
            (self.wait.as_raw_fd(), self.keep_open.as_raw_fd(), ready_writer.as_raw_fd());
        // SAFETY: the child calls nothing but `run_crowd_child`, which makes system calls and
        // writes to memory that it has mapped itself: it takes no lock, allocates nothing and drops
        // nothing, and it does not return.
        if let ForkResult::Child = unsafe { fork() }? {
            run_crowd_child(bytes, wait, keep_open, ready_fd)
        }
        drop(ready_writer);
        // A killed child sends nothing.
        ready_reader.read_exact(&mut [0])?;
        // If memory is short, the kernel may have killed another child.
        match waitpid(None, Some(WaitPidFlag::WNOHANG))? {
            WaitStatus::StillAlive => Ok(()),
            _ => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }
}

/// The body of a child, in a forked copy of a process that has other threads.
fn run_crowd_child(bytes: usize, wait: i32, keep_open: i32, ready_writer: i32) -> ! {
    const PAGE: usize = 4096;
    if let Some(length) = NonZeroUsize::new(bytes) {
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new private mapping at an address that the kernel chooses.
        let Ok(memory) = (unsafe { mmap_anonymous(None, length, access, MapFlags::MAP_PRIVATE) }) else {
            exit(1)
        };
        for offset in (0..bytes).step_by(PAGE) {
            // SAFETY: the offset is within the writable mapping made above, which no other thread
            // uses.
            unsafe { memory.cast::<u8>().add(offset).write_volatile(1) };
        }
    }
    let mut hang_up = libc::pollfd { fd: wait, events: libc::POLLIN, revents: 0 };
    // SAFETY: three system calls on descriptors that are open in this copy; `write` reads one byte
    // of a constant, `poll` one structure that lives until it has returned. The end that keeps
    // `wait` from ending is closed here, so that only the first process has it.
    unsafe {
        libc::close(keep_open);
        libc::write(ready_writer, [1u8].as_ptr().cast(), 1);
        libc::poll(&raw mut hang_up, 1, ChildCrowd::MAX_LIFETIME.as_millis() as i32);
    }
    exit(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn crowd_holds_memory_until_owner_ends() {
        let _guard = crate::only_one_has_children();
        let mut crowd = ChildCrowd::new().unwrap();
        for bytes in [0, 1, 1 << 20] {
            crowd.add(bytes).unwrap();
        }
        assert!(crowd.add(1 << 60).is_err(), "more than the machine has");
        let mut wait = crowd.wait.try_clone().unwrap();
        drop(crowd);
        assert_eq!(wait.read(&mut [0]).unwrap(), 0, "no child holds the other end");
    }
}
