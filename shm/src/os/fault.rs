//! What a process does to itself for a fault on purpose. Also from inside the sandbox.

use core::num::NonZeroUsize;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};
use nix::sys::signal::{Signal, raise};

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
        // SAFETY: the pointer is aligned and not null. The page may not be accessed, so the write does not take place: the
        // kernel sends SIGSEGV instead, and the program does not go on behind it.
        unsafe { page.cast::<u8>().write_volatile(1) }
    }
    std::process::abort()
}

/// Ends with that code at once: nothing is dropped, flushed or said.
pub fn exit(code: i32) -> ! {
    // SAFETY: takes an integer and does not return; no memory is touched.
    unsafe { libc::_exit(code) }
}
