//! The register of a thread's rights, and the keys of the process.

use shm::sync::AtomicU64;
use std::io;

/// A memory protection key (PKU) of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u32);

impl Key {
    /// The protection key of all memory that was given no other key.
    pub const DEFAULT: Self = Self(0);

    /// Allocates a memory protection key for this process. The calling thread may then read and
    /// write memory of the key, and so may the threads that it starts later; no other thread may.
    ///
    /// # Errors
    /// The machine has no keys, or none is free.
    pub fn allocate() -> io::Result<Self> {
        // SAFETY: takes two integers; touches no memory.
        let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, 0) };
        u32::try_from(key).map(Self).map_err(|_| io::Error::last_os_error())
    }

    /// Returns the number of the memory protection key.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Sets this memory protection key on the pages that hold `words`, which are mapped for reading
    /// and writing.
    ///
    /// # Errors
    /// The words do not start at a page.
    pub fn protect(self, words: &[AtomicU64]) -> io::Result<()> {
        self.protect_range(words.as_ptr() as usize, size_of_val(words))
    }

    /// Gives the key to all pages in a range that this process has mapped for reading and writing.
    pub(super) fn protect_range(self, start: usize, bytes: usize) -> io::Result<()> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the pages stay mapped, readable and writable. A thread without rights to the key
        // gets a SIGSEGV where it would have accessed them: no memory is accessed wrongly.
        let result = unsafe { libc::syscall(libc::SYS_pkey_mprotect, start, bytes, rights, self.0) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// The access rights of a thread to memory by protection key: a value of the PKRU register with two
/// bits per key. The lower bit refuses every access and the higher one writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights(u32);

impl Rights {
    /// The access rights that allow every access to memory of every protection key.
    pub const OPEN: Self = Self(0);

    /// Creates the rights to write memory of these protection keys only, and to read all memory.
    pub fn writing(keys: impl IntoIterator<Item = Key>) -> Self {
        /// Refuses writes for each key.
        const READ: u32 = 0xaaaa_aaaa;
        Self(keys.into_iter().fold(READ, |bits, key| bits & !(0b11 << (2 * key.0))))
    }

    /// Returns these access rights as the value of the CPU's PKRU register.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the calling thread's access rights to memory, from its PKRU register.
    ///
    /// # Panics
    /// On an architecture that has none.
    #[inline]
    pub fn current() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let bits: u32;
            // SAFETY: RDPKRU reads a register into EAX and zeroes EDX. A machine without it raises
            // SIGILL; callers have a key, so the machine has it.
            unsafe {
                core::arch::asm!(".byte 0x0f, 0x01, 0xee", in("ecx") 0, out("eax") bits, out("edx") _,
                    options(nomem, nostack, preserves_flags));
            }
            Self(bits)
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("a key was had, which only x86-64 has")
    }

    /// Gives these access rights to memory to the calling thread, by writing its PKRU register
    /// (WRPKRU).
    ///
    /// # Panics
    /// On an architecture that has none.
    #[inline]
    pub fn apply(self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: WRPKRU takes EAX, and zeroes in ECX and EDX. It changes which accesses raise
        // SIGSEGV, and none is made wrongly. Not `nomem`: no access moves across it.
        unsafe {
            core::arch::asm!(".byte 0x0f, 0x01, 0xef", in("eax") self.0, in("ecx") 0, in("edx") 0,
                options(nostack, preserves_flags));
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("a key was had, which only x86-64 has")
    }
}

/// Lets the calling thread, and those that it starts from now on, access the memory of all keys.
/// Does nothing where there are no keys.
///
/// Each thread of a process that starts or joins others needs this: the C library links its threads
/// through their stacks, some of which carry a key.
pub fn open_all() {
    if is_enabled() {
        Rights::OPEN.apply();
    }
}

/// Returns `true` if the kernel has switched on the register of rights.
fn is_enabled() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        /// OSPKE, in ECX of leaf 7.
        const ENABLED: u32 = 1 << 4;
        core::arch::x86_64::__cpuid_count(7, 0).ecx & ENABLED != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_refuse_writes_of_all_other_keys() {
        assert_eq!(Rights::writing([]).bits(), 0xaaaa_aaaa);
        assert_eq!(Rights::writing([Key(1), Key(15)]).bits(), 0x2aaa_aaa2);
        assert_eq!(Rights::OPEN.bits(), 0);
    }
}
