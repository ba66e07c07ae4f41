//! The area of restartable sequences (rseq), which the kernel writes when it returns to a thread.
//!
//! It lies among the thread's variables, which carry the thread's key. The kernel writes it with
//! the rights of the moment: those of a signal handler that has not opened its rights yet do not
//! include the key, and the kernel would kill the process. So such a thread has no area.

use core::ffi::CStr;
use std::io;

/// The signature with which the C library registers areas on x86-64.
const SIGNATURE: u32 = 0x5305_3053;
const UNREGISTER: i32 = 1;

/// The area of the calling thread, which the kernel does not write until it is registered again.
#[derive(Debug)]
pub(super) struct UnregisteredArea {
    address: usize,
    bytes: u32,
}

impl UnregisteredArea {
    /// Unregisters the area of the calling thread; `None`: the C library registered none.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(super) fn new() -> io::Result<Option<Self>> {
        let (Some(offset), Some(size)) =
            (variable::<isize>(c"__rseq_offset"), variable::<u32>(c"__rseq_size").filter(|size| *size > 0))
        else {
            return Ok(None);
        };
        let address = thread_pointer().wrapping_add_signed(offset);
        // The C library says which part of the area is in use, not which length it registered.
        for bytes in [32, size, size.next_multiple_of(32)] {
            if call(address, bytes, UNREGISTER) == 0 {
                return Ok(Some(Self { address, bytes }));
            }
        }
        Err(io::Error::last_os_error())
    }

    /// Registers the area again, for the calling thread, which is the one that had it.
    pub(super) fn register(&self) {
        // Without it the C library asks the kernel for the thread's core.
        call(self.address, self.bytes, 0);
    }
}

fn call(address: usize, bytes: u32, flags: i32) -> i64 {
    // SAFETY: the thread's own area, which lives as long as the thread; the kernel checks it.
    unsafe { libc::syscall(libc::SYS_rseq, address, bytes, flags, SIGNATURE) }
}

/// Returns a variable of the C library, which older ones do not have.
fn variable<T: Copy>(name: &CStr) -> Option<T> {
    // SAFETY: a name that ends; both variables are constants of the type that the caller gives.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()).cast::<T>().as_ref() }.copied()
}

/// Returns the address from which the C library counts to the area.
fn thread_pointer() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let pointer: *const u8;
        // SAFETY: the first word of the thread's control block is its own address.
        unsafe {
            core::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly))
        };
        pointer.expose_provenance()
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}
