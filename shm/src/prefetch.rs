//! Fetching memory ahead of its use.

/// Asks the processor for the cache line of this value's first byte, ahead of its use. Reads nothing, changes nothing, waits for
/// nothing; a processor without such a hint does nothing.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_ahead(value, 0);
}

/// The same for the line so many bytes further on, which may be anybody's or nobody's.
#[inline(always)]
pub fn prefetch_ahead<T>(value: &T, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: PREFETCHT0 is part of every x86-64 (SSE). It is a hint: it never faults and reads nothing that the program sees.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast::<i8>().wrapping_add(bytes));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: PRFM is part of every aarch64. It is a hint: it never faults and reads nothing that the program sees.
    unsafe {
        let ahead = core::ptr::from_ref(value).cast::<u8>().wrapping_add(bytes);
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) ahead, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = (value, bytes);
}
